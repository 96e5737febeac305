import { Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { model as modelSays, text } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { summaryRequests } from "../../../src/domain/evaluation/RecordedUse.ts"
import { applyEvent, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer, SummarizerError } from "../../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { Model } from "../../../src/services/model/Model.ts"
import { estimateContents } from "../../../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { described } from "../../support/generate.ts"
import { illegal } from "../../support/legal.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What happens to a chat while a snapshot is prepared, in any order: nothing is lost, paid for twice or left running. */

const steps = [
  "short",
  "long",
  "cancelled",
  "append",
  "compress",
  "focus",
  "undo",
  "redo",
  "pin",
  "model",
  "off"
] as const

const Step = Schema.Struct({
  does: Schema.Literals([...steps, "short", "long", "short", "long"]),
  /** Seconds before the next step. A snapshot takes ten, an answer one. */
  after: Schema.Literals([0, 0, 1, 5, 10, 30])
})

const Case = Schema.Struct({
  steps: Schema.Array(Step).check(Schema.isMaxLength(9)),
  /** How the n-th snapshot ends. */
  snapshots: Schema.Array(Schema.Literals(["good", "good", "good", "fails", "fails unpaid", "empty", "large"])).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(4)
  ),
  /** Whether the user leaves right after the last step. */
  leaves: Schema.Boolean
})
type Case = typeof Case.Type

const usage = { prompt: 100, answer: 10, thoughts: 0, cached: 0 }
const call = { purpose: "generate" as const, model: "m", messages: 1, answer: "…", finishReason: "STOP", usage }
const long = "Please look at this with care and patience. ".repeat(90)

const play = Effect.fnUntraced(function* ({ leaves, snapshots, steps }: Case) {
  /** The ranges that a model was asked about, and what of it was paid for. */
  const asked: Array<string> = []
  let running = 0
  let paid = 0
  const summarizer = Layer.succeed(Summarizer, {
    summarize: (request) =>
      Effect.gen(function* () {
        if (request.by === "extractive") return yield* Effect.die("not asked")
        const kind = snapshots[Math.min(asked.length, snapshots.length - 1)]
        asked.push(`${request.entries[0]?.id} ${request.entries.at(-1)?.id}`)
        running += 1
        yield* Effect.sleep("10 seconds").pipe(
          Effect.ensuring(
            Effect.sync(() => {
              running -= 1
            })
          )
        )
        const calls = kind === "fails unpaid" ? [] : [call]
        paid += calls.length
        if (kind === "fails" || kind === "fails unpaid") {
          return yield* new SummarizerError({ reason: "InternalProviderError", message: "no", cause: "no", calls })
        }
        const body = kind === "large" ? "word ".repeat(9_000) : "Make it green."
        return {
          text: kind === "empty" ? "" : `<state_snapshot><overall_goal>${body}</overall_goal></state_snapshot>`,
          calls
        }
      })
  })
  const model = Layer.succeed(Model, {
    generate: () => Effect.die("not asked"),
    stream: ({ contents }) => {
      assert.isUndefined(illegal(contents))
      return Stream.fromEffect(
        Effect.delay(Effect.succeed({ parts: [text(`Done. ${long.slice(0, 400)}`)], finishReason: "STOP" }), "1 second")
      )
    },
    countTokens: (request) => estimateContents(request)
  })
  const events: Array<SessionEvent> = []
  const outer = yield* Effect.scope
  const services = yield* Layer.build(
    Compression.layer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          TokenCounter.layerEstimate,
          MemoryTempStore.layer,
          HookSystem.layer,
          MemoryCalibrations.layer,
          summarizer,
          model
        )
      )
    )
  )
  const scope = yield* Scope.fork(outer)
  const policy = { summarizer: "model" as const, ladder: false }
  const chat = yield* Chat.make({
    log: { append: (event) => Effect.sync(() => void events.push(event)) },
    session: emptySession,
    settings: { model: "gemini-2.5-flash", window: 12_000, threshold: 0.5, prepareAt: 0.6, policy }
  }).pipe(Effect.provide(services), Scope.provide(scope))

  const pass = Effect.fnUntraced(function* (seconds: number) {
    for (let second = 0; second < seconds; second += 1) {
      yield* TestClock.adjust("1 second")
      yield* Effect.yieldNow
    }
  })
  const act = (does: Case["steps"][number]["does"]): Effect.Effect<unknown, unknown> => {
    switch (does) {
      case "short":
        return Stream.runDrain(chat.send("Please look."))
      case "long":
        return Stream.runDrain(chat.send(long))
      case "cancelled":
        return Stream.runDrain(chat.send(long, { cancel: Effect.sleep("2 seconds") }))
      case "append":
        return chat.append([{ content: modelSays(text("Noted.")) }])
      case "compress":
        return chat.compress({ cancel: Effect.sleep("30 seconds") })
      case "focus":
        return chat.compress({ focus: "files", cancel: Effect.sleep("4 seconds") })
      case "undo":
        return chat.undo
      case "redo":
        return chat.redo
      case "pin":
        return chat.pin()
      case "model":
        return chat.configure({ model: "gemini-2.5-pro" })
      case "off":
        return chat.configure({ prepareAt: 0 })
    }
  }
  const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
  for (let turn = 0; turn < 3; turn += 1) {
    fibers.push(yield* Effect.forkChild(act("long")))
    yield* pass(3)
  }
  for (const { after, does } of steps) {
    // What comes while another change runs fails at once, as `ChatBusy`.
    fibers.push(yield* Effect.forkChild(Effect.ignore(act(does)), { startImmediately: true }))
    yield* pass(after)
  }
  if (leaves) yield* Scope.close(scope, Exit.void)
  yield* pass(90)
  for (const fiber of fibers) assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
  return { asked, chat, events, paid: () => paid, running: () => running }
})

describe("while a snapshot is prepared", () => {
  it.effect.prop(
    "whatever happens: every message stays, what was paid for is logged once, and no range is paid for twice",
    [Case],
    ([one]) =>
      Effect.gen(function* () {
        const { asked, chat, events, paid, running } = yield* play(one)
        const session = yield* chat.session
        assert.strictEqual(described(events.reduce(applyEvent, emptySession)), described(session))
        assert.strictEqual(summaryRequests(events).length, paid())
        assert.isUndefined(illegal(yield* chat.contents))
        for (const { handles } of entries(session.conversation)) {
          for (const handle of handles) yield* chat.recall(handle)
        }
        // A user may ask again, and what was cut off gave nothing.
        const isAskedAgain = one.steps.some(({ does }) => does !== "short" && does !== "long" && does !== "append")
        if (!isAskedAgain) assert.strictEqual(new Set(asked).size, asked.length, asked.join(", "))
        assert.notStrictEqual((yield* chat.usage).preparation, "running")
        assert.strictEqual(running(), 0)
      }),
    { arbitrary: { runs: runsOf(150, 8) } }
  )

  it.effect("the cases prepare snapshots and use them", function* () {
    const step = (does: Case["steps"][number]["does"], after: 0 | 30) => ({ does, after })
    const used = yield* play({
      steps: [step("long", 30), step("long", 30), step("long", 30), step("long", 30)],
      snapshots: ["good"],
      leaves: false
    })
    assert.deepStrictEqual(
      used.events
        .map(({ _tag }) => _tag)
        .filter((tag) => tag === "Prepared" || tag === "Compressed")
        .slice(0, 2),
      ["Prepared", "Compressed"]
    )
  })
})
