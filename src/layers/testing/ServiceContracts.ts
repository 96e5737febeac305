/** Contract suites of the small services that programs bring: models, token counters, summarizers and hook systems. */

import { Cause, Clock, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import assert from "node:assert/strict"
import { SummaryCall } from "../../domain/compression/Compression.ts"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { call, model as modelContent, type Part, response, text, user } from "../../domain/content/Content.ts"
import { emptyOutcome, type HookEvent } from "../../domain/hooks/Hook.ts"
import { TokenCount, Usage } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../../services/compression/Compression.ts"
import { Summarizer, SummarizerError, type SummaryRequest } from "../../services/compression/summary/Summarizer.ts"
import { requestFor } from "../../services/conversation/KnownConversation.ts"
import { type Hook, HookSystem } from "../../services/hooks/HookSystem.ts"
import { Model, type ModelRequest } from "../../services/model/Model.ts"
import { TempStore } from "../../services/session/TempStore.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import {
  type ContractVariant,
  ending,
  endingSoon,
  serviceContract,
  type ServiceTests,
  type TestFunctions
} from "./ContractTests.ts"

type Variant<S> = Omit<ContractVariant<Layer.Layer<S, unknown>>, "runs">

/**
 * Defines the tests that every Model passes. It is asked short questions; `model` is the name that the requests have.
 *
 * *When to use*: to test a Model of your own, over a server that plays the provider.
 */
export const modelContract = (
  functions: TestFunctions,
  { model = "contract", ...variant }: Variant<Model> & { readonly model?: string | undefined }
) => {
  const newRequest = (): ModelRequest => ({ model, contents: [user(text("Say one word."))] })
  const generated = (service: Model["Service"], request = newRequest()) =>
    endingSoon(variant, service.generate(request))
  const streamed = (service: Model["Service"], request = newRequest()) =>
    endingSoon(variant, Stream.runCollect(service.stream(request)))
  serviceContract(functions, Model, variant, {
    *"answers with content of the model, and says how it ended"(service) {
      const { content, finishReason } = yield* generated(service)
      assert.strictEqual(content.role, "model")
      assert.ok(content.parts.some((part) => part.text === undefined || part.text.trim().length > 0))
      assert.ok(finishReason.length > 0)
    },
    *"streams an answer that ends with a reason, once"(service) {
      const chunks = yield* streamed(service)
      const ends = chunks.flatMap(({ finishReason }, at) => (finishReason === undefined ? [] : [at]))
      assert.strictEqual(ends.length, 1, "one piece has the finish reason")
      assert.ok(chunks.some(({ parts }) => parts.length > 0))
      const after = chunks.slice((ends[0] ?? 0) + 1)
      assert.ok(
        after.every(({ parts }) => parts.length === 0),
        "nothing is said after the end"
      )
    },
    *"reports usage in whole numbers that are not negative"(service) {
      const answer = yield* generated(service)
      for (const { usage } of [answer, ...(yield* streamed(service))]) {
        assert.ok(usage === null || usage === undefined || isUsage(usage), JSON.stringify(usage))
      }
    },
    *"streams anew with each run"(service) {
      const stream = service.stream(newRequest())
      const texts = yield* Effect.forEach([1, 2], () =>
        Effect.map(
          endingSoon(variant, Stream.runCollect(stream)),
          (chunks) => chunks.flatMap(({ parts }) => parts).length
        )
      )
      assert.ok(texts.every((parts) => parts > 0))
    },
    *"answers two questions at a time"(service) {
      yield* Effect.all([generated(service), generated(service)], { concurrency: 2 })
    },
    *"counts more tokens for more text"(service) {
      const long = { ...newRequest(), contents: [user(text("Say one word. ".repeat(200)))] }
      const [few, many] = [yield* service.countTokens(newRequest()), yield* service.countTokens(long)]
      assert.ok(Number.isInteger(few) && few > 0 && many > few, `${few} and ${many} tokens`)
    },
    *"changes no request"(service) {
      const request = newRequest()
      const before = JSON.stringify(request)
      yield* generated(service, request)
      yield* streamed(service, request)
      assert.strictEqual(JSON.stringify(request), before)
    }
  })
}

const isUsage = Schema.is(Usage)

const newParts = (): ReadonlyArray<Part> => [
  text("Hello, world."),
  text("Hello, world. ".repeat(100)),
  text("語".repeat(100)),
  text("é 😀 \uD800 \0"),
  call("read", { path: "src/a.ts" }, "1"),
  response("read", { output: "1: export const a = 1\n".repeat(50) }, "1"),
  { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }
]

