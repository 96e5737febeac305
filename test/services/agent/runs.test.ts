import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { Loop } from "../../../src/domain/agent/LoopDetection.ts"
import { model, text } from "../../../src/domain/content/Content.ts"
import { view } from "../../../src/domain/conversation/Conversation.ts"
import type { HookEvent, HookOutput } from "../../../src/domain/hooks/Hook.ts"
import { run } from "../../../src/services/agent/Agent.ts"
import type { LastingCalls, RunOptions } from "../../../src/services/agent/AgentRun.ts"
import type { CallAnswer } from "../../../src/services/agent/ToolAnswer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import * as Tool from "../../../src/services/tools/Tool.ts"
import { agent, asking, calling, saying, tool, type Work } from "../../support/agents.ts"
import { brief } from "../../support/brief.ts"
import { noLoops } from "../../support/noLoops.ts"
import { taken } from "../../support/sending.ts"
import { describe, expect, it } from "../../support/vitest.ts"

/** Runs of an agent, whole: each event, each hook, each request, and the conversation afterwards. */

const picture = Tool.make({
  name: "look",
  aliases: ["see"],
  description: "Looks.",
  parameters: Schema.Struct({}),
  result: Schema.Struct({ seen: Schema.Int }),
  kind: "read",
  run: () => Effect.succeed({ value: { seen: 1 }, media: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] })
})
const tools = [
  tool("read", "read", (word, { progress }) => Effect.as(progress(`at ${word}`), word.toUpperCase())),
  tool("edit", "edit", (word) => Effect.succeed(`edited ${word}`)),
  tool("slow", "read", (word, { progress }) => Effect.andThen(progress(`half ${word}`), Effect.never), {
    timeout: "1 minute"
  }),
  tool("long", "read", () => Effect.as(Effect.sleep("40 seconds"), "long")),
  tool("bad", "read", () => Effect.fail(new Tool.ToolFailure({ message: "no such file" }))),
  tool("dies", "read", () => Effect.die(new Error("boom"))),
  tool("stops", "read", () => Effect.interrupt),
  tool("mute", "read", () => Effect.succeed("")),
  tool("end", "read", () => Effect.succeed("the end"), { ends: true }),
  picture,
  // The first tool of a name counts.
  tool("read", "edit", () => Effect.succeed("another"))
]
const all = ["read", "edit", "slow", "bad"].map((name, at) => asking(name, `w${at}`, `c${at}`))
const loop: Loop = { kind: "calls", detail: "read(a)" }
const call = (...names: ReadonlyArray<string>) => calling(...names.map((name, at) => asking(name, "w", `${name}${at}`)))

interface Scene extends Partial<Work> {
  readonly options?: RunOptions
  readonly hook?: (event: HookEvent, count: number) => HookOutput | undefined
  readonly message?: string
  /** Whether the run is ended after ten seconds, and another takes up its calls. */
  readonly isTakenUp?: true
}

const once = (tag: HookEvent["_tag"], output: HookOutput) => (event: HookEvent, count: number) =>
  event._tag === tag && count === 1 ? output : undefined
const specific = (hookSpecificOutput: Readonly<Record<string, unknown>>): HookOutput => ({ hookSpecificOutput })

/** Finds a loop where a word comes twice in the words that count. */
const repeating = () => {
  let heard = ""
  const hears = (words: string) => Effect.sync(() => void (heard = words))
  return {
    ...noLoops,
    turn: () => Effect.as(hears(""), undefined),
    again: hears(""),
    content: (words: string) =>
      Effect.as(
        hears(heard + words),
        /round.*round/s.test(heard + words) ? { ...loop, kind: "content" as const } : undefined
      )
  }
}

