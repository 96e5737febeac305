import { Effect, Fiber, Layer, Stream } from "effect"
import { model, text } from "../../../src/domain/content/Content.ts"
import type { TestFunctions } from "../../../src/layers/testing/ContractTests.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import {
  hookSystemContract,
  modelContract,
  summarizerContract,
  tokenCounterContract
} from "../../../src/layers/testing/ServiceContracts.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { Model } from "../../../src/services/model/Model.ts"
import { TokenCounter, TokenCountError } from "../../../src/services/tokens/TokenCounter.ts"
import { firstFailure } from "../../support/contracts.ts"
import { afterAll, assert, beforeAll, describe, it, vi } from "../../support/vitest.ts"

/** The contract suites of small services pass ours, and notice mistakes. */

const made = <S>(name: string, layer: Layer.Layer<S, unknown>) => ({ name, make: Effect.succeed(Layer.fresh(layer)) })

modelContract(
  { describe, it },
  made(
    "ScriptedModel",
    ScriptedModel.layer(() => "word")
  )
)
tokenCounterContract({ describe, it }, made("TokenCounter.layerEstimate", TokenCounter.layerEstimate))
tokenCounterContract(
  { describe, it },
  made(
    "TokenCounter.layer",
    TokenCounter.layer((words) => words.length / 4)
  )
)
summarizerContract({ describe, it }, made("Summarizer.layerExtractive", Summarizer.layerExtractive))
summarizerContract(
  { describe, it },
  made(
    "Summarizer.layer",
    Summarizer.layer(() => Effect.succeed("- all is well"))
  )
)
hookSystemContract({ describe, it }, made("HookSystem", HookSystem.layer))

const goodModel: Model["Service"] = {
  generate: () => Effect.succeed({ content: model(text("word")), finishReason: "STOP", usage: null }),
  stream: () => Stream.make({ parts: [text("wo")] }, { parts: [text("rd")], finishReason: "STOP" }),
  countTokens: ({ contents }) => Effect.succeed(JSON.stringify(contents).length)
}
const usage = { prompt: -1, answer: 1.5, thoughts: 0, cached: 0 }
let streams = 0
let asked = 0
const modelMutants: Readonly<Record<string, Partial<Model["Service"]>>> = {
  "answers as the user": {
    generate: () => Effect.succeed({ content: { role: "user", parts: [text("x")] }, finishReason: "STOP", usage: null })
  },
  "answers nothing": { generate: () => Effect.succeed({ content: model(), finishReason: "STOP", usage: null }) },
  "does not say how it ended": {
    generate: () => Effect.succeed({ content: model(text("x")), finishReason: "", usage: null })
  },
  "reports half a token": {
    generate: () => Effect.succeed({ content: model(text("x")), finishReason: "STOP", usage })
  },
  "streams without an end": { stream: () => Stream.make({ parts: [text("x")] }) },
  "ends twice": {
    stream: () => Stream.make({ parts: [text("x")], finishReason: "STOP" }, { parts: [], finishReason: "STOP" })
  },
  "speaks after the end": { stream: () => Stream.make({ parts: [], finishReason: "STOP" }, { parts: [text("x")] }) },
  "streams once": {
    stream: () =>
      Stream.suspend(() => Stream.make({ parts: streams++ % 2 === 0 ? [text("x")] : [], finishReason: "STOP" }))
  },
  "counts messages": { countTokens: ({ contents }) => Effect.succeed(contents.length) },
  "changes its request": {
    generate: (request) =>
      Effect.andThen(
        Effect.sync(() => Object.assign(request, { mustCall: true })),
        goodModel.generate(request)
      )
  },
  fails: { generate: () => Effect.die("no") },
  "answers with a blank text": {
    generate: () => Effect.succeed({ content: model(text("")), finishReason: "STOP", usage: null })
  },
  "reports a cache below nothing": {
    generate: () =>
      Effect.succeed({
        content: model(text("x")),
        finishReason: "STOP",
        usage: { prompt: 1, answer: 1, thoughts: 0, cached: -1 }
      })
  },
  "reports half a token in its stream": {
    stream: () => Stream.make({ parts: [text("x")], finishReason: "STOP", usage })
  },
  "never answers": { generate: () => Effect.never },
  "never ends its stream": { stream: (request) => Stream.concat(goodModel.stream(request), Stream.never) },
  "answers one question at a time": {
    generate: (request) =>
      Effect.suspend(() => {
        const isBusy = asked > 0
        asked += 1
        const answer = isBusy ? Effect.die("busy") : Effect.andThen(Effect.yieldNow, goodModel.generate(request))
        return Effect.ensuring(
          answer,
          Effect.sync(() => (asked -= 1))
        )
      })
  },
  "cannot be interrupted": { generate: () => Effect.uninterruptible(Effect.never) }
}

