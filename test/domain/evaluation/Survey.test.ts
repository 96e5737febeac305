import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { type Author, type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { viewSizes } from "../../../src/domain/evaluation/Compactions.ts"
import { inspect } from "../../../src/domain/evaluation/Inspection.ts"
import { Survey } from "../../../src/domain/evaluation/Survey.ts"
import { emptySession, type SessionEvent, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { histories } from "../../../src/layers/testing/SessionHistories.ts"
import { lawOfPlayed, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { runsOf } from "../../support/runs.ts"

const about = { model: "gemini-2.5-pro", cwd: "/home/user/work" }

/** What a survey finds, and what holding everything does: without the facts, which a survey does not look for. */
const both = (history: ReadonlyArray<SessionEvent>) => {
  // A log with branches is never surveyed.
  const events = history.filter(({ _tag }) => _tag !== "Branched")
  const survey = new Survey()
  for (const event of events) survey.add(event, 100)
  const session = events.reduce(applyEvent, emptySession)
  const found = Work.runSync(survey.finish(about))
  const held = Work.runSync(inspect(session.conversation, { ...about, events }))
  return {
    survey,
    session,
    found: { ...found.inspection, sizes: Array.from(found.sizes) },
    held: {
      ...held,
      compactions: held.compactions.map((one) => ({ ...one, facts: null })),
      sizes: [...viewSizes(session.conversation)]
    }
  }
}

const handle = (sequence: number) =>
  Handle.make(`h_${"abcdefghij".slice(0, 9)}${"abcdefghijklmnop".charAt(sequence % 16)}`)
const entry = (
  sequence: number,
  role: "user" | "model",
  parts: ReadonlyArray<Part>,
  more: Partial<Entry> = {},
  author?: Author
): Entry => ({
  id: entryId(sequence),
  content: { role, parts },
  tokens: parts.map((_, index) => sequence * 10 + index),
  handles: parts.map(() => handle(sequence)),
  ...(author === undefined ? {} : { author }),
  ...more
})
const appended = (...args: Parameters<typeof entry>): SessionEvent => ({ _tag: "Appended", entry: entry(...args) })
const usage = { prompt: 500, answer: 20, thoughts: 3, cached: 100, cacheWrite: 7 }
const read = (path: string, id?: string): Part => call("read_file", { file_path: path }, id)
const start: SessionEvent = {
  _tag: "Started",
  version: 1,
  session: "s",
  at: 0,
  estimator: "1",
  model: "gemini-2.5-pro"
}

const cases: ReadonlyArray<readonly [name: string, events: ReadonlyArray<SessionEvent>]> = [
  ["nothing", []],
  [
    "calls that are answered by id, by name, out of order, twice, never and by an error",
    [
      start,
      appended(1, "user", [text("setup")], {}, "environment"),
      appended(2, "user", [text("go"), { inlineData: { mimeType: "image/png", data: "AA==" } }]),
      appended(3, "model", [read("a", "1"), read("./b", "2"), read("/home/user/work/a", "3"), read("c")], { usage }),
      appended(4, "user", [
        response("read_file", { output: "b" }, "2"),
        response("read_file", { output: "a" }, "1"),
        response("read_file", { output: "a" }, "1"),
        response("read_file", { output: "c" }),
        { functionResponse: { id: "3", response: { error: "no" } } }
      ]),
      appended(5, "model", [read("a", "1"), call("run_shell_command", { command: "cat a" }, "4")], { model: "other" }),
      appended(6, "model", [{ text: "hm", thought: true }, text("yes")], { usage }),
      appended(7, "user", [response("read_file", { output: "a" }, "1"), response("nobody", { output: "" }, "9")]),
      appended(8, "user", [text("reminder")], {}, "program"),
      appended(9, "model", [])
    ]
  ]
]

describe("a survey", () => {
  for (const [name, events] of cases) {
    it(`equals the report with everything in memory: ${name}`, () => {
      const { found, held } = both(events)
      assert.deepStrictEqual(found, held)
    })
  }

  it.effect.prop(
    "equals the report with everything in memory, after any history",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const { found, held } = both(events)
        assert.deepStrictEqual(found, held)
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  const law = lawOfPlayed(({ events }) =>
    Effect.sync(() => {
      const { found, held, session, survey } = both(events)
      assert.deepStrictEqual(found, held)
      assert.deepStrictEqual(survey.shown?.conversation, session.conversation)
      return undefined
    })
  )
  it.effect.prop(
    "equals the report with everything in memory, for any conversation",
    [scripts],
    ([script]) => property(law, worldOf())(script),
    { arbitrary: thousand("survey", 200) }
  )
})