/**
 * Defines the tests that every TokenCounter passes.
 *
 * *When to use*: to test a TokenCounter of your own, such as one with a tokenizer.
 */
export const tokenCounterContract = (functions: TestFunctions, variant: Variant<TokenCounter>) => {
  const counted = ({ count }: TokenCounter["Service"], parts = newParts()) => ending(variant, count(parts))
  serviceContract(functions, TokenCounter, variant, {
    *"counts each part by itself, in order"(service) {
      const parts = newParts()
      const all = yield* counted(service, parts)
      assert.strictEqual(all.length, parts.length)
      const each = yield* Effect.forEach(parts, (part) => counted(service, [part]))
      assert.deepStrictEqual([...all], each.flat())
      assert.deepStrictEqual([...(yield* counted(service, [...parts].reverse()))], [...all].reverse())
    },
    *"counts in whole numbers that are not negative, and more for more"(service) {
      const counts = yield* counted(service)
      assert.ok(
        counts.every((tokens) => Number.isInteger(tokens) && tokens >= 0),
        counts.join()
      )
      const [short = 0, long = 0] = counts
      assert.ok(short > 0 && long > 10 * short, `${short} and ${long} tokens`)
    },
    *"counts what calls and results carry"(service) {
      for (const carrying of [
        (words: string) => call("read", { path: words }, "1"),
        (words: string) => response("read", { output: words }, "1")
      ]) {
        const [short = 0, long = 0] = yield* counted(service, [carrying("one"), carrying("one word ".repeat(500))])
        assert.ok(short > 0 && long > 5 * short, `${short} and ${long} tokens`)
      }
    },
    *"counts the same each time, and nothing for nothing"(service) {
      assert.deepStrictEqual(yield* counted(service), yield* counted(service))
      assert.deepStrictEqual([...(yield* counted(service, []))], [])
    },
    *"changes no part"(service) {
      const parts = newParts()
      yield* counted(service, parts)
      assert.deepStrictEqual(parts, newParts())
    },
    *"counts about what a text has"(service) {
      const [tokens = 0] = yield* counted(service, [text("The quick brown fox jumps over the lazy dog. ".repeat(100))])
      // A thousand words of English.
      assert.ok(tokens > 500 && tokens < 3_000, `${tokens} tokens for 900 words`)
    }
  })
}

/** Handles are named by hashes; nothing is read back. */
const blobs = Layer.succeed(
  TempStore,
  TempStore.fromBlobs({ put: () => Effect.void, get: () => Effect.undefined, find: () => Effect.succeed([]) })
)

/** A request for a snapshot, as a compression makes it. */
const summaryRequest = Effect.gen(function* () {
  const asked: Array<SummaryRequest> = []
  const noting = Layer.succeed(Summarizer, {
    summarize: (request) =>
      Effect.as(
        Effect.sync(() => asked.push(request)),
        { text: "- noted" }
      )
  })
  const drafts = Array.from({ length: 40 }, (_, n) => ({
    content: (n % 2 === 0 ? user : modelContent)(
      text(`Message ${n} is about src/part${n}.ts. ${"It is long. ".repeat(60)}`)
    )
  }))
  yield* Effect.gen(function* () {
    const request = yield* requestFor(drafts, { ...defaultPolicy, limit: TokenCount.make(4_000), summarizer: "model" })
    yield* Compression.use(({ compress }) => compress(request))
  }).pipe(
    Effect.provide(
      Compression.layer.pipe(
        Layer.provide(HookSystem.layer),
        Layer.provide(noting),
        Layer.provideMerge(Layer.merge(blobs, TokenCounter.layerEstimate)),
        Layer.fresh
      )
    )
  )
  const [request] = asked
  return request ?? (yield* Effect.die(new Error("no summary was asked for")))
})

/** A request as a value that can be compared. */
const described = (request: SummaryRequest) => JSON.stringify(request)

const isSummaryCall = Schema.is(SummaryCall)

/**
 * Defines the tests that every Summarizer passes.
 *
 * *When to use*: to test a Summarizer of your own. Its text is verified by the workflow afterwards, so that the suite does not judge it.
 */
