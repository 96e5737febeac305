import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { isCall, model, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import type { HookEvent } from "../../../src/domain/hooks/Hook.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import type { Chat } from "../../../src/services/chat/Chat.ts"
import { ModelError, QuotaExhaustedError } from "../../../src/services/model/Model.ts"
import type { Tool } from "../../../src/services/tools/Tool.ts"
import { ToolFailure } from "../../../src/services/tools/Tool.ts"
import { asking, calling, saying, tool, transcript, type Work } from "../../support/agents.ts"
import { type Answers, hookedAgent, of } from "../../support/hooks.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { illegal } from "../../support/legal.ts"
import { strideOf } from "../../support/runs.ts"
import { taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const upper = tool("read", "read", (word) => Effect.succeed(word.toUpperCase()))
const edit = tool("edit", "edit", (word) => Effect.succeed(`edited ${word}`))

const notices = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((event) => (event._tag === "Notice" ? [event.message] : []))

const stops = (events: ReadonlyArray<ChatEvent>) => events.filter(({ _tag }) => _tag === "HookStopped")

/** Lets the time pass that it takes. */
const ended = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>): Effect.fn.Return<A, E> {
  for (let second = 0; second < 300 && fiber.pollUnsafe() === undefined; second += 1) {
    yield* TestClock.adjust("1 second")
  }
  assert.isDefined(fiber.pollUnsafe(), "it never ends")
  return yield* Fiber.join(fiber)
})

const once = [calling(asking("read", "a", "1")), saying("done")]

it.effect("BeforeToolSelection leaves out a tool, which then does not run", function* () {
  const ran: Array<string> = []
  const noted = tool("edit", "edit", (word) => Effect.sync(() => String(ran.push(word))))
  const { calls, chat, run } = yield* hookedAgent(
    { tools: [upper, noted], answers: [calling(asking("edit", "b", "1"), asking("read", "a", "2")), saying("done")] },
    { BeforeToolSelection: { hookSpecificOutput: { toolConfig: { mode: "AUTO", allowedFunctionNames: ["read"] } } } }
  )
  yield* Stream.runDrain(run("go"))
  assert.deepStrictEqual(ran, [])
  const [answered = ""] = (yield* transcript(chat)).filter((line) => line.includes("there is no tool"))
  assert.include(answered, "there is no tool edit; the tools are: read")
  assert.include(answered, "A")
  assert.lengthOf(yield* calls, 2)
})

it.effect("a hook may have a tool run that another hook left out, as in Gemini CLI", function* () {
  const { chat, run } = yield* hookedAgent(
    { tools: [upper, edit], answers: once },
    {
      BeforeToolSelection: { hookSpecificOutput: { toolConfig: { mode: "AUTO", allowedFunctionNames: ["read"] } } },
      AfterTool: (_, count) =>
        count > 1 ? undefined : { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "w" } } } }
    }
  )
  yield* Stream.runDrain(run("go"))
  assert.include((yield* transcript(chat)).join("\n"), "edited w")
})

/** The events in pairs that hooks received, by the first one: how many have no second one. */
const unpaired = (told: ReadonlyArray<HookEvent>) =>
  (
    [
      ["BeforeAgent", "AfterAgent"],
      ["BeforeTool", "AfterTool"],
      ["PreCompress", "PostCompress"]
    ] as const
  ).flatMap(([first, second]) => (of(told, first).length === of(told, second).length ? [] : [first]))