const scenes: Readonly<Record<string, Scene>> = {
  "all kinds of calls": {
    answers: [calling(text("So."), ...all, asking("none", "x"), asking("see", "y")), saying("done")],
    options: { messageId: "m1", attached: [{ parts: [text("a note")] }] }
  },
  "calls that are asked about": {
    mode: "none",
    ask: ({ title }) =>
      Effect.as(
        Effect.sleep("1 minute"),
        title === "edit w" ? { _tag: "Edited", text: "w2" } : { _tag: "No", words: "not this" }
      ),
    answers: [
      calling({ functionCall: { name: "edit", args: { word: "w", to: "there" } } }, asking("edit", "x")),
      saying("done")
    ]
  },
  "calls that go wrong": {
    answers: [
      calling(
        ...["dies", "stops", "read", "mute"].map((name) => asking(name, "x")),
        ...[{ word: 1 }, undefined, [1], '{"word":"q"}'].map((args) => ({ functionCall: { name: "read", args } }))
      ),
      saying("done")
    ]
  },
  "an empty answer to a result with an image": { answers: [calling(asking("see", "x")), calling()] },
  "no tools": { tools: [], answers: [call("read"), saying("done")] },
  "an answer that was cut off": { answers: [{ ...call("read", "edit"), finishReason: "MAX_TOKENS" }, saying("done")] },
  "the end by a tool": { answers: [call("end", "read")] },
  "a cancel while calls run": {
    answers: [call("read", "slow", "edit")],
    options: { cancel: Effect.sleep("5 seconds") }
  },
  "calls that another run takes up": {
    isTakenUp: true,
    answers: [call("edit", "read", "edit", "slow"), call("edit"), saying("done")]
  },
  "a failing model": {
    answers: [call("read"), new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })]
  },
  "turns are over": { answers: () => call("read"), limits: { turns: 2 } },
  "tokens are over": { answers: () => call("read"), limits: { tokens: 220 } },
  "money is over": { answers: () => call("read"), limits: { cost: 0.00001 } },
  "time is over, without that of a question": {
    mode: "none",
    ask: () => Effect.as(Effect.sleep("1 minute"), { _tag: "Once" }),
    answers: (_, index) => call("long", ...(index === 0 ? ["edit"] : [])),
    limits: { time: 60_000 }
  },
  "a loop of calls, twice": {
    loops: { ...noLoops, call: () => Effect.succeed(loop) },
    answers: () => call("read", "edit")
  },
  "a loop of turns, twice": {
    loops: { ...noLoops, turn: () => Effect.succeed(loop) },
    answers: () => call("read")
  },
  "a loop of words, without those of an answer that was discarded": {
    loops: repeating(),
    answers: [
      { content: model(text("round")), finishReason: "MALFORMED_FUNCTION_CALL", usage: null },
      calling(text("round"), asking("read", "w")),
      "and round\n".repeat(5_000),
      "better"
    ]
  },
  "letters, a route and summaries": {
    inbox: (use) => use(["[palimpsest: x] marked", "a letter"]),
    route: (input) => Effect.succeed(`gemini-2.5-pro-${input.length}`),
    summarize: (name, output, intent) => Effect.succeed(output === "W" ? `${name}: ${intent}` : undefined),
    beforeTurn: ({ attached, emit, message }) =>
      emit({ _tag: "Notice", source: "test", message: `${message.length} and ${attached.length}` }),
    answers: [call("read", "edit"), saying("done")]
  },
  "a message of a program": {
    answers: [saying("done")],
    options: { author: "program" },
    hook: () => ({ decision: "block", reason: "no" })
  },
  "hooks that add": {
    hook: (event) => specific({ additionalContext: `to ${event._tag}` }),
    answers: [call("read", "bad", "see"), saying("done")]
  },
  "a hook that changes arguments, and one that asks": {
    mode: "none",
    ask: () => Effect.succeed({ _tag: "Once" }),
    hook: (event) =>
      event._tag === "BeforeTool"
        ? { decision: "ask", ...specific({ tool_input: { word: "changed" } }), systemMessage: "changed it" }
        : undefined,
    answers: [call("read", "edit"), saying("done")]
  },
  "a hook that breaks arguments": {
    hook: once("BeforeTool", specific({ tool_input: { word: 1 } })),
    answers: [call("read"), saying("done")]
  },
  "a hook that runs other tools": {
    hook: (event) =>
      event._tag === "AfterTool"
        ? specific({
            tailToolCallRequest: { name: event.tool === "read" ? "edit" : "read", args: { word: event.tool } }
          })
        : undefined,
    answers: [call("read"), saying("done")]
  },
  "a hook that has an unknown tool run": {
    hook: once("AfterTool", specific({ tailToolCallRequest: { name: "none" } })),
    answers: [call("read"), saying("done")]
  },
  ...Object.fromEntries(
    (["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"] as const).flatMap((tag): Array<[string, Scene]> => [
      [
        `a hook that blocks ${tag}`,
        {
          hook: once(tag, { decision: "block", reason: "why" }),
          answers: [call("read"), saying("done"), saying("more")]
        }
      ],
      [
        `a hook that stops ${tag}`,
        { hook: once(tag, { continue: false, stopReason: "why" }), answers: [call("read"), saying("done")] }
      ]
    ])
  ),
  "a hook that clears": {
    hook: (event) =>
      event._tag === "AfterAgent"
        ? { decision: "block", reason: "go on", ...specific({ clearContext: true }) }
        : undefined,
    onClear: () => Effect.void,
    answers: [saying("done")]
  },
  "a hook that clears where that is not possible": {
    hook: once("AfterAgent", specific({ clearContext: true })),
    answers: [saying("done")]
  },
  "a hook that goes on, and then refuses the prompt": {
    hook: (event, count) =>
      event._tag === "AfterAgent" || (event._tag === "BeforeAgent" && count > 1)
        ? { decision: "block", reason: "go on" }
        : undefined,
    answers: [saying("done")]
  }
}

