import { assert, describe, it } from "@effect/vitest"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Draft } from "../../../../src/domain/conversation/Conversation.ts"
import { isJson, type Json } from "../../../../src/domain/text/JsonObject.ts"
import { runtimeMark } from "../../../../src/domain/text/RuntimeMark.ts"
import type { Step, Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
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

/** What Pi shows and adds. What its entries are like is in `test/golden/written-pi.txt`, for each row of `writers.test.ts`. */

const records = (...steps: ReadonlyArray<Step>) => recordsOf("pi", steps)
const back = (steps: ReadonlyArray<Step>, ...more: ReadonlyArray<object>) =>
  readText(`${writtenText("pi", transcriptOf(steps)).text}${more.map((record) => JSON.stringify(record)).join("\n")}`)
const textBlock = (words: string) => ({ type: "text", text: words })

/** What Pi itself would show its model of a file: texts of entries, or what they are. */
const shownByPi = ([, ...entries]: ReadonlyArray<Json>): ReadonlyArray<unknown> => {
  const at = entries.findLastIndex((entry) => entry.type === "compaction")
  const last = entries[at]
  const first = last === undefined ? 0 : entries.findIndex((entry) => entry.id === last.firstKeptEntryId)
  const emitted = [...entries.slice(first < 0 ? at : first, Math.max(at, 0)), ...entries.slice(at + 1)]
  return [
    ...(last === undefined ? [] : [last.summary]),
    ...(last === undefined ? entries : emitted).flatMap((entry) => {
      const content = isJson(entry.message) ? entry.message.content : entry.content
      return Array.isArray(content) ? [content.map((block) => block.text ?? block.type).join("|")] : []
    })
  ]
}

describe("compactions", () => {
  const talk = [says("a"), said(model(text("b"))), says("c")]

  it("messages after Pi's own cut within our insertion are kept", () => {
    const steps = [...talk, cut([summary("s"), { content: model(text("ok")) }], 1), says("d")]
    const all = records(...steps)
    const inserted = all.find(({ palimpsest }) => isJson(palimpsest) && palimpsest.inserted === true)
    const entry = { type: "compaction", id: "later", parentId: all.at(-1)?.id, timestamp: "2026-01-01T00:00:00Z" }
    const shown = viewOf(back(steps, { ...entry, summary: "t", firstKeptEntryId: inserted?.id, tokensBefore: 9 }))
    assert.deepStrictEqual(
      shown.map(({ content }) => content.parts[0]?.text),
      ["t", "b", "c", "d"]
    )
  })

  it("a result that Pi adds to a repeated turn is its own message", () => {
    const steps = [
      said(model(call("f", {}, "1"), call("f", {}, "2"))),
      said(user(response("f", { output: "x" }, "1"))),
      cut([], 0)
    ]
    const entry = {
      type: "message",
      id: "later",
      parentId: records(...steps).at(-1)?.id,
      timestamp: "2026-01-01T00:00:00Z"
    }
    const message = { role: "toolResult", toolCallId: "2", toolName: "f", content: [textBlock("y")] }
    assert.deepStrictEqual(
      viewOf(back(steps, { ...entry, message })).map(({ content }) => content.parts[0]?.functionResponse?.response),
      [undefined, { output: "x" }, { output: "y" }]
    )
  })
})

it.prop(
  "generated conversations appear in Pi as in the view",
  [transcripts],
  ([{ steps, ...rest }]) => {
    // Texts alone, so that what Pi shows can be told from what was said; the environment stands behind the summary.
    let n = 0
    const plain = (draft: Draft): Draft => {
      n += 1
      const { author: _author, ...own } = draft
      return {
        ...own,
        ...(draft.author === "summary" && draft.content.role === "user" ? { author: "summary" } : {}),
        content: { role: draft.content.role, parts: [{ text: `text ${n}` }] },
        source: {}
      }
    }
    const original: Transcript = {
      ...rest,
      steps: steps.map((step) =>
        step._tag === "Message" ? { ...step, draft: plain(step.draft) } : { ...step, insert: step.insert.map(plain) }
      )
    }
    const shown = shownByPi(recordsOf("pi", original.steps))
      .filter((text) => !String(text).startsWith(runtimeMark) || String(text).includes("|"))
      .map((text) => String(text).split("|").at(-1))
    assert.deepStrictEqual(
      shown,
      viewOf(original).map((draft) => draft.content.parts[0]?.text)
    )
  },
  { arbitrary: { runs: runsOf(500), seed: "pi sees", size: 24 } }
)
