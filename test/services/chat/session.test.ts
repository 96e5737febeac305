import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { call, type Content, model, type Part, response, text } from "../../../src/domain/content/Content.ts"
import type { Handle } from "../../../src/domain/content/Handle.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import type { HookOutput } from "../../../src/domain/hooks/Hook.ts"
import { type SessionEvent, startedWith } from "../../../src/domain/session/Session.ts"
import { applyEvent, emptySession } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { ContextLengthError, InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { brief } from "../../support/brief.ts"
import { taken } from "../../support/sending.ts"
import { recordedSpans } from "../../support/spans.ts"
import { expect, it } from "../../support/vitest.ts"

/** One long session: each event, each request and each line of the log, with a model that counts twice the estimate. */

const words = (topic: string, count: number) => Array.from({ length: count }, (_, at) => `${topic} ${at}.`).join(" ")

const partOf = ({ functionCall, functionResponse, text: words = "", ...rest }: Part) =>
  functionCall === undefined
    ? functionResponse === undefined
      ? `${words.length}${Object.keys(rest).join()}`
      : `=${functionResponse.name} ${JSON.stringify(functionResponse.response).length}`
    : functionCall.name

const contentsOf = (contents: ReadonlyArray<Content>) =>
  contents.map(({ parts, role }) => `${role.slice(0, 1)}(${parts.map(partOf).join()})`).join(" ")

const snapshot = "<state_snapshot><overall_goal>Make it green.</overall_goal></state_snapshot>"

const answers: ScriptedModel.Answers = (request, index) => {
  const last =
    request.contents
      .at(-1)
      ?.parts.map((part) => part.text ?? "")
      .join("") ?? ""
  const chars = JSON.stringify(request.contents).length
  const usage = { prompt: Math.ceil(chars / 2), answer: 10 + index, thoughts: 3, cached: 2 }
  const isTurn = request.tools !== undefined
  if (!isTurn && last.includes("forbidden"))
    return new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
  if (!isTurn) return { content: model(text(snapshot)), finishReason: "STOP", usage }
  if (last.includes("fail")) return new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
  if (last.includes("overflow")) return new ModelError({ reason: new ContextLengthError({}) })
  if (last.includes("wait")) return ScriptedModel.hang
  const parts = last.includes("think")
    ? [{ text: "**Plan** I look.", thought: true }, text(""), text("Thought.")]
    : last.includes("look")
      ? [text("I look."), call("read", { path: "a" }, `c${index}`), call("list", {}, `d${index}`)]
      : [text(`Answer ${index}. ${words("It is so", 20)}`)]
  return { content: model(...parts), finishReason: last.includes("long") ? "MAX_TOKENS" : "STOP", usage }
}

const played = Effect.fnUntraced(function* (strategy: "palimpsest" | "gemini") {
  const shown: Array<string> = []
  const log: Array<SessionEvent> = []
  const { spans, tracer } = recordedSpans()
  let veto: string | undefined
  let says: HookOutput = { decision: "block", reason: "not now" }
  const settings = {
    model: "gemini-2.5-flash",
    cwd: "/work",
    window: 12_000,
    threshold: 0.5,
    prepareAt: 0.8,
    systemInstruction: "Be brief.",
    environment: "It is Monday.",
    refreshEnvironment: Effect.sync(() => `It is week ${Math.floor(log.length / 7)}.`),
    afterCompression: Effect.succeed("Keep the rules."),
    tools: [{ functionDeclarations: [{ name: "read" }] }],
    masking: { protect: 1_000, least: 500 },
    policy: { strategy, summarizer: "model" as const }
  }
  const services = yield* Layer.build(
    Offline.layerWithModel(
      ScriptedModel.layer(answers, ({ contents }) => Math.ceil(JSON.stringify(contents).length / 2))
    )
  )
  yield* Effect.gen(function* () {
    const { subscribe } = yield* HookSystem
    yield* subscribe("watch", (event) =>
      Effect.sync(() => {
        if (event._tag === "PreCompress" || event._tag === "PostCompress") shown.push(`  hook ${brief(event)}`)
        if (event._tag === "PostCompress") return { systemMessage: "after it" }
        return veto !== undefined && event._tag === veto ? says : undefined
      })
    )
    const started = startedWith(settings, "s1", 0)
    const chat = yield* Chat.make({
      log: { append: (event) => Effect.sync(() => void log.push(event)) },
      session: applyEvent(emptySession, started),
      settings
    })
    const { calls } = yield* ScriptedModel.Script
    let seen = { calls: 0, log: 0 }
    const step = Effect.fnUntraced(function* (name: string, work: Effect.Effect<unknown, unknown>) {
      shown.push(`# ${name}`)
      const done = yield* Effect.match(work, {
        onSuccess: (value) => value,
        onFailure: (error) => ({ failed: String(error) })
      })
      if (done !== undefined) shown.push(`  = ${brief(done)}`)
      yield* TestClock.adjust("1 second")
      // What is prepared takes its time.
      while ((yield* chat.usage).preparation === "running") yield* Effect.yieldNow
      const made = yield* calls
      for (const { method, request } of made.slice(seen.calls)) {
        const { contents, generation, model: asked, systemInstruction = "", tools } = request
        shown.push(
          `  ${method} ${brief({ asked, generation, tools, chars: systemInstruction.length })} ${contentsOf(contents)}`
        )
      }
      for (const event of log.slice(seen.log)) shown.push(`  log ${brief(event)}`)
      seen = { calls: made.length, log: log.length }
      const { preparation, scale = 0, tokens, ...usage } = yield* chat.usage
      shown.push(`  ${brief({ ...usage, tokens, scale: Math.round(scale * 100) / 100, preparation })}`)
    })
    const send = (message: string | ReadonlyArray<Part>, options: Parameters<typeof chat.send>[1] = {}) =>
      Effect.map(taken(chat.send(message, options)), ({ error, events }) => {
        for (const event of events) shown.push(`  ${brief(event)}`)
        return error === undefined ? undefined : { failed: error.message }
      })
    const results = (at: number, size: number) => [
      response("read", { output: words("result", size) }, `c${at}`),
      response("list", { output: "x" }, `d${at}`)
    ]
    const pdf: Part = { inlineData: { mimeType: "application/pdf", data: "A".repeat(4_000) } }
    const attached = [{ parts: [text(words("attached", 900)), pdf], room: 200 }, { parts: [text("a note")] }]
    yield* step("a message with attachments", send("hello", { messageId: "m1", attached }))
    yield* step("only attachments", send(" ", { attached: [{ parts: [text("more")] }] }))
    yield* step("attachments of a failure", send("fail", { attached }))
    yield* step("no room for attachments", send("hello", { attached: [{ parts: [text(words("attached", 9_000))] }] }))
    yield* step("calls", send("look"))
    yield* step("results", send(results(2, 1_200)))
    yield* step("calls again", send("look again", { author: "program" }))
    yield* step("a failure after results", send([...results(4, 40), text("fail")]))
    yield* step("the last message again", send(""))
    yield* step("an answer that was cut off", send(`long ${words("question", 200)}`))
    yield* step("a thought", send("think"))
    yield* step("a count of a part", send("go on"))
    for (const at of [1, 2, 3]) yield* step(`growth ${at}`, send(words(`topic ${at}`, 120)))
    yield* step("usage", Effect.map(chat.contents, contentsOf))
    yield* step("a pin", chat.pin("question 1"))
    yield* step("a pin of the latest message", chat.pin())
    yield* step("a label", chat.label(entryId(3), " one\nline "))
    yield* step("a label of nothing", chat.label(entryId(99), "one"))
    yield* step("undo", chat.undo)
    yield* step("undo again", chat.undo)
    yield* step("redo", chat.redo)
    yield* step("redo again", chat.redo)
    yield* step(
      "a plan",
      Effect.map(chat.plan({ focus: "the goal" }), (decision) => Object.keys(decision))
    )
    yield* step("a compression", chat.compress({ focus: "the goal", request: "r1" }))
    yield* step("another", chat.compress())
    yield* step("one that is not forced", chat.compress({ forced: false }))
    yield* step("back", chat.branch({ to: entryId(5) }))
    yield* step("back with a summary", chat.branch({ to: entryId(3), summary: { focus: "files" } }))
    yield* step("back to the same", chat.branch({ to: entryId(3) }))
    yield* step("another model", chat.configure({ model: "gemini-2.5-pro", routed: "gemini-2.5-flash-lite" }))
    for (const at of [4, 5, 6]) yield* step(`growth ${at}`, send(words(`topic ${at}`, 250)))
    veto = "PreCompress"
    yield* step("a compression that a hook vetoes", chat.compress())
    for (const at of [7, 8]) yield* step(`growth ${at}, against a hook`, send(words(`topic ${at}`, 250)))
    yield* step("a request that is too long, against a hook", send("overflow"))
    veto = "BeforeModel"
    yield* step("a request that a hook refuses", send("hello"))
    says = { decision: "block", reason: " ", hookSpecificOutput: { llm_response: { text: "instead" } } }
    yield* step("a request that a hook answers", send("hello"))
    says = { hookSpecificOutput: { llm_request: { model: "gemini-2.5-flash" } } }
    for (const message of ["hello", "overflow"]) yield* step(`${message}, to a hook's model`, send(message))
    veto = "AfterModel"
    says = {
      ...says,
      decision: "block",
      reason: "a secret",
      hookSpecificOutput: { llm_response: { text: "REDACTED" } }
    }
    yield* step("calls that a hook replaces", send("look"))
    veto = undefined
    yield* step("a request that is too long", send("overflow"))
    for (const overflowFactor of [undefined, 0.93, 0]) {
      yield* step("a share of the room", chat.configure({ overflowFactor }))
      yield* step("no room", send(words("too much", 4_000)))
    }
    yield* step("a cancelled turn", send("wait", { cancel: Effect.yieldNow }))
    yield* step("growth 9, with a summary that fails", send(words("forbidden", 250)))
    for (const at of [10, 11]) yield* step(`growth ${at}`, send(words(`topic ${at}`, 250)))
    yield* step("a pin of new words", chat.pin("Never push."))
    yield* step("a pin of nothing", chat.pin(" "))
    yield* step("an unknown handle", chat.recall("h_aaaaaaaaaa" as Handle))
    yield* step("a search", chat.search({ pattern: "result 1\\.", maxTokens: 500, isRedacted: true }))
    yield* step(
      "the tree",
      Effect.map(chat.tree, ({ nodes, tip }) => ({ tip, nodes: [...nodes.keys()].length }))
    )
  }).pipe(Effect.provide(services), Effect.withTracer(tracer), Effect.scoped)
  const named = spans.flatMap(({ attributes, name }) => {
    const id = attributes.get("gen_ai.conversation.id")
    return id === undefined ? [] : [`span ${name} of ${id}`]
  })
  return [...shown, ...new Set(named)]
})

it.effect.each(["palimpsest", "gemini"] as const)(
  "a session goes like this with the strategy %s: see `test/golden/session-*.txt`, and take a new one with `vitest -u`",
  function* (strategy) {
    const shown = yield* played(strategy)
    yield* Effect.promise(() =>
      expect(`${shown.join("\n")}\n`).toMatchFileSnapshot(`../../golden/session-${strategy}.txt`)
    )
  }
)
