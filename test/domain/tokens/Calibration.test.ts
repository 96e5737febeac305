import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { call, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { type Random, seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import * as Calibration from "../../../src/domain/tokens/Calibration.ts"
import * as TextFeatures from "../../../src/domain/tokens/TextFeatures.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const pick = <A>(random: Random, from: ReadonlyArray<A>, fallback: A): A =>
  from[Math.floor(random() * from.length)] ?? fallback
const whole = (random: Random, below: number): number => Math.floor(random() * below)
const many = (random: Random, least: number, most: number, make: () => string, joint: string): string =>
  Array.from({ length: least + whole(random, most - least + 1) }, make).join(joint)

const words =
  "the quick brown fox jumps over a lazy dog and then it goes home because something important happened yesterday while we were looking at another problem in that module which nobody had understood before".split(
    " "
  )
const names = ["parse", "history", "compress", "TokenCount", "fileSystem", "resultOf", "Layer", "isNeeded", "entry"]
const characters = [..."快速的棕色狐狸跳过了懒狗然后回家了吾輩は猫である名前まだ無いどこで生れたか"]
const faces = [..."😀🎉🚀🔥👍🐛🌍🍣💡🧪"]
const cyrillic = "съешь же ещё этих мягких французских булок да выпей чаю".split(" ")
const umlauts = "über schöne Straßen führt Köln größere Mühen Ärger".split(" ")

/** A kind of text, and how to write some of it. */
const kinds: Readonly<Record<string, (random: Random) => string>> = {
  prose: (random) => many(random, 4, 40, () => many(random, 6, 18, () => pick(random, words, "a"), " "), ". "),
  code: (random) =>
    many(
      random,
      5,
      60,
      () => {
        const name = () => pick(random, names, "x")
        return `${" ".repeat(2 * whole(random, 4))}const ${name()} = (${name()}: string) => ${name()}.map(({ ${name()} }) => ${name()}(${name()}))`
      },
      "\n"
    ),
  logs: (random) =>
    many(
      random,
      4,
      60,
      () =>
        `2026-02-${10 + whole(random, 19)}T12:${10 + whole(random, 50)}:${10 + whole(random, 50)}.${100 + whole(random, 900)}Z INFO [worker-${whole(random, 9)}] processed ${whole(random, 5_000)} items in ${whole(random, 900)}ms`,
      "\n"
    ),
  hexadecimal: (random) =>
    many(random, 3, 40, () => Array.from({ length: 64 }, () => whole(random, 16).toString(16)).join(""), "\n"),
  base64: (random) =>
    Buffer.from(Array.from({ length: 200 + whole(random, 2_000) }, () => whole(random, 256))).toString("base64"),
  cjk: (random) => many(random, 60, 1_000, () => pick(random, characters, "語"), ""),
  emoji: (random) => many(random, 30, 400, () => pick(random, faces, "😀"), ""),
  russian: (random) => many(random, 30, 300, () => pick(random, cyrillic, "да"), " "),
  german: (random) => many(random, 30, 300, () => pick(random, umlauts, "und"), " ")
}
const kindNames = Object.keys(kinds)

/** What a pretended model makes of the estimate, by kind. */
const skew: Readonly<Record<string, number>> = {
  prose: 1.05,
  code: 0.8,
  logs: 1.9,
  hexadecimal: 2.5,
  base64: 3,
  cjk: 2,
  emoji: 4,
  russian: 1.6,
  german: 1.3
}

interface Piece {
  readonly kind: string
  readonly text: string
  readonly features: TextFeatures.Features
  /** Tokens of a real vocabulary. */
  readonly real: number
}
interface Request {
  readonly pieces: ReadonlyArray<Piece>
  readonly features: TextFeatures.Features
}

/** Counting by a real vocabulary takes long, so requests are put together from pieces that were counted once. */
const pool = (seed: number): ((random: Random, kind: string) => Piece) => {
  const writing = seededRandom(seed)
  const pieces = new Map(
    kindNames.map((kind) => [
      kind,
      Array.from({ length: 24 }, (): Piece => {
        const value = kinds[kind]?.(writing) ?? ""
        const features = Work.runSync(TextFeatures.partFeatures(text(value)))
        return { kind, text: value, features, real: countTokens(value) }
      })
    ])
  )
  const none: Piece = { kind: "none", text: "", features: TextFeatures.sumFeatures([]), real: 0 }
  return (random, kind) => pick(random, pieces.get(kind) ?? [], none)
}
const toLearn = pool(101)
/** Never seen while learning. */
const toJudge = pool(102)

const requestOf = (pieces: ReadonlyArray<Piece>): Request => ({
  pieces,
  features: TextFeatures.sumFeatures(pieces.map(({ features }) => features))
})

/** A request of parts of up to five kinds. */
const mixed = (random: Random, among: ReadonlyArray<string>, from = toJudge): Request => {
  const own = Array.from({ length: 1 + whole(random, 5) }, () => pick(random, among, "prose"))
  return requestOf(Array.from({ length: 1 + whole(random, 12) }, () => from(random, pick(random, own, "prose"))))
}

type Oracle = (request: Request) => number

const skewed: Oracle = ({ pieces }) =>
  Math.round(pieces.reduce((total, piece) => total + (skew[piece.kind] ?? 1) * estimateText(piece.text) + 1, 0))

const o200k: Oracle = ({ pieces }) => pieces.reduce((total, piece) => total + piece.real + 3, 0)

/** What a model is known to be after so many requests. */
const learned = (random: Random, oracle: Oracle, requests: number, among = kindNames): Calibration.Calibration => {
  let calibration = Calibration.uncalibrated
  for (let i = 0; i < requests; i += 1) {
    const request = mixed(random, among, toLearn)
    calibration = Calibration.observe(calibration, request.features, oracle(request))
  }
  return calibration
}

/** How far the bound lies above the truth, as a share of it; negative when it lies below. */
const overshoot = (calibration: Calibration.Calibration, oracle: Oracle, request: Request): number => {
  const actual = oracle(request)
  return (Calibration.upperBound(calibration, request.features) - actual) / actual
}

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((total, value) => total + value, 0) / values.length

const featuresOf = (value: string): TextFeatures.Features => Work.runSync(TextFeatures.textFeatures(value))
const ofPart = (part: Part): TextFeatures.Features => Work.runSync(TextFeatures.partFeatures(part))

describe("features", () => {
  const own: Readonly<Record<string, TextFeatures.TextClass>> = {
    prose: "prose",
    code: "code",
    logs: "figures",
    hexadecimal: "hexadecimal",
    base64: "base64",
    cjk: "cjk",
    emoji: "emoji",
    russian: "script",
    german: "latin"
  }

  it.each(kindNames)("%s is a class of its own", (kind) => {
    const random = seededRandom(5)
    const value = Array.from({ length: 6 }, () => kinds[kind]?.(random) ?? "").join("\n")
    const features = featuresOf(value)
    assert.isAtLeast(features[own[kind] ?? "media"], 0.97 * TextFeatures.totalTokens(features))
  })

  it("sum to the estimate", () => {
    const random = seededRandom(6)
    for (let i = 0; i < 200; i += 1) {
      const value = kindNames.map((kind) => (random() < 0.5 ? "" : (kinds[kind]?.(random) ?? ""))).join("\n")
      const estimate = estimateText(value)
      const all = TextFeatures.totalTokens(featuresOf(value))
      assert.isAtMost(Math.abs(all - estimate), 10 + estimate * 0.03)
    }
  })

  it("of calls, responses and media include their text and frame", () => {
    const words = ofPart(call("read_file", { path: "src/domain/tokens/Calibration.ts" }))
    assert.isAbove(TextFeatures.totalTokens(words), 10)
    assert.strictEqual(words.frame, 8)
    const output = kinds["prose"]?.(seededRandom(1)) ?? ""
    assert.isAtLeast(ofPart(response("read", { output })).prose, featuresOf(output).prose)
    assert.strictEqual(ofPart({ inlineData: { mimeType: "image/png", data: "AAAA" } }).media, 258)
    assert.strictEqual(TextFeatures.totalTokens(ofPart(text(""))), 0)
  })

  it("of empty text are zero; lone surrogates, controls and endless words count", () => {
    assert.strictEqual(TextFeatures.totalTokens(featuresOf("")), 0)
    for (const odd of ["\ud800", "\0".repeat(3_000), "a".repeat(100_000), "-".repeat(5_000), "\u0301".repeat(2_000)]) {
      const estimate = estimateText(odd)
      assert.isAtMost(Math.abs(TextFeatures.totalTokens(featuresOf(odd)) - estimate), 4 + estimate * 0.05)
    }
  })

  it("are computed in short steps", () => {
    const long = "const value = 12\n".repeat(sizeOf(200_000, 50_000))
    assert.isAtLeast([...TextFeatures.textFeatures(long)].length, long.length / 200_000)
  })
})

describe("before any count", () => {
  it("the bound is the estimate, the stated margin and the expected noise", () => {
    for (const name of TextFeatures.textClasses) {
      const features = { ...TextFeatures.sumFeatures([]), [name]: 10_000 }
      const bound = Calibration.upperBound(Calibration.uncalibrated, features)
      const stated = 10_000 * (1 + Calibration.uncalibratedMargin[name] + 0.15)
      assert.isAtLeast(bound, stated)
      assert.isAtMost(bound, stated * 1.01)
    }
  })

  it("the bound holds for a real vocabulary and any text", () => {
    const random = seededRandom(11)
    for (const kind of kindNames) {
      for (let i = 0; i < 20; i += 1) {
        assert.isAtLeast(overshoot(Calibration.uncalibrated, o200k, requestOf([toJudge(random, kind)])), 0)
      }
    }
  })
})

const oracles: ReadonlyArray<readonly [name: string, oracle: Oracle]> = [
  ["a model that is skewed by class", skewed],
  ["a real vocabulary", o200k]
]
const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))

