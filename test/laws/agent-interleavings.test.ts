import {
  Arbitrary,
  type Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  FileSystem,
  Layer,
  Path,
  Schema,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import { call, type Content, isCall, isResponse, type Part, text } from "../../src/domain/content/Content.ts"
import { entries } from "../../src/domain/conversation/Conversation.ts"
import type { HookOutput } from "../../src/domain/hooks/Hook.ts"
import type { Answer } from "../../src/domain/tools/Approval.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as MemoryFileSystem from "../../src/layers/testing/MemoryFileSystem.ts"
import * as Scripted from "../../src/layers/testing/ScriptedModel.ts"
import * as FileWorkspace from "../../src/layers/workspace/FileWorkspace.ts"
import { run } from "../../src/services/agent/Agent.ts"
import type { Profile } from "../../src/services/agent/AgentRun.ts"
import type { Chat } from "../../src/services/chat/Chat.ts"
import { Chats } from "../../src/services/chat/Chats.ts"
import { HookSystem, type Subscriber } from "../../src/services/hooks/HookSystem.ts"
import { Approval } from "../../src/services/tools/Approval.ts"
import { readFile } from "../../src/services/tools/builtin/ReadFile.ts"
import { replace } from "../../src/services/tools/builtin/Replace.ts"
import { writeFile } from "../../src/services/tools/builtin/WriteFile.ts"
import { type Call, type Tool, ToolFailure, type ToolKind } from "../../src/services/tools/Tool.ts"
import { interruptSweep } from "../support/interruptSweep.ts"
import { illegal } from "../support/legal.ts"
import { runsOf, strideOf } from "../support/runs.ts"
import { begin } from "../support/sending.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Whatever happens to the calls of an agent and around them: every call has exactly one answer, in the order of the calls,
 * and every request is a legal conversation.
 *
 * One file: the cases, the checks and the mutants share one schema.
 */

/** What a tool does with a call. */
const behaviours = [
  "answers",
  "says much",
  "fails",
  "dies",
  "never ends",
  "shows an image",
  "denied",
  "not asked to the end"
] as const

const CallSeed = Schema.Struct({
  tool: Schema.Literals(["look", "look", "change", "run", "unknown"]),
  does: Schema.Literals(["answers", "answers", ...behaviours]),
  /** Delay in tenths of a second. */
  after: Schema.Literals([0, 0, 1, 3]),
  /** Its id; ids may repeat. */
  id: Schema.Literals(["own", "own", "own", "none", "same"]),
  args: Schema.Literals(["right", "right", "right", "wrong"])
})

const Meanwhile = Schema.Struct({
  what: Schema.Literals(["cancel", "close", "compress", "compress", "undo"]),
  /** Tenths of a second after the run began. */
  at: Schema.Literals([0, 1, 2, 3, 5, 8, 13])
})

/** What a hook answers to the n-th event of a kind. */
const HookSeed = Schema.Struct({
  event: Schema.Literals([
    "BeforeTool",
    "BeforeTool",
    "AfterTool",
    "AfterTool",
    "BeforeAgent",
    "AfterAgent",
    "PreCompress",
    "BeforeModel",
    "AfterModel",
    "Notification"
  ]),
  says: Schema.Literals(["stops", "blocks", "asks", "adds", "changes", "spoils", "tail", "no tail", "clears", "dies"]),
  nth: Schema.Literals([1, 1, 2, 3]),
  /** Delay in tenths of a second. */
  after: Schema.Literals([0, 0, 2])
})

const Case = Schema.Struct({
  hooks: Schema.Array(HookSeed).check(Schema.isMaxLength(4)),
  turns: Schema.Array(Schema.Array(CallSeed).check(Schema.isMaxLength(5))).check(Schema.isMaxLength(4)),
  meanwhile: Schema.Array(Meanwhile).check(Schema.isMaxLength(3)),
  limit: Schema.Literals(["none", "none", "turns", "time"])
})
type Case = typeof Case.Type
type CallSeed = typeof CallSeed.Type

/** The answer of a hook. */
const saying = ({ says }: typeof HookSeed.Type): HookOutput => {
  const specific = (hookSpecificOutput: Readonly<Record<string, unknown>>): HookOutput => ({ hookSpecificOutput })
  switch (says) {
    case "stops":
      return { continue: false, stopReason: "a hook wants an end" }
    case "blocks":
      return { decision: "block", reason: "a hook does not want it" }
    case "asks":
      return { decision: "ask" }
    case "adds":
      return specific({ additionalContext: "a hook knows <more>" })
    case "changes":
      return specific({ tool_input: { does: "says much", after: 1 }, llm_response: { text: "Said by a hook." } })
    case "spoils":
      return specific({ tool_input: { does: "what nobody can do" }, llm_request: { messages: [] } })
    case "tail":
      return specific({ tailToolCallRequest: { name: "change", args: { does: "shows an image", after: 1 } } })
    case "no tail":
      return specific({ tailToolCallRequest: { name: "unknown", args: {} } })
    case "clears":
      return specific({ clearContext: true })
    case "dies":
      return {}
  }
}

/** Hooks that behave as a case says. */
const hooksOf = (seeds: Case["hooks"]): Subscriber => {
  const counts = new Map<string, number>()
  return ({ _tag }) =>
    Effect.suspend(() => {
      const count = (counts.get(_tag) ?? 0) + 1
      counts.set(_tag, count)
      const seed = seeds.find(({ event, nth }) => event === _tag && nth === count)
      if (seed === undefined) return Effect.void
      const answer = seed.says === "dies" ? Effect.die(new Error("a bug of a hook")) : Effect.succeed(saying(seed))
      return seed.after === 0 ? answer : Effect.andThen(Effect.sleep(seed.after * 100), answer)
    })
}

const Args = Schema.Struct({ does: Schema.Literals(behaviours), after: Schema.Finite })

/** What a call does when it runs. */
const doing = ({ after, does }: typeof Args.Type): Call["run"] =>
  Effect.andThen(
    after === 0 ? Effect.void : Effect.sleep(after * 100),
    Effect.suspend((): Call["run"] => {
      switch (does) {
        case "fails":
          return Effect.fail(new ToolFailure({ message: "it could not be done" }))
        case "dies":
          return Effect.die(new Error("a bug"))
        case "never ends":
          return Effect.never
        case "says much":
          return Effect.succeed({ value: "many words of no weight. ".repeat(600) })
        case "shows an image":
          return Effect.succeed({ value: "see", media: [{ inlineData: { mimeType: "image/png", data: "aGVsbG8=" } }] })
        default:
          return Effect.succeed({ value: "done" })
      }
    })
  )

const tool = (name: string, kind: ToolKind): Tool => ({
  name,
  aliases: [],
  description: `The tool ${name}.`,
  parameters: { type: "object" },
  kind,
  isNeverMasked: false,
  timeout: Duration.seconds(1),
  call: (given) =>
    Schema.decodeUnknownEffect(Args)(given).pipe(
      Effect.mapError(() => new ToolFailure({ message: `${name} was called wrongly` })),
      Effect.map((args) => ({
        title: name,
        question:
          kind === "read"
            ? Effect.undefined
            : Effect.succeed({ detail: args.does, grants: [], covers: "nothing else" }),
        run: doing(args)
      }))
    )
})

const tools = [tool("look", "read"), tool("change", "edit"), tool("run", "execute")]

/** A user who answers, or never answers. */
const person = Approval.layer({
  mode: "none",
  granted: [],
  ask: ({ detail }): Effect.Effect<Answer> =>
    detail === "not asked to the end"
      ? Effect.never
      : Effect.succeed(detail === "denied" ? { _tag: "No", words: "not now" } : { _tag: "Once" })
})

const callOf = ({ after, args, does, id, tool }: CallSeed, place: string): Part => ({
  functionCall: {
    ...(id === "none" ? {} : { id: id === "same" ? "same" : place }),
    name: tool,
    args: args === "wrong" ? { wrong: true } : { does, after }
  }
})

/** Why a conversation does not have exactly one answer for each call, in order. */
const disorder = (contents: ReadonlyArray<Content>): string | undefined => {
  for (const [index, { parts, role }] of contents.entries()) {
    const calls = role === "model" ? parts.filter(isCall) : []
    if (calls.length === 0) continue
    const answers = (contents[index + 1]?.parts ?? []).filter(isResponse)
    const asked = calls.map(({ functionCall: { id, name } }) => `${name} ${id}`)
    const given = answers.map(({ functionResponse: { id, name } }) => `${name} ${id}`)
    if (asked.join() !== given.join())
      return `message ${index} calls [${asked.join()}] and is answered [${given.join()}]`
  }
  return undefined
}

/** How often each event occurred, so that none stays untested. */
const happened = new Set<string>()

/** The violation of a case; undefined: none. `make` may replace the real conversation by another. */
const wrong = Effect.fnUntraced(function* (
  given: Case,
  make: (chat: Chat["Service"]) => Chat["Service"] = (chat) => chat
) {
  const services = yield* Layer.build(
    Layer.fresh(
      Layer.merge(
        Offline.layerWithModel(
          Scripted.layer(({ contents }, index) => {
            const calls = given.turns[index]
            if (calls === undefined || calls.length === 0) return `That is all, after ${contents.length} messages.`
            const parts = calls.map((call, at) => callOf(call, `c${index}-${at}`))
            return {
              content: { role: "model", parts: [text("I go on. ".repeat(40)), ...parts] },
              finishReason: "STOP",
              usage: null
            }
          })
        ),
        person
      )
    )
  )
  return yield* Effect.gen(function* () {
    const script = yield* Scripted.Script
    const approval = yield* Approval
    const hooks = yield* HookSystem
    if (given.hooks.length > 0) yield* hooks.subscribe("seeds", hooksOf(given.hooks))
    const { chat } = yield* begin({ window: 20_000, retries: once })
    yield* chat.append([
      { content: { role: "user", parts: [text("What came before. ".repeat(300))] } },
      { content: { role: "model", parts: [text("Understood. ".repeat(300))] } }
    ])
    const cancel = yield* Deferred.make<void>()
    const profile: Profile = {
      name: "main",
      chat: make(chat),
      tools,
      hooks,
      limits: given.limit === "turns" ? { turns: 2 } : given.limit === "time" ? { time: 700 } : {}
    }
    const working = (message: string, cancelled?: Effect.Effect<void>) =>
      run(profile, message, { cancel: cancelled }).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => happened.add(event._tag === "ToolCallResponse" ? `call: ${event.status}` : event._tag))
        ),
        Effect.provideService(Approval, approval),
        Effect.forkChild({ startImmediately: true })
      )
    const fiber = yield* working("Do it.", Deferred.await(cancel))
    // An open question ends when the user cancels.
    const open = given.turns.flat().some(({ does }) => does === "not asked to the end")
    const events = [...given.meanwhile, ...(open ? ([{ what: "cancel", at: 100 }] as const) : [])]
    const others: Array<Fiber.Fiber<unknown, unknown>> = []
    for (let tenth = 0; tenth < 400 && fiber.pollUnsafe() === undefined; tenth += 1) {
      for (const { at, what } of events) {
        if (at !== tenth) continue
        if (what === "cancel") yield* Deferred.succeed(cancel, undefined)
        else if (what === "close") yield* Fiber.interrupt(fiber).pipe(Effect.forkChild({ startImmediately: true }))
        else
          others.push(
            yield* Effect.forkChild(what === "undo" ? chat.undo : chat.compress(), { startImmediately: true })
          )
      }
      yield* TestClock.adjust("100 millis")
    }
    const exit = fiber.pollUnsafe()
    if (exit === undefined) return "the run never ends"
    if (Exit.hasDies(exit)) return `the run died: ${String(exit)}`
    if (Exit.hasInterrupts(exit)) happened.add("interrupted")
    const isOpen = () => others.some((other) => other.pollUnsafe() === undefined)
    for (let tenth = 0; tenth < 400 && isOpen(); tenth += 1) yield* TestClock.adjust("100 millis")
    if (isOpen()) return "a compression never ends"

    // Another message continues the work, whatever happened to this one.
    const more = yield* working("And now?")
    for (let tenth = 0; tenth < 400 && more.pollUnsafe() === undefined; tenth += 1) {
      if (tenth === 100) yield* Fiber.interrupt(more)
      yield* TestClock.adjust("100 millis")
    }
    if (more.pollUnsafe() === undefined) return "no other message can be sent"
    // Hooks that run in the background end.
    yield* TestClock.adjust("1 second")

    const { conversation } = yield* chat.whole
    const contents = entries(conversation).map(({ content }) => content)
    for (const { method, request } of yield* script.calls) {
      const problem = method === "stream" ? illegal(request.contents) : undefined
      if (problem !== undefined) return `a request is not legal: ${problem}`
    }
    return illegal(contents) ?? disorder(contents) ?? illegal(yield* chat.contents)
  }).pipe(Effect.provide(services))
})