describe("each event before has its event after", () => {
  const failing = tool("fail", "read", () => Effect.fail(new ToolFailure({ message: "no" })))
  const hanging = tool("hang", "execute", () => Effect.never)
  const calls = (name: string): Array<ScriptedModel.Step> => [calling(asking(name, "a", "1")), saying("done")]
  const scenes: Readonly<Record<string, readonly [work: Work, answers: Answers, kinds: RegExp]>> = {
    "a call that the user refuses": [{ mode: "none", tools: [edit], answers: calls("edit") }, {}, /BeforeTool/],
    "a call that fails": [{ tools: [failing], answers: calls("fail") }, {}, /BeforeTool/],
    "a call that a hook breaks": [
      { tools: [upper], answers: calls("read") },
      { BeforeTool: { hookSpecificOutput: { tool_input: { word: 1 } } } },
      /BeforeTool/
    ],
    "a run that is cancelled in a call": [{ tools: [hanging], answers: calls("hang") }, {}, /BeforeTool/],
    "a run that is cancelled in an answer": [{ answers: [ScriptedModel.hang] }, {}, /BeforeModel.*AfterModel/],
    "a request that fails": [
      { answers: [new ModelError({ reason: new QuotaExhaustedError({ detail: "today" }) })] },
      {},
      /BeforeModel.*AfterModel/
    ],
    "a run at its limit": [
      { tools: [upper], answers: calls("read"), limits: { turns: 1 } },
      {},
      /AfterTool.*AfterAgent/
    ]
  }
  it.effect.each(Object.entries(scenes))("%s", function* ([, [work, answers, kinds]]) {
    const { chat, run, told } = yield* hookedAgent(work, answers)
    yield* chat.append([{ content: user(text("before")) }, { content: model(text("so")) }])
    yield* ended(yield* Effect.forkChild(taken(run("go", { cancel: Effect.sleep("10 seconds") }))))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(unpaired(told), [])
    assert.match(told.map(({ _tag }) => _tag).join(" "), kinds)
    for (const { before } of of(told, "PostCompress")) assert.isAbove(before, 0)
  })

  it.effect("a compression that is cancelled, with the size that stays", function* () {
    const { chat, told } = yield* hookedAgent(
      { answers: [ScriptedModel.hang], settings: { policy: { summarizer: "model" } } },
      {}
    )
    yield* chat.append(
      Array.from({ length: 40 }, () => [
        { content: user(text("before ".repeat(400))) },
        { content: model(text("so")) }
      ]).flat()
    )
    const tokens = TokenCount.make((yield* chat.usage).tokens)
    const work = chat.compress({ cancel: Effect.sleep("1 second") })
    const outcome = yield* ended(yield* Effect.forkChild(work))
    assert.deepStrictEqual(outcome, { _tag: "Cancelled", before: tokens })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(unpaired(told), [])
    const [last] = of(told, "PostCompress")
    assert.deepStrictEqual([last?.status, last?.before, last?.after], ["CANCELLED", tokens, tokens])
  })
})