describe.each(oracles)("learned from %s", (_, oracle) => {
  it.effect.prop(
    "the bound holds for every class seen, alone and mixed",
    [Seed],
    ([seed]) =>
      Effect.sync(() => {
        const random = seededRandom(seed)
        const calibration = learned(random, oracle, 48)
        for (const kind of kindNames) {
          const request = requestOf([toJudge(random, kind), toJudge(random, kind)])
          assert.isAtLeast(overshoot(calibration, oracle, request), -0.01, `${kind}, seed ${seed}`)
        }
        for (let i = 0; i < 5; i += 1) {
          assert.isAtLeast(overshoot(calibration, oracle, mixed(random, kindNames)), -0.01, `mixed, seed ${seed}`)
        }
      }),
    { arbitrary: { runs: runsOf(200, 8) } }
  )

  it("the bound is under 15 % above the truth on average, and gets closer", () => {
    const above = (requests: number): number => {
      const random = seededRandom(requests)
      const shots = Array.from({ length: 6 }, () => {
        const calibration = learned(random, oracle, requests)
        return mean(Array.from({ length: 10 }, () => overshoot(calibration, oracle, mixed(random, kindNames))))
      })
      return mean(shots)
    }
    const soon = above(48)
    assert.isAtMost(soon, 0.15)
    assert.isAtMost(above(150), soon)
  })
})

