import { Arbitrary, Effect, Layer, Schema, Stream } from "effect"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { emptySession, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { runsOf } from "../../support/runs.ts"
import { against, begin, contentsOf, endingOf, said, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const always: Fake.Script = ({ method }) => (method === "countTokens" ? Fake.tokens(40_000) : said("seen"))

const file = "one line of a file\n".repeat(4_000)

describe("a conversation only grows", () => {
  const Step = Arbitrary.schema(Schema.Literals(["message", "failure", "results", "day", "files", "process", "back"]))

  it.effect.prop(
    "each request begins with the messages of the one before, across processes and days, until the conversation goes back",
    [Arbitrary.array(Step, { minLength: 1, maxLength: 12 })],
    ([steps]) =>
      Effect.gen(function* () {
        let [day, files] = [1, 0]
        const environment = () => `<session_context>\nToday is day ${day}.\n${"file\n".repeat(files)}</session_context>`
        let { chat, events } = yield* begin({ environment: environment() })
        let session = emptySession
        let before: ReadonlyArray<Content> = []
        let isFailing = false
        for (const step of ["message", ...steps, "message"] as const) {
          if (step === "day") day += 1
          if (step === "files") files += 1
          if (step === "day" || step === "files") yield* chat.configure({ environment: environment() })
          if (step === "back") {
            const last = entries(yield* chat.conversation).at(-3)
            if (last === undefined) continue
            yield* chat.branch({ to: last.id })
            before = before.slice(0, 1)
          }
          if (step === "process") {
            session = events.reduce(applyEvent, session)
            ;({ chat, events } = yield* begin({ environment: environment() }, { session }))
          }
          if (step === "results")
            yield* chat.append(
              [model(call("t", {}, "c")), user(response("t", { output: "o" }, "c"))].map((content) => ({ content }))
            )
          isFailing = step === "failure"
          if (step === "message" || isFailing) {
            yield* taken(chat.send(isFailing ? "FAIL" : `message of day ${day}`))
            const requests = (yield* Scripted.Script.use(({ calls }) => calls)).filter(
              ({ method }) => method === "stream"
            )
            const now = requests.at(-1)?.request.contents ?? []
            assert.deepStrictEqual(now.slice(0, before.length), before)
            assert.include(JSON.stringify(now), `Today is day ${day}.`)
            if (!isFailing) before = now
          }
        }
      }).pipe(
        Effect.provide(
          Layer.fresh(
            Offline.layerWithModel(
              Scripted.layer(({ contents }): Scripted.Step =>
                JSON.stringify(contents.at(-1)).includes("FAIL")
                  ? new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
                  : "fine"
              )
            )
          )
        )
      ),
    { arbitrary: { runs: runsOf(200) } }
  )
})

describe("an environment message in the conversation", () => {
  it.live("suppresses the standing one", function* () {
    const { chat, fake } = yield* against(always, { environment: "It is Sunday." })
    yield* chat.append([{ content: user(text("It was Monday then.")), author: "environment" }])
    const { tokens } = yield* chat.usage
    yield* taken(chat.send("hello"))
    assert.deepStrictEqual(contentsOf((yield* fake.requests)[0] ?? assert.fail()), [
      user(text("It is Sunday.")),
      user(text("hello"))
    ])
    yield* chat.configure({ environment: undefined })
    assert.notStrictEqual((yield* chat.usage).tokens, tokens)
    yield* taken(chat.send("again"))
    const [first] = contentsOf((yield* fake.requests)[1] ?? assert.fail())
    assert.deepStrictEqual(first, user(text("It was Monday then.")))
  })
})

describe("a message without an answer", () => {
  it.live("keeps its attached content within its room, so that the conversation continues", function* () {
    const { chat } = yield* against(always, { window: 10_000 })
    const nothing = Effect.undefined
    let turns = 0
    const loops = {
      reset: Effect.void,
      strikes: Effect.succeed(0),
      again: Effect.void,
      turn: () =>
        Effect.sync(() => ((turns += 1) === 1 ? { kind: "approach" as const, detail: "in circles" } : undefined)),
      call: () => nothing,
      result: () => Effect.void,
      content: () => nothing
    }
    const approval = yield* Approval.make({ mode: "none", granted: [] })
    const run = Agent.run({ name: "a", chat, tools: [], loops }, "look", {
      attached: [{ parts: [text(file)], room: 1_000 }]
    })
    yield* taken(Stream.provideService(run, Approval, approval))
    assert.isBelow((yield* chat.usage).tokens, 3_000)
    const { events } = yield* taken(chat.send("and now?"))
    assert.strictEqual(endingOf(events)?._tag, "Finished")
  })
})

describe("a hook", () => {
  it.effect(
    "may choose a model whose window holds the request beside the reserve",
    Layer.fresh(Offline.layerWithModel(Scripted.layer(() => "fine"))),
    function* () {
      const hooks = yield* HookSystem
      yield* hooks.subscribe("small", ({ _tag }) =>
        Effect.succeed(_tag === "BeforeModel" ? { hookSpecificOutput: { llm_request: { model: "small" } } } : {})
      )
      /** The smallest window, in steps of a hundred, of a model that is asked. */
      const smallest = Effect.fnUntraced(function* (reserve: number) {
        for (let window = 100; window < 3_000; window += 100) {
          const { chat } = yield* begin({ window: 20_000, reserve, models: { small: { window } } })
          yield* taken(chat.send("word ".repeat(200)))
          const calls = yield* Scripted.Script.use((script) => script.calls)
          if (calls.at(-1)?.request.model === "small") return window
        }
        return assert.fail("it was never asked")
      })
      assert.strictEqual(yield* smallest(400), (yield* smallest(0)) + 400)
    }
  )
})

describe("per-model settings", () => {
  it.live("give window and threshold, also after a switch", function* () {
    const { chat } = yield* against(always, {
      window: 50_000,
      threshold: 0.5,
      models: { "gemini-2.5-pro": { window: 4_000, threshold: 0.25 } }
    })
    const first = yield* chat.usage
    assert.deepStrictEqual([first.limit, first.threshold], [50_000, 0.5])
    yield* chat.configure({ model: "gemini-2.5-pro" })
    const other = yield* chat.usage
    assert.deepStrictEqual([other.limit, other.threshold], [4_000, 0.25])
  })
})
