import { Effect, Schema } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Report } from "../../src/cli/output/ReplayReport.ts"
import { strategies as allStrategies } from "../../src/domain/compression/strategies/Strategies.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(Report)))

const report = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const { status, stdout } = yield* run(["replay", ...args, "--json"])
  assert.strictEqual(status, 0, args.join(" "))
  assert.strictEqual(String(stdout).split("\n").length, 2)
  return decode(String(stdout))
})

const strategiesOf = (names: ReadonlyArray<string>) => allStrategies.filter(({ name }) => names.includes(name))

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

describe("replay", () => {
  it.effect("--json prints one document that matches its schema, with sums that agree", function* () {
    const { format, messages, strategies, window } = yield* report([example, "--window", "16k"])
    assert.deepStrictEqual([format, messages, window, strategies.length], ["claude", 27, 16_000, 1])
    for (const result of strategies) {
      const tokens = result.sizes.map((size) => size.tokens)
      assert.strictEqual(result.requests, result.sizes.length)
      assert.strictEqual(result.turns, result.requests + result.refused.length)
      assert.strictEqual(result.largest, Math.max(...tokens))
      assert.strictEqual(result.sent, sum(tokens))
      assert.strictEqual(result.prefix, sum(result.sizes.map((size) => size.prefix)))
      assert.strictEqual(sum(Object.values(result.statuses)), result.compressions.length)
      assert.isAbove(result.compressions.length, 0)
    }
  })

  it.effect("compares all strategies: the trigger of each, stable requests, figures of each compression", function* () {
    const names = ["palimpsest", "gemini", "pi", "openclaw"]
    const { strategies, threshold } = yield* report([example, "--window", "16k", "--strategy", names.join(",")])
    assert.deepStrictEqual(
      strategies.map(({ strategy }) => strategy),
      names
    )
    assert.strictEqual(threshold, 0.5)
    assert.deepStrictEqual(
      strategies.map(({ trigger }) => trigger),
      strategiesOf(names).map(({ trigger }) => Math.ceil(trigger(16_000)))
    )
    for (const { compressions, cost, figures, stable, strategy } of strategies) {
      assert.isAbove(compressions.length, 0, strategy)
      assert.isAtMost(stable.part, stable.whole)
      assert.isNumber(cost)
      for (const key of ["actionsGrounded", "actionsReachable", "factsKept", "factsReachable"]) {
        const parts = compressions.map((one) => one.figures?.[key]?.part ?? 0)
        assert.strictEqual(figures[key]?.part, sum(parts), `${strategy} ${key}`)
      }
    }
    const [own] = strategies
    assert.deepStrictEqual([own?.inVain, own?.stable.least], [0, 1])
  })

  it.effect("takes one threshold for all strategies, and prices from a file", function* () {
    const { folder } = yield* program
    mkdirSync(path.join(folder, "replay"), { recursive: true })
    const file = path.join(folder, "replay", "prices.json")
    writeFileSync(file, JSON.stringify({ models: { claude: { input: 1_000_000, output: 0 } } }))
    const args = [example, "--window", "16k", "--threshold", "0.75", "--strategy", "pi,openclaw", "--prices", file]
    const { prices, strategies, threshold } = yield* report(args)
    assert.deepStrictEqual([threshold, prices], [0.75, file])
    for (const { cost, sent, trigger } of strategies) {
      // A dollar a token, cached or not.
      assert.deepStrictEqual([trigger, cost], [12_000, sent])
    }
  })

  it.effect("--html writes a page in place of the text", function* () {
    const { folder } = yield* program
    mkdirSync(path.join(folder, "replay"), { recursive: true })
    const html = path.join(folder, "replay", "page.html")
    const args = ["replay", example, "--window", "16k", "--strategy", "palimpsest,pi", "--html", html]
    const { status, stderr, stdout } = yield* run(args)
    assert.deepStrictEqual([status, String(stdout)], [0, ""])
    assert.include(stderr, `wrote the page to ${html}`)
    const page = readFileSync(html, "utf8")
    assert.match(page, /<code>(?:palimpsest|pi)<\/code> (?:costs|sends) least in a window of/)
    assert.notMatch(page, /\b(?:src|href)="https?:/)
    const over = yield* run(["replay", html, "--window", "16k", "--html", html])
    assert.strictEqual(over.status, 2)
  })
})
