import { Arbitrary, Effect, Schema } from "effect"
import { firstCall, secondCall } from "../../src/domain/compression/strategies/gemini/Calls.ts"
import { concluding, countedParts, layoutOf } from "../../src/domain/compression/strategies/gemini/Conclusion.ts"
import {
  deciding,
  type GeminiDecision,
  type GeminiRequest,
  type Summarize,
  geminiThreshold
} from "../../src/domain/compression/strategies/gemini/Decision.ts"
import {
  compressionInstruction,
  critiqueRequest,
  snapshotRequest
} from "../../src/domain/compression/strategies/gemini/Prompts.ts"
import { splitting } from "../../src/domain/compression/strategies/gemini/Split.ts"
import { estimate, needsApiCount } from "../../src/domain/compression/strategies/gemini/TokenEstimate.ts"
import { maxCharsOf, outputOf } from "../../src/domain/compression/strategies/gemini/ToolOutputs.ts"
import { call, type Content, model, type Part, response, text, user } from "../../src/domain/content/Content.ts"
import { Handle } from "../../src/domain/content/Handle.ts"
import { freshMemory, remember } from "../../src/domain/conversation/FailureMemory.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { curate } from "../support/curate.ts"
import {
  oracle,
  oracleEstimate,
  oracleHandle,
  type OracleInput,
  type OracleResult,
  oracleSplit
} from "../support/geminiOracle.ts"
import { runsOf } from "../support/runs.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** The strategy against a simple second version of Gemini CLI's compression, which knows nothing of `src`. */

const decide = (...given: Parameters<typeof deciding>) => Work.runSync(deciding(...given))
const conclude = (...given: Parameters<typeof concluding>) => Work.runSync(concluding(...given))
const splitPoint = (...given: Parameters<typeof splitting>) => Work.runSync(splitting(...given))

/** The outputs of a history under the one handle of the oracle. */
const storedIn = (contents: ReadonlyArray<Content>) => (content: number, part: number) => {
  const answer = contents[content]?.parts[part]?.functionResponse
  return answer === undefined ? undefined : { handle: Handle.make(oracleHandle), text: outputOf(answer) }
}

// --- Histories ---

const words = {
  ascii: "word 12. ",
  chinese: "你好世界。",
  emoji: "a😀",
  lines: "line of a log\n",
  "wide lines": `${"wide ".repeat(250)}\n`,
  snapshot: "<state_snapshot> "
} as const

const fill = (unit: string, length: number): string =>
  unit.repeat(Math.ceil(length / Math.max(1, unit.length))).slice(0, length)

/** Sizes around the bounds of the budget, which a small case scales down. */
interface Scale {
  readonly budget: number
  readonly chars: number
  readonly sizes: ReadonlyArray<number>
}
const small: Scale = { budget: 500, chars: 400, sizes: [0, 3, 40, 120, 399, 400, 401, 600, 1_996, 2_000, 2_004, 3_000] }
const real: Scale = {
  budget: 50_000,
  chars: 40_000,
  sizes: [1, 400, 39_999, 40_000, 40_001, 60_000, 99_999, 100_000, 100_001, 120_000, 199_996, 200_004]
}

const kinds = {
  asks: (said: string) => [user(text(said))],
  answers: (said: string) => [model(text(said))],
  thinks: (said: string) => [model({ text: said, thought: true }, text("Yes."))],
  "says nothing": () => [model()],
  "says an empty text": () => [model(text("")), model(text("lost with it"))],
  "asks nothing": () => [user(text("")), user()],
  exchange: (said: string) => [
    model(text("Looking."), call("read_file", { path: "a.ts" }, "c")),
    user(response("read_file", { output: said }, "c"))
  ],
  "parallel calls": (said: string) => [
    model(...["x", "y", "z"].map((id) => call("Grep Tool/x", { id }, id))),
    user(...["x", "y", "z"].map((id) => response("Grep Tool/x", { output: `${id}${said}` }, id)))
  ],
  "parallel calls answered apart": (said: string) => [
    model(call("ls", {}), call("ls", { deep: true })),
    user(response("ls", said)),
    user(response("ls", { content: said, more: 1 }))
  ],
  "a structured answer": (said: string) => [
    model(call("query", {}, "q")),
    user({ functionResponse: { id: "q", name: "query", response: { rows: [said, 1, null] }, kept: true }, other: 1 })
  ],
  "an answer with parts": (said: string) => [
    model(call("shot", {}, "s")),
    user({
      functionResponse: {
        name: "shot",
        response: { error: said },
        parts: [
          { inlineData: { mimeType: "image/png", data: "aa" } },
          { functionResponse: { name: "deep", response: said, parts: [text("好"), 7] } }
        ]
      }
    })
  ],
  "an answer of nobody": (said: string) => [
    user({ functionResponse: { response: said } }, { functionResponse: { name: "none" } })
  ],
  "an answer and a remark": (said: string) => [
    model(call("shell", { command: said }, "r")),
    user(response("shell", { output: said }, "r"), text("Also note this."))
  ],
  "open call": (said: string) => [model(call("shell", { command: said }))],
  "the model responds": (said: string) => [model(response("shell", { output: said }))],
  media: (said: string) => [
    user(text(said), { inlineData: { mimeType: "image/png", data: "aGVsbG8=" } }),
    user({ fileData: { mimeType: "application/pdf", fileUri: "gs://a" } }, { inlineData: { data: "AAAA" } })
  ],
  film: (said: string) => [user({ inlineData: { mimeType: "video/mp4", data: said } })],
  code: () => [model({ executableCode: { code: "1 + 1" } })]
} as const
type Kind = keyof typeof kinds

