/** Recognises a history that the client itself compacted: it begins with a summary in the words of that client. */

const marks: ReadonlyArray<readonly [client: string, pattern: RegExp]> = [
  ["claude", /This session is being continued from a previous conversation/],
  ["codex", /Another language model started to solve this problem and produced a summary/],
  ["gemini", /<state_snapshot>/],
  ["pi", /The conversation history before this point was compacted into the following summary/]
]

/** Messages at the beginning that may be the summary. */
const maxMessages = 4

/** Returns whose summary the first messages of a conversation are, before any was compressed by us; undefined for none. */
export const compactedBy = (messages: ReadonlyArray<string>): string | undefined => {
  for (const message of messages.slice(0, maxMessages)) {
    const found = marks.find(([, pattern]) => pattern.test(message))
    if (found !== undefined) return found[0]
  }
  return undefined
}