describe("learning", () => {
  it("of one class keeps the margin of the others", () => {
    const random = seededRandom(21)
    const calibration = learned(random, skewed, 40, ["prose", "code"])
    const features = { ...TextFeatures.sumFeatures([]), cjk: 10_000 }
    const bound = Calibration.upperBound(calibration, features)
    assert.isAtLeast(bound, 10_000 * (1 + Calibration.uncalibratedMargin.cjk))
    assert.isAtMost(bound, 10_000 * 2.4)
  })

  it("covers at once a count above the bound", () => {
    const { features } = mixed(seededRandom(22), ["prose"])
    let calibration = Calibration.uncalibrated
    for (let i = 0; i < 30; i += 1)
      calibration = Calibration.observe(calibration, features, TextFeatures.totalTokens(features))
    const actual = Math.round(TextFeatures.totalTokens(features) * 1.5)
    assert.isBelow(Calibration.upperBound(calibration, features), actual)
    calibration = Calibration.observe(calibration, features, actual)
    assert.isAtLeast(Calibration.upperBound(calibration, features), actual)
  })

  it.each([30, 300, 12_000])(
    "says little about long requests where a server adds %i tokens to a short one",
    (added) => {
      const [short, long] = [featuresOf("hi"), featuresOf("The long road to the north is open. ".repeat(1_000))]
      let calibration = Calibration.uncalibrated
      for (let i = 0; i < 3; i += 1)
        calibration = Calibration.observe(calibration, short, TextFeatures.totalTokens(short) + added)
      const tokens = TextFeatures.totalTokens(long)
      assert.closeTo(Calibration.expected(calibration, long) ?? 0, tokens + added, tokens * 0.04)
      assert.isAtMost(Calibration.upperBound(calibration, long), tokens * 1.45 + added)
      assert.closeTo(Calibration.usualFactor(calibration), 1, 0.04)
    }
  )

  it.each([
    [300, 20, 8],
    [3_000, 2_000, 6],
    [10_000, 500, 6]
  ])("tells a prompt of %i tokens that a server adds from the cost of tokens", (added, first, count) => {
    let calibration = Calibration.uncalibrated
    const of = (tokens: number) => ({ ...TextFeatures.sumFeatures([]), prose: tokens })
    for (let at = 0; at < count; at += 1) {
      const tokens = Math.round(first * 1.25 ** at)
      calibration = Calibration.observe(calibration, of(tokens), tokens + added)
    }
    assert.closeTo(Calibration.addedTokens(calibration), added, added * 0.02)
    assert.closeTo(Calibration.usualFactor(calibration), 1, 0.01)
    for (const tokens of [first, 650, 15_000, 100_000]) {
      assert.closeTo(Calibration.expected(calibration, of(tokens)) ?? 0, tokens + added, tokens * 0.01 + 50)
      const bound = Calibration.upperBound(calibration, of(tokens))
      assert.isAtLeast(bound, tokens + added)
      assert.isAtMost(bound, tokens * 1.7 + added + 500)
    }
  })

  it("ignores an empty text and an invalid count", () => {
    const features = featuresOf("some words")
    for (const actual of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.strictEqual(Calibration.observe(Calibration.uncalibrated, features, actual), Calibration.uncalibrated)
    }
    assert.strictEqual(
      Calibration.observe(Calibration.uncalibrated, TextFeatures.sumFeatures([]), 5),
      Calibration.uncalibrated
    )
    assert.strictEqual(Calibration.upperBound(Calibration.uncalibrated, TextFeatures.sumFeatures([])), 0)
  })

  it("ignores a count too low for any tokenizer, which would let anything through", () => {
    const features = featuresOf("some words ".repeat(400))
    assert.strictEqual(Calibration.observe(Calibration.uncalibrated, features, 10), Calibration.uncalibrated)
    assert.notStrictEqual(Calibration.observe(Calibration.uncalibrated, features, 400), Calibration.uncalibrated)
  })

  it("expects what it learned", () => {
    const random = seededRandom(23)
    const calibration = learned(random, skewed, 60)
    const request = mixed(random, kindNames)
    const actual = skewed(request)
    assert.isAtMost(Math.abs((Calibration.expected(calibration, request.features) ?? 0) - actual), actual * 0.05)
  })

  it("is monotonic in the text and survives JSON", () => {
    const random = seededRandom(24)
    const calibration = learned(random, o200k, 30)
    const json = Schema.fromJsonString(Calibration.Calibration)
    const again = Schema.decodeSync(json)(Schema.encodeSync(json)(calibration))
    assert.deepStrictEqual(again, calibration)
    const one = mixed(random, kindNames).features
    const both = TextFeatures.sumFeatures([one, mixed(random, kindNames).features])
    assert.isAbove(Calibration.upperBound(again, both), Calibration.upperBound(again, one))
  })
})