const keysOf = <const K extends string>(record: Readonly<Record<K, unknown>>): ReadonlyArray<K> =>
  Object.keys(record).filter((key): key is K => key in record)

const ordinary: ReadonlyArray<Kind> = ["asks", "answers", "exchange", "exchange", "asks", "parallel calls"]
const Beat = Schema.Struct({
  kind: Schema.Literals([...ordinary, ...ordinary, ...keysOf(kinds)]),
  words: Schema.Literals(["ascii", "ascii", ...keysOf(words)]),
  size: Schema.Literals(small.sizes.map((_, index) => index))
})

/** A conversation, and the settings under which it is compressed in every way there is. */
const Case = Schema.Struct({
  opening: Schema.Literals(["nothing", "environment", "environment, one prompt"]),
  limit: Schema.Literals([400, 2_000, 20_000, 1_048_576]),
  threshold: Schema.Literals([0.5, 0.5, 0.2, 0.7, 0]),
  preserve: Schema.Literals([0.3, 0.3, 0.3, 0.5, 0.05]),
  lastLines: Schema.Boolean
})
const caseOf = (maxLength: number) =>
  Arbitrary.all({ wanted: Arbitrary.schema(Case), beats: Arbitrary.array(Arbitrary.schema(Beat), { maxLength }) })
interface Case {
  readonly wanted: typeof Case.Type
  readonly beats: ReadonlyArray<typeof Beat.Type>
}

const environment = user(text("This is the environment: Linux, in /work."))

const historyOf = ({ beats, wanted: { opening } }: Case, { sizes }: Scale): ReadonlyArray<Content> => {
  const said = beats
    .filter(({ kind }) => opening !== "environment, one prompt" || kind !== "asks")
    .flatMap(({ kind, size, words: unit }): ReadonlyArray<Content> => kinds[kind](fill(words[unit], sizes[size] ?? 0)))
  if (opening === "nothing") return said
  return [environment, ...(opening === "environment" ? [] : [user(text("Do everything."))]), ...said]
}

const instructions = {
  system: compressionInstruction,
  create: snapshotRequest("create"),
  merge: snapshotRequest("merge"),
  critique: critiqueRequest
}

const partsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Part> => contents.flatMap(({ parts }) => parts)

const baseOf = (made: Case, scale: Scale): OracleInput => {
  const { lastLines, limit, opening, preserve, threshold } = made.wanted
  return {
    curated: curate(historyOf(made, scale)),
    environment: opening === "nothing" ? undefined : environment,
    original: Math.ceil((threshold || 0.5) * limit),
    limit,
    threshold,
    preserve,
    force: false,
    hasFailed: false,
    budget: scale.budget,
    toolOutputThreshold: scale.chars,
    lastLines,
    firstId: 1,
    broken: [],
    summary: "<scratchpad>hm</scratchpad><state_snapshot>first</state_snapshot>\n",
    verified: " <state_snapshot>second</state_snapshot> ",
    api: undefined,
    flag: false,
    instructions
  }
}

