import { Effect } from "effect"
import type { Outcome } from "../../../src/domain/compression/Compression.ts"
import { type Part, text } from "../../../src/domain/content/Content.ts"
import { type GuardOptions, type SizedRequest, WindowGuard } from "../../../src/services/chat/WindowGuard.ts"
import type { Calibrations } from "../../../src/services/tokens/Calibrations.ts"
import { describe, expect, it } from "../../support/vitest.ts"

/** A request of so many estimated tokens, of which `free` are known. */
const sized = (tokens: number, free = 0): SizedRequest => ({
  tokens,
  ...(free === 0 ? {} : { free }),
  parts: () => [text("x".repeat(tokens))]
})
const sizeOf = (parts: ReadonlyArray<Part>) => parts[0]?.text?.length ?? 0

/** How many tokens an estimated one costs: at most, as expected, as counted, and as the provider says. */
interface Ratios {
  readonly most: number
  readonly expected?: number
  readonly counted?: number
  /** What a count teaches. */
  readonly learned?: number
  /** What the server adds to each request. */
  readonly added?: number
}

const guarded = ({ added = 0, counted, expected, learned, most }: Ratios, options: Partial<GuardOptions> = {}) => {
  const told: Array<string> = []
  let known = expected
  const observed = (ratio: number | undefined, parts: ReadonlyArray<Part>) =>
    ratio === undefined ? undefined : ratio * sizeOf(parts) + added
  const calibrations = {
    upperBound: (_: string, parts: ReadonlyArray<Part>) => Effect.succeed(most * sizeOf(parts) + added),
    added: () => Effect.succeed(added),
    expected: (_: string, parts: () => ReadonlyArray<Part>) => Effect.succeed(observed(known, parts())),
    observe: (_: string, parts: ReadonlyArray<Part>, actual: number) =>
      Effect.sync(() => void told.push(`observed ${sizeOf(parts)} as ${actual}`))
  } as unknown as Calibrations["Service"]
  const recount = (parts: ReadonlyArray<Part>) =>
    Effect.sync(() => {
      told.push(`counted ${sizeOf(parts)}`)
      known = learned
      return sizeOf(parts) * (counted ?? 1)
    })
  const given = { model: "m", window: 1_001, reserve: 100.5, trigger: 600, policy: { snapshotBudget: 90 } }
  const guard = new WindowGuard(
    { ...given, ...(counted === undefined ? {} : { recount }), ...options } as GuardOptions,
    calibrations
  )
  return { guard, told }
}

/** Fits requests of these sizes: each compression leads to the next; `null` changes nothing. */
const fitted = Effect.fnUntraced(function* (
  { guard, told }: ReturnType<typeof guarded>,
  sizes: ReadonlyArray<SizedRequest | null>,
  { fixed = sized(10), isDue, waiting = 0 }: { fixed?: SizedRequest; isDue?: boolean; waiting?: number } = {}
) {
  const [first = null, ...later] = sizes
  let request = first ?? sized(0)
  const result = yield* guard
    .fit(
      {
        request: Effect.sync(() => request),
        isDue,
        compress: (policy, forced) =>
          Effect.sync(() => {
            const { limit, snapshotBudget, summarizer, threshold, toolBudget } = policy
            told.push(`${[forced, summarizer, limit, threshold.toFixed(3), toolBudget, snapshotBudget].join(" ")}`)
            const next = later.shift() ?? null
            if (next === null) return { _tag: "NotNeeded", message: "no1" } as unknown as Outcome
            request = next
            return { _tag: "Compressed", patch: {}, degraded: { message: "no2" } } as unknown as Outcome
          })
      },
      { ...fixed, what: "fixed1" },
      waiting
    )
    .pipe(
      Effect.map(({ measured }) => measured),
      Effect.catch(({ _tag, ...overflow }) => Effect.succeed({ ...overflow }))
    )
  const { estimated, expectedTokens, maxRequestTokens, maxTokens, revision, tokens, why } = {
    estimated: undefined,
    expectedTokens: 0,
    maxRequestTokens: undefined,
    maxTokens: 0,
    revision: undefined,
    why: undefined,
    ...result
  }
  return [
    ...told.splice(0),
    estimated === undefined
      ? `${tokens}: ${expectedTokens} to ${maxTokens} at ${revision}`
      : `over: ${tokens} of ${estimated} in ${maxRequestTokens}, ${why}`
  ]
})

const calibrated: Ratios = { most: 1.2, expected: 1 }
const cases: ReadonlyArray<
  readonly [
    what: string,
    ratios: Ratios,
    sizes: ReadonlyArray<SizedRequest | null>,
    more?: Parameters<typeof fitted>[2]
  ]
