import { Effect, Layer, Ref, Stream } from "effect"
import { patchOf, statusOf, tokensOf } from "../../src/domain/compression/Compression.ts"
import { modelAlias } from "../../src/domain/compression/ModelPurpose.ts"
import { critiqueRequest, snapshotRequest } from "../../src/domain/compression/strategies/gemini/Prompts.ts"
import { estimate } from "../../src/domain/compression/strategies/gemini/TokenEstimate.ts"
import { defaultPolicy, type Policy } from "../../src/domain/compression/strategies/Policy.ts"
import { strategyDefaults } from "../../src/domain/compression/strategies/Strategies.ts"
import { type Content, model, type Part } from "../../src/domain/content/Content.ts"
import { compressed, type Draft, itemParts, view } from "../../src/domain/conversation/Conversation.ts"
import { remember } from "../../src/domain/conversation/FailureMemory.ts"
import { foreignNotes, projectMessages } from "../../src/domain/conversation/Projection.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../src/domain/tokens/Tokens.ts"
import { readContents } from "../../src/domain/transcripts/gemini/ContentsReader.ts"
import { problemText } from "../../src/domain/transcripts/Problem.ts"
import * as MemoryCalibrations from "../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../src/services/compression/summary/ModelSummarizer.ts"
import { requestFor } from "../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import { AuthenticationError, Model, ModelError, type ModelRequest } from "../../src/services/model/Model.ts"
import { BlobUnavailable, TempStore, TempStoreError } from "../../src/services/session/TempStore.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import { curate } from "../support/curate.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { generated, type GeminiCase, type OriginalRun } from "./GeminiCase.ts"
import { original } from "./geminiCore.ts"

/**
 * Strategy `gemini` against the compression of Gemini CLI itself: the same histories, the same answers, all through the
 * workflow. What `geminiOriginal.ts` puts in place of newer rules it says there. The rules by which results may differ beyond
 * that are named here, and each counts only where its condition holds.
 */

const seeds = (process.env["PALIMPSEST_SEEDS"] ?? "1").split(",").map(Number)
const count = Number(process.env["PALIMPSEST_CASES"] ?? "200")
const batch = 40

const failing = () => new ModelError({ reason: new AuthenticationError({ kind: "InvalidKey" }) })

