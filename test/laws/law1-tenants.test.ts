import { Arbitrary, Effect, Layer, Result, Schema, type Scope } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { createHash } from "node:crypto"
import { payload } from "../../src/domain/content/Content.ts"
import { type Handle, handleOf, hashOf, mentions } from "../../src/domain/content/Handle.ts"
import { rangeText } from "../../src/domain/conversation/Recall.ts"
import { toContent } from "../../src/domain/effect-ai/PromptContent.ts"
import { encode } from "../../src/domain/text/Bytes.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../src/layers/testing/MemoryCalibrations.ts"
import * as CompressedLanguageModel from "../../src/services/effect-ai/CompressedLanguageModel.ts"
import { Recall } from "../../src/services/effect-ai/RecallTool.ts"
import { thousand } from "../support/generate.ts"
import { answers, calls, result, results, says, wordsOf } from "../support/prompts.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Law 1 for many conversations in one language model: every handle that a request shows answers with its own text, in
 * that request and ever after, and no handle answers with the text of another conversation.
 */

type Messages = ReadonlyArray<Prompt.Message>
type Recalling = Recall["Service"]["recall"]

const Beat = Schema.Struct({
  tenant: Schema.Natural.check(Schema.isLessThan(4)),
  what: Schema.Literals([
    "says",
    "says",
    "reads",
    "reads",
    "reads two",
    "is told",
    "forks",
    "undoes",
    "is read anew",
    "restarts",
    "asks again"
  ]),
  lines: Schema.Literals([1, 60, 60, 60])
})

const Script = Schema.Struct({
  window: Schema.Literals([1_500, 3_000]),
  strategy: Schema.Literals(["palimpsest", "palimpsest", "gemini"]),
  conversations: Schema.Literals([1, 2, 64]),
  remembered: Schema.Literals([1, 3, 10_000]),
  /** Messages that all tenants begin with, the same objects. */
  common: Schema.Literals([0, 1, 2, 5]),
  beats: Schema.Array(Beat).check(Schema.isMinLength(6), Schema.isMaxLength(24))
})
type Script = typeof Script.Type

const text = (tenant: string, n: number, lines: number): string =>
  Array.from({ length: lines }, (_, line) => `${tenant} ${n}.${line} src/module${n}.ts has ${line} lines`).join("\n")

const opening: Messages = [
  Prompt.systemMessage({ content: "Be brief." }),
  says(text("everybody", 0, 12)),
  answers(text("everybody", 1, 40)),
  says(text("everybody", 2, 12)),
  answers(text("everybody", 3, 40))
]

const spoken = (history: Messages) => history.flatMap((message) => (message.role === "system" ? [] : [message]))

/** How the oracle resolves a handle in a history: a part with this hash, or the first messages. */
const own = (history: Messages, handle: Handle, found: string): string | undefined => {
  const texts = spoken(history).flatMap((message) => toContent(message).parts.map((part) => payload(part).text))
  if (texts.includes(found)) {
    const named = handleOf(hashOf(createHash("sha256").update(encode(found)).digest()))
    return named === handle ? undefined : `${handle} gives a part that is called ${named}`
  }
  const lines = found.split("\n").length - 1
  if (lines === 0) return `${handle} gives a text that nobody said: ${found}`
  const first = spoken(history).slice(0, lines)
  const expected = rangeText(first.map((message) => ({ content: toContent(message) })))
  return expected === found ? undefined : `${handle} gives what its conversation does not hold: ${found.slice(0, 80)}`
}

const anew = (history: Messages): Effect.Effect<Messages> =>
  Schema.decodeEffect(Schema.fromJsonString(Prompt.Prompt))(JSON.stringify({ content: history })).pipe(
    Effect.map(({ content }) => content),
    Effect.orDie
  )

/** How a handle is recalled: normally, or as a mutant does it. */
type World = (real: Recalling, histories: () => ReadonlyArray<Messages>) => Recalling
const honest: World = (real) => real

