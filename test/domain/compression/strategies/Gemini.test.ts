import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import type { Plan } from "../../../../src/domain/compression/Compression.ts"
import { modelAlias } from "../../../../src/domain/compression/ModelPurpose.ts"
import { sectionNames } from "../../../../src/domain/compression/Snapshot.ts"
import { firstCall, secondCall } from "../../../../src/domain/compression/strategies/gemini/Calls.ts"
import {
  acknowledgement,
  concluding,
  countedParts,
  layoutOf
} from "../../../../src/domain/compression/strategies/gemini/Conclusion.ts"
import {
  deciding,
  type GeminiDecision,
  type GeminiRequest,
  type Summarize,
  thresholdOf
} from "../../../../src/domain/compression/strategies/gemini/Decision.ts"
import { plan } from "../../../../src/domain/compression/strategies/gemini/Plan.ts"
import {
  compressionInstruction,
  critiqueRequest,
  snapshotRequest
} from "../../../../src/domain/compression/strategies/gemini/Prompts.ts"
import { splitting } from "../../../../src/domain/compression/strategies/gemini/Split.ts"
import { estimate, needsApiCount } from "../../../../src/domain/compression/strategies/gemini/TokenEstimate.ts"
import {
  fileNameOf,
  maxCharsOf,
  placeholder,
  truncating
} from "../../../../src/domain/compression/strategies/gemini/ToolOutputs.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { call, type Content, model, type Part, response, text, user } from "../../../../src/domain/content/Content.ts"
import { Handle } from "../../../../src/domain/content/Handle.ts"
import {
  append,
  type Conversation,
  type Draft,
  empty,
  entryId
} from "../../../../src/domain/conversation/Conversation.ts"
import { curate } from "../../../../src/domain/conversation/Curation.ts"
import { freshMemory, remember } from "../../../../src/domain/conversation/FailureMemory.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import {
  oracle,
  oracleEstimate,
  type OracleInput,
  oraclePlaceholder,
  type OracleResult,
  oracleSplit
} from "../../../support/geminiOracle.ts"
import { runsOf } from "../../../support/runs.ts"

const decide = (...given: Parameters<typeof deciding>) => Work.runSync(deciding(...given))
const conclude = (...given: Parameters<typeof concluding>) => Work.runSync(concluding(...given))
const splitPoint = (...given: Parameters<typeof splitting>) => Work.runSync(splitting(...given))
const truncateToBudget = (...given: Parameters<typeof truncating>) => Work.runSync(truncating(...given))