it("a surprise fades, and does not end with the next count", () => {
  const features = Work.runSync(TextFeatures.textFeatures("the tide table of the harbour ".repeat(400)))
  const total = TextFeatures.totalTokens(features)
  const counts = [...Array.from({ length: 30 }, () => 1), 2, 1, 1]
  const surprises: Array<number> = []
  counts.reduce((calibration, share) => {
    const next = Calibration.observe(calibration, features, total * share)
    surprises.push(next.surprise)
    return next
  }, Calibration.uncalibrated)
  const [before, first = 0, second, third] = surprises.slice(-4)
  assert.strictEqual(before, 0)
  assert.isAbove(first, 0.1)
  assert.closeTo(second ?? 0, first * 0.7, 1e-9)
  assert.closeTo(third ?? 0, first * 0.49, 1e-9)
})

it("a cut prompt teaches nothing; a plausible one makes what was learned forgotten, and both are remembered", () => {
  const features = Work.runSync(TextFeatures.textFeatures("the tide table of the harbour ".repeat(400)))
  const total = TextFeatures.totalTokens(features)
  const learned = Calibration.observe(
    Calibration.observe(Calibration.uncalibrated, features, total * 1.2),
    features,
    total * 1.2
  )
  const plausible = Calibration.doubted(learned, features, total * 0.5)
  assert.deepStrictEqual(plausible, {
    ...Calibration.uncalibrated,
    history: { last: { estimated: total, counted: total * 0.5 }, kept: total * 0.5 }
  })
  const implausible = Calibration.doubted(learned, features, total * 0.1)
  assert.deepStrictEqual(implausible, {
    ...learned,
    history: { last: { estimated: total, counted: total * 0.1 }, kept: total * 0.1 }
  })
  // What a server keeps stays known while it counts fewer.
  const later = Calibration.observe(plausible, features, total * 0.45)
  assert.deepStrictEqual(later.history, { last: { estimated: total, counted: total * 0.45 }, kept: total * 0.5 })
  assert.strictEqual(later.observations, 1)
})