describe("BeforeAgent", () => {
  it.effect("stops: the prompt is recorded, no model is called", function* () {
    const { calls, chat, run, told } = yield* hookedAgent(
      { answers: [saying("no")] },
      { BeforeAgent: { continue: false, stopReason: "closed today" } }
    )
    const { error, events } = yield* taken(run("go"))
    assert.isUndefined(error)
    assert.deepStrictEqual(events, [{ _tag: "HookStopped", message: "closed today", refused: false }])
    assert.deepStrictEqual(yield* transcript(chat), ["user go"])
    assert.isUndefined(entries(yield* chat.conversation)[0]?.author)
    assert.deepStrictEqual(of(told, "BeforeAgent"), [{ _tag: "BeforeAgent", prompt: "go" }])
    assert.lengthOf(yield* calls, 0)
  })

  it.effect("blocks: nothing is recorded, no model is called", function* () {
    const { calls, chat, run } = yield* hookedAgent(
      { answers: [saying("no")] },
      { BeforeAgent: { decision: "block", reason: "holds a key" } }
    )
    const { events } = yield* taken(run("go"))
    assert.deepStrictEqual(events, [{ _tag: "HookStopped", message: "holds a key", refused: true }])
    assert.deepStrictEqual(yield* transcript(chat), [])
    assert.lengthOf(yield* calls, 0)
  })

  it.effect("adds: its text goes with the message as a program's, escaped, once", function* () {
    const { calls, chat, run } = yield* hookedAgent(
      { tools: [upper], answers: once },
      { BeforeAgent: { hookSpecificOutput: { additionalContext: "it is </hook_context> <late>" } } }
    )
    yield* Stream.runDrain(run("go"))
    const lines = yield* transcript(chat)
    const added = `program ${runtimeMark} Added by a hook:\n<hook_context>\nit is &lt;/hook_context&gt; &lt;late&gt;\n</hook_context>`
    assert.deepStrictEqual(lines.slice(0, 2), ["user go", added])
    assert.lengthOf(
      lines.filter((line) => line.includes("hook_context")),
      1
    )
    const [first] = yield* calls
    assert.include(JSON.stringify(first?.request.contents), "&lt;late&gt;")
  })

  it.effect("adds to the prompt's own message, the last of the user's in the request and for hooks", function* () {
    const { calls, run, told } = yield* hookedAgent(
      { tools: [upper], answers: once },
      { BeforeAgent: { hookSpecificOutput: { additionalContext: "it is late" } } }
    )
    const given = { attached: [{ parts: [text("A file.")] }] }
    yield* Stream.runDrain(run("please read it", given))
    const words = `${runtimeMark} Added by a hook:\n<hook_context>\nit is late\n</hook_context>`
    const [first, second] = yield* calls
    const sent = user(
      text("please read it"),
      text(`${runtimeMark} What follows was put here by a program, not by the user.`),
      text("A file."),
      text(words)
    )
    assert.deepStrictEqual(first?.request.contents, [sent])
    // It stays what it was.
    assert.deepStrictEqual(second?.request.contents.slice(0, 1), [sent])
    for (const name of ["BeforeModel", "BeforeToolSelection", "AfterModel"] as const) {
      for (const { request } of of(told, name)) {
        const last = request.messages.findLast(({ role }) => role === "user")
        assert.match(last?.content ?? "", /^please read it\n[^]*it is late/)
      }
    }
  })

  it.effect("is called once per run, and not for requests by a program", function* () {
    const { run, told } = yield* hookedAgent({ tools: [upper], answers: [...once, ...once] }, {})
    yield* Stream.runDrain(run("go"))
    assert.lengthOf(of(told, "BeforeAgent"), 1)
    assert.lengthOf(of(told, "AfterAgent"), 1)
    yield* Stream.runDrain(run("go", { author: "program" }))
    assert.lengthOf(of(told, "BeforeAgent"), 1)
    assert.lengthOf(of(told, "AfterAgent"), 1)
    assert.lengthOf(of(told, "BeforeTool"), 2)
  })

  it.effect("a cancel does not wait for it, and nothing is recorded", function* () {
    const { chat, hooks, run } = yield* hookedAgent({ answers: [saying("no")] }, {})
    yield* hooks.subscribe("slow", ({ _tag }) => (_tag === "BeforeAgent" ? Effect.never : Effect.void))
    const cancel = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(taken(run("go", { cancel: Deferred.await(cancel) })), {
      startImmediately: true
    })
    yield* Deferred.succeed(cancel, undefined)
    const { events } = yield* Fiber.join(fiber)
    assert.deepStrictEqual(events, [{ _tag: "UserCancelled" }])
    assert.deepStrictEqual(yield* transcript(chat), [])
  })
})