/** What our side makes of a case. */
const played = Effect.fnUntraced(function* (one: GeminiCase, limit: number, drafts: ReadonlyArray<Draft>) {
  const asked = yield* Ref.make<ReadonlyArray<ModelRequest>>([])
  const counted = yield* Ref.make(0)
  const scripted = Layer.succeed(Model, {
    generate: Effect.fnUntraced(function* (request) {
      const before = yield* Ref.getAndUpdate(asked, (all) => [...all, request])
      const answer = one.answers[before.length]
      if (answer === undefined || answer === "fail") return yield* failing()
      const parts: ReadonlyArray<Part> = answer === "nothing" ? [] : answer
      return { content: model(...parts), finishReason: "STOP", usage: null }
    }),
    stream: () => Stream.die("unexpected call"),
    countTokens: Effect.fnUntraced(function* (request) {
      // Whether the summarizing model's own window holds a request is asked with the system instruction.
      if (request.systemInstruction !== undefined) return 1
      yield* Ref.update(counted, (times) => times + 1)
      return one.count === "fail" ? yield* failing() : one.count
    })
  })
  const triggers = yield* Ref.make<ReadonlyArray<string>>([])
  const saves = yield* Ref.make(0)
  const store = Layer.effect(
    TempStore,
    Effect.map(TempStore, (real) => ({
      ...real,
      put: (bytes: Uint8Array) =>
        Effect.flatMap(
          Ref.updateAndGet(saves, (number) => number + 1),
          (number) =>
            one.brokenSaves.includes(number)
              ? Effect.fail(
                  new TempStoreError({
                    reason: new BlobUnavailable({ operation: "put", message: "no space", cause: "ENOSPC" })
                  })
                )
              : real.put(bytes)
        )
    }))
  ).pipe(Layer.provide(MemoryTempStore.layer))
  const services = Compression.layer.pipe(
    Layer.provide(Layer.provide(ModelSummarizer.layer, Layer.merge(scripted, MemoryCalibrations.layer))),
    Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, store, HookSystem.layer))
  )
  const policy: Policy = {
    ...defaultPolicy,
    ...strategyDefaults("gemini"),
    // The last 30 lines were the form until 2026-02-06.
    outputForm: "head-tail-chars",
    summarizer: "model",
    ladder: false,
    limit: TokenCount.make(limit),
    promptTokens: TokenCount.make(one.promptTokens),
    ...(one.threshold === undefined ? { threshold: 0 } : { threshold: one.threshold })
  }
  return yield* Effect.gen(function* () {
    const hooks = yield* HookSystem
    yield* hooks.subscribe("watcher", (event) =>
      event._tag === "PreCompress" ? Ref.update(triggers, (all) => [...all, event.trigger]) : Effect.void
    )
    const memory = { failed: one.hasFailed, waitUntil: 0 }
    const made = yield* requestFor(drafts, policy)
    yield* Ref.set(saves, 0)
    const compression = yield* Compression
    const { outcome } = yield* compression.compress({ ...made, forced: one.force, memory, family: one.model })
    const patch = patchOf(outcome)
    const status = statusOf(outcome)
    return {
      outcome,
      memory: remember(memory, { status, forced: one.force, tokens: tokensOf(outcome).before }),
      conversation: patch === undefined ? made.conversation : compressed(made.conversation, patch),
      asked: yield* Ref.get(asked),
      counted: yield* Ref.get(counted),
      hook: (yield* Ref.get(triggers))[0]
    }
  }).pipe(Effect.scoped, Effect.provide(services))
})

type Played = Effect.Success<ReturnType<typeof played>>

/** A handle of ten characters stands where the original names a file; which one it is does not matter. */
const json = (value: unknown): string => JSON.stringify(value).replace(/recall h_[a-z0-9]+/g, "recall h_0000000000")

const contentsOf = ({ conversation }: Played, withoutEnvironment: boolean): ReadonlyArray<Content> =>
  view(conversation)
    .filter(({ entry }) => !withoutEnvironment || entry.author !== "environment")
    .map((item) => ({ ...item.entry.content, parts: itemParts(item) }))

const parts = (contents: ReadonlyArray<Content>) => contents.flatMap((content) => content.parts)

/** A rule: where its condition holds, what ours should be in place of the original's result. */
type Expected = Pick<OriginalRun, "status" | "before" | "after" | "history">

/** The original throws and leaves all as it is; here that is an outcome. */
const throwing = (theirs: OriginalRun): Expected | undefined =>
  theirs.status === "THROWN" ? { ...theirs, status: "FAILED_SUMMARIZER" } : undefined

/** After a failure the original says CONTENT_TRUNCATED also where it shortened nothing, as its two counts hold different things. */
const nothingShrank = (theirs: OriginalRun): Expected | undefined =>
  theirs.status === "CONTENT_TRUNCATED" && estimate(parts(theirs.history ?? [])) >= estimate(parts(theirs.curated))
    ? { status: "NOOP", before: theirs.before, after: theirs.before, history: null }
    : undefined

/** Where media made it ask for a count and that failed, the original estimates; here that is what the status is for. */
const countFailed = (theirs: OriginalRun, one: GeminiCase): Expected | undefined =>
  theirs.counted > 0 && one.count === "fail"
    ? { status: "COMPRESSION_FAILED_TOKEN_COUNT_ERROR", before: theirs.before, after: theirs.before, history: null }
    : undefined

/**
 * Without an environment message in the conversation there is none to count; the original always counts one. It rounds down the sum
 * of both, so what is left without it is known to within one.
 */
