import { Arbitrary, Effect, Layer, Schema, Stream } from "effect"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries, itemTokens, view } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { decodeLine, encodeLine } from "../../../src/domain/session/LogFormat.ts"
import { emptySession, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { runsOf } from "../../support/runs.ts"
import { against, begin, contentsOf, endingOf, said, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const always: Fake.Script = ({ method }) => (method === "countTokens" ? Fake.tokens(40_000) : said("seen"))

const file = "one line of a file\n".repeat(4_000)

/** What was sent to be answered: that the model counted is no answer. */
const sentOf = (fake: Fake.FakeGemini) =>
  Effect.map(fake.requests, (all) => all.filter(({ method }) => method !== "countTokens"))

describe("content attached to a message", () => {
  it.live("is stored with the message and its answer in one line, as a program's text", function* () {
    const { chat, events, fake } = yield* against(always)
    yield* taken(chat.send("look at @a.txt", { attached: [{ parts: [text("a.txt:"), text("the file")] }] }))
    yield* taken(chat.send("and now?"))
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Answered", "Answered"]
    )
    const log = entries(yield* chat.conversation)
    assert.deepStrictEqual(
      log.map(({ author, id }) => [id, author]),
      [
        ["e1", undefined],
        ["e2", "program"],
        ["e3", undefined],
        ["e4", undefined],
        ["e5", undefined]
      ]
    )
    const [first, second] = yield* fake.requests
    const opening = [user(text("look at @a.txt"), text(foreignNotes.program), text("a.txt:"), text("the file"))]
    assert.deepStrictEqual(contentsOf(first ?? assert.fail()), opening)
    assert.deepStrictEqual(contentsOf(second ?? assert.fail()).slice(0, 1), opening, "what was sent stays what it was")
    for (const event of events) {
      const line = decodeLine(JSON.parse(encodeLine(event)))
      assert.deepStrictEqual(line._tag === "Success" ? line.success?.event : line.failure, event)
    }
    assert.deepStrictEqual(entries(events.reduce(applyEvent, emptySession).conversation), log)
  })

  it.live("is dropped with a message that gets no answer", function* () {
    const { chat, events } = yield* against(() => Fake.failure(400, "no"))
    const { events: told } = yield* taken(chat.send("look", { attached: [{ parts: [text("the file")] }] }))
    assert.strictEqual(endingOf(told)?._tag, "Error")
    assert.deepStrictEqual(events, [])
    assert.lengthOf(entries(yield* chat.conversation), 0)
  })

  it.live("is shortened to its room, and recalled whole by its handle", function* () {
    const { chat, fake } = yield* against(always)
    yield* taken(chat.send("look", { attached: [{ parts: [text(file), text("small")], room: 1_000 }] }))
    const item = view(yield* chat.conversation)[1] ?? assert.fail("nothing was attached")
    assert.isAtMost(itemTokens(item), 1_000)
    const handle = item.entry.handles[0] ?? assert.fail("no handle")
    const sent = JSON.stringify(contentsOf((yield* fake.requests)[0] ?? assert.fail()))
    assert.include(sent, handle)
    assert.include(sent, "small", "what is small stays whole")
    assert.isBelow(sent.length, 10_000)
    assert.strictEqual((yield* chat.recall(handle)).text, file)
  })

  it.live("counts: a message too large with it is not sent, and the error has its tokens", function* () {
    const { chat, events, fake } = yield* against(always, { window: 4_000 })
    const { events: told } = yield* taken(chat.send("look", { attached: [{ parts: [text(file)] }] }))
    const last = endingOf(told)
    assert.isTrue(last?._tag === "ContextWindowWillOverflow" && last.estimated > 10_000)
    assert.deepStrictEqual(yield* sentOf(fake), [])
    assert.deepStrictEqual(events, [])
  })
})

describe("the environment message", () => {
  it.live("begins every request and is not part of the conversation", function* () {
    const { chat, events, fake } = yield* against(always, { environment: "It is Sunday." })
    const before = (yield* chat.usage).tokens
    yield* taken(chat.send("first"))
    yield* taken(chat.send("second"))
    for (const request of yield* fake.requests) {
      assert.deepStrictEqual(contentsOf(request)[0], user(text("It is Sunday.")))
    }
    assert.lengthOf(entries(yield* chat.conversation), 4)
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["EnvironmentSent", "Answered", "Answered"]
    )
    assert.isAbove(before, 0, "it is counted")
  })

  it.live("counts towards the window", function* () {
    const { chat, fake } = yield* against(always, { environment: file, window: 4_000 })
    const { events } = yield* taken(chat.send("first"))
    assert.strictEqual(endingOf(events)?._tag, "ContextWindowWillOverflow")
    assert.deepStrictEqual(yield* sentOf(fake), [])
  })
})

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