const delays = { attempts: 1, initialDelayMillis: 1, maxDelayMillis: 1 }
const once = { call: { ...delays, maxServerDelayMillis: 1 }, answer: delays }

const thousand = { runs: runsOf(1_000, 50), seed: "agent, interleavings", size: 12, maxShrinks: 300 }

describe("any interleaving", () => {
  it.effect.prop(
    "of results, denials, failures, timeouts, cancels, interruptions, limits, hooks and compressions leaves a valid history",
    [Case],
    ([given]) =>
      Effect.map(wrong(given), (problem) => {
        if (problem !== undefined) assert.fail(problem)
      }),
    { arbitrary: thousand }
  )

  it("covers all of these", () => {
    const calls = ["success", "error", "denied", "timeout", "cancelled"].map((status) => `call: ${status}`)
    const all = [
      ...calls,
      "ChatCompressed",
      "UserCancelled",
      "LimitReached",
      "Finished",
      "interrupted",
      "ToolCallConfirmation",
      "HookStopped",
      "Notice"
    ]
    assert.includeMembers([...happened], all)
  })

  const mutants: Readonly<Record<string, (answers: ReadonlyArray<Part>) => ReadonlyArray<Part>>> = {
    "an answer is forgotten": (answers) => answers.slice(0, -1),
    "answers come in another order": (answers) => answers.toReversed(),
    "a call is answered twice": (answers) => [...answers, ...answers.slice(0, 1)]
  }
  it.effect.each(Object.entries(mutants))("is detected where %s", function* ([, mutate]) {
    const holds = ([given]: readonly [Case]) =>
      Effect.map(
        wrong(given, (chat) => ({
          ...chat,
          append: (drafts) =>
            chat.append(
              drafts.map((draft) => ({
                ...draft,
                content: { ...draft.content, parts: mutate(draft.content.parts) }
              }))
            )
        })),
        (problem) => problem === undefined
      )
    const found = yield* Arbitrary.checkEffect(Arbitrary.schema(Schema.Tuple([Case])), holds, {
      ...thousand,
      maxShrinks: 0
    })
    assert.strictEqual(found._tag, "Falsified")
  })
})