const noEnvironment = (theirs: OriginalRun, one: GeminiCase, ours: number): Expected | undefined => {
  if (one.environment || theirs.counted > 0 || theirs.status === "CONTENT_TRUNCATED") return undefined
  const isCounted = theirs.status === "COMPRESSED" || theirs.status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"
  const after = theirs.after - estimate(theirs.environment.parts)
  return isCounted ? { ...theirs, after: ours === after - 1 ? ours : after } : undefined
}

const rules = { throwing, nothingShrank, countFailed, noEnvironment }
type RuleName = keyof typeof rules

/** The flag afterwards, as the original's two callers keep it. */
const flagAfter = ({ force, hasFailed }: GeminiCase, { status }: Expected): boolean =>
  status === "COMPRESSED" ? false : hasFailed || (status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT" && !force)

/** How two results differ; empty where they do not. */
const differences = (
  one: GeminiCase,
  theirs: OriginalRun,
  ours: Played,
  used: Set<RuleName>
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const compare = (what: string, mine: unknown, other: unknown) => {
    const [left, right] = [json(mine ?? null), json(other ?? null)]
    if (left === right) return
    let at = 0
    while (left[at] === right[at]) at += 1
    const from = Math.max(0, at - 60)
    found.push(`${what}: ours …${left.slice(from, at + 80)}, theirs …${right.slice(from, at + 80)}`)
  }
  const { before } = tokensOf(ours.outcome)
  const after = "after" in ours.outcome ? ours.outcome.after : before
  let expected: Expected = theirs
  for (const name of ["throwing", "nothingShrank", "countFailed", "noEnvironment"] as const) {
    const changed = rules[name](theirs, one, after)
    if (changed === undefined) continue
    used.add(name)
    expected = changed
    break
  }
  compare("status", statusOf(ours.outcome), expected.status)
  compare("before", before, expected.before)
  compare("after", after, expected.after)
  compare("hook", ours.hook, theirs.hook)
  compare("counts", ours.counted, theirs.counted)
  compare("flag", ours.memory.failed, flagAfter(one, expected))
  // Both calls: the same slice, the same kind of instruction.
  compare("calls", ours.asked.length, theirs.calls.length)
  theirs.calls.forEach(({ alias, contents }, index) => {
    const mine = ours.asked[index]?.contents ?? []
    const instruction = plain(contents.at(-1))
    const kind =
      index > 0
        ? critiqueRequest
        : snapshotRequest(instruction.startsWith("A previous <state_snapshot>") ? "merge" : "create")
    compare(`call ${index + 1}, messages`, mine.slice(0, -1), contents.slice(0, -1))
    compare(`call ${index + 1}, instruction`, plain(mine.at(-1)), kind)
    compare(`call ${index + 1}, model`, modelAlias(one.model).alias, alias)
    compare(`call ${index + 1}, model asked`, ours.asked[index]?.model, modelAlias(one.model).model)
  })
  const layout =
    ours.outcome._tag === "Compressed" ? ours.outcome.plan.steps.find((step) => step._tag === "Layout") : undefined
  if (expected.status === "COMPRESSED") {
    compare("split", layout?.split, (theirs.calls[0]?.contents.length ?? 1) - 1)
    compare("kept", layout?.kept.length, (expected.history?.length ?? 2) - 2)
  }
  // The environment message stands first whatever is compressed: the original's callers put it there, here it stays.
  const isReplaced = expected.status === "COMPRESSED"
  const history = contentsOf(ours, isReplaced)
  if (expected.history === null) {
    compare("history", history, [...(one.environment ? [theirs.environment] : []), ...one.contents])
  } else {
    // What is not curated is gone from the original's new history; here it stays in the log, and is curated when it is asked for.
    compare("history", curate(history), expected.history)
  }
  return found
}

const plain = (content: Content | undefined): string => (content?.parts ?? []).map((part) => part.text ?? "").join("")

/** Whether the projection puts our note before something that no compression wrote. */
const misplacedNotes = (ours: Played, one: GeminiCase): ReadonlyArray<string> => {
  const said = new Set(one.contents.filter(({ role }) => role === "user").map((content) => content.parts[0]?.text))
  const snapshot =
    one.contents[1]?.parts[0]?.text?.startsWith("Got it.") === true ? one.contents[0]?.parts[0]?.text : undefined
  return projectMessages(ours.conversation).flatMap(({ content: { parts: shown } }) => {
    const text = shown[1]?.text
    return shown[0]?.text === foreignNotes.summary && text !== undefined && text !== snapshot && said.has(text)
      ? [`the user's words are said to be a model's: ${text.slice(0, 60)}`]
      : []
  })
}

const draftsOf = (contents: ReadonlyArray<Content>, environment: Content | undefined): ReadonlyArray<Draft> => [
  ...(environment === undefined ? [] : [{ content: environment, author: "environment" as const }]),
  ...contents.map((content) => ({ content }))
]

/** What our reader of contents makes of them. */
const readDrafts = (contents: ReadonlyArray<Content>): ReadonlyArray<Draft> => {
  const text = JSON.stringify(contents)
  const read = Work.runSync(readContents(JSON.parse(text), text))
  if (!("steps" in read)) throw new Error(problemText(read))
  return read.steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : []))
}

