import { assert, describe, it } from "@effect/vitest"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { isJson, type Json } from "../../../../src/domain/text/JsonObject.ts"
import type { Step } from "../../../../src/domain/transcripts/Transcript.ts"
import { runsOf } from "../../../support/runs.ts"
import {
  cut,
  readText,
  recordsOf,
  said,
  says,
  summary,
  transcriptOf,
  transcripts,
  viewOf,
  writtenText
} from "../../../support/transcripts.ts"

/** What Claude Code and its API ask of a file. What its records are like is in `test/golden/written-claude.txt`. */

const session = transcriptOf([]).session
const records = (...steps: ReadonlyArray<Step>) => recordsOf("claude", steps)
const messageIn = (record: Json | undefined): Json => (isJson(record?.message) ? record.message : {})
const contentIn = (record: Json | undefined): unknown => messageIn(record).content
const blocksIn = (record: Json): ReadonlyArray<Json> => {
  const content = contentIn(record)
  return Array.isArray(content) ? content : [{ type: "text", text: content }]
}
const back = (steps: ReadonlyArray<Step>, ...more: ReadonlyArray<object>) => {
  const { text: file } = writtenText("claude", transcriptOf(steps))
  return readText(`${file}${more.map((record) => JSON.stringify(record)).join("\n")}`)
}

it("keeps the uuids that messages had, each once, also one that it would give itself", () => {
  const known = "dd3cc2e6-a191-4331-a0f0-2473e6d7692d"
  const made = String(records(says("x"))[0]?.uuid)
  const from = (...ids: ReadonlyArray<string>) => said(user(text("x")), { origin: { line: 1, ids } })
  const uuids = records(from("a1b2c3d4"), from(known), from(known), from(), from(made)).map(({ uuid }) => uuid)
  assert.deepStrictEqual([uuids[1], uuids[4]], [known, made])
  assert.strictEqual(new Set(uuids).size, 5)
})

describe("compactions", () => {
  const talk = [says("a"), said(model(text("b"))), says("c")]

  const later = (parentUuid: unknown, content: unknown) => ({
    type: "user",
    uuid: "later",
    parentUuid,
    sessionId: session,
    message: { role: "user", content }
  })

  it("Claude Code can go back to one of the repeated messages", () => {
    // a b c | boundary s a' b' c': back to b', and on from there.
    const steps = [...talk, cut([summary("s")], 0)]
    const shown = viewOf(back(steps, later(records(...steps)[6]?.uuid, "d")))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.text),
      ["s", "a", "b", "d"]
    )
  })

  it("an answer that the agent adds to a repeated turn is its own message", () => {
    const steps = [
      said(model(call("f", {}, "1"), call("f", {}, "2"))),
      said(user(response("f", { output: "x" }, "1"))),
      cut([summary("s")], 0)
    ]
    const result = [{ type: "tool_result", tool_use_id: "2", content: "y" }]
    const shown = viewOf(back(steps, later(records(...steps).at(-1)?.uuid, result)))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.functionResponse?.response),
      [undefined, undefined, { output: "x" }, { output: "y" }]
    )
  })
})

it.prop(
  "generated conversations are valid for the Anthropic API: unique ids, results after their calls, nothing empty",
  [transcripts],
  ([original]) => {
    let calls = new Set<unknown>()
    for (const record of recordsOf("claude", original.steps)) {
      if (record.subtype === "compact_boundary") {
        calls = new Set()
        continue
      }
      const blocks = blocksIn(record)
      assert.isAbove(blocks.length, 0)
      for (const block of blocks) {
        if (block.type === "text") assert.notStrictEqual(block.text, "")
        if (block.type === "tool_use") {
          assert.match(String(block.id), /^[a-zA-Z0-9_-]+$/)
          assert.isFalse(calls.has(block.id))
          assert.isTrue(isJson(block.input))
          calls.add(block.id)
        }
        if (block.type === "tool_result") {
          assert.strictEqual(record.type, "user")
          assert.isTrue(calls.has(block.tool_use_id))
        }
      }
    }
  },
  { arbitrary: { runs: runsOf(300), seed: "api", size: 24 } }
)
