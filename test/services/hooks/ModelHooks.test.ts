import { Effect } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import * as Hooked from "../../../src/services/hooks/Hooked.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import * as ModelHooks from "../../../src/services/hooks/ModelHooks.ts"
import * as SessionHooks from "../../../src/services/hooks/SessionHooks.ts"
import type { ModelChunk, ModelRequest } from "../../../src/services/model/Model.ts"
import { type Answers, of, subscribed } from "../../support/hooks.ts"
import { illegal } from "../../support/legal.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const declared = (...names: ReadonlyArray<string>) => [{ functionDeclarations: names.map((name) => ({ name })) }]

const request: ModelRequest = {
  model: "gemini-2.5-flash",
  contents: [user(text("go")), model(call("read", { word: "a" }, "1")), user(response("read", { output: "A" }, "1"))],
  systemInstruction: "Be brief.",
  tools: declared("read", "edit"),
  generation: { temperature: 0.5, thinkingBudget: 7 }
}

const told = [{ role: "user" as const, content: "go" }]

const hooked = Effect.fnUntraced(function* (answers: Answers) {
  const hooks = yield* HookSystem
  const events = yield* subscribed(hooks, answers)
  const notices: Array<string> = []
  const emit = (event: ChatEvent) =>
    Effect.sync(() => void (event._tag === "Notice" ? notices.push(event.message) : undefined))
  return { hooked: Hooked.make(hooks, { session: "s", cwd: "/work" }, emit), events, notices }
}, Effect.provide(HookSystem.layer))

const wanting = (llm: Readonly<Record<string, unknown>>): Answers => ({
  BeforeModel: { hookSpecificOutput: { llm_request: llm } }
})

const choosing = (toolConfig: unknown): Answers => ({ BeforeToolSelection: { hookSpecificOutput: { toolConfig } } })

const fits = (model: string) => Effect.succeed(model === "gemini-2.5-pro")

/** The request as it leaves, where it leaves. */
const passed = Effect.fnUntraced(function* (answers: Answers, spare = 10_000) {
  const { events, hooked: own, notices } = yield* hooked(answers)
  const left = yield* ModelHooks.before(own, request, spare, fits)
  if (left._tag !== "Passed") return assert.fail(left._tag)
  assert.isUndefined(illegal(left.request.contents))
  assert.strictEqual(left.isSame, left.request === request)
  // What the conversation holds was not touched.
  assert.deepStrictEqual(left.request.contents.slice(0, 3), request.contents)
  return { left: left.request, notices, events }
})

