import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Logger, Path, Schema } from "effect"
import { call, type Part, text, user } from "../../../src/domain/content/Content.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import * as FileCalibrations from "../../../src/layers/tokens/FileCalibrations.ts"
import { Model, ModelError, type ModelRequest, NetworkError } from "../../../src/services/model/Model.ts"
import {
  Calibrations,
  countRequest,
  usableCalibrations,
  noCalibrations,
  estimateContents,
  make,
  requestParts,
  StoredCalibrations
} from "../../../src/services/tokens/Calibrations.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"

const prose: Part = text("The quick brown fox jumps over the lazy dog, and then it goes home. ".repeat(40))
const model = "gemini-x"
const request: ModelRequest = {
  model,
  contents: [user(prose)],
  systemInstruction: "Be brief.",
  tools: [{ functionDeclarations: [{ name: "read_file" }] }]
}

const learn = Effect.gen(function* () {
  const calibrations = yield* Calibrations
  for (let i = 0; i < 20; i += 1) yield* calibrations.observe(model, [prose], 1_000)
})
const bound = (name = model) => Calibrations.use((calibrations) => calibrations.upperBound(name, [prose]))

describe("calibrations in memory", () => {
  it.effect("learn separately for each model", MemoryCalibrations.layer, function* () {
    const before = yield* bound()
    yield* learn
    const after = yield* bound()
    assert.isAtLeast(after, 1_000)
    assert.isAtMost(after, 1_150)
    assert.notStrictEqual(after, before)
    assert.strictEqual(yield* bound("another"), before)
  })

  it.effect("apply everything observed at once", MemoryCalibrations.layer, function* () {
    const calibrations = yield* Calibrations
    yield* Effect.forEach(Array.from({ length: 30 }), () => calibrations.observe(model, [prose], 1_000), {
      concurrency: "unbounded"
    })
    assert.isAtMost(yield* bound(), 1_150)
  })
})

it.effect(
  "the likely count of a model without a known count is undefined, and no part of the request is listed",
  MemoryCalibrations.layer,
  function* () {
    const calibrations = yield* Calibrations
    let lists = 0
    const parts = () => {
      lists += 1
      return [prose]
    }
    assert.isUndefined(yield* calibrations.expected(model, parts))
    assert.strictEqual(lists, 0)
    yield* learn
    assert.approximately((yield* calibrations.expected(model, parts)) ?? 0, 1_000, 50)
    assert.strictEqual(lists, 1)
  }
)

const Index = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))
it.effect.prop(
  "the sums over a request's parts are those of a count from the beginning, whatever was counted before",
  [Schema.Array(Schema.Struct({ from: Index, to: Index, another: Schema.Boolean })).check(Schema.isMaxLength(12))],
  ([lists]) =>
    Effect.gen(function* () {
      const parts = Array.from({ length: 40 }, (_, at) => text(`part ${at} ${"of a request, 0x1f ".repeat(at)}`))
      const others = parts.map((part) => text(`${part.text} once more`))
      const kept = yield* make(noCalibrations, () => Effect.void)
      for (const { another, from, to } of lists) {
        const list = [...parts.slice(0, from), ...(another ? others : parts).slice(from, to)]
        const fresh = yield* make(noCalibrations, () => Effect.void)
        assert.strictEqual(yield* kept.upperBound(model, list), yield* fresh.upperBound(model, list))
      }
    }),
  { arbitrary: { runs: runsOf(100) } }
)

describe("a prompt that the server cut", () => {
  const page = (n: number): Part => text(`page ${n}: ${"the tide table of the harbour ".repeat(100)}`)
  const [one, two, other] = [page(1), page(2), page(3)]
  const image: Part = { inlineData: { mimeType: "image/png", data: "AA" } }
  const read: Part = { functionResponse: { name: "f", response: { output: `${two.text}` }, parts: [image] } }

  it.effect.each<readonly [string, ReadonlyArray<Part>, ReadonlyArray<Part>, isCut: boolean]>([
    ["is told when the same conversation grows, and its count does not", [one], [one, two], true],
    ["is not when it is another conversation", [one], [other, two], false],
    ["nor when it is the last one", [one, two], [one], false],
    ["nor when media came, which nobody counts alike", [one], [one, two, image], false],
    ["nor when media came in a result", [one], [one, read], false]
  ])("%s", MemoryCalibrations.layer, function* ([, before, after, isCut]) {
    const { observe } = yield* Calibrations
    assert.isUndefined(yield* observe(model, before, 900))
    const cut = yield* observe(model, after, 901)
    assert.strictEqual(cut !== undefined, isCut)
  })

  it.effect(
    "is new once for each model, says what was sent and counted, and makes what was learned forgotten",
    MemoryCalibrations.layer,
    function* () {
      const { observe, upperBound } = yield* Calibrations
      const unlearned = yield* upperBound("b", [one])
      const news: Array<boolean | undefined> = []
      for (const name of ["a", "a", "b"]) {
        yield* observe(name, [one], 700)
        assert.notStrictEqual(yield* upperBound(name, [one]), unlearned)
        const cut = yield* observe(name, [one, two, other], 700)
        news.push(cut?.isNew)
        assert.deepInclude(cut, { model: name, counted: 700 })
        assert.isAbove(cut?.estimated ?? 0, 1_500)
        assert.isTrue(Number.isInteger(cut?.estimated))
        assert.strictEqual(yield* upperBound(name, [one]), unlearned)
      }
      assert.deepStrictEqual(news, [true, false, true])
    }
  )
})