export const summarizerContract = (functions: TestFunctions, variant: Variant<Summarizer>) => {
  const written = ({ summarize }: Summarizer["Service"], request: SummaryRequest) =>
    ending(variant, Effect.exit(summarize(request)))
  serviceContract(functions, Summarizer, variant, {
    *"writes a text, or says why not"(service) {
      const exit = yield* written(service, yield* summaryRequest)
      if (Exit.isSuccess(exit)) {
        assert.strictEqual(typeof exit.value.text, "string")
        return assert.ok(exit.value.text.trim().length > 0, "the text is blank")
      }
      return assert.ok(Option.getOrUndefined(Cause.findErrorOption(exit.cause)) instanceof SummarizerError)
    },
    *"writes no more than it may, several times over"(service) {
      const request = yield* summaryRequest
      const exit = yield* written(service, request)
      if (Exit.isFailure(exit)) return
      const [tokens = 0] = yield* TokenCounter.use(({ count }) => count([text(exit.value.text)])).pipe(
        Effect.provide(TokenCounter.layerEstimate)
      )
      assert.ok(tokens <= 4 * request.budget, `${tokens} tokens for a budget of ${request.budget}`)
    },
    *"says which calls it made"(service) {
      const exit = yield* written(service, yield* summaryRequest)
      const calls = Exit.isSuccess(exit) ? (exit.value.calls ?? []) : []
      assert.ok(calls.every(isSummaryCall), JSON.stringify(calls))
    },
    *"changes nothing of its request"(service) {
      const request = yield* summaryRequest
      const before = described(request)
      yield* written(service, request)
      assert.strictEqual(described(request), before)
    },
    *"writes two at a time"(service) {
      const requests = [yield* summaryRequest, yield* summaryRequest]
      const exits = yield* Effect.forEach(requests, (request) => written(service, request), { concurrency: 2 })
      assert.ok(!exits.some((exit) => Exit.hasDies(exit)))
    },
    *"can be interrupted"({ summarize }) {
      const fiber = yield* Effect.forkDetach(summarize(yield* summaryRequest))
      yield* endingSoon(variant, Fiber.interrupt(fiber))
    }
  })
}

const event: HookEvent = { _tag: "BeforeAgent", prompt: "Hello" }

