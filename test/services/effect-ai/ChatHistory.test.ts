import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import { EntryId } from "../../../src/domain/conversation/Conversation.ts"
import { recordedPrefix } from "../../../src/services/effect-ai/ChatHistory.ts"

const said = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

/** Messages of a history, each with the entry that holds it: "1a" is the text "a" of entry 1. */
const recorded = (...messages: ReadonlyArray<string>) =>
  messages.map((each) => ({ message: said(each.slice(1)), entry: EntryId.make(`e${each[0]}`), isMoved: false }))

describe("the recorded messages that a history still begins with", () => {
  for (const [title, held, spoken, expected] of [
    ["are all of them when it continues", ["1a", "2b"], ["a", "b", "c"], 2],
    ["end where a message was changed", ["1a", "2b", "3c"], ["a", "x", "c"], 1],
    ["end where messages were removed", ["1a", "2b"], ["a"], 1],
    ["leave out an entry of which one message was removed", ["1a", "2b", "2c"], ["a", "b"], 1],
    ["leave out an entry of which one message was changed", ["1a", "2b", "2c", "3d"], ["a", "b", "x", "d"], 1],
    ["are none when the first was changed", ["1a"], ["x"], 0],
    ["are none of an empty history", ["1a", "1b"], [], 0]
  ] as const) {
    it(title, () => assert.strictEqual(recordedPrefix(recorded(...held), spoken.map(said)), expected))
  }
})