> = [
  ["small", calibrated, [sized(500)]],
  ["at the trigger", calibrated, [sized(600), sized(100)]],
  ["below the trigger", calibrated, [sized(599), sized(100)]],
  ["with what is free", calibrated, [sized(500, 100), sized(50, 10)]],
  ["due, but it waits", calibrated, [sized(700), sized(100)], { waiting: 701 }],
  ["due after waiting", calibrated, [sized(700), sized(100)], { waiting: 700 }],
  ["due by another measure", calibrated, [sized(100), sized(50)], { isDue: true }],
  ["not due by another measure", calibrated, [sized(700), sized(50)], { isDue: false }],
  ["as much as the window has", { most: 1, expected: 0.5 }, [sized(900), sized(1)]],
  ["more than the window has", { most: 1, expected: 0.5 }, [sized(901), sized(1)]],
  ["again and again", calibrated, [sized(2_000), sized(1_500), sized(1_200), sized(1_000), sized(900)]],
  ["until it fits", calibrated, [sized(2_000), sized(1_500), sized(700), sized(100)]],
  ["without an effect, twice", calibrated, [sized(2_000), null, null]],
  ["without an effect, once", calibrated, [sized(2_000), null, sized(700)]],
  ["what cannot be left out is too much", calibrated, [sized(2_000)], { fixed: sized(800, 20) }],
  ["nothing is known", { most: 3 }, [sized(299), sized(1)]],
  ["nothing is known, and it may be too much", { most: 3 }, [sized(301), sized(100)]],
  ["counted", { most: 3, counted: 1.5, learned: 1.4 }, [sized(301), sized(100)]],
  ["counted, with what is free", { most: 3, counted: 1.5, learned: 1.4 }, [sized(250, 90), sized(100)]],
  ["counted, and nothing learned", { most: 3, counted: 1.5 }, [sized(500), sized(250)]],
  ["unsure enough to count", { most: 3, expected: 1, counted: 2, learned: 2 }, [sized(400), sized(100)]],
  ["just unsure enough to count", { most: 1.5, expected: 1.2, counted: 1, learned: 1 }, [sized(1_000), sized(100)]],
  ["a little too much, in parts of tokens", { most: 1.2345, expected: 1 }, [sized(2_000.5)]],
  [
    "surely too much, so not counted",
    { most: 1.2, expected: 1.1, counted: 1, learned: 1 },
    [sized(900, 1), sized(500)]
  ],
  // What is left for the rest is planned for, so that one compression is enough.
  ["with what its server adds", { most: 1, expected: 1, added: 250 }, [sized(700), sized(500)]],
  ["due with what its server adds", { most: 1, expected: 1, added: 250 }, [sized(400), sized(200)]]
]

describe("a request is fitted into the window", () => {
  it.effect("by its cost at most and as expected", function* () {
    const found = yield* Effect.forEach(cases, ([what, ratios, sizes, more]) =>
      Effect.map(fitted(guarded(ratios), sizes, more), (lines) => `${[what, ...lines].join("\n  ")}\n`)
    )
    yield* Effect.promise(() => expect(found.join("")).toMatchFileSnapshot("../../golden/window-guard-fit.txt"))
  })

  it.effect("and by what answers and refusals taught", function* () {
    const small = (guard: WindowGuard, measured?: Parameters<WindowGuard["isSmall"]>[1]) =>
      [100, 150, 199, 200, 201, 260, 299, 300, 301, 449, 599, 600]
        .map((size) => (guard.isSmall(size, measured) ? 1 : 0))
        .join("")
    const found: Array<unknown> = []
    const of = guarded({ most: 3 })
    const { guard, told } = of
    found.push(small(guard), small(guard, { tokens: 150, expectedTokens: 160, maxTokens: 170, revision: 0 }))
    found.push(small(guard, { tokens: 150, expectedTokens: 160, maxTokens: 170, revision: 1 }))
    found.push(
      yield* guard.scaleOf(sized(100), false, true),
      yield* guard.scaleOf(sized(100), true, false, 1.5),
      small(guard)
    )
    yield* guard.learn(sized(100), 110)
    const near = { tokens: 590, expectedTokens: 500, maxTokens: 510, revision: 0 }
    found.push(small(guard), small(guard, near), yield* guard.scaleOf(sized(100), false, true))
    yield* guard.learn(sized(100), 301)
    found.push(small(guard), yield* fitted(of, [sized(100)]))
    yield* guard.learnTooLong(sized(250))
    found.push(small(guard), yield* fitted(of, [sized(100)]))
    yield* guard.learnTooLong(sized(150))
    found.push(small(guard), yield* fitted(of, [sized(100), sized(10)]), [...told])
    const counting = guarded({ most: 3, counted: 2, learned: 1.9 })
    found.push(
      yield* counting.guard.scaleOf(sized(10), false, false),
      yield* counting.guard.scaleOf(sized(10), false, true)
    )
    const blind = guarded({ most: 3, counted: 2 })
    found.push(yield* blind.guard.scaleOf(sized(10), false, true), yield* blind.guard.scaleOf(sized(10), false, true))
    found.push(counting.told, blind.told)
    const lines = found.map((one) => `${JSON.stringify(one) ?? "unknown"}\n`).join("")
    yield* Effect.promise(() => expect(lines).toMatchFileSnapshot("../../golden/window-guard-learned.txt"))
  })

  it.effect("and below a limit that is smaller than the window, which teaches no count", function* () {
    const stated = [{ limit: 300, tokens: 350 }, { limit: 300 }, { limit: 400, tokens: 320 }]
    const found = yield* Effect.forEach(stated, (said) => {
      const of = guarded({ most: 1 })
      return Effect.andThen(of.guard.learnTooLong(sized(320), said), fitted(of, [sized(320), sized(250)]))
    })
    const sizes = [274, 300, 319]
    expect(found.map(([first]) => first)).toEqual(sizes.map((size) => `true model ${size} 1.000 50000 90`))
    expect(found.map((lines) => lines.length)).toEqual([2, 2, 2])
    // What the user reads is in tokens of that limit.
    const told = guarded({ most: 1 })
    const before = told.guard.requestLimit
    yield* told.guard.learnTooLong(sized(320), { limit: 300, tokens: 350 })
    expect([before, told.guard.requestLimit]).toEqual([told.guard.maxRequestTokens, 300])
    const plain = guarded({ most: 1 })
    yield* plain.guard.learnTooLong(sized(320), { limit: 1_001, tokens: 1_100 })
    expect(plain.told).toEqual(["observed 320 as 1002"])
  })
})