/** Rates of Gemini CLI after March 2026: those of the version that the strategy is compared with. */
const laterRates = { ascii: 0.25, other: 1.5 }

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
    saves: (decision.truncation?.outputs ?? []).map(({ content, file, number, part, saved, text: whole }) => ({
      id: number,
      file,
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

const compare = (scale: Scale, full: number, size: number, expected: ReadonlyArray<string>, inUnit?: number) =>
  Effect.gen(function* () {
    const reached = new Map<string, number>()
    const runs = runsOf(full, inUnit)
    const options = { runs, seed: "gemini", size, maxShrinks: 400 }
    const result = yield* Arbitrary.checkEffect(caseOf(size), check(original, scale, reached), options)
    assert.isUndefined(Arbitrary.formatCheckFailure(result))
    // A sample need not reach every case.
    if (runs === full) for (const what of expected) assert.isAtLeast(reached.get(what) ?? 0, runs / 4, what)
    assert.strictEqual(reached.get("at the threshold"), runs)
  })

describe("the strategy and a simple second version of the original", () => {
  it.effect("agree on 2,000 histories in every situation", () => compare(small, 2_000, 12, [...endings, ...paths]))
  it.effect("agree on histories of real size", () => compare(real, 16, 8, endings, 3), 120_000)

  it.effect("agree on where to split", () =>
    Effect.gen(function* () {
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
  )

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
          const bound = thresholdOf(request.threshold) * request.limit
          return decide(request.lastPromptTokens === bound ? { ...request, threshold: 1 } : request)
        }
      },
      "keeps the tail as it was": {
        conclude,
        decide: onSummarize(({ split }, { contents }) => ({ keep: contents.slice(split) }))
      },
      "summarises what was truncated": {
        conclude,
        decide: onSummarize(({ split, truncation }) => ({ summarized: truncation.contents.slice(0, split) }))
      },
      "looks for a snapshot everywhere": {
        conclude,
        decide: onSummarize((_, { contents }) => ({
          anchor: partsOf(contents).some((part) => part.text?.includes("<state_snapshot>")) ? "merge" : "create"
        }))
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
      },
      "counts the summary without the environment": {
        decide,
        conclude: (decision, answers, counted, rates) =>
          conclude({ ...decision, environment: undefined }, answers, counted, rates)
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

// --- Facts that were executed, and single rules ---

const window = 1_048_576
const request = (contents: ReadonlyArray<Content>, change: Partial<GeminiRequest> = {}): GeminiRequest => ({
  contents,
  lastPromptTokens: 600_000,
  limit: window,
  forced: false,
  hasFailed: false,
  ...change
})
const asked = (decision: GeminiDecision): Summarize => {
  if (decision._tag !== "Summarize") throw new Error(`the decision is ${decision._tag}`)
  return decision
}

const short = [user(text("a")), model(text("b")), user(text("c")), model(text("d"))]
const pairs = Array.from({ length: 20 }, (_, n) => [
  model(call("ls", { n }, `c${n}`)),
  user(response("ls", { output: "x".repeat(200) }, `c${n}`))
]).flat()
const onePrompt = [user(text("Do everything.")), ...pairs]

describe("executable facts", () => {
  it("compresses at the threshold, not below", () => {
    assert.deepInclude(decide(request(short, { lastPromptTokens: 524_287 })), {
      _tag: "Noop",
      reason: "below threshold",
      hook: "auto",
      before: 524_287,
      after: 524_287
    })
    assert.deepInclude(decide(request(short, { lastPromptTokens: 524_288 })), { _tag: "Summarize", hook: "auto" })
    assert.deepInclude(decide(request(short, { lastPromptTokens: 1, forced: true })), { hook: "manual" })
  })

  it("makes two requests, whatever the first answer is", () => {
    for (const forced of [true, false]) {
      assert.deepInclude(decide(request([], { forced })), { _tag: "Noop", before: 0, after: 0, hook: undefined })
    }
  })

  it("asks twice, whatever the first answer is", () => {
    const decision = asked(decide(request(short)))
    assert.strictEqual(decision.split, 4)
    const [one, two] = [firstCall(decision, "p"), secondCall(decision, "p", "")]
    assert.deepStrictEqual([one.promptId, one.contents.length], ["p", 5])
    assert.deepStrictEqual([two.promptId, two.contents.length], ["p-verify", 6])
    assert.deepStrictEqual(two.contents.slice(4), [model(text("")), user(text(critiqueRequest))])
    assert.strictEqual(conclude(decision, { summary: "", verified: "x" }).status, "COMPRESSED")
    assert.deepStrictEqual(conclude(decision, { summary: "", verified: "" }), {
      status: "COMPRESSION_FAILED_EMPTY_SUMMARY",
      before: 600_000,
      after: 600_000
    })
  })

  it("creates a new snapshot when one is only in the kept tail", () => {
    const tail = user(text(`<state_snapshot>${"x".repeat(400)}`))
    const history = [user(text("y".repeat(2_000))), model(text("b")), tail, model(text("d"))]
    assert.deepInclude(asked(decide(request(history))), { split: 2, anchor: "create" })
    const first = [user(text(`<state_snapshot>${"x".repeat(2_000)}`)), ...short]
    assert.strictEqual(asked(decide(request(first))).anchor, "merge")
  })

  it("does not report a truncation without effect, unlike the original", () => {
    const tiny = request(short, { hasFailed: true })
    assert.strictEqual(estimate(partsOf(short)), 1)
    assert.deepInclude(decide(tiny), { _tag: "Noop", reason: "nothing shrank", before: 600_000, after: 600_000 })
  })

  it("shortens the older two of three outputs of 30,000 tokens", () => {
    const outputs = ["a", "b", "c"].map((letter) =>
      user(response("Grep Tool/x", { output: letter.repeat(120_000) }, letter))
    )
    const { contents, nextNumber, outputs: saved } = truncateToBudget(outputs)
    assert.deepStrictEqual(
      saved.map(({ content, file, text: whole }) => [content, file, whole[0], whole.length]),
      [
        [1, "grep_tool_x_1.txt", "b", 120_000],
        [0, "grep_tool_x_2.txt", "a", 120_000]
      ]
    )
    assert.strictEqual(nextNumber, 3)
    assert.strictEqual(contents[2]?.parts[0], outputs[2]?.parts[0])
    const after = JSON.stringify(contents[0]?.parts[0]).length
    assert.isAbove(after, 40_000)
    assert.isBelow(after, 40_400)
  })

  it("cannot compress one long prompt, even when forced", () => {
    assert.strictEqual(splitPoint(onePrompt, 0.7), 0)
    assert.deepInclude(decide(request(onePrompt, { forced: true })), { _tag: "Noop", reason: "nothing to compress" })
  })

  it("summarises only the environment message before one long prompt, and grows", () => {
    const history = [environment, ...onePrompt]
    const decision = asked(decide(request(history, { environment })))
    assert.deepStrictEqual(decision.summarized, [environment])
    const conclusion = conclude(decision, { summary: "s", verified: "" })
    assert.strictEqual(conclusion.status, "COMPRESSED")
    assert.strictEqual(history.length, 42)
    assert.strictEqual("history" in conclusion && conclusion.history.length, 43)
  })

  const video = { inlineData: { mimeType: "video/mp4", data: "A".repeat(4_000) } }
  const estimates: ReadonlyArray<readonly [name: string, part: Part, seeds: number, later: number]> = [
    ["two Chinese characters", text("你好"), 2, 3],
    ["the same behind two letters", text("Hi你好"), 3, 3],
    ["an emoji", text("😀"), 2, 3],
    ["a video of 4,000 characters", video, 1_012, 1_012],
    ["a call", { functionCall: { name: "foo", args: {} } }, 10, 10]
  ]
  it.each(estimates)("estimates %s", (_, part, seeds, later) => {
    assert.strictEqual(estimate([part]), seeds)
    assert.strictEqual(estimate([part], laterRates), later)
    assert.strictEqual(oracleEstimate([part]), seeds)
    assert.strictEqual(oracleEstimate([part], 1.5), later)
  })

  it("shows 10 and 40 of 100 characters with room for 50", () => {
    const shown = placeholder(`${"h".repeat(10)}${"m".repeat(50)}${"t".repeat(40)}`, "head-tail-chars", 50, "ls_1.txt")
    const [header = "", ...rest] = shown.split("\n")
    assert.match(header, /first 10 and last 40 .* ls_1\.txt$/)
    assert.deepStrictEqual(rest, ["h".repeat(10), "", "... [50 characters omitted] ...", "", "t".repeat(40)])
  })
})

describe("details", () => {
  const nested = (depth: number): Part =>
    depth === 0 ? text("xxxx") : { functionResponse: { name: "f", response: null, parts: [nested(depth - 1)] } }
  const costs: ReadonlyArray<readonly [name: string, parts: ReadonlyArray<Part>, tokens: number]> = [
    ["nothing", [], 0],
    ["one floor for all", [text("ab"), text("ab")], 1],
    ["100,000 characters by script", [text("好".repeat(100_000))], 130_000],
    ["longer texts by length", [text("好".repeat(100_001))], 25_000],
    ["a response that is a text by length", [response("name", "好".repeat(4))], 2],
    ["a response by its JSON", [response("name", { output: "x" })], 4],
    ["a response of nothing", [{ functionResponse: { name: "name" } }], 1],
    ["three levels in a response", [nested(3)], 1],
    ["the fourth level not, and each level rounded down", [nested(4)], 0],
    ["an image", [{ fileData: { mimeType: "image/webp", fileUri: "u" } }], 3_000],
    ["a PDF", [{ inlineData: { mimeType: "application/pdf", data: "x" } }], 25_800],
    ["text before media", [{ text: "abcd", inlineData: { mimeType: "image/png" } }], 1],
    ["an empty part", [{}], 0]
  ]
  it.each(costs)("estimates %s", (_, parts, tokens) => {
    assert.strictEqual(estimate(parts), tokens)
    assert.strictEqual(oracleEstimate(parts), tokens)
  })

  it.each([0, 1, -0.1, 1.5])("refuses the fraction %d", (fraction) => {
    assert.deepInclude(splitPoint(short, fraction), { _tag: "SplitRefused", fraction })
    assert.throws(() => oracleSplit(short, fraction))
  })

  it("splits an empty history at 0", () => {
    assert.strictEqual(splitPoint([], 0.7), 0)
  })

  it("takes a threshold of 0 for unset", () => {
    assert.deepStrictEqual(
      [thresholdOf(), thresholdOf(0), thresholdOf(0, 0), thresholdOf(0.2, 0.7), thresholdOf(0, 0.7)],
      [0.5, 0.5, 0.5, 0.2, 0.7]
    )
  })

  it("limits a placeholder to what the window has left", () => {
    assert.deepStrictEqual([maxCharsOf(window, 0), maxCharsOf(100, 90), maxCharsOf(100, 110)], [40_000, 40, 0])
  })

  it("fits smaller older outputs in after an overflow", () => {
    const outputs = [100, 6_000, 100].map((tokens) => user(response("t", { output: "x".repeat(tokens * 4) })))
    const saved = (budget: number) =>
      truncateToBudget(outputs, { budget, maxChars: 0 }).outputs.map((one) => one.content)
    assert.deepStrictEqual(saved(260), [1])
    // What stands for the large one counts too.
    assert.deepStrictEqual(saved(201), [1, 0])
  })

  it("keeps what could not be saved, consumes its number, and counts it in full", () => {
    const outputs = ["a", "b", "c"].map((letter) => user(response("t", { output: letter.repeat(400) })))
    const {
      contents,
      nextNumber,
      outputs: saved
    } = truncateToBudget(outputs, {
      budget: 90,
      maxChars: 4,
      failedSaves: new Set([1])
    })
    assert.deepStrictEqual(
      saved.map(({ content, number, saved: done }) => [content, number, done]),
      [
        [2, 1, false],
        [1, 2, true],
        [0, 3, true]
      ]
    )
    assert.deepStrictEqual(contents[2], outputs[2])
    assert.strictEqual(nextNumber, 4)
  })

  it("keeps a response's other keys beside the new output", () => {
    const before: Part = {
      functionResponse: {
        id: "1",
        name: "t",
        kept: 1,
        parts: [text("p")],
        response: { output: "x".repeat(99), gone: 1 }
      },
      gone: 1
    }
    const [content] = truncateToBudget([user(before)], { budget: 0, maxChars: 99 }).contents
    assert.deepStrictEqual(content?.parts, [
      { functionResponse: { id: "1", name: "t", kept: 1, parts: [text("p")], response: { output: "x".repeat(99) } } }
    ])
  })

  const names: ReadonlyArray<readonly [tool: string | undefined, file: string]> = [
    ["read_file", "read_file_7.txt"],
    ["Grep Tool/x", "grep_tool_x_7.txt"],
    ["../../etc", "______etc_7.txt"],
    ["größe-1", "gr__e-1_7.txt"],
    [undefined, "unknown_tool_7.txt"]
  ]
  it.each(names)("saves an output of %s as %s", (tool, file) => {
    assert.strictEqual(fileNameOf(tool, 7), file)
  })

  const wholes = [
    "",
    "one",
    "a\nb",
    fill("line\n", 2_000),
    "w".repeat(4_001),
    `${fill("😀", 2_001)}\n${fill("😀", 1_001)}`,
    fill("😀", 4_001)
  ]
  it.each([0, 1, 5, 40_000])("writes placeholders of at most %d characters as the oracle does", (maxChars) => {
    for (const whole of wholes) {
      for (const form of ["last-lines", "head-tail-chars"] as const) {
        assert.strictEqual(
          placeholder(whole, form, maxChars, "f"),
          oraclePlaceholder(whole, maxChars, form === "last-lines", "f")
        )
      }
    }
  })

  it("splits no character", () => {
    for (const max of [5, 6, 7, 8, 9]) {
      assert.isTrue(placeholder("😀".repeat(60), "head-tail-chars", max, "f").isWellFormed())
    }
  })

  it("stays within the conversation's model family", () => {
    const table: ReadonlyArray<readonly [model: string, alias: string]> = [
      ["gemini-3-pro-preview", "chat-compression-3-pro"],
      ["gemini-3.1-pro-preview", "chat-compression-3-pro"],
      ["gemini-3-flash-preview", "chat-compression-3-flash"],
      ["gemini-2.5-pro", "chat-compression-2.5-pro"],
      ["gemini-2.5-flash", "chat-compression-2.5-flash"],
      ["gemini-2.5-flash-lite", "chat-compression-2.5-flash-lite"],
      ["gemma-4-31b-it", "chat-compression-default"],
      ["toString", "chat-compression-default"]
    ]
    assert.deepStrictEqual(
      table.map(([name]) => modelAlias(name).alias),
      table.map(([, alias]) => alias)
    )
    assert.strictEqual(modelAlias("other").model, "gemini-3-pro-preview")
  })

  it("names the sections of the snapshot in order, once each", () => {
    const found = [...compressionInstruction.matchAll(/^ {2}<(\w+)>$/gm)].map(([, name]) => name)
    assert.deepStrictEqual(found, [...sectionNames])
    assert.isBelow(compressionInstruction.indexOf("<scratchpad>"), compressionInstruction.indexOf("<state_snapshot>"))
    assert.notStrictEqual(snapshotRequest("create"), snapshotRequest("merge"))
  })

  it("lays out summary, acknowledgement and tail", () => {
    const decision = asked(decide(request([user(text("y".repeat(2_000))), model(text("b")), user(text("c"))])))
    assert.deepStrictEqual(layoutOf(decision, "s"), [
      user(text("s")),
      model(text("Got it. Thanks for the additional context!")),
      user(text("c"))
    ])
    assert.strictEqual(acknowledgement, "Got it. Thanks for the additional context!")
  })

  it("can end as a counting error", () => {
    const decision = asked(decide(request(short)))
    assert.strictEqual(
      conclude(decision, { summary: "s", verified: "" }, "failed").status,
      "COMPRESSION_FAILED_TOKEN_COUNT_ERROR"
    )
  })
})

// --- As a plan ---

const conversationOf = (contents: ReadonlyArray<Content>, opening?: Content): Conversation => {
  const handle = Handle.make("h_aaaaaaaaaa")
  const drafts: ReadonlyArray<Draft> = [
    ...(opening === undefined ? [] : [{ content: opening, author: "environment" as const }]),
    ...contents.map((content) => ({ content }))
  ]
  return drafts.reduce(
    (conversation, draft) =>
      append(conversation, {
        id: entryId(conversation.next),
        ...draft,
        tokens: draft.content.parts.map(() => 1),
        handles: draft.content.parts.map(() => handle)
      }),
    empty
  )
}

const policy: Policy = { ...defaultPolicy, strategy: "gemini", outputForm: "head-tail-chars" }
const planned = (conversation: Conversation, change: Partial<Policy> = {}, forced = true, failed = false) =>
  Work.runSync(
    plan(
      conversation,
      { ...policy, ...change },
      { forced, memory: { ...freshMemory, failed }, lastPromptTokens: 600_000 }
    )
  )
const planOf = (decision: ReturnType<typeof planned>): Plan => {
  if (decision._tag !== "Go") throw new Error(decision.reason)
  return decision.plan
}

describe("the decision as a plan", () => {
  const big = (letter: string) => user(response("cat", { output: letter.repeat(120_000) }, letter))
  const history = [
    user(text("first")),
    model(call("cat", {}, "a")),
    big("a"),
    model(call("cat", {}, "b")),
    big("b"),
    model(text("seen")),
    model(text("")),
    user(text("second")),
    model(call("cat", {}, "c")),
    big("c"),
    model(text("done")),
    user(text("third"))
  ]

  it("summarises up to the split, shortens what is kept, and lists it", () => {
    // The tail holds three outputs, the budget one.
    const tail = [user(text("x".repeat(600_000))), ...history.filter(({ role }) => role === "user")]
    const made = planOf(planned(conversationOf(tail)))
    assert.deepStrictEqual(
      made.steps.map((step) => step._tag),
      ["Shorten", "Shorten", "Summarize", "Layout"]
    )
    assert.deepInclude(made.steps[0], {
      entry: entryId(3),
      part: 0,
      form: "head-tail-chars",
      tokensBefore: TokenCount.make(30_004)
    })
    assert.deepInclude(made.steps[2], { from: entryId(1), to: entryId(1), prompt: "create", verify: true })
    assert.deepInclude(made.steps[3], { split: 1, kept: [2, 3, 4, 5, 6, 7].map(entryId), acknowledge: true })
    assert.deepInclude(made, { strategy: "gemini", before: TokenCount.make(600_000), rung: 0 })
    assert.isBelow(made.after, 60_000)
  })

  it("leaves out uncurated entries, and drops them with their neighbours", () => {
    const contents = [...history.slice(0, -1), model(text("")), user(text("third"))]
    const made = planOf(planned(conversationOf(contents, environment)))
    const summarize = made.steps.find((step) => step._tag === "Summarize")
    const layout = made.steps.find((step) => step._tag === "Layout")
    assert.deepInclude(summarize, { from: entryId(1), to: entryId(13) })
    assert.deepInclude(layout, { split: 9, kept: [entryId(14)] })
  })

  it("only shortens after a failure", () => {
    const made = planOf(planned(conversationOf(history), {}, false, true))
    assert.deepStrictEqual(
      made.steps.map((step) => (step._tag === "Shorten" ? step.entry : step._tag)),
      [entryId(3), entryId(5)]
    )
  })

  it("gives the reason for no change", () => {
    const reasons = [
      planned(empty),
      planned(conversationOf(short), {}, false, true),
      planned(conversationOf(short), { limit: TokenCount.make(1_300_000) }, false),
      planned(conversationOf(onePrompt)),
      planned(conversationOf(short), { preserve: 0 })
    ].map((decision) => (decision._tag === "Skip" ? decision.reason : "go"))
    assert.deepStrictEqual(reasons, [
      "empty",
      "nothing shrank",
      "below threshold",
      "nothing to compress",
      "nothing to compress"
    ])
  })

  it("shortens its input when that does not fit the window", () => {
    const steps = (limit: number) =>
      planOf(planned(conversationOf(history), { limit: TokenCount.make(limit) })).steps.map((step) =>
        step._tag === "Shorten" ? step.entry : step._tag
      )
    assert.deepStrictEqual(steps(1_048_576), ["Summarize", "Layout"])
    assert.deepStrictEqual(steps(80_000), [entryId(3), entryId(5), "Summarize", "Layout"])
  })
})
