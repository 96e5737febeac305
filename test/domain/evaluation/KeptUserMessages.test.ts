import { assert, describe, it } from "@effect/vitest"
import { messagesIn, userMessages } from "../../../src/domain/evaluation/KeptUserMessages.ts"
import { asks, compactionOf, ran, says } from "../../support/compactions.ts"

const long = "Please make the parser skip blank lines, and never touch the lexer; it is someone else's work."

const rules: ReadonlyArray<readonly [rule: string, text: string, message: string, isThere: boolean]> = [
  ["whole", `The user: "${long}"`, long, true],
  ["over several lines", `- ${long.replaceAll(" ", "\n")}`, long, true],
  ["with escaped tags", "make &lt;b&gt; bold &amp; red", "make <b> bold & red", true],
  ["by both ends", `${long.slice(0, 30)} … ${long.slice(-30)}`, long, true],
  ["by its beginning only", long.slice(0, 60), long, false],
  ["a short one by its ends", "go … on", "go and on", false]
]

describe("messages of the user", () => {
  it.each(rules)("%s", (_, text, message, isThere) => {
    assert.strictEqual(messagesIn(text, [message]), isThere ? 1 : 0)
  })

  it("are what the user wrote, without commands, reminders and results", () => {
    const { before } = compactionOf(
      [
        asks("Go on.<system-reminder>be good</system-reminder>"),
        asks("/clear"),
        asks("<command-name>/model</command-name>"),
        says("I do."),
        ...ran("ls", {}, "a.ts"),
        asks("See /work/project/a.ts"),
        ...ran(
          "AskUserQuestion",
          { questions: [{ question: "Where?" }, { question: "When?" }] },
          'User has answered your questions: "Where?"="In Oslo", "When?"="Never on a Friday".'
        )
      ],
      []
    )
    assert.deepStrictEqual(
      before.flatMap((entry) => userMessages(entry, (text) => text.replaceAll("/work/project/", ""))),
      ["Go on.", "See a.ts", "In Oslo", "Never on a Friday"]
    )
  })
})