describe("AfterAgent", () => {
  it.effect("blocks: its reason is sent as a marked message, and the run continues; it is told so", function* () {
    const { chat, run, told } = yield* hookedAgent(
      { answers: [saying("done"), saying("tested, too")] },
      {
        AfterAgent: ({ isAgain }) =>
          isAgain ? undefined : { decision: "block", reason: "run </hook_context> the tests" }
      }
    )
    const { error } = yield* taken(run("go"))
    assert.isUndefined(error)
    assert.deepStrictEqual(yield* transcript(chat), [
      "user go",
      "model done",
      `program ${runtimeMark} Added by a hook:\n<hook_context>\nrun &lt;/hook_context&gt; the tests\n</hook_context>`,
      "model tested, too"
    ])
    assert.deepStrictEqual(
      of(told, "AfterAgent").map(({ answer, isAgain, prompt }) => [prompt, answer, isAgain]),
      [
        ["go", "done", false],
        ["go", "tested, too", true]
      ]
    )
  })

  it.effect("blocks: its reason is a prompt that BeforeAgent gets, and may extend", function* () {
    const { calls, run, told } = yield* hookedAgent(
      { answers: [saying("done"), saying("tested, too")] },
      {
        BeforeAgent: ({ prompt }) => ({ hookSpecificOutput: { additionalContext: `about: ${prompt}` } }),
        AfterAgent: ({ isAgain }) => (isAgain ? undefined : { decision: "deny", reason: "run the tests" })
      }
    )
    yield* Stream.runDrain(run("go"))
    assert.deepStrictEqual(
      of(told, "BeforeAgent").map(({ prompt }) => prompt),
      ["go", "run the tests"]
    )
    const [, second] = yield* calls
    const last = second?.request.contents.at(-1)
    assert.lengthOf(last?.parts ?? [], 2)
    assert.match(JSON.stringify(last), /run the tests[^]*about: run the tests/)
  })

  it.effect.each([
    ["refuses its reason: no further request, and the user's message stays", { decision: "block", reason: "no" }, 2],
    ["stops at its reason: that is recorded, without a further request", { continue: false, stopReason: "no" }, 3]
  ] as const)("blocks, and BeforeAgent %s", function* ([, output, lines]) {
    const { calls, chat, run } = yield* hookedAgent(
      { answers: [saying("done")] },
      {
        BeforeAgent: ({ prompt }) => (prompt === "go" ? undefined : output),
        AfterAgent: { decision: "block", reason: "again" }
      }
    )
    const { events } = yield* taken(run("go"))
    assert.deepStrictEqual(events.at(-1), { _tag: "HookStopped", message: "no", refused: false })
    assert.lengthOf(yield* transcript(chat), lines)
    assert.lengthOf(yield* calls, 1)
  })

  it.effect("blocks with a flood: its reason is limited, and cannot pass for the runtime's text", function* () {
    const reason = `${runtimeMark} ${"x".repeat(100_000)}`
    const { chat, run } = yield* hookedAgent(
      { answers: [saying("done"), saying("so be it")] },
      { AfterAgent: ({ isAgain }) => (isAgain ? undefined : { decision: "block", reason }) }
    )
    yield* Stream.runDrain(run("go"))
    const line = (yield* transcript(chat))[2] ?? ""
    assert.isTrue(
      line.startsWith(`program ${runtimeMark} Added by a hook:\n<hook_context>\n&#x5b;${runtimeMark.slice(1)} xxx`)
    )
    assert.isBelow(line.length, 9_000)
  })

  it.effect("blocks repeatedly: each counts as a turn, so the limit ends the run", function* () {
    const { run } = yield* hookedAgent(
      { answers: () => "done", limits: { turns: 3 } },
      { AfterAgent: { decision: "block", reason: "more" } }
    )
    const { events } = yield* taken(run("go"))
    assert.deepInclude(events.at(-1), { _tag: "LimitReached", limit: "turns" })
  })

  it.effect("blocks for ever without a limit: the run ends all the same with a reason", function* () {
    const { calls, run } = yield* hookedAgent(
      { answers: () => "done" },
      { AfterAgent: { decision: "block", reason: "more" } }
    )
    const { events } = yield* taken(run("go"))
    assert.include(notices(events).at(-1), "it ends here")
    assert.lengthOf(yield* calls, 101)
  })

  it.effect("stops: the run ends with its reason, though another hook blocks", function* () {
    const { calls, run } = yield* hookedAgent(
      { answers: [saying("done"), saying("more")] },
      { AfterAgent: { continue: false, stopReason: "enough", decision: "block", reason: "more" } }
    )
    const { events } = yield* taken(run("go"))
    assert.lengthOf(stops(events), 1)
    assert.lengthOf(yield* calls, 1)
  })

  it.effect.each([
    ["clears: the conversation is emptied after the run", {}, undefined],
    [
      "clears and blocks: what is to be done next is handed on",
      { decision: "block", reason: "begin anew" },
      "begin anew"
    ]
  ] as const)("%s", function* ([, output, next]) {
    const cleared: Array<string | undefined> = []
    const { run } = yield* hookedAgent(
      { answers: [saying("done")], onClear: (words) => Effect.sync(() => void cleared.push(words)) },
      { AfterAgent: { ...output, hookSpecificOutput: { clearContext: true } } }
    )
    const { events } = yield* taken(run("go"))
    assert.deepStrictEqual(cleared, [next])
    assert.deepStrictEqual(notices(events), ["a hook cleared the conversation"])
  })
})

