import { Arbitrary, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { runsOf } from "../../support/runs.ts"
import { against, begin, contentsOf, endingOf, said, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const always: Fake.Script = ({ method }) => (method === "countTokens" ? Fake.tokens(40_000) : said("seen"))

const file = "one line of a file\n".repeat(4_000)

/** Parts that a log could write otherwise than they came, and one that it keeps apart. */
const odd = {
  functionCall: { name: "t", id: "c", args: { z: 1e21, a: -0.5, nested: [{ b: null }], "": "\u2028" } },
  later: { unknown: ["kept"] },
  thoughtSignature: "c2ln"
}
const results = { output: `o\ud800${"o\u0000é".repeat(3_000)}` }
const photo = { inlineData: { data: Buffer.alloc(9_000, 7).toString("base64"), mimeType: "image/png" } }

describe("a conversation only grows", () => {
  const Step = Arbitrary.schema(
    Schema.Literals(["message", "failure", "cancel", "photo", "results", "day", "files", "process", "back"])
  )

  it.effect.prop(
    "each request begins with the bytes of the one before, across processes and days, until the conversation goes back",
    [Arbitrary.array(Step, { minLength: 1, maxLength: 12 })],
    ([steps]) =>
      Effect.gen(function* () {
        const chats = yield* Chats
        let [day, files] = [1, 0]
        const start = Effect.gen(function* () {
          const scope = yield* Scope.make()
          return { scope, chat: yield* Scope.provide(chats.open("s"), scope) }
        })
        let { chat, scope } = yield* start
        const note = Effect.suspend(() =>
          chat.configure({
            environment: `<session_context>\nToday is day ${day}.\n${"file\n".repeat(files)}</session_context>`
          })
        )
        yield* note
        let before: ReadonlyArray<string> = []
        for (const step of ["message", ...steps, "message"] as const) {
          switch (step) {
            case "day":
            case "files":
              if (step === "day") day += 1
              else files += 1
              yield* note
              continue
            case "back": {
              const last = entries(yield* chat.conversation).at(-3)
              if (last === undefined) continue
              yield* chat.branch({ to: last.id })
              before = before.slice(0, 1)
              continue
            }
            case "process":
              yield* Scope.close(scope, Exit.void)
              ;({ chat, scope } = yield* start)
              yield* note
              continue
            case "results":
              yield* chat.append([model(odd), user(response("t", results, "c"))].map((content) => ({ content })))
              continue
          }
          const turn = yield* Effect.forkChild(
            taken(
              chat.send(step === "photo" ? [text("see"), photo] : step === "message" ? `message of day ${day}` : step)
            )
          )
          if (step === "cancel") {
            yield* Effect.yieldNow
            yield* Fiber.interrupt(turn)
          } else yield* Fiber.join(turn)
          const requests = (yield* Scripted.Script.use(({ calls }) => calls)).filter(
            ({ method }) => method === "stream"
          )
          const now = (requests.at(-1)?.request.contents ?? []).map((content) => JSON.stringify(content))
          assert.deepStrictEqual(now.slice(0, before.length), before)
          if (step === "failure" || step === "cancel") continue
          assert.include(now.join(), `Today is day ${day}.`)
          before = now
        }
        yield* Scope.close(scope, Exit.void)
      }).pipe(
        Effect.provide(
          Layer.fresh(
            Offline.layerWithModel(
              Scripted.layer(({ contents }): Scripted.Step => {
                const last = JSON.stringify(contents.at(-1))
                if (last.includes("cancel")) return Scripted.hang
                return last.includes("failure")
                  ? new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
                  : "fine"
              })
            )
          )
        )
      ),
    { arbitrary: { runs: runsOf(200) } }
  )
})

it.live("an environment message in the conversation suppresses the standing one", function* () {
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

describe("a message without an answer", () => {
  it.live("keeps its attached content within its room, so that the conversation continues", function* () {
    const { chat } = yield* against(always, { window: 10_000 })
    const nothing = Effect.undefined
    let turns = 0
    const loops = {
      reset: Effect.void,
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

it.effect(
  "a hook may choose a model whose window holds the request beside the reserve",
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

it.live("per-model settings give window and threshold, also after a switch", function* () {
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