it("learns like this: see `test/golden/calibration.txt`, and take a new one with `vitest -u`", () => {
  const seen = ["prose", "code", "figures", "cjk"].map((name) =>
    Work.runSync(TextFeatures.textFeatures(`${name} `.repeat(40) + "x = [1, 2]; 語 é 😀 ".repeat(name.length)))
  )
  let calibration = Calibration.uncalibrated
  const lines = Array.from({ length: 24 }, (_, at) => {
    const features = seen[at % seen.length] ?? Calibration.uncalibratedMargin
    const estimate = TextFeatures.totalTokens(features)
    // Mostly a model that counts more; once much more, once much less, once nothing.
    const factor = at === 9 ? 3 : at === 14 ? 0.4 : at === 17 ? 0 : 1.2 + (at % 3) / 20
    const likely = Calibration.expected(calibration, features) ?? 0
    const bound = Calibration.upperBound(calibration, features)
    calibration = Calibration.observe(calibration, features, Math.round(estimate * factor))
    const numbers = JSON.stringify(calibration, (_, value) =>
      typeof value === "number" ? Math.round(value * 1e4) / 1e4 : value
    )
    return `${estimate.toFixed(2)} * ${factor.toFixed(2)}: ${likely.toFixed(2)} <= ${bound.toFixed(2)} ${numbers.replaceAll('"', "").replace(/(?<=[,[])(?:0,)+/g, (zeros) => `${zeros.length / 2}*0,`)}`
  })
  return expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/calibration.txt")
})
