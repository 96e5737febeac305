import { assert, describe, it } from "@effect/vitest"
import { type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { redactedEntries } from "../../../src/domain/conversation/RedactedEntries.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { entryOf } from "../../support/entries.ts"

/** The entries of these messages without secrets, as JSON. */
const redacted = (...contents: ReadonlyArray<Content>): ReadonlyArray<string> => {
  const entries = contents.map((content, at) => entryOf(at + 1, content))
  return runSync(redactedEntries(entries)).entries.map(({ content }) => JSON.stringify(content))
}

describe("a value that one message shows to be a secret", () => {
  const [strong, weak] = ["Xk9vQ2mL7pR4", "Xk9vQ2mL"]
  const output = (value: string) => user(response("read", { output: `password = "${value}"` }))

  it.each([
    ["leaves what the agent wrote", strong, model(text(`I use ${strong} for it.`)), true],
    ["leaves another output", strong, user(response("cat", { output: `it is ${strong} here` })), true],
    ["leaves the user's words where it is long", strong, user(text(`I use ${strong} for it.`)), true],
    ["stays in the user's words where it is short", weak, user(text(`I use ${weak} for it.`)), false],
    ["leaves what the agent wrote where it is short", weak, model(text(`I use ${weak} for it.`)), true]
  ] as const)("%s", (_, value, other, isGone) => {
    for (const all of [redacted(output(value), other), redacted(other, output(value)).toReversed()]) {
      assert.deepStrictEqual(
        all.map((one) => one.includes(value)),
        [false, !isGone]
      )
    }
  })
})

it("a redacted entry does not keep the text that it was read from, and any other stays the same object", () => {
  const source = { 0: '{"text":"password = \\"Xk9vQ2mL7pR4\\"" }' }
  const secret = { ...entryOf(1, model(text('password = "Xk9vQ2mL7pR4"'))), source }
  const plain = { ...entryOf(2, model(text("nothing"))), source: { 0: '{"text":"nothing" }' } }
  const { entries, secrets } = runSync(redactedEntries([secret, plain]))
  assert.notInclude(JSON.stringify(entries), "Xk9vQ2mL7pR4")
  assert.strictEqual(entries[1], plain)
  assert.lengthOf(secrets, 1)
})