describe("BeforeModel", () => {
  it.effect("gets model, texts, settings and whether tools may be called", function* () {
    const { events, left } = yield* passed({})
    assert.strictEqual(left, request)
    assert.deepStrictEqual(of(events, "BeforeModel"), [
      {
        _tag: "BeforeModel",
        request: {
          model: "gemini-2.5-flash",
          messages: told,
          config: { temperature: 0.5 },
          toolConfig: { mode: "AUTO" }
        }
      }
    ])
  })

  const changes: ReadonlyArray<readonly [rule: string, llm: Readonly<Record<string, unknown>>, Partial<ModelRequest>]> =
    [
      ["equal values change nothing", { model: request.model, messages: told, config: { temperature: 0.5 } }, {}],
      ["another model whose window holds it", { model: "gemini-2.5-pro" }, { model: "gemini-2.5-pro" }],
      [
        "settings, beside those that hooks do not see",
        { config: { temperature: 0, topP: 0.9, topK: 40, maxOutputTokens: 100 } },
        { generation: { temperature: 0, topP: 0.9, topK: 40, maxOutputTokens: 100, thinkingBudget: 7 } }
      ],
      [
        "messages at the end, marked as not the user's",
        { messages: [...told, { role: "user", content: "be <kind>" }] },
        {
          contents: [
            ...request.contents,
            user(text(`${runtimeMark} Added by a hook:\n<hook_context>\nbe &lt;kind&gt;\n</hook_context>`))
          ]
        }
      ]
    ]
  it.effect.each(changes)("may change: %s", function* ([, llm, change]) {
    const { left, notices } = yield* passed(wanting(llm))
    assert.deepStrictEqual(left, { ...request, ...change })
    assert.deepStrictEqual(notices, [])
  })

  const refusals: ReadonlyArray<
    readonly [rule: string, llm: Readonly<Record<string, unknown>>, why: string, spare?: 10]
  > = [
    ["a model whose window may not hold it", { model: "gemma-4-27b" }, "may not fit the window of gemma"],
    ["a model without a name", { model: 7 }, "has to be a name"],
    ["a setting of a wrong type", { config: { temperature: "hot" } }, "wrong value (temperature)"],
    ["an unknown setting", { config: { seed: 1 } }, "only temperature, topP, topK, maxOutputTokens"],
    ["an earlier message", { messages: [{ role: "user", content: "stop" }] }, "only be added at the end"],
    ["fewer messages", { messages: [] }, "only be added at the end"],
    ["a message of the model", { messages: [...told, { role: "model", content: "yes" }] }, "no message of the model"],
    ["messages of a wrong shape", { messages: "all" }, "list of role and content"],
    ["more than fits the window", { messages: [...told, { role: "user", content: "x" }] }, "no room", 10]
  ]
  it.effect.each(refusals)("may not change, and reports: %s", function* ([, llm, why, spare]) {
    const { left, notices } = yield* passed(wanting(llm), spare)
    assert.strictEqual(left, request)
    assert.lengthOf(notices, 1)
    assert.include(notices[0], why)
  })

  it.effect("blocks with an answer in place of the model's, in both forms; stops", function* () {
    const block = (llm: unknown): Answers => ({
      BeforeModel: { decision: "block", reason: "no", hookSpecificOutput: { llm_response: llm } }
    })
    const shapes = [
      [undefined, undefined],
      [{ text: "cached" }, "cached"],
      [{ candidates: [{ content: { role: "model", parts: ["a", "b"] } }] }, "ab"],
      [{ candidates: [{ content: { parts: [{ text: "a" }] } }] }, "a"],
      [{ candidates: 7 }, undefined]
    ] as const
    for (const [llm, answer] of shapes) {
      const { hooked: own } = yield* hooked(block(llm))
      assert.deepStrictEqual(yield* ModelHooks.before(own, request, 0, fits), { _tag: "Blocked", why: "no", answer })
    }
    const { hooked: own } = yield* hooked({ BeforeModel: { continue: false, stopReason: "halt" } })
    assert.deepStrictEqual(yield* ModelHooks.before(own, request, 0, fits), { _tag: "Stopped", why: "halt" })
  })
})

describe("BeforeModel without settings", () => {
  it.effect("gets a config object all the same: scripts read it unconditionally", function* () {
    const { events, hooked: own } = yield* hooked({})
    const { generation: _generation, ...bare } = request
    yield* ModelHooks.before(own, bare, 0, fits)
    assert.deepStrictEqual(of(events, "BeforeModel")[0]?.request.config, {})
  })

  it.effect("answers in place of the model without a decision, too", function* () {
    const { hooked: own } = yield* hooked({
      BeforeModel: { hookSpecificOutput: { llm_response: { text: "cached" } } }
    })
    assert.deepInclude(yield* ModelHooks.before(own, request, 0, fits), { _tag: "Blocked", answer: "cached" })
  })
})

describe("BeforeToolSelection", () => {
  const rows: ReadonlyArray<
    readonly [rule: string, config: unknown, tools: ModelRequest["tools"], mustCall: true | undefined]
  > = [
    ["NONE: no tool is offered", { mode: "NONE" }, undefined, undefined],
    ["NONE beats names", { mode: "NONE", allowedFunctionNames: ["read"] }, undefined, undefined],
    ["ANY: one has to be called", { mode: "ANY" }, request.tools, true],
    ["ANY of these", { mode: "ANY", allowedFunctionNames: ["edit"] }, declared("edit"), true],
    ["AUTO of these", { mode: "AUTO", allowedFunctionNames: ["read", "what"] }, declared("read"), undefined],
    ["names alone", { allowedFunctionNames: ["read"] }, declared("read"), undefined],
    ["names of unknown tools", { mode: "ANY", allowedFunctionNames: ["what"] }, undefined, undefined],
    ["AUTO changes nothing", { mode: "AUTO" }, request.tools, undefined],
    ["no names change nothing", { allowedFunctionNames: [] }, request.tools, undefined]
  ]
  it.effect.each(rows)("%s", function* ([, config, tools, mustCall]) {
    const { left } = yield* passed(choosing(config))
    assert.deepStrictEqual(left.tools, tools)
    assert.strictEqual(left.mustCall, mustCall)
  })

  it.effect("ignores an invalid form", function* () {
    const { left } = yield* passed(choosing({ mode: "SOME" }))
    assert.strictEqual(left, request)
  })
})

