/** Recognises a history that the client compacted itself: it begins with that client's summary. */

const marks: ReadonlyArray<readonly [client: string, pattern: RegExp]> = [
  ["claude", /This session is being continued from a previous conversation/],
  ["codex", /Another language model started to solve this problem and produced a summary/],
  ["gemini", /<state_snapshot>/],
  ["pi", /The conversation history before this point was compacted into the following summary/]
]

/** Maximum number of messages at the beginning that may contain the summary. */
const maxMessages = 4

/**
 * Returns the client whose summary begins a conversation that the gateway has not compressed yet. Returns undefined
 * when there is none.
 */
export const compactedBy = (messages: ReadonlyArray<string>): string | undefined => {
  for (const message of messages.slice(0, maxMessages)) {
    const found = marks.find(([, pattern]) => pattern.test(message))
    if (found !== undefined) return found[0]
  }
  return undefined
}