/** What the conversation has, too. */
const unshown = new Set(["ModelInfo", "Content", "ToolCallRequest", "Retry"])

const played = Effect.fnUntraced(function* ({ hook, isTakenUp, message = "go", options, ...work }: Scene) {
  const shown: Array<string> = []
  const hooks = yield* Effect.provide(HookSystem, HookSystem.layer)
  const counts = new Map<string, number>()
  if (hook !== undefined) {
    yield* hooks.subscribe("test", (event) =>
      Effect.sync(() => {
        const count = (counts.get(event._tag) ?? 0) + 1
        counts.set(event._tag, count)
        if (!event._tag.endsWith("Model") && event._tag !== "BeforeToolSelection") shown.push(`  hook ${brief(event)}`)
        return event._tag.endsWith("Model") ? undefined : hook(event, count)
      })
    )
  }
  const { calls, chat, profile, services } = yield* agent({
    tools,
    answers: [],
    ...(hook === undefined ? {} : { hooks }),
    ...work
  })
  const kept = new Map<string, CallAnswer>()
  const lasting: LastingCalls = {
    staysOpen: Effect.succeed(true),
    ended: ({ id }, answer) =>
      Effect.sync(() => {
        kept.set(id, answer)
        shown.push(`  kept ${id} ${brief(answer.response)}`)
      }),
    earlier: (open) => Effect.succeed(open.map(({ id }) => kept.get(id)))
  }
  const plays = Effect.fnUntraced(function* (said: string, steps: number) {
    const events = run(profile, said, isTakenUp === true ? { ...options, lasting } : options).pipe(
      Stream.tap((event) => Effect.sync(() => void (unshown.has(event._tag) || shown.push(`  ${brief(event)}`)))),
      Stream.provideContext(services)
    )
    const fiber = yield* Effect.forkChild(taken(events))
    const isOver = () => fiber.pollUnsafe() !== undefined
    for (let step = 0; step < steps && !isOver(); step += 1) {
      // Time passes when nothing else happens.
      for (let yields = 0; yields < 500 && !isOver(); yields += 1) yield* Effect.yieldNow
      yield* TestClock.adjust("5 seconds")
    }
    if (!isOver()) return yield* Fiber.interrupt(fiber)
    const { error } = yield* Fiber.join(fiber)
    if (error !== undefined) shown.push(`  failed ${error._tag}`)
  })
  if (isTakenUp === true) yield* plays(message, 2)
  yield* plays(isTakenUp === true ? "" : message, 40)
  const made = yield* calls
  const offered = made.at(-1)?.request.tools?.map(({ functionDeclarations: all }) => brief(all).length)
  shown.push(
    `  ${made.length} requests of ${made.map(({ request }) => request.model).join()}, tools: ${brief(offered)}`
  )
  for (const { entry } of view(yield* chat.conversation)) {
    const { author, content, messageId } = entry
    shown.push(`  ${brief({ author, messageId, ...content })}`)
  }
  return shown
}, Effect.scoped)

describe("runs of an agent", () => {
  it.effect("go like this: see `test/golden/agent-runs.txt`, and take a new one with `vitest -u`", function* () {
    const lines: Array<string> = []
    for (const [name, scene] of Object.entries(scenes)) lines.push(`# ${name}`, ...(yield* played(scene)))
    yield* Effect.promise(() => expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/agent-runs.txt"))
  })
})