/** A conversation whose two answers call everything that holds a resource: files, processes. */
const busy: ReadonlyArray<Scripted.Step> = [
  {
    content: {
      role: "model",
      parts: [
        call("read_file", { file_path: "a.txt" }, "c1"),
        call("read_file", { file_path: "missing.txt" }, "c2"),
        call("write_file", { file_path: "b.txt", content: "new" }, "c3"),
        call("process", {}, "c4")
      ]
    },
    finishReason: "STOP",
    usage: null
  },
  {
    content: {
      role: "model",
      parts: [
        call("replace", { file_path: "a.txt", old_string: "one", new_string: "two" }, "c5"),
        call("process", {}, "c6")
      ]
    },
    finishReason: "STOP",
    usage: null
  },
  "Done."
]

/** Whether the message is the one that follows an interrupted run. */
const asksAgain = (contents: ReadonlyArray<Content>): boolean =>
  contents[contents.length - 1]?.parts.some((part) => part.text === "And now?") === true

describe("interrupted at every suspension point", () => {
  it.effect("an agent leaves no process, no temporary file and no lock, and every call has a response", function* () {
    let open = 0
    const living = { now: 0, most: 0 }
    const process: Tool = {
      name: "process",
      aliases: [],
      description: "Holds a process for a while.",
      parameters: { type: "object" },
      kind: "execute",
      isNeverMasked: false,
      timeout: Duration.infinity,
      call: () =>
        Effect.succeed({
          title: "process",
          question: Effect.succeed({ detail: "process", grants: [], covers: "nothing else" }),
          run: Effect.acquireUseRelease(
            Effect.sync(() => {
              living.now += 1
              living.most = Math.max(living.most, living.now)
            }),
            () => Effect.as(Effect.yieldNow, { value: "ran" }),
            () => Effect.sync(() => void (living.now -= 1))
          )
        })
    }
    const worlds: Array<Context.Context<Chats | FileSystem.FileSystem | Scripted.Script>> = []
    const program = (k: number) =>
      Effect.gen(function* () {
        const disk = MemoryFileSystem.layer({ "/work/a.txt": "one\n" })
        const files = FileWorkspace.layer({ root: "/work" }).pipe(Layer.provideMerge(Layer.merge(disk, Path.layer)))
        const services = yield* Layer.build(
          Layer.fresh(
            Layer.mergeAll(
              files,
              Offline.layerWithModel(
                Scripted.layer(({ contents }, index) => (asksAgain(contents) ? "Done." : (busy[index] ?? "Done.")))
              ),
              Approval.layer({ mode: "all", granted: [] })
            )
          )
        )
        worlds[k] = services
        yield* Effect.gen(function* () {
          const chat = yield* (yield* Chats).open("s")
          const tools = [yield* readFile, yield* writeFile, yield* replace, process]
          yield* Stream.runDrain(run({ name: "main", chat, tools }, "Do it."))
        }).pipe(Effect.provide(services), Effect.scoped)
      })
    const points = yield* interruptSweep(
      program,
      (exit, k) =>
        Effect.gen(function* () {
          const services = worlds[k]
          delete worlds[k]
          assert.strictEqual(living.now, 0, `a process is left, interrupted at ${k}`)
          if (services === undefined) return
          yield* Effect.gen(function* () {
            const fs = yield* FileSystem.FileSystem
            const left = yield* fs.readDirectory("/work")
            assert.deepStrictEqual(
              left.filter((name) => !["a.txt", "b.txt"].includes(name)),
              [],
              `interrupted at ${k}`
            )
            assert.include(["one\n", "two\n"], yield* fs.readFileString("/work/a.txt"))
            // Opened again by another process: no lock is held.
            const chat = yield* (yield* Chats).open("s")
            const { conversation } = yield* chat.whole
            const contents = entries(conversation).map(({ content }) => content)
            const isOpen = contents[contents.length - 1]?.parts.some(isCall) === true
            open += isOpen ? 1 : 0
            assert.isUndefined(
              illegal(contents) ?? disorder(isOpen ? contents.slice(0, -1) : contents),
              `interrupted at ${k}`
            )
            // The next request has an answer to every call.
            const [asked] = [
              yield* Stream.runDrain(chat.send("And now?")),
              yield* (yield* Scripted.Script).calls
            ].slice(-1)
            const sent = asked?.[asked.length - 1]?.request.contents ?? []
            assert.isUndefined(illegal(sent) ?? disorder(sent), `interrupted at ${k}`)
            if (Exit.isSuccess(exit)) assert.strictEqual(contents.length, 6)
          }).pipe(Effect.provide(services), Effect.scoped)
        }),
      strideOf(59)
    )
    assert.isAbove(points, 1_000)
    assert.strictEqual(open, 0)
    assert.strictEqual(living.most, 1)
  })
})