describe("AfterModel", () => {
  const signed = { text: "b", thoughtSignature: "s" }
  const chunk: ModelChunk = {
    parts: [{ text: "hm", thought: true }, text("a"), signed, call("read", { word: "x" })],
    finishReason: "STOP"
  }
  const saying = (words: string): Answers => ({
    AfterModel: { hookSpecificOutput: { llm_response: { text: words } } }
  })
  const rows: ReadonlyArray<readonly [rule: string, answers: Answers, parts: ModelChunk["parts"]]> = [
    ["is empty: the chunk unchanged", {}, chunk.parts],
    ["the same text: the piece as it is", saying("ab"), chunk.parts],
    [
      "another text: calls, thoughts and signatures stay",
      saying("c"),
      [chunk.parts[0], text("c"), { text: "", thoughtSignature: "s" }, chunk.parts[3]].flatMap((part) =>
        part === undefined ? [] : [part]
      )
    ],
    [
      "no text",
      saying(""),
      [chunk.parts[0], { text: "", thoughtSignature: "s" }, chunk.parts[3]].flatMap((part) =>
        part === undefined ? [] : [part]
      )
    ]
  ]
  it.effect.each(rows)("%s", function* ([, answers, parts]) {
    const { events, hooked: own } = yield* hooked(answers)
    const left = yield* ModelHooks.after(own, request, chunk)
    if (left._tag !== "Passed") return assert.fail(left._tag)
    assert.deepStrictEqual(left.chunk, { ...chunk, parts })
    const [event] = of(events, "AfterModel")
    assert.deepStrictEqual([event?.text, event?.finishReason], ["ab", "STOP"])
  })

  it.effect("a text where there was none, a stop, a block", function* () {
    const silent: ModelChunk = { parts: [call("read", {})] }
    const { hooked: own } = yield* hooked(saying("first"))
    assert.deepStrictEqual(yield* ModelHooks.after(own, request, silent), {
      _tag: "Passed",
      chunk: { parts: [text("first"), ...silent.parts] }
    })
    const stopping = yield* hooked({ AfterModel: { continue: false, stopReason: "halt" } })
    assert.deepStrictEqual(yield* ModelHooks.after(stopping.hooked, request, chunk), { _tag: "Stopped", why: "halt" })
    const blocking = yield* hooked({ AfterModel: { decision: "deny", reason: "no" } })
    assert.deepStrictEqual(yield* ModelHooks.after(blocking.hooked, request, chunk), {
      _tag: "Blocked",
      why: "no",
      answer: undefined
    })
  })

  it.effect("a request is converted for hooks once, for any number of chunks", function* () {
    const { events, hooked: own } = yield* hooked({})
    yield* ModelHooks.after(own, request, chunk)
    yield* ModelHooks.after(own, request, chunk)
    const [one, two] = of(events, "AfterModel")
    assert.strictEqual(one?.request, two?.request)
  })
})

it.effect("SessionStart adds a program's text; nothing when hooks add nothing", function* () {
  const { events, hooked: own } = yield* hooked({
    SessionStart: { hookSpecificOutput: { additionalContext: "branch <main>" } }
  })
  const words = yield* SessionHooks.start(own, "startup")
  assert.strictEqual(words, `${runtimeMark} Added by a hook:\n<hook_context>\nbranch &lt;main&gt;\n</hook_context>`)
  yield* SessionHooks.end(own, "exit")
  assert.deepStrictEqual(events, [
    { _tag: "SessionStart", source: "startup" },
    { _tag: "SessionEnd", reason: "exit" }
  ])
  const silent = yield* hooked({})
  assert.isUndefined(yield* SessionHooks.start(silent.hooked, "resume"))
  assert.isUndefined(yield* SessionHooks.start(Hooked.noHooks, "clear"))
})
