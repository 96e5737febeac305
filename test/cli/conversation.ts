/** What a request holds of a conversation, without the message about the surroundings that opens it. */
export const conversationIn = <C>(contents: ReadonlyArray<C>): ReadonlyArray<C> =>
  JSON.stringify(contents[0] ?? "").includes("<session_context>") ? contents.slice(1) : contents
