import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Author } from "../../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../../src/domain/conversation/Projection.ts"
import { isJson } from "../../../../src/domain/text/JsonObject.ts"
import {
  cut,
  draftsIn,
  readText,
  recordsOf,
  said,
  summary,
  transcriptOf,
  writtenText
} from "../../../support/transcripts.ts"

/** What Codex asks of a file. What its records are like is in `test/golden/written-codex.txt`, for each row of `writers.test.ts`. */

describe("the id of a session", () => {
  const idOf = (session: string | undefined) => {
    const [meta] = recordsOf("codex", [], { session })
    return isJson(meta?.payload) ? meta.payload.id : undefined
  }

  it("without a UUID is always the same one, and its own name is kept beside it", () => {
    for (const session of ["chat 1", "", "x\ud83d", undefined]) {
      assert.match(String(idOf(session)), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.strictEqual(idOf(session), idOf(session))
    }
    assert.notStrictEqual(idOf("chat 1"), idOf("chat 2"))
    assert.strictEqual(readText(writtenText("codex", transcriptOf([], { session: "chat 1" })).text).session, "chat 1")
  })
})

describe("input that Codex rejects", () => {
  const texts = ["caf\udce9", "\udcc3\udca9", "a lone \ud83d half", "\udcff\ud83d"]
  it.each(texts.map((value) => [JSON.stringify(value), value] as const))("%s reaches no line", (_, value) => {
    const steps = [
      said(user(text(value))),
      said(model({ text: value, thought: true }, call("f", { [value]: value }, "c"))),
      said(user(response("f", { output: value }, "c"))),
      cut([summary(value)], 1)
    ]
    const { lines } = writtenText("codex", transcriptOf(steps, { cwd: value, session: value, model: value }))
    for (const line of lines) {
      assert.isTrue(line.isWellFormed())
      // Half a pair, spelled; behind a double backslash it is only text.
      assert.notMatch(line, /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/)
    }
  })
})

it("a recorded session goes back without a copy beside its items", () => {
  const file = readFileSync(new URL("../../../fixtures/codex/codex-today.jsonl", import.meta.url), "utf8")
  const { lines, unheld } = writtenText("codex", readText(file))
  const hasExact = (line: string): boolean => /"palimpsest":\{[^}]*"(?:parts|escaped)":/.test(line)
  assert.deepStrictEqual([lines.filter(hasExact), unheld], [[], {}])
})

it("a program's text has a note where Codex's model would take it for the user's: before all forms but Codex's own", () => {
  const hasNote = (words: string, author: Author | undefined): boolean => {
    const steps = [said(user(text(words)), author === undefined ? {} : { author })]
    const { text: written } = writtenText("codex", transcriptOf(steps))
    const [draft] = draftsIn(readText(written))
    assert.deepStrictEqual([draft?.author, draft?.content], [author, user(text(words))])
    return written.includes(foreignNotes.program)
  }
  assert.isTrue(hasNote("what a hook says", "program"))
  assert.isTrue(hasNote("<task-notification>done</task-notification>", "program"))
  assert.isTrue(
    hasNote("<environment_context>/w</environment_context>\n<system-reminder>x</system-reminder>", "program")
  )
  assert.isTrue(hasNote("Another language model started to solve this problem and produced a summary of it", "program"))
  assert.isFalse(hasNote("<environment_context>/w</environment_context>", "program"))
  assert.isFalse(hasNote("<task-notification>done</task-notification>", undefined))
})

it("a kept spelling stands for its part, and one beside its part is read, too", () => {
  const part = call("f", { a: 1 }, "c")
  const source = '{"functionCall": {"id":"c", "name":"f", "args":{"a": 1}}, "more": 1.0}'
  const step = { _tag: "Message", draft: { content: model({ ...part, more: 1 }), source: { "0": source } } } as const
  const { text: file } = writtenText("codex", transcriptOf([step]))
  const alone = JSON.stringify(JSON.stringify({ source }))
  assert.include(file, `"escaped":[${alone}]`)
  const beside = file.replace(alone, () => JSON.stringify(JSON.stringify({ part: { ...part, more: 1 }, source })))
  for (const one of [file, beside]) assert.deepStrictEqual(draftsIn(readText(one))[0]?.source, { "0": source })
})

it("an item keeps the spelling that an earlier state of this program wrote beside it, and one that only carries parts has them", () => {
  const args = '{"a": 1.0}'
  const spelled = `{"functionCall":{"id":"c","name":"f","args":${args}}}`
  const items = [
    `"payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},"palimpsest":{"parts":[${spelled}]}`,
    '"payload":{"type":"other","role":"user"},"palimpsest":{"parts":[{"text":""}]}'
  ]
  const [made, carried] = draftsIn(readText(items.map((item) => `{"type":"response_item",${item}}`).join("\n")))
  assert.deepStrictEqual(made?.source, { "0": spelled })
  assert.deepStrictEqual(carried?.content, user(text("")))
})
