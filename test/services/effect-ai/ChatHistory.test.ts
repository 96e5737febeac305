import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "effect/ai/Prompt"
import { EntryId } from "../../../src/domain/conversation/Conversation.ts"
import { movedIn, recordedPrefix, systemsOf } from "../../../src/services/effect-ai/ChatHistory.ts"

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

describe("system messages of a history", () => {
  const all = new Map([..."abc"].map((name) => [name, Prompt.systemMessage({ content: name })]))
  /** Lower-case letters are system messages, upper-case ones are others. */
  const history = (letters: string) => [...letters].map((letter) => all.get(letter) ?? said(letter))
  const movedOf = (letters: string) => history(letters).map((message) => ({ message, entry: undefined, isMoved: true }))
  const shown = (messages: ReadonlyArray<Prompt.Message>) => messages.map(({ content }) => String(content)).join("")

  for (const [letters, moved, positions, leading, between, trailing] of [
    ["", "", [], "", [], ""],
    ["ab", "", [], "ab", [], ""],
    ["ab", "b", [1], "a", [], ""],
    ["aXbYc", "", [], "a", ["", "b"], "c"],
    ["abXcY", "b", [1], "a", ["", "c"], ""],
    ["abXc", "ab", [0, 1], "", [""], "c"],
    // What the caller put elsewhere stands there.
    ["XaY", "a", [], "", ["", "a"], ""],
    ["XYa", "a", [], "", ["", ""], "a"],
    ["bXa", "ab", [0], "", [""], "a"],
    ["abX", "ba", [0], "b", [""], ""]
  ] as const) {
    it(`are found in ${letters} of which ${moved || "none"} moved`, () => {
      const held = movedOf(moved)
      assert.deepStrictEqual([...movedIn(history(letters), held)].toSorted(), [...positions])
      const systems = systemsOf(history(letters), held)
      assert.deepStrictEqual(
        [shown(systems.leading), systems.between.map(shown).slice(0, between.length), shown(systems.trailing)],
        [leading, [...between], trailing]
      )
    })
  }
})