describe("hooks and one turn", () => {
  const changing = (other: string) => ({
    hookSpecificOutput: { llm_request: { model: other } }
  })

  it.live("counts for a request that a hook changed are not learned from", function* () {
    const tooLong = Fake.failure(
      400,
      "The input token count (9000) exceeds the maximum number of tokens allowed (8000)."
    )
    const { chat, fake, hooks } = yield* against(({ body }) =>
      JSON.stringify(body).includes("never") ? said("no") : tooLong
    )
    yield* hooks.subscribe("other", ({ _tag }) =>
      Effect.succeed(_tag === "BeforeModel" ? changing("gemini-2.5-pro") : {})
    )
    const { events } = yield* taken(chat.send("a short message"))
    assert.deepStrictEqual(events.at(-1)?._tag, "Error")
    assert.isFalse(events.some(({ _tag }) => _tag === "ChatCompressed"))
    const { tokens } = yield* chat.usage
    assert.isBelow(tokens, 100)
    assert.strictEqual((yield* fake.requests).filter(({ method }) => method === "streamGenerateContent").length, 1)
  })

  it.live("the answer records the requested model", function* () {
    const { chat, hooks } = yield* against(always)
    yield* hooks.subscribe("other", ({ _tag }) =>
      Effect.succeed(_tag === "BeforeModel" ? changing("gemini-2.5-pro") : {})
    )
    yield* taken(chat.send("hello"))
    assert.strictEqual(entries(yield* chat.conversation)[1]?.model, "gemini-2.5-pro")
  })

  it.live("a hook's answer replaces all of the model's, including its calls", function* () {
    const pieces = Fake.sse(
      Fake.response([{ functionCall: { name: "touch", args: {}, id: "1" } }], { finishReason: null }),
      Fake.response([{ text: "secret two" }])
    )
    const { chat, hooks } = yield* against(({ method }) => (method === "countTokens" ? Fake.tokens(9) : pieces))
    yield* hooks.subscribe("redact", (event) =>
      Effect.succeed(
        event._tag === "AfterModel" && event.text.includes("secret")
          ? {
              decision: "block" as const,
              reason: "secrets",
              hookSpecificOutput: { llm_response: { text: "REDACTED" } }
            }
          : {}
      )
    )
    const { events } = yield* taken(chat.send("hello"))
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.deepStrictEqual(entries(yield* chat.conversation)[1]?.content, model(text("REDACTED")))
  })

  it.live("a necessary compression is reported as automatic, with the messages of hooks", function* () {
    const { chat, hooks } = yield* against(always, { window: 6_000 })
    const triggers: Array<string> = []
    yield* hooks.subscribe("watch", (event) =>
      Effect.sync(() => {
        if (event._tag !== "PreCompress" && event._tag !== "PostCompress") return {}
        triggers.push(`${event._tag} ${event.trigger}`)
        return { systemMessage: event._tag }
      })
    )
    for (let n = 0; n < 4; n += 1) {
      yield* chat.append([
        { content: user(text(`Part ${n}?`)) },
        { content: model(text(`${n} ${file.slice(0, 9_000)}`)) }
      ])
    }
    const { events } = yield* taken(chat.send("and now?"))
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.deepStrictEqual([...new Set(triggers)].sort(), ["PostCompress auto", "PreCompress auto"])
    const notices = events.flatMap((event) => (event._tag === "Notice" ? [event.message] : []))
    assert.isTrue(notices.some((line) => line.includes("PostCompress")))
  })
})

describe("attached content without a message", () => {
  it.live("is its own message and is sent", function* () {
    const { chat, fake } = yield* against(always)
    yield* chat.append([{ content: user(text("still waiting")) }])
    yield* taken(chat.send("", { attached: [{ parts: [text("news of the editor")] }] }))
    assert.include(JSON.stringify(contentsOf((yield* fake.requests)[0] ?? assert.fail())), "news of the editor")
    assert.include(JSON.stringify(entries(yield* chat.conversation)), "news of the editor")
  })
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

  it.live("is rebuilt after a compression, before the request that caused it", function* () {
    let made = 0
    const renew = Effect.sync(() => `Environment ${(made += 1)}.`)
    const { chat, fake } = yield* against(always, {
      window: 6_000,
      environment: "Environment 0.",
      refreshEnvironment: renew
    })
    for (let n = 0; n < 4; n += 1) {
      yield* chat.append([
        { content: user(text(`Part ${n}?`)) },
        { content: model(text(`${n} ${file.slice(0, 9_000)}`)) }
      ])
    }
    yield* taken(chat.send("and now?"))
    const sent = (yield* fake.requests).filter(({ method }) => method === "streamGenerateContent")
    assert.deepStrictEqual(contentsOf(sent.at(-1) ?? assert.fail())[0], user(text(`Environment ${made}.`)))
    assert.isAbove(made, 0)
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