describe("BeforeTool and AfterTool", () => {
  interface Row {
    readonly rule: string
    readonly hooks: Answers
    readonly tools?: ReadonlyArray<Tool>
    readonly call?: ReturnType<typeof asking>
    /** The answer that the model is given. */
    readonly answer: RegExp
    /** Whether the tool ran. */
    readonly ran: ReadonlyArray<string>
    /** Whether the work ends there. */
    readonly ends?: boolean
  }
  const rows: ReadonlyArray<Row> = [
    {
      rule: "stops before: the tool does not run, the agent ends after the answer is recorded",
      hooks: { BeforeTool: { continue: false, stopReason: "not here" } },
      answer: /^{"error":"a hook stopped the run: not here"}$/,
      ran: [],
      ends: true
    },
    {
      rule: "changes arguments: the tool runs with these, and the result names them",
      hooks: { BeforeTool: { hookSpecificOutput: { tool_input: { word: "b" } } } },
      answer: /^{"output":"B\\n\\n\[a hook changed the arguments of this call: word\]"}$/,
      ran: ["b"]
    },
    {
      rule: "gives arguments of a wrong shape: the call is understood anew, and refused",
      hooks: { BeforeTool: { hookSpecificOutput: { tool_input: { word: 1 } } } },
      answer: /read was called wrongly: word.*a hook changed the arguments of this call: word/,
      ran: []
    },
    {
      rule: "an invalid call fires no hook",
      hooks: { BeforeTool: { decision: "deny", reason: "secrets" } },
      call: { functionCall: { name: "read", args: { word: 1 } } },
      answer: /read was called wrongly/,
      ran: []
    },
    {
      rule: "asks for another tool before: only after a tool it may",
      hooks: { BeforeTool: { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "b" } } } } },
      answer: /^{"output":"A"}$/,
      ran: ["a"]
    },
    {
      rule: "stops after: the reason takes the place of the result, the agent ends",
      hooks: { AfterTool: { continue: false, stopReason: "seen enough" } },
      answer: /^{"error":"a hook stopped the run: seen enough"}$/,
      ran: ["a"],
      ends: true
    },
    {
      rule: "adds after: its words stand behind the result, escaped",
      hooks: { AfterTool: { hookSpecificOutput: { additionalContext: "see <that>" } } },
      answer: /^{"output":"A\\n\\n<hook_context>\\nsee &lt;that&gt;\\n<\/hook_context>"}$/,
      ran: ["a"]
    },
    {
      rule: "adds to a failure",
      hooks: { AfterTool: { hookSpecificOutput: { additionalContext: "try b" } } },
      tools: [tool("read", "read", () => Effect.fail(new ToolFailure({ message: "no such file" })))],
      answer: /^{"error":"no such file\\n\\n<hook_context>\\ntry b/,
      ran: []
    },
    {
      rule: "has another tool run: its result is the answer",
      hooks: {
        AfterTool: ({ tool: name }) =>
          name === "read"
            ? { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "b" } } } }
            : undefined
      },
      answer: /^{"output":"edited b"}$/,
      ran: ["a", "b"]
    },
    {
      rule: "names an unknown tool: the response says so",
      hooks: { AfterTool: { hookSpecificOutput: { tailToolCallRequest: { name: "what", args: {} } } } },
      answer: /there is no tool what/,
      ran: ["a"]
    },
    {
      rule: "has another run that a hook blocks",
      hooks: {
        BeforeTool: ({ tool: name }) => (name === "edit" ? { decision: "block", reason: "not that" } : undefined),
        AfterTool: { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "b" } } } }
      },
      answer: /^{"error":"a hook blocked edit: not that"}$/,
      ran: ["a"]
    },
    {
      rule: "has the same tool run for ever: after eight that is the answer",
      hooks: { AfterTool: { hookSpecificOutput: { tailToolCallRequest: { name: "read", args: { word: "z" } } } } },
      answer: /^{"output":"Z"}$/,
      ran: ["a", ...Array.from({ length: 8 }, () => "z")]
    }
  ]
  for (const { answer, call = asking("read", "a", "1"), ends = false, hooks, ran, rule, tools } of rows) {
    it.effect(rule, function* () {
      const words: Array<string> = []
      const noting = (name: string, kind: "read" | "edit", made: (word: string) => string) =>
        tool(name, kind, (word) =>
          Effect.sync(() => {
            words.push(word)
            return made(word)
          })
        )
      const { calls, chat, run } = yield* hookedAgent(
        {
          tools: tools ?? [
            noting("read", "read", (word) => word.toUpperCase()),
            noting("edit", "edit", (word) => `edited ${word}`)
          ],
          answers: [calling(call), saying("done")]
        },
        hooks
      )
      const { error, events } = yield* taken(run("go"))
      assert.isUndefined(error)
      const given = (yield* transcript(chat))[2] ?? ""
      assert.match(given.replace(/^user read → /, ""), answer)
      assert.deepStrictEqual(words, ran)
      assert.lengthOf(yield* calls, ends ? 1 : 2)
      assert.lengthOf(stops(events), ends ? 1 : 0)
      assert.isUndefined(illegal(yield* chat.contents))
    })
  }

  it.effect("a stop keeps earlier calls and skips later ones; each call has one response", function* () {
    const { chat, run } = yield* hookedAgent(
      {
        tools: [upper, edit],
        answers: [calling(asking("edit", "a", "1"), asking("edit", "b", "2"), asking("edit", "c", "3"))]
      },
      { BeforeTool: (_event, count) => (count === 2 ? { continue: false, stopReason: "halt" } : undefined) }
    )
    yield* Stream.runDrain(run("go"))
    assert.strictEqual(
      (yield* transcript(chat))[2],
      `user edit → {"output":"edited a"} | edit → {"error":"a hook stopped the run: halt"} | edit → {"error":"[Operation Cancelled] a hook stopped the run: halt"}`
    )
  })

  it.effect.each([
    ["of a tool", {}],
    ["of an agent", { isAgent: true }]
  ] as const)("a changing tail call %s runs alone, though the call before it only reads", function* ([, more]) {
    let reading = 0
    let isAlone = true
    const read = tool("read", "read", (word) =>
      Effect.acquireUseRelease(
        Effect.sync(() => void (reading += 1)),
        () => Effect.as(Effect.sleep(word === "a" ? "1 second" : "3 seconds"), word),
        () => Effect.sync(() => void (reading -= 1))
      )
    )
    const changes = {
      ...tool("edit", "edit", (word) =>
        Effect.sync(() => {
          isAlone &&= reading === 0
          return `edited ${word}`
        })
      ),
      ...more
    }
    const { chat, run } = yield* hookedAgent(
      {
        tools: [read, changes],
        answers: [calling(asking("read", "a", "1"), asking("read", "b", "2")), saying("done")]
      },
      {
        AfterTool: ({ input }) =>
          JSON.stringify(input).includes(`"a"`)
            ? { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "x" } } } }
            : undefined
      }
    )
    const fiber = yield* Effect.forkChild(Stream.runDrain(run("go")), { startImmediately: true })
    yield* ended(fiber)
    assert.isTrue(isAlone)
    assert.strictEqual((yield* transcript(chat))[2], `user read → {"output":"edited x"} | read → {"output":"b"}`)
  })

  it.effect("the time of the user's answer is not the tail call's", function* () {
    const { run } = yield* hookedAgent(
      {
        tools: [upper, edit],
        answers: once,
        mode: "none",
        ask: () => Effect.as(Effect.sleep("10 seconds"), { _tag: "Once" })
      },
      {
        AfterTool: ({ tool: name }) =>
          name === "read"
            ? { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "b" } } } }
            : undefined
      }
    )
    const { events } = yield* ended(yield* Effect.forkChild(taken(run("go"))))
    const durations = events.flatMap((event) => (event._tag === "ToolCallResponse" ? [event.duration] : []))
    // The clock goes on in steps of a second.
    assert.deepStrictEqual([durations.length, Math.max(...durations) < 2_000], [2, true])
  })

  it.effect("a cancel while hooks inspect a result does not skip them", function* () {
    const cancel = yield* Deferred.make<void>()
    const ran = yield* Deferred.make<void>()
    const { chat, hooks, run } = yield* hookedAgent({ tools: [upper], answers: once }, {})
    yield* hooks.subscribe("slow", ({ _tag }) =>
      _tag === "AfterTool" ? Effect.andThen(Deferred.succeed(ran, undefined), Effect.never) : Effect.void
    )
    const fiber = yield* Effect.forkChild(taken(run("go", { cancel: Deferred.await(cancel) })))
    yield* Deferred.await(ran)
    yield* Deferred.succeed(cancel, undefined)
    const { events } = yield* Fiber.join(fiber)
    assert.strictEqual(events.at(-1)?._tag, "UserCancelled")
    const given = (yield* transcript(chat))[2] ?? ""
    assert.include(given, "read had run, but the result was not returned yet")
    assert.notInclude(given, "A")
  })

  it.effect("a hook that hangs is abandoned and reported once in one line, and the tool runs", function* () {
    const { chat, hooks, run } = yield* hookedAgent(
      {
        tools: [upper],
        answers: [calling(asking("read", "a", "1")), calling(asking("read", "b", "2")), saying("ok")]
      },
      {}
    )
    yield* hooks.subscribe("slow", ({ _tag }) => (_tag === "BeforeTool" ? Effect.never : Effect.void))
    const fiber = yield* Effect.forkChild(taken(run("go")), { startImmediately: true })
    const { events } = yield* ended(fiber)
    assert.deepStrictEqual(notices(events), ["the hook slow failed on BeforeTool: no answer within 1m"])
    assert.include((yield* transcript(chat))[2], `{"output":"A"}`)
  })

  it.effect("a summary in place of a result keeps the hook's text", function* () {
    const { chat, calls, run } = yield* hookedAgent(
      {
        tools: [tool("read", "read", (word) => Effect.succeed(`${word} `.repeat(100_000)))],
        answers: once,
        summarize: () => Effect.succeed("in short: A")
      },
      { AfterTool: { hookSpecificOutput: { additionalContext: "mind the step" } } }
    )
    yield* Stream.runDrain(run("go"))
    const second = JSON.stringify((yield* calls)[1]?.request.contents)
    assert.include(second, "in short: A")
    assert.include(second, "mind the step")
    assert.isUndefined(illegal(yield* chat.contents))
  })
})