/** Plays a script; returns the violation of the law, or the number of compressed requests. */
const played = Effect.fnUntraced(function* (script: Script, world: World) {
  const { beats, common, conversations, remembered, strategy, window } = script
  const histories = new Map<number, Messages>()
  const sent: Array<Messages> = []
  /** Every handle shown: for which history, and with which text. */
  const shown: Array<{ readonly history: Messages; readonly handle: Handle; readonly text: string }> = []
  let problem: string | undefined
  let compressed = 0
  let asked: Messages = []
  let recall: Recalling = () => Effect.die("no layer yet")

  /** Checks every handle of a request while the request is being made. */
  const looking = ({ prompt }: LanguageModel.ProviderOptions) =>
    Effect.gen(function* () {
      const written = prompt.content.filter((message) => !asked.includes(message))
      const handles = mentions(wordsOf(written))
      if (handles.length > 0) compressed += 1
      for (const handle of new Set(handles)) {
        const found = yield* Effect.result(recall(handle))
        if (Result.isFailure(found)) {
          problem ??= `${handle} is dead in the request that shows it: ${found.failure.message}`
          continue
        }
        problem ??= own(asked, handle, found.success.text)
        shown.push({ history: asked, handle, text: found.success.text })
      }
      return [{ type: "text" as const, text: "ok" }]
    })

  const started = Effect.gen(function* () {
    const inner = Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({ generateText: looking, streamText: () => Effect.die("unused") as never })
    )
    const layer = CompressedLanguageModel.layer({
      window,
      reserve: 300,
      conversations,
      remembered,
      policy: { strategy }
    }).pipe(Layer.provide(inner), Layer.provide(Layer.merge(Offline.layer, MemoryCalibrations.layer)))
    const context = yield* Layer.build(Layer.fresh(layer))
    const real = yield* Effect.provideContext(
      Recall.use((service) => Effect.succeed(service.recall)),
      context
    )
    recall = world(real, () => sent)
    return context
  })

  let runtime = yield* started
  let number = 10
  for (const { lines, tenant, what } of beats) {
    number += 1
    const name = `tenant${tenant}`
    const before = histories.get(tenant) ?? opening.slice(0, common)
    const words = text(name, number, lines)
    const next: Record<typeof what, () => Effect.Effect<Messages, never, Scope.Scope>> = {
      says: () => Effect.succeed([...before, says(words)]),
      reads: () =>
        Effect.succeed([...before, says(`${name} read`), calls(`c${number}`), results(result(`c${number}`, words))]),
      "reads two": () =>
        Effect.succeed([
          ...before,
          says(`${name} read both ${number}`),
          calls("call_0", "call_1"),
          results(result("call_1", { output: words }), result("call_0", { error: `${name} no` }, true))
        ]),
      "is told": () =>
        Effect.succeed([...before, Prompt.systemMessage({ content: `${name} mode ${number}` }), says(words)]),
      forks: () => Effect.succeed([...(histories.get((tenant + 1) % 4) ?? before), says(`${name} forks ${words}`)]),
      undoes: () => Effect.succeed([...before.slice(0, Math.ceil(before.length * 0.7)), says(`${name} not ${words}`)]),
      "is read anew": () => Effect.map(anew(before), (read) => [...read, says(words)]),
      restarts: () =>
        Effect.map(started, (fresh) => {
          runtime = fresh
          return [...before, says(words)]
        }),
      "asks again": () => Effect.succeed(before.length > common ? before : [...before, says(words)])
    }
    const history = yield* next[what]()
    // The user continues a prompt that ends with an answer.
    asked = history
    sent.push(history)
    const exit = yield* Effect.exit(
      Effect.provideContext(LanguageModel.generateText({ prompt: Prompt.fromMessages(history) }), runtime)
    )
    if (exit._tag === "Failure" && !String(exit.cause).includes("too long")) return String(exit.cause)
    if (problem !== undefined) return problem
    histories.set(tenant, [...history, answers(`${name} answer ${number}`)])
  }
  for (const { handle, history, text: expected } of shown) {
    // From then on, in the history that it was shown for and in every history that continues it.
    for (const [of, current] of [[-1, history] as const, ...histories]) {
      const found = yield* Effect.result(recall(handle).pipe(Recall.within(current)))
      const holds = of < 0 || history.every((message, at) => message === current[at])
      if (Result.isFailure(found)) {
        if (holds) return `${handle} is dead later: ${found.failure.message}`
        if (found.failure._tag !== "TempStoreError" || found.failure.reason._tag !== "HandleNotHeld") {
          return `${handle} fails with ${found.failure.message}`
        }
        continue
      }
      if (holds && found.success.text !== expected) return `${handle} gives another text later`
      const foreign = own(current, handle, found.success.text)
      if (foreign !== undefined) return `of another conversation: ${foreign}`
    }
  }
  const [first] = shown
  const [one] = sent
  const isOne = sent.every((history) => history.every((message, at) => message === (sent.at(-1) ?? [])[at]))
  if (first !== undefined && one !== undefined && !isOne) {
    const bare = yield* Effect.result(recall(first.handle))
    // A layer created after all others has seen only one conversation, and may answer for that one.
    if (Result.isSuccess(bare)) {
      const held = sent.some((history) => own(history, first.handle, bare.success.text) === undefined)
      if (!held) return `${first.handle} answers with what nobody said`
    }
  }
  return compressed
}, Effect.scoped)

