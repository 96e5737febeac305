import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
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

it("secrets go from where they are in the values of a call and its result, which keep their shape", () => {
  const secret = "password: Xk9vQ2mL7pR4"
  const args = { lines: ["one", secret, 3, null, ["two", { deep: [secret, true] }]], count: 0 }
  const [called = "", answered = ""] = redacted(
    model(text("I look."), call("write", args, "c1")),
    user(response("write", { output: "done", notes: [secret] }, "c1"))
  )
  const { functionCall } = JSON.parse(called).parts[1]
  const [one, gone, three, none, [two, deeper]] = functionCall.args.lines
  assert.deepStrictEqual(
    [one, three, none, two, deeper.deep[1], functionCall.args.count],
    ["one", 3, null, "two", true, 0]
  )
  assert.strictEqual(deeper.deep[0], gone)
  for (const part of [called, answered]) assert.notInclude(part, "Xk9vQ2mL7pR4")
  assert.isTrue(Array.isArray(JSON.parse(answered).parts[0].functionResponse.response.notes))
})

it("a value that another message shows to be a secret goes from each part of a message that holds it", () => {
  const value = "Xk9vQ2mL7pR4"
  const [, other = ""] = redacted(
    user(response("read", { output: `password = "${value}"` })),
    model(text("Before."), text(`I use ${value}.`), call("use", { with: value }))
  )
  assert.notInclude(other, value)
  assert.deepStrictEqual(JSON.parse(other).parts[0], { text: "Before." })
})