const estimate = (words: string) => Math.ceil(words.length / 4)
let calls = 0
const counterMutants: Readonly<Record<string, TokenCounter["Service"]["count"]>> = {
  "gives one number": (parts) => Effect.succeed([parts.length]),
  "gives the sum": (parts) => Effect.succeed(parts.map(() => estimate(JSON.stringify(parts)))),
  sorts: (parts) => Effect.succeed(parts.map((part) => estimate(JSON.stringify(part))).sort((a, b) => a - b)),
  "counts nothing": (parts) => Effect.succeed(parts.map(() => 0)),
  "cannot count what is no letter": (parts) =>
    parts.some((part) => part.text?.includes("😀") === true)
      ? Effect.fail(new TokenCountError({ message: "no letter", cause: null }))
      : Effect.succeed(parts.map((part) => estimate(JSON.stringify(part)))),
  "counts below nothing": (parts) => Effect.succeed(parts.map((part) => -estimate(JSON.stringify(part)))),
  "counts fractions": (parts) => Effect.succeed(parts.map((part) => JSON.stringify(part).length / 4)),
  "counts NaN": (parts) => Effect.succeed(parts.map(() => Number.NaN)),
  "counts otherwise each time": (parts) =>
    Effect.sync(() => parts.map((part) => estimate(JSON.stringify(part)) + calls++)),
  "counts characters": (parts) => Effect.succeed(parts.map((part) => JSON.stringify(part).length)),
  "counts calls by their names": (parts) =>
    Effect.succeed(
      parts.map((part) => estimate(part.functionCall === undefined ? JSON.stringify(part) : part.functionCall.name))
    ),
  "counts results as nothing": (parts) =>
    Effect.succeed(parts.map((part) => (part.functionResponse === undefined ? estimate(JSON.stringify(part)) : 0))),
  "changes its parts": (parts) =>
    Effect.sync(() =>
      parts.map((part) => {
        const tokens = estimate(JSON.stringify(part))
        Object.assign(part, { tokens: 1 })
        return tokens
      })
    ),
  "never ends": () => Effect.never,
  "counts parts of nothing": (parts) =>
    Effect.succeed(parts.length === 0 ? [1] : parts.map((part) => estimate(JSON.stringify(part))))
}

let writing = 0
const summarizerMutants: Readonly<Record<string, Summarizer["Service"]["summarize"]>> = {
  "writes nothing": () => Effect.succeed({ text: "  " }),
  "writes too much": () => Effect.succeed({ text: "word ".repeat(100_000) }),
  "gives no text": () => Effect.succeed({ text: undefined as unknown as string }),
  dies: () => Effect.die(new Error("no")),
  "changes its request": (request) =>
    Effect.as(
      Effect.sync(() => Object.assign(request, { budget: 1 })),
      { text: "x" }
    ),
  "pins words": (request) =>
    Effect.as(
      Effect.sync(() => Object.assign(request.pins, { latest: undefined, pinned: [] })),
      { text: "x" }
    ),
  "never ends": () => Effect.never,
  "cannot be interrupted": () => Effect.uninterruptible(Effect.never),
  "writes one at a time": () =>
    Effect.suspend(() => {
      const isBusy = writing > 0
      writing += 1
      const written = isBusy ? Effect.die("busy") : Effect.as(Effect.yieldNow, { text: "x" })
      return Effect.ensuring(
        written,
        Effect.sync(() => (writing -= 1))
      )
    }),
  "reports half a message": () =>
    Effect.succeed({
      text: "x",
      calls: [{ purpose: "generate", model: "m", messages: 0.5, answer: "x", finishReason: "STOP", usage: null }]
    })
}