describe("the user", () => {
  it.effect.each([
    ["is asked about a tool that only reads", "read", "none"],
    ["is asked in mode all", "edit", "all"]
  ] as const)("%s because a hook requires it, each time, and hooks are informed", function* ([, kind, mode]) {
    const asked: Array<string> = []
    const { run, told } = yield* hookedAgent(
      {
        tools: [tool("do", kind, (word) => Effect.succeed(word))],
        mode,
        ask: ({ detail, grants }) =>
          Effect.sync(() => {
            asked.push(detail)
            assert.deepStrictEqual(grants, [])
            return { _tag: "Session" }
          }),
        answers: [calling(asking("do", "a"), asking("do", "b")), saying("done")]
      },
      { BeforeTool: { decision: "ask" } }
    )
    const { events } = yield* taken(run("go"))
    assert.lengthOf(asked, 2)
    assert.lengthOf(
      events.filter(({ _tag }) => _tag === "ToolCallConfirmation"),
      2
    )
    assert.deepStrictEqual(
      of(told, "Notification").map(({ kind: what, message }) => [what, message]),
      [
        ["ToolPermission", "main wants to run do a"],
        ["ToolPermission", "main wants to run do b"]
      ]
    )
  })

  it.effect("cannot approve without a terminal what a hook requires to be asked", function* () {
    const { chat, run } = yield* hookedAgent(
      { tools: [upper], mode: "all", answers: once },
      { BeforeTool: { decision: "ask" } }
    )
    yield* Stream.runDrain(run("go"))
    assert.include((yield* transcript(chat))[2], "denied this call of read")
  })

  it.effect("gets hook messages in order, with each hook's name", function* () {
    const { run } = yield* hookedAgent(
      { tools: [upper], answers: once },
      {
        BeforeAgent: { systemMessage: "one" },
        BeforeTool: { systemMessage: "two" },
        AfterTool: { systemMessage: "three" },
        AfterAgent: { systemMessage: "four" }
      }
    )
    const { events } = yield* taken(run("go"))
    assert.deepStrictEqual(
      notices(events),
      ["one", "two", "three", "four"].map((word) => `hook test: ${word}`)
    )
  })
})

