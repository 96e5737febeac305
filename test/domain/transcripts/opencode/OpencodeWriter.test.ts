import { assert, describe, it } from "@effect/vitest"
import type { Part } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { readOpencodeDocument } from "../../../../src/domain/transcripts/opencode/OpencodeReader.ts"
import { writeOpencode } from "../../../../src/domain/transcripts/opencode/OpencodeWriter.ts"
import { isProblem } from "../../../../src/domain/transcripts/Problem.ts"
import type { Step, Transcript } from "../../../../src/domain/transcripts/Transcript.ts"

const said = (role: "user" | "model", parts: ReadonlyArray<Part>, keys: Partial<Draft> = {}): Step => ({
  _tag: "Message",
  draft: { at: 1_760_000_000_000, ...keys, content: { role, parts } }
})
const call = (id: string, name: string): Part => ({ functionCall: { id, name, args: { path: "/p" } } })
const answered = (id: string, name: string, response: Record<string, unknown>): Part => ({
  functionResponse: { id, name, response }
})

const transcript = (...steps: ReadonlyArray<Step>): Transcript => ({
  format: "claude",
  session: "ses_0190a0000000700080000000000000ab",
  cwd: "/p/tides",
  model: "claude-sonnet-4-5",
  steps,
  skipped: {}
})

const written = (...steps: ReadonlyArray<Step>) => {
  const { lines, unheld } = runSync(writeOpencode(transcript(...steps)))
  const document: {
    info: Record<string, unknown>
    messages: ReadonlyArray<{
      info: { id: string; role: string; parentID?: string }
      parts: ReadonlyArray<{ id: string } & Record<string, unknown>>
    }>
  } = JSON.parse(lines.join("\n"))
  const read = runSync(readOpencodeDocument(document))
  assert.isFalse(isProblem(read))
  return { document, unheld, steps: "steps" in read ? read.steps : [] }
}

const contents = (steps: ReadonlyArray<Step>) =>
  steps.flatMap((step) => (step._tag === "Message" ? [step.draft.content] : []))

describe("a document for opencode", () => {
  const image = { inlineData: { mimeType: "image/png", data: "aGVsbG8=" } }
  const steps = [
    said("user", [{ text: "When is high water?" }, image]),
    said("model", [{ text: "Look.", thought: true }, { text: "I read." }, call("a", "read"), call("b", "bash")]),
    said("user", [answered("a", "read", { output: "12:10" }), answered("b", "bash", { error: "no such file" })]),
    said("model", [{ text: "At 12:10." }])
  ]

  it("is read back as the same messages, with calls and results in pairs", () => {
    const result = written(...steps)
    assert.deepStrictEqual(contents(result.steps), contents(steps))
    // The number of a message is where it is found in the document.
    const places = result.steps.flatMap((step) => (step._tag === "Message" ? step.draft.origin?.line : []))
    assert.deepStrictEqual(places, [1, 2, 2, 3])
    assert.deepStrictEqual(result.unheld, {})
    assert.deepInclude(result.document.info, { directory: "/p/tides", title: "When is high water?" })
  })

  it("has a result beside its call, also where it came behind later words of the model", () => {
    const result = written(
      said("user", [{ text: "Go." }]),
      said("model", [call("a", "read")]),
      said("user", [{ text: "Be quick." }]),
      said("model", [{ text: "Still reading." }]),
      said("user", [answered("a", "read", { output: "12:10" })])
    )
    assert.deepInclude(result.document.messages[1]?.parts[0]?.["state"], { status: "completed", output: "12:10" })
    assert.deepStrictEqual(result.unheld, {})
  })

  it("has the title of the first words of the user that are no bare command", () => {
    const titleOf = (...words: ReadonlyArray<string>) =>
      written(...words.map((one) => said("user", [{ text: one }]))).document.info["title"]
    assert.strictEqual(titleOf("/model", "When is high water?", "And low?"), "When is high water?")
    assert.strictEqual(titleOf("When is high water?", "/model"), "When is high water?")
    assert.strictEqual(
      written(said("user", [{ text: "Said by a program." }], { author: "program" }), said("user", [{ text: "Go." }]))
        .document.info["title"],
      "Go."
    )
  })

  it("has ids in the order in which opencode sorts them, and answers that name the message of the user", () => {
    const { messages } = written(...steps).document
    const ids = messages.flatMap(({ info, parts }) => [info.id, ...parts.map(({ id }) => id)])
    const times = ids.map((id) => id.slice(4))
    assert.deepStrictEqual(times, times.toSorted())
    assert.strictEqual(new Set(ids).size, ids.length)
    const [first] = messages
    assert.deepStrictEqual(
      messages.filter(({ info }) => info.role === "assistant").map(({ info }) => info.parentID),
      [first?.info.id, first?.info.id]
    )
  })

  it("has a failure for a call without a result, no result without a call, and a user's message first", () => {
    const result = written(
      said("model", [call("a", "read")]),
      said("user", [answered("z", "bash", { output: "lost" }), { text: "Go on." }])
    )
    const [first, second, third] = contents(result.steps)
    assert.match(first?.parts[0]?.text ?? "", /no longer part of this context/)
    assert.strictEqual(second?.parts[0]?.functionCall?.id, "a")
    assert.include(JSON.stringify(third?.parts), "interrupted")
    assert.notInclude(JSON.stringify(result.steps), "lost")
    assert.deepStrictEqual(result.unheld, { "results without a call": 1 })
  })

  it("says of a text in the user's role that the user did not write it, and holds the view after a compaction", () => {
    const summary: Draft = {
      content: { role: "user", parts: [{ text: "They asked about tides." }] },
      author: "summary"
    }
    const result = written(
      ...steps,
      { _tag: "Compaction", insert: [summary], keptFrom: undefined, trigger: "auto", tokensBefore: undefined },
      said("user", [{ text: "And tomorrow?" }])
    )
    const [first, second] = result.steps
    assert.match(JSON.stringify(first), /a summary of what was said before.*They asked about tides/)
    assert.include(JSON.stringify(second), "And tomorrow?")
    assert.isTrue(result.document.messages[0]?.parts.every(({ synthetic }) => synthetic === true))
  })
})
