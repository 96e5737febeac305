import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type Status, statusLine } from "../../../src/cli/chat/StatusLine.ts"
import { columnsOf, plain, type Style } from "../../../src/cli/output/Output.ts"

const status: Status = { model: "gemini-2.5-flash", tokens: 12_345, limit: 1_048_576, session: "fix the build" }
const long: Status = { ...status, session: "why the build of the package fails on Tuesdays" }
const marked: Style = { ...plain, bold: (text) => `<b>${text}</b>`, warn: (text) => `<w>${text}</w>` }

const cases: ReadonlyArray<readonly [rule: string, columns: number, status: Status, line: string]> = [
  ["all in a wide terminal", 80, status, "gemini-2.5-flash · 12,345 of 1,048,576 tokens (1 %) · fix the build"],
  ["rounded in a narrower one", 52, status, "gemini-2.5-flash · 12k of 1M (1 %) · fix the build"],
  ["the session is cut before more is left out", 48, long, "gemini-2.5-flash · 12k of 1M (1 %) · why the bu…"],
  ["forty columns", 40, long, "gemini-2.5-flash · 1 % · why the build…"],
  ["no session where it would say nothing", 29, status, "gemini-2.5-flash · 1 %"],
  ["the model is cut before the tokens", 12, status, "gemin… · 1 %"],
  ["the share alone", 8, status, "1 %"],
  ["a session without a name", 60, { ...status, session: "" }, "gemini-2.5-flash · 12,345 of 1,048,576 tokens (1 %)"],
  [
    "a nearly full window is a warning",
    40,
    { ...status, tokens: 900_000 },
    "gemini-2.5-flash · <w>86 %</w> · fix the build"
  ],
  [
    "a snapshot that is being prepared",
    100,
    { ...status, preparation: "running" },
    "gemini-2.5-flash · 12,345 of 1,048,576 tokens (1 %) · fix the build · preparing a snapshot"
  ],
  [
    "the session is cut before it",
    64,
    { ...long, preparation: "ready" },
    "gemini-2.5-flash · 12k of 1M (1 %) · why the b… · snapshot ready"
  ],
  ["no room for it", 50, { ...status, preparation: "running" }, "gemini-2.5-flash · 12k of 1M (1 %) · fix the build"],
  [
    "a bar and more where there is room",
    110,
    { ...status, tokens: 500_000, extras: ["edits run", "$0.0012", "~/work/a-folder-with-a-long-name"] },
    "█████░░░░░ gemini-2.5-flash · 500,000 of 1,048,576 tokens (48 %) · fix the build · edits run · $0.0012"
  ],
  [
    "rounded where that makes room for more",
    80,
    { ...status, extras: ["", "$0.0012", "work"] },
    "█░░░░░░░░░ gemini-2.5-flash · 12k of 1M (1 %) · fix the build · $0.0012 · work"
  ],
  [
    "names have no line breaks and control characters",
    80,
    { ...status, model: "a\u001b[2J\nb" },
    "a b · 12,345 of 1,048,576 tokens (1 %) · fix the build"
  ]
]

describe("the status line", () => {
  for (const [rule, columns, value, line] of cases) {
    it(rule, () => assert.strictEqual(statusLine(value, columns, marked), line))
  }

  it.effect.prop(
    "fits any number of columns",
    [Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })), Schema.String, Schema.Natural],
    ([columns, name, tokens]) =>
      Effect.sync(() => {
        for (const session of [name, "語".repeat(20)]) {
          for (const preparation of [undefined, "running", "ready"] as const) {
            for (const extras of [undefined, [name, "~/folder"]]) {
              const line = statusLine({ model: name, tokens, limit: 1_000_000, session, preparation, extras }, columns)
              assert.isAtMost(columnsOf(line), columns)
            }
          }
        }
      })
  )
})