describe("counting a request", () => {
  const offline = new ModelError({ reason: new NetworkError({ detail: "no network" }) })

  it.effect(
    "uses the model's count of the contents and a bound for the rest",
    Layer.merge(
      MemoryCalibrations.layer,
      ScriptedModel.layer([], () => 700)
    ),
    function* () {
      const counted = yield* countRequest(request)
      assert.deepInclude(counted, { by: "model", countError: null })
      assert.isAbove(counted.tokens, 700)
      // The bound has what a server may add by itself.
      assert.isBelow(counted.tokens, 840)
      const bare = yield* countRequest({ model, contents: request.contents })
      assert.strictEqual(bare.tokens, 700)
    }
  )

  it.effect(
    "learns from the model's count",
    Layer.merge(
      MemoryCalibrations.layer,
      ScriptedModel.layer([], () => 2_000)
    ),
    function* () {
      for (let i = 0; i < 20; i += 1) yield* countRequest(request)
      const after = yield* bound()
      assert.isAtLeast(after, 2_000)
      assert.isAtMost(after, 2_300)
    }
  )

  it.effect(
    "falls back to the bound, and gives the reason",
    Layer.merge(
      MemoryCalibrations.layer,
      ScriptedModel.layer([], () => offline)
    ),
    function* () {
      const counted = yield* countRequest(request)
      assert.strictEqual(counted.by, "bound")
      assert.strictEqual(counted.countError, offline)
      const calibrations = yield* Calibrations
      assert.strictEqual(counted.tokens, yield* calibrations.upperBound(model, requestParts(request)))
      assert.isAbove(counted.tokens, yield* estimateContents(request))
    }
  )

  it.effect("can be interrupted while the model counts", MemoryCalibrations.layer, function* () {
    const never = Layer.mock(Model, { countTokens: () => Effect.never })
    const done = yield* countRequest(request).pipe(
      Effect.provide(never),
      Effect.raceFirst(Effect.as(Effect.yieldNow, "stopped"))
    )
    assert.strictEqual(done, "stopped")
  })
})

/** A log that can be read. */
const collected = (): { readonly lines: Array<string>; readonly layer: Layer.Layer<never> } => {
  const lines: Array<string> = []
  return { lines, layer: Logger.layer([Logger.make(({ message }) => lines.push(String(message)))]) }
}