const hookMutants: Readonly<Record<string, (good: HookSystem["Service"]) => Partial<HookSystem["Service"]>>> = {
  "always has receivers": () => ({ has: () => true }),
  "never has receivers": () => ({ has: () => false }),
  "sends nothing": ({ fire }) => ({ fire: () => fire({ _tag: "SessionEnd", reason: "exit" } as never) }),
  "forgets the place": ({ fire }) => ({ fire: (event) => fire(event) }),
  "sends twice": ({ fire }) => ({ fire: (event, place) => Effect.andThen(fire(event, place), fire(event, place)) }),
  "loses answers": ({ fire }) => ({
    fire: (event, place) => Effect.map(fire(event, place), (outcome) => ({ ...outcome, blocked: undefined }))
  }),
  "loses messages": ({ fire }) => ({
    fire: (event, place) => Effect.map(fire(event, place), (outcome) => ({ ...outcome, messages: [] }))
  }),
  "loses failures": ({ fire }) => ({
    fire: (event, place) => Effect.map(fire(event, place), (outcome) => ({ ...outcome, failures: [] }))
  }),
  "keeps subscribers": ({ subscribe }) => ({
    subscribe: (name, run) =>
      Effect.asVoid(
        Effect.forkDetach(Effect.scoped(Effect.andThen(subscribe(name, run), Effect.never)), { startImmediately: true })
      )
  }),
  "adds the first of a list": ({ add }) => ({ add: (hooks) => add(hooks.slice(0, 1)) }),
  "asks for all tools": ({ add }) => ({ add: (hooks) => add(hooks.map(({ matcher: _matcher, ...hook }) => hook)) }),
  "has no priorities": ({ add }) => ({ add: (hooks) => add(hooks.map((hook) => ({ ...hook, priority: 0 }))) }),
  "has no time limits": ({ add }) => ({ add: (hooks) => add(hooks.map(({ timeout: _timeout, ...hook }) => hook)) }),
  "sends nothing in the background": () => ({ fireAside: () => Effect.void }),
  "has one subscriber of a name": ({ subscribe }) => {
    const names = new Set<string>()
    return {
      subscribe: (name, run) => {
        if (names.has(name)) return Effect.void
        names.add(name)
        return subscribe(name, run)
      }
    }
  },
  "waits for what runs in the background": ({ fire }) => ({
    fireAside: (event, place) => Effect.asVoid(fire(event, place))
  }),
  "forgets the place in the background": ({ fireAside }) => ({ fireAside: (event) => fireAside(event) }),
  "does not hand changes on": ({ add }) => ({
    add: (hooks) => add(hooks.map((hook) => ({ ...hook, sequential: false })))
  }),
  "dies of a hook that throws": ({ subscribe }) => ({
    subscribe: (name, run) =>
      Effect.andThen(
        Effect.sync(() => run({ _tag: "BeforeAgent", prompt: "" }, {})),
        subscribe(name, run)
      )
  }),
  "leaves hooks running": ({ fire }) => ({
    fire: (event, place) =>
      Effect.flatMap(Effect.forkDetach(fire(event, place), { startImmediately: true }), Fiber.join)
  }),
  "still has receivers when their scope is closed": ({ has, subscribe }) => {
    let had = false
    return {
      subscribe: (name, run) => Effect.tap(subscribe(name, run), () => Effect.sync(() => (had = true))),
      has: (name) => had || has(name)
    }
  },
  "sends every event": (good) => ({ add: (hooks) => good.add(hooks.map(({ event: _event, ...hook }) => hook)) })
}

describe("the suites notice", () => {
  // A suite gives each case seconds of the machine, and here some services never end: they get a fifth.
  const wait = setTimeout
  beforeAll(() => {
    vi.stubGlobal("setTimeout", (run: () => void, millis = 0) => wait(run, millis >= 1_000 ? millis / 5 : millis))
  })
  afterAll(() => {
    vi.unstubAllGlobals()
  })
  const mutants = <M>(
    service: string,
    mistakes: Readonly<Record<string, M>>,
    suite: (functions: TestFunctions, mutant: M) => void
  ) => {
    for (const [mistake, mutant] of Object.entries(mistakes))
      it.concurrent(`${service} that ${mistake}`, async () =>
        assert.isDefined(await firstFailure((functions) => suite(functions, mutant))))
  }
  mutants("a model", modelMutants, (functions, change) =>
    modelContract(functions, made("m", Layer.succeed(Model, { ...goodModel, ...change })))
  )
  mutants("a counter", counterMutants, (functions, count) =>
    tokenCounterContract(functions, made("c", Layer.succeed(TokenCounter, { count })))
  )
  mutants("a summarizer", summarizerMutants, (functions, summarize) =>
    summarizerContract(functions, made("s", Layer.succeed(Summarizer, { summarize })))
  )
  mutants("a hook system", hookMutants, (functions, change) => {
    const changed = Effect.map(HookSystem, (good) => ({ ...good, ...change(good) }))
    const layer = Layer.effect(HookSystem, changed).pipe(Layer.provide(Layer.fresh(HookSystem.layer)))
    hookSystemContract(functions, made("h", layer))
  })
})

it("the suites notice no mistake in a good model", async () =>
  assert.isUndefined(
    await firstFailure((functions) => modelContract(functions, made("m", Layer.succeed(Model, goodModel))))
  ))