/** The same case with counts at which the result is as large as the request, and larger by one. */
const atTheLimit = (one: GeminiCase, { after, status }: OriginalRun): ReadonlyArray<GeminiCase> =>
  status === "COMPRESSED" && after > 0
    ? [
        { ...one, force: true, promptTokens: after },
        { ...one, force: true, promptTokens: after - 1 }
      ]
    : []

describe("strategy gemini and Gemini CLI 0.61.0", () => {
  for (const seed of seeds) {
    it.live(`${count} conversations of seed ${seed}`, function* () {
      const used = new Set<RuleName>()
      const statuses: Record<string, number> = {}
      const different: Array<string> = []
      const misplaced: Array<string> = []
      let compared = 0
      const check = Effect.fnUntraced(function* (one: GeminiCase, theirs: OriginalRun, name: string) {
        const environment = one.environment ? theirs.environment : undefined
        const feeds = {
          contents: draftsOf(one.contents, environment),
          reader: readDrafts([...(environment === undefined ? [] : [environment]), ...one.contents])
        }
        statuses[theirs.status] = (statuses[theirs.status] ?? 0) + 1
        compared += 1
        const found: Array<string> = []
        for (const [feed, drafts] of Object.entries(feeds)) {
          const ours = yield* played(one, theirs.limit, drafts)
          for (const line of differences(one, theirs, ours, used)) found.push(`${feed}: ${line}`)
          for (const line of misplacedNotes(ours, one)) misplaced.push(`${name}, ${feed}: ${line}`)
        }
        if (found.length > 0) different.push(`${name}\n    ${found.join("\n    ")}`)
      })
      const cases = generated(seed, count)
      for (let from = 0; from < cases.length; from += batch) {
        const some = cases.slice(from, from + batch)
        const theirs = yield* Effect.promise(() => original(some))
        const close: Array<GeminiCase> = []
        for (const [index, one] of some.entries()) {
          const run = theirs[index] ?? assert.fail("a case was lost")
          yield* check(one, run, `seed ${seed}, case ${from + index}`)
          if (index % 8 === 0 && one.environment) close.push(...atTheLimit(one, run))
        }
        const again = yield* Effect.promise(() => original(close))
        for (const [index, one] of close.entries()) {
          const run = again[index]
          if (run !== undefined) yield* check(one, run, `seed ${seed}, after case ${from}, at the limit, ${index}`)
        }
      }
      process.stdout.write(
        `seed ${seed}: ${compared - different.length} of ${compared} equal; theirs: ${JSON.stringify(statuses)}; rules used: ${[...used].join(", ")}\n`
      )
      assert.strictEqual(different.length, 0, `\n  ${different.slice(0, 12).join("\n  ")}\n`)
      assert.strictEqual(misplaced.length, 0, `\n  ${misplaced.slice(0, 12).join("\n  ")}\n`)
    })
  }
})