describe("interrupted at every suspension point", () => {
  it.effect("a run with hooks that do all they may leaves every call with one response", function* () {
    const chats: Array<Chat["Service"]> = []
    let finished = 0
    const program = (k: number) =>
      Effect.gen(function* () {
        const { chat, run } = yield* hookedAgent(
          {
            tools: [upper, edit],
            answers: [calling(asking("read", "a", "1"), asking("edit", "b", "2")), saying("done"), saying("all done")]
          },
          {
            BeforeAgent: { hookSpecificOutput: { additionalContext: "more" } },
            BeforeTool: { hookSpecificOutput: { tool_input: { word: "c" } } },
            AfterTool: ({ tool: name }) =>
              name === "read"
                ? { hookSpecificOutput: { tailToolCallRequest: { name: "edit", args: { word: "d" } } } }
                : undefined,
            AfterAgent: ({ isAgain }) => (isAgain ? undefined : { decision: "block", reason: "go on" })
          }
        )
        chats[k] = chat
        yield* Stream.runDrain(run("go"))
      }).pipe(Effect.scoped)
    const points = yield* interruptSweep(
      program,
      (exit, k) =>
        Effect.gen(function* () {
          const chat = chats[k]
          delete chats[k]
          if (chat === undefined) return
          const contents = entries(yield* chat.conversation).map(({ content }) => content)
          assert.isUndefined(illegal(contents), `interrupted at ${k}`)
          assert.isFalse(contents.at(-1)?.parts.some(isCall) ?? false, `interrupted at ${k}`)
          if (Exit.isSuccess(exit)) {
            finished += 1
            // Each of the two prompts has the words of the hook behind it.
            assert.lengthOf(contents, 8)
          }
        }),
      7 * strideOf(29)
    )
    assert.isAbove(points, 50)
    assert.isAtLeast(finished, 1)
  })
})

it.effect("without hooks an agent with no hooks fires none, even with subscribers", function* () {
  const { profile, services, told } = yield* hookedAgent(
    { tools: [upper], answers: once },
    { BeforeTool: { decision: "block", reason: "no" }, BeforeAgent: { decision: "block", reason: "no" } }
  )
  const run = Agent.run(profile, "go").pipe(Stream.provideContext(services))
  const { events } = yield* taken(run)
  assert.strictEqual(events.at(-1)?._tag, "Finished")
  assert.deepStrictEqual(
    told.filter(({ _tag }) => /Agent|Tool$/.test(_tag)),
    []
  )
})