/** Everything that may happen to one history, by name. */
const situations = (base: OracleInput): Readonly<Record<string, Partial<OracleInput>>> => {
  const all = oracleEstimate(partsOf(base.curated))
  const rich = oracle({ ...base, force: true, original: base.limit })
  const room = { ...base, force: true, original: 0, limit: Math.max(1, all) }
  const slice = oracleEstimate(partsOf(base.curated.slice(0, oracle(room).split)))
  return {
    "below the threshold": { original: base.original - 1 },
    "at the threshold": {},
    "above the threshold": { original: Math.round(base.limit * 0.9) },
    "no threshold": { threshold: undefined, original: base.limit / 2 },
    "forced below the threshold": { force: true, original: 7 },
    "forced with room": { force: true, original: all + 200 },
    "after a failure": { hasFailed: true, flag: true },
    "after a failure, small count": { hasFailed: true, flag: true, limit: 2, original: 1 },
    "after a failure, count as estimated": { hasFailed: true, flag: true, threshold: 1e-9, original: all },
    "after a failure, forced": { hasFailed: true, flag: true, force: true },
    "first answer empty": { summary: "" },
    "second answer blank": { verified: " \n\t" },
    "both answers empty": { summary: " \n", verified: "" },
    inflated: { summary: "x".repeat(20_000), verified: "", force: true, original: 900 },
    "inflated, unforced": { verified: fill("好", 3_000), limit: 20, original: 15 },
    "exactly as large": { force: true, original: rich.after, limit: base.limit + rich.after },
    "larger by one": { force: true, original: rich.after - 1, limit: base.limit + rich.after },
    "the first save fails": { force: true, broken: [1] },
    "some saves fail": { force: true, broken: [2, 3, 5] },
    "saves fail after a failure": { hasFailed: true, flag: true, broken: [1, 2] },
    "a later counter": { force: true, firstId: 41, broken: [42] },
    "slice as large as the window": { force: true, original: 0, limit: slice },
    "slice smaller than the window": { force: true, original: 0, limit: slice + 1 },
    "slice larger than the window": { force: true, original: 0, limit: Math.max(0, slice - 1) },
    "little room": { force: true, original: base.limit - 37 },
    "no room": { force: true, original: base.limit + 10 },
    "the other form": { force: true, lastLines: !base.lastLines },
    "counted by the API": { force: true, original: 5_000, api: 5_000 },
    "counted by the API, inflated": { force: true, original: 5_000, api: 5_001 },
    "everything kept": { force: true, preserve: 1 },
    "nothing kept": { preserve: 0 }
  }
}

// --- The comparison ---

interface Subject {
  readonly decide: typeof decide
  readonly conclude: typeof conclude
}

const requestOf = (input: OracleInput): GeminiRequest => ({
  contents: input.curated,
  environment: input.environment,
  lastPromptTokens: input.original,
  limit: input.limit,
  threshold: input.threshold,
  preserve: input.preserve,
  forced: input.force,
  hasFailed: input.hasFailed,
  truncate: {
    budget: input.budget,
    stored: storedIn(input.curated),
    form: input.lastLines ? "last-lines" : "head-tail-chars",
    maxChars: maxCharsOf(input.limit, input.original, input.toolOutputThreshold),
    firstNumber: input.firstId,
    failedSaves: new Set(input.broken)
  }
})

const finished = (subject: Subject, input: OracleInput, decision: GeminiDecision) => {
  const none = { slice: "", anchor: "", split: 0, calls: [], summary: "", history: null, apiAsked: false }
  switch (decision._tag) {
    case "Noop":
      return { ...none, status: "NOOP", after: decision.after }
    case "SplitRefused":
      return { ...none, status: "THROWN", after: decision.before }
    case "ContentTruncated":
      return { ...none, status: "CONTENT_TRUNCATED", after: decision.after, history: decision.truncation.contents }
    case "Summarize": {
      const conclusion = subject.conclude(decision, input, askedApi(decision, input) ? input.api : undefined)
      return {
        slice: decision.slice,
        anchor: decision.anchor,
        split: decision.split,
        calls: [firstCall(decision, "p"), secondCall(decision, "p", input.summary)],
        status: conclusion.status,
        after: conclusion.after,
        summary: "summary" in conclusion ? conclusion.summary : "",
        history: "history" in conclusion ? conclusion.history : null,
        apiAsked: "summary" in conclusion && askedApi(decision, input)
      }
    }
  }
}

const askedApi = (decision: Summarize, { summary }: OracleInput): boolean =>
  needsApiCount(countedParts(decision, layoutOf(decision, summary)))

/** What the strategy makes of an input, in the oracle's words. */
const strategy = (subject: Subject, input: OracleInput): OracleResult => {
  const decision = subject.decide(requestOf(input))
  const end = finished(subject, input, decision)
  return {
    status: end.status,
    before: decision.before,
    after: end.after,
    hook: decision.hook ?? "",
    saves: (decision.truncation?.outputs ?? []).map(({ content, number, part, saved, text: whole }) => ({
      id: number,
      text: whole,
      at: `${content}/${part}`,
      saved
    })),
    slice: end.slice,
    anchor: end.anchor,
    split: end.split,
    calls: end.calls,
    summary: end.summary,
    history: end.history,
    apiAsked: end.apiAsked,
    flag: remember(
      { ...freshMemory, failed: input.flag },
      { status: end.status, forced: input.force, tokens: decision.before }
    ).failed
  }
}

const shown = (value: unknown): string => JSON.stringify(value) ?? "undefined"