const hookTests: ServiceTests<HookSystem, HookSystem["Service"]> = {
  *"answers an event that nobody receives with nothing"({ fire, has }) {
    assert.strictEqual(has("BeforeAgent"), false)
    assert.deepStrictEqual(yield* fire(event), emptyOutcome)
  },
  *"sends an event to all subscribers, also of one name, while their scope is open"({ fire, has, subscribe }) {
    let heard = 0
    const hear = () => subscribe("twin", () => Effect.sync(() => void (heard += 1)))
    yield* Effect.scoped(Effect.andThen(Effect.andThen(hear(), hear()), fire(event)))
    assert.deepStrictEqual([heard, has("BeforeAgent")], [2, false])
  },
  *"sends each event to its subscribers, with its place, until their scope closes"({ fire, has, subscribe }) {
    const seen: Array<unknown> = []
    const place = { session: "s1", cwd: "/work" }
    const hear = (name: string) =>
      subscribe(name, (received, where) =>
        Effect.sync(() => void seen.push([name, received, where.session, where.cwd]))
      )
    const scope = yield* Scope.make()
    yield* Effect.provideService(hear("one"), Scope.Scope, scope)
    yield* hear("two")
    assert.strictEqual(has("BeforeAgent"), true)
    yield* fire(event, place)
    assert.deepStrictEqual(
      new Set(seen.map((one) => JSON.stringify(one))),
      new Set(["one", "two"].map((name) => JSON.stringify([name, event, "s1", "/work"])))
    )
    assert.strictEqual(seen.length, 2)
    yield* Scope.close(scope, Exit.void)
    yield* fire(event)
    assert.strictEqual(seen.length, 3)
  },
  *"merges what hooks answer"({ fire, subscribe }) {
    yield* subscribe("one", () => Effect.succeed({ systemMessage: "a message" }))
    yield* subscribe("two", () => Effect.succeed({ decision: "block" as const, reason: "not today" }))
    const outcome = yield* fire(event)
    assert.strictEqual(outcome.blocked, "not today")
    assert.deepStrictEqual([...outcome.messages], ["a message"])
  },
  *"reports a hook that fails or dies, and asks the others"({ fire, subscribe }) {
    let heard = 0
    yield* subscribe("fails", () => Effect.fail(new Error("no")))
    yield* subscribe("dies", () => Effect.die(new Error("no")))
    yield* subscribe("throws", () => {
      throw new Error("no")
    })
    yield* subscribe("hears", () => Effect.sync(() => void (heard += 1)))
    const { failures } = yield* fire(event)
    assert.strictEqual(heard, 1)
    assert.deepStrictEqual(failures.map(({ hook }) => hook).sort(), ["dies", "fails", "throws"])
  },
  *"gives an event only to hooks that are for it"({ add, fire, has }) {
    let heard = 0
    yield* add([{ name: "model", event: "BeforeModel", priority: 0, run: () => Effect.sync(() => void (heard += 1)) }])
    assert.strictEqual(has("BeforeAgent"), false)
    assert.strictEqual(has("BeforeModel"), true)
    yield* fire(event)
    assert.strictEqual(heard, 0)
  },
  *"runs all hooks of a list for the tools that they name, by their priorities"({ add, fire }) {
    const seen: Array<string> = []
    const hook = (name: string, priority: number, matcher?: string) => ({
      name,
      priority,
      matcher,
      event: "BeforeTool" as const,
      sequential: true,
      run: () => Effect.sync(() => void seen.push(name))
    })
    yield* add([hook("later", 4), hook("first", 0, "read"), hook("another tool's", 0, "write")])
    yield* fire({ _tag: "BeforeTool", tool: "read_file", input: {} })
    assert.deepStrictEqual(seen, ["first", "later"])
  },
  *"hands the changes of a hook in a sequence to the next"({ add, fire }) {
    const seen: Array<unknown> = []
    const hook = (name: string, priority: number, run: Hook["run"]): Hook => ({ name, priority, sequential: true, run })
    yield* add([
      hook("changes", 0, () => Effect.succeed({ hookSpecificOutput: { tool_input: { path: "b" } } })),
      hook("sees", 1, (received) => Effect.sync(() => void seen.push(Object(received).input)))
    ])
    yield* fire({ _tag: "BeforeTool", tool: "read_file", input: { path: "a" } })
    assert.deepStrictEqual(seen, [{ path: "b" }])
  },
  *"ends its hooks when it is interrupted, and when they are removed"(service) {
    for (const isInterrupted of [true, false]) {
      const [begun, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const scope = yield* Scope.make()
      const work = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      const run = () => Effect.onInterrupt(work, () => Deferred.succeed(ended, undefined))
      yield* Effect.provideService(service.add([{ name: "hangs", priority: 0, run }]), Scope.Scope, scope)
      const firing = yield* Effect.forkChild(service.fire(event))
      const started = yield* Clock.currentTimeMillis
      yield* ending(service, Deferred.await(begun))
      yield* isInterrupted ? Fiber.interrupt(firing) : Scope.close(scope, Exit.void)
      yield* ending(service, Deferred.await(ended))
      assert.strictEqual(yield* Clock.currentTimeMillis, started)
      yield* Scope.close(scope, Exit.void)
    }
  },
  *"ends a hook at its time limit"(service) {
    yield* service.add([{ name: "hangs", priority: 0, timeout: "1 second", run: () => Effect.never }])
    const started = yield* Clock.currentTimeMillis
    const firing = yield* Effect.forkChild(service.fire(event))
    yield* TestClock.adjust("1 second")
    const { failures } = yield* ending(service, Fiber.join(firing))
    assert.deepStrictEqual(
      failures.map(({ hook }) => hook),
      ["hangs"]
    )
    assert.strictEqual((yield* Clock.currentTimeMillis) - started, 1_000)
  },
  *"fires in the background too, and waits for nobody"(service) {
    const place = { session: "s1", cwd: "/work" }
    const heard = yield* Deferred.make<unknown>()
    yield* service.subscribe("hears", (received, { cwd, session }) =>
      Effect.andThen(Deferred.succeed(heard, [received, { session, cwd }]), Effect.sleep("1 second"))
    )
    const started = yield* Clock.currentTimeMillis
    yield* ending(service, service.fireAside(event, place))
    assert.deepStrictEqual(yield* ending(service, Deferred.await(heard)), [event, place])
    assert.strictEqual(yield* Clock.currentTimeMillis, started)
    yield* TestClock.adjust("1 second")
  }
}

/**
 * Defines the tests that every HookSystem passes.
 *
 * *When to use*: to test a HookSystem of your own, such as one that sends events to another process.
 */
export const hookSystemContract = (functions: TestFunctions, variant: Variant<HookSystem>) =>
  serviceContract(functions, HookSystem, variant, hookTests)