layer(NodeServices.layer)("calibrations in a file", (it) => {
  const place = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    return { folder, file: path.join(folder, "deep", "calibrations.json"), fs, path }
  })

  it.effect("persist privately, without leftovers", function* () {
    const { file, fs, path } = yield* place
    const cold = yield* Effect.provide(bound(), FileCalibrations.layer(file))
    assert.isFalse(yield* fs.exists(file))
    const learned = yield* Effect.provide(Effect.andThen(learn, bound()), FileCalibrations.layer(file))
    assert.notStrictEqual(learned, cold)
    assert.strictEqual(yield* Effect.provide(bound(), FileCalibrations.layer(file)), learned)
    assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
    assert.strictEqual((yield* fs.stat(path.dirname(file))).mode & 0o777, 0o700)
    assert.deepStrictEqual(yield* fs.readDirectory(path.dirname(file)), ["calibrations.json"])
  })

  it.effect("are not written for counts from which nothing is learned", function* () {
    const { file, fs } = yield* place
    yield* Effect.gen(function* () {
      const { observe } = yield* Calibrations
      // A server that reports other numbers than tokens of the request.
      for (let count = 1; count <= 10; count += 1) yield* observe(model, [prose], 1)
      assert.isFalse(yield* fs.exists(file))
      yield* observe(model, [prose], 1_100)
      yield* fs.remove(file)
      yield* observe(model, [prose], 1)
    }).pipe(Effect.provide(FileCalibrations.layer(file)))
    assert.isFalse(yield* fs.exists(file))
  })

  it.effect("are written a few times in a long conversation, and whole when the layer closes", function* () {
    const { file, fs } = yield* place
    const written = new Set<string>()
    const observations = Effect.map(fs.readFileString(file), (json) => {
      written.add(json)
      const { models }: StoredCalibrations = JSON.parse(json)
      return models[model]?.observations ?? 0
    })
    yield* Effect.gen(function* () {
      const { observe } = yield* Calibrations
      for (let count = 1; count <= 100; count += 1) {
        yield* observe(model, [prose], 1_100)
        // At most half of what was learned is lost with the process.
        assert.isAtLeast((yield* observations) * 2, count)
      }
      assert.isAtMost(written.size, 8)
    }).pipe(Effect.provide(FileCalibrations.layer(file)))
    assert.strictEqual(yield* observations, 100)
  })

  it.effect("of two programs at the same time both stay, of each model", function* () {
    const { file, fs } = yield* place
    const learned = (counts: Readonly<Record<string, number>>) =>
      Effect.gen(function* () {
        const { observe } = yield* Calibrations
        for (const [name, count] of Object.entries(counts)) {
          for (let left = count; left > 0; left -= 1) {
            yield* observe(name, [prose], 1_100)
            yield* Effect.yieldNow
          }
        }
      }).pipe(Effect.provide(FileCalibrations.layer(file)))
    yield* Effect.all([learned({ a: 5, shared: 3 }), learned({ shared: 6, b: 4 })], { concurrency: 2 })
    const { models }: StoredCalibrations = JSON.parse(yield* fs.readFileString(file))
    assert.deepStrictEqual(
      Object.fromEntries(Object.entries(models).map(([name, { observations }]) => [name, observations])),
      { a: 5, shared: 9, b: 4 }
    )
  })

  const aside: ReadonlyArray<readonly [why: string, content: string, suffix: string]> = [
    ["is no JSON", "{", "damaged"],
    ["has not the shape", JSON.stringify({ ...noCalibrations, models: { [model]: { observations: 1 } } }), "damaged"],
    ["is of a newer version", JSON.stringify({ version: 2, whatever: true }), "newer"]
  ]
  for (const [why, content, suffix] of aside) {
    it.effect(`start afresh where the file ${why}: it is set aside with one warning`, function* () {
      const { file, fs, path } = yield* place
      yield* fs.makeDirectory(path.dirname(file))
      yield* fs.writeFileString(file, content)
      const log = collected()
      yield* learn.pipe(Effect.provide(Layer.provideMerge(FileCalibrations.layer(file), log.layer)))
      assert.strictEqual(log.lines.length, 1)
      assert.include(log.lines[0], `${file}.${suffix}`)
      assert.strictEqual(yield* fs.readFileString(`${file}.${suffix}`), content)
      const stored = yield* Schema.decodeEffect(Schema.fromJsonString(StoredCalibrations))(
        yield* fs.readFileString(file)
      )
      assert.strictEqual(stored.models[model]?.observations, 20)
    })
  }

  it.effect("start afresh silently when the estimator has changed", function* () {
    const { file, fs, path } = yield* place
    yield* fs.makeDirectory(path.dirname(file))
    yield* fs.writeFileString(file, JSON.stringify({ ...noCalibrations, features: "another", models: {} }))
    const log = collected()
    yield* learn.pipe(Effect.provide(Layer.provideMerge(FileCalibrations.layer(file), log.layer)))
    assert.deepStrictEqual(log.lines, [])
    assert.strictEqual(usableCalibrations({ ...noCalibrations, features: "another" }), noCalibrations)
  })

  it.effect("continue in memory with one warning where nothing can be written", function* () {
    const { file, fs, folder, path } = yield* place
    // A file where the folder should be: neither to be read nor to be written below.
    yield* fs.writeFileString(path.join(folder, "deep"), "")
    const log = collected()
    const learned = yield* Effect.andThen(learn, bound()).pipe(
      Effect.provide(Layer.provideMerge(FileCalibrations.layer(file), log.layer))
    )
    assert.isAtMost(learned, 1_150)
    assert.strictEqual(log.lines.length, 1)
  })
})

it("the parts of a request are everything that is sent, as the same objects, so that none is counted twice", () => {
  const parts = requestParts({ ...request, contents: [user(prose), user(call("f", {}))] })
  assert.strictEqual(parts.length, 4)
  assert.strictEqual(parts[2], prose)
})