const property = (world: World) => (script: Script) =>
  played(script, world).pipe(
    Effect.flatMap((found) => (typeof found === "string" ? Effect.fail(found) : Effect.succeed(true)))
  )

describe("law 1, for many conversations in one language model", () => {
  it.effect.prop(
    "a handle in a request always recalls its own text, and no other conversation's",
    [Script],
    ([script]) => property(honest)(script),
    { arbitrary: { ...thousand("tenants", 100), size: 60 }, timeout: 600_000 }
  )

  const busy = (beats: number): Script => ({
    window: 1_500,
    strategy: "palimpsest",
    conversations: 1,
    remembered: 1,
    common: 2,
    beats: Array.from({ length: beats }, (_, n) => ({
      tenant: n % 3,
      what: n % 7 === 6 ? ("forks" as const) : ("reads" as const),
      lines: 60
    }))
  })

  it.effect("these tests compress many times", () =>
    Effect.map(played(busy(30), honest), (found) => assert.isTrue(typeof found === "number" && found > 15, `${found}`))
  )

  const mutants: Readonly<Record<string, World>> = {
    "answers for any conversation": (real, histories) => (handle, selection) =>
      histories().reduce(
        (tried: ReturnType<Recalling>, history) =>
          Effect.catch(tried, () => real(handle, selection).pipe(Recall.within(history))),
        real(handle, selection)
      ),
    "forgets what was shown first": (real, histories) => (handle, selection) =>
      histories().length > 8 ? real(handle.replace(/^h_../, "h_aa") as Handle, selection) : real(handle, selection),
    "answers with one message less": (real) => (handle, selection) =>
      Effect.map(real(handle, selection), (found) => ({
        ...found,
        text: found.text.includes('"parts":') ? found.text.slice(found.text.indexOf("\n") + 1) : found.text
      })),
    "answers with nothing where nothing is held": (real) => (handle, selection) =>
      Effect.orElseSucceed(real(handle, selection), () => ({ text: "", totalLines: 0, omittedLines: 0 }))
  }
  it.effect.each(Object.entries(mutants))("the checks detect a recall that %s", function* ([, mutant]) {
    const directly = yield* Effect.exit(property(mutant)(busy(12)))
    if (directly._tag === "Failure") return
    const found = yield* Arbitrary.checkEffect(Arbitrary.schema(Script), property(mutant), {
      runs: 100,
      seed: "mutant",
      maxShrinks: 0,
      size: 24
    })
    assert.strictEqual(found._tag, "Falsified")
  })
})
