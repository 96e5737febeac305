import { assert, describe, it } from "@effect/vitest"
import { model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { userReply } from "../../../../src/domain/transcripts/voice/ResultVoice.ts"
import {
  isPrompt,
  authorOf,
  firstWords,
  typedText,
  type Speaker,
  spokenText,
  voicesOf
} from "../../../../src/domain/transcripts/voice/Voice.ts"
import { voiceForms } from "../../../../src/domain/transcripts/voice/VoiceForms.ts"
import { corpus } from "../../../support/corpus.ts"
import { sizeOf } from "../../../support/runs.ts"

/** What agents write in the user's role, and what the user wrote of it. `WORDS` are another's. */
const others =
  corpus<readonly [name: string, written: string, users?: ReadonlyArray<string>]>("written-in-the-users-role")

/** What the user wrote about such forms: all of it is the user's. */
const own: ReadonlyArray<readonly [name: string, written: string]> = [
  ["the name of an element", "What does the <file> element of this XML mean, and <system-reminder>?"],
  ["a tag in backticks", "`<system-reminder>` is what I see; why does `</system-reminder>` follow?"],
  ["an element in backticks", "I see `<system-reminder>do it</system-reminder>` in the log."],
  [
    "an element in a block of code",
    "Why does this fail?\n```xml\n<system-reminder>\nx\n</system-reminder>\n```\nFix it."
  ],
  ["a tag in a block of code", "Why?\n~~~\n<teammate-message teammate_id='a'>\n~~~\nFix it."],
  ["an element that many texts have", 'My settings:\n<file name="a.xml">\n  <x/>\n</file>\nWhy do they fail?'],
  ["an element of a build", "<channel>beta</channel> is in the feed; keep it."],
  ["permissions of an application", "<permissions>camera</permissions> is missing."],
  ["a heading", "Add a section:\n# AGENTS.md instructions\nand keep it short."],
  ["words in the middle", "It says: Stop hook feedback: never mind. Why?"],
  ["other elements", "<div>Never remove this div.</div>"],
  ["an image of a feed", "The feed has\n<image>a.png</image>\nand should have two."],
  ["findings of their own", "# Review findings:\n1. The schema changed.\n\nFix it, and never touch the schema."],
  ["a text that they selected", "# Selected text:\nconst a = 1\n\nWhat does it do?"],
  ["a sentence about a coordinator", "The coordinator sent a message to the queue twice; why?"],
  ["a warning of a build", "Warning: fetch was requested via proxy. Why?"],
  ["a title and a warning", "# Selected files:\nWarning: never delete them.\n\n## My wishes\nKeep it."],
  ["a command that they ran", "I ran the following shell command:\n```sh\nls\n```\nWhy does it fail?"],
  ["a line that is longer than any tag", `${"x".repeat(10_000)} <system-reminder`]
]

const spoken = (written: string, speaker: Speaker) =>
  voicesOf({ content: user(text(written)) })
    .flat()
    .flatMap((voice) => (voice.speaker === speaker ? [written.slice(voice.start, voice.end)] : []))

const usersWords = (written: string) => spoken(written, "user")

describe("whose words are whose", () => {
  for (const [name, written, users = []] of others) {
    it(name, () => {
      assert.deepStrictEqual(usersWords(written), users)
      assert.strictEqual(authorOf([{ text: written }]), users.length === 0 ? "program" : undefined)
    })
  }

  it.each(own)("the user's own words: %s", (_, written) => assert.deepStrictEqual(usersWords(written), [written]))

  it("stretches do not overlap, cover all but blanks, and name who speaks", () => {
    for (const [name, written] of [...others, ...own]) {
      let at = 0
      for (const { end, start } of voicesOf({ content: user(text(written)) }).flat()) {
        assert.strictEqual(written.slice(at, start).trim(), "", name)
        assert.isBelow(start, end, name)
        at = end
      }
      assert.strictEqual(written.slice(at).trim(), "", name)
    }
    const message = 'Go on.\n<agent-message from="a">WORDS</agent-message>\n<system-reminder>WORDS</system-reminder>'
    assert.deepStrictEqual(spoken(message, "agent"), ['<agent-message from="a">WORDS</agent-message>'])
    assert.deepStrictEqual(spoken(message, "program"), ["<system-reminder>WORDS</system-reminder>"])
  })

  it("a role or an author speaks all of a message", () => {
    const whole = (speaker: Speaker) => [[{ speaker, start: 0, end: 6 }]]
    assert.deepStrictEqual(voicesOf({ content: model(text("Go on.")) }), whole("model"))
    assert.deepStrictEqual(voicesOf({ author: "summary", content: user(text("Go on.")) }), whole("program"))
    assert.deepStrictEqual(voicesOf({ content: user(text("Go on.")) }), whole("user"))
  })

  it("what a message refers to reaches over its parts", () => {
    const parts = [
      "Explain @a.ts",
      "\n--- Content from referenced files ---",
      "\nContent from @a.ts:\n",
      "WORDS",
      "\n--- End of content ---",
      "Go on."
    ]
    const voices = voicesOf({ content: { role: "user", parts: parts.map((part) => ({ text: part })) } })
    assert.deepStrictEqual(
      voices.map((part) => part.map(({ speaker }) => speaker)),
      [["user"], ["program"], ["program"], ["program"], ["program"], ["user"]]
    )
  })

  it("a command is the user's, and no word to the model", () => {
    const command = "<command-message>clear</command-message>\n<command-name>/clear</command-name>"
    const setting = "<command-name>/model</command-name>\n<command-args>opus</command-args>"
    assert.deepStrictEqual([command, setting].map(usersWords), [[], []])
    assert.deepStrictEqual([command, setting].map(typedText), ["/clear", "/model opus"])
    assert.strictEqual(firstWords(`${command}\n<command-args>now</command-args>`), "")
    assert.strictEqual(firstWords("<system-reminder>WORDS</system-reminder>\nGo on.\n<ide_a>WORDS</ide_a>"), "Go on.")
    for (const one of [command, setting]) assert.isUndefined(authorOf([{ text: one }]))
  })

  it("a message with an image, or without a word, has no other author", () => {
    const image = { inlineData: { mimeType: "image/png", data: "" } }
    assert.isUndefined(authorOf([{ text: "<system-reminder>WORDS</system-reminder>" }, image]))
    assert.isUndefined(authorOf([{ text: " " }]))
    assert.isUndefined(authorOf([]))
  })

  it("names are in lower case, and patterns at a place are sticky", () => {
    for (const { elements, passages } of Object.values(voiceForms)) {
      for (const name of elements.flatMap(({ names }) => names)) assert.match(name, /^[a-z][a-z_-]*\*?$/)
      for (const { opens, overParts } of passages) {
        assert.isTrue(typeof opens === "string" || opens.sticky)
        assert.isTrue(overParts === undefined || (overParts.global && overParts.multiline))
      }
    }
  })

  // Reading them took time that grows with the square of the length.
  it("reads long texts of many tags", () => {
    const count = sizeOf(200_000, 20_000)
    for (const tag of [
      "<system-reminder>",
      " x <system-reminder> ",
      "</agent-message>",
      '<file name="',
      "<system-reminder>x</system-reminder>",
      "```\n<agent-message>\n```\n",
      "`<tick>",
      "<ide_a>\n\n"
    ]) {
      assert.isAtLeast(voicesOf({ content: user(text(tag.repeat(count / 10))) }).flat().length, 1)
    }
  })
})

describe("what the user said in the result of a call", () => {
  const results =
    corpus<
      readonly [
        name: string,
        tool: string,
        result: object,
        words: ReadonlyArray<string>,
        refusedBy?: "user" | "rule",
        because?: string
      ]
    >("users-words-in-results")
  it.each(results.map((one) => [one[0], one] as const))("%s", (_, [, tool, result, words, refusedBy, because]) => {
    const content = user(response(tool, result, "c"))
    const [part] = content.parts
    const [voices = []] = voicesOf({ content })
    assert.deepStrictEqual(
      voices.map(({ end, start }) => spokenText(part).slice(start, end)),
      words
    )
    assert.isTrue(voices.every(({ speaker }) => speaker === "user"))
    const reply = part && userReply(part)
    assert.strictEqual(reply?.refusedBy, refusedBy)
    if (because !== undefined) assert.strictEqual(reply?.because, because)
    assert.deepStrictEqual(voicesOf({ author: "program", content }), [[]])
  })
})

it.each([
  ["words", [{ text: "Look." }], true],
  ["a picture", [{ inlineData: { mimeType: "image/png", data: "AAAA" } }], true],
  ["a result", [{ functionResponse: { name: "read_file", response: { output: "a" } } }], false],
  [
    "a result with the picture that was read, as Gemini CLI records it",
    [
      { functionResponse: { name: "read_file", response: { output: "a" } } },
      { inlineData: { mimeType: "image/png", data: "AAAA" } }
    ],
    false
  ],
  ["a result with words beside it", [{ functionResponse: { name: "f", response: {} } }, { text: "Look." }], true]
] as const)("%s begin a turn of the user or do not", (_, parts, isBegun) => {
  assert.strictEqual(isPrompt({ content: { role: "user", parts } }), isBegun)
})