/** The first field in which the two differ, if there is one. */
const difference = (subject: Subject, input: OracleInput, expected: OracleResult): string | undefined => {
  const found = strategy(subject, input)
  for (const key of keysOf<keyof OracleResult>(expected)) {
    const [one, other] = [shown(found[key]), shown(expected[key])]
    if (one !== other) return `${key} is ${one.slice(0, 300)}, expected ${other.slice(0, 300)}`
  }
  return undefined
}

/** Where the two differ for one case, in any situation; counts what was reached. */
const check = (subject: Subject, scale: Scale, reached: Map<string, number>) => (made: Case) => {
  const base = baseOf(made, scale)
  for (const [name, change] of Object.entries(situations(base))) {
    const input = { ...base, ...change }
    const expected = oracle(input)
    const { anchor, saves, slice, status } = expected
    for (const what of [name, status, slice, anchor, saves.length > 2 ? "many saves" : ""]) {
      reached.set(what, (reached.get(what) ?? 0) + 1)
    }
    const wrong = difference(subject, input, expected)
    if (wrong !== undefined) return Effect.fail(`${name}: ${wrong}`)
  }
  return Effect.succeed(true)
}

const original: Subject = { decide, conclude }

const endings = [
  "NOOP",
  "CONTENT_TRUNCATED",
  "COMPRESSED",
  "COMPRESSION_FAILED_EMPTY_SUMMARY",
  "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
  "THROWN"
]
const paths = ["original", "truncated", "create", "merge", "many saves"]

const compare = (scale: Scale, full: number, size: number, expected: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const reached = new Map<string, number>()
    const runs = runsOf(full)
    const options = { runs, seed: "gemini", size, maxShrinks: 400 }
    const result = yield* Arbitrary.checkEffect(caseOf(size), check(original, scale, reached), options)
    assert.isUndefined(Arbitrary.formatCheckFailure(result))
    // A sample need not reach every case.
    if (runs === full) for (const what of expected) assert.isAtLeast(reached.get(what) ?? 0, runs / 4, what)
    assert.strictEqual(reached.get("at the threshold"), runs)
  })

describe("the strategy and a simple second version of the original", () => {
  it.effect("agree on 2,000 histories in every situation", () => compare(small, 2_000, 12, [...endings, ...paths]))
  it.effect("agree on histories of real size", () => compare(real, 16, 8, endings))

  it.effect("agree on where to split", function* () {
    const result = yield* Arbitrary.checkEffect(
      caseOf(30),
      (made) => {
        const history = historyOf(made, small)
        for (const fraction of [0.01, 0.3, 0.5, 0.7, 0.99]) {
          const [found, expected] = [splitPoint(history, fraction), oracleSplit(history, fraction)]
          if (found !== expected) return Effect.fail(`${fraction}: ${shown(found)}, expected ${expected}`)
        }
        return Effect.succeed(true)
      },
      { runs: runsOf(2_000), seed: "split", size: 30, maxShrinks: 400 }
    )
    assert.isUndefined(Arbitrary.formatCheckFailure(result))
  })

  describe("differ when the strategy", () => {
    const onSummarize =
      (change: (decision: Summarize, request: GeminiRequest) => Partial<Summarize>) => (request: GeminiRequest) => {
        const decision = decide(request)
        return decision._tag === "Summarize" ? { ...decision, ...change(decision, request) } : decision
      }
    const mutants: Readonly<Record<string, Subject>> = {
      "compresses only above the threshold": {
        conclude,
        decide: (request) => {
          const bound = geminiThreshold(request.threshold) * request.limit
          return decide(request.lastPromptTokens === bound ? { ...request, threshold: 1 } : request)
        }
      },
      "keeps the tail as it was": {
        conclude,
        decide: onSummarize(({ split }, { contents }) => ({ keep: contents.slice(split) }))
      },
      "reports a truncation that truncated nothing": {
        conclude,
        decide: (request) => {
          const decision = decide(request)
          const { truncation } = decision
          if (decision._tag !== "Noop" || decision.reason !== "nothing shrank" || truncation === undefined)
            return decision
          const after = estimate(partsOf(truncation.contents))
          return { _tag: "ContentTruncated", hook: decision.hook, before: decision.before, after, truncation }
        }
      },
      "calls an equal count inflated": {
        decide,
        conclude: (decision, answers, counted, rates) => {
          const conclusion = conclude(decision, answers, counted, rates)
          return conclusion.status === "COMPRESSED" && conclusion.after === conclusion.before
            ? { ...conclusion, status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT" }
            : conclusion
        }
      }
    }
    it.effect.each(Object.entries(mutants))("%s", ([, subject]) =>
      Effect.gen(function* () {
        const result = yield* Arbitrary.checkEffect(caseOf(20), check(subject, small, new Map()), {
          runs: 300,
          seed: "mutant",
          size: 20,
          maxShrinks: 0
        })
        assert.strictEqual(result._tag, "Falsified")
      })
    )
  })
})
