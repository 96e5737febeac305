import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtemp, writeFile } from "node:fs/promises"
import path from "node:path"
import { strategies } from "../../src/domain/compression/strategies/Strategies.ts"
import { sessionFile } from "../support/sessions.ts"
import { example, program, run } from "./program.ts"

/** `--strategy` and the setting `strategy` in the built program. */

const names = strategies.map(({ name }) => name)

const recording = sessionFile("claude-code-1512-lines")

const scratch = Effect.flatMap(program, ({ folder }) => Effect.promise(() => mkdtemp(path.join(folder, "strategies-"))))

describe("strategies", () => {
  for (const strategy of names) {
    it.effect(`compress takes ${strategy}`, () =>
      Effect.gen(function* () {
        const args = ["compress", example, "--limit", "16k", "--force", "--summarizer", "extractive"]
        const { status, stdout } = yield* run([...args, "--strategy", strategy, "--json"])
        assert.deepStrictEqual([status, JSON.parse(String(stdout)).status], [0, "COMPRESSED"])
      })
    )
  }

  it.effect("eval measures all strategies, or those that are named", () =>
    Effect.gen(function* () {
      const measured = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const { stdout } = yield* run(["eval", recording, "--budget", "2k", "--preserve", "0.3", ...args, "--json"])
        const { sums }: { readonly sums: ReadonlyArray<{ readonly writer: string }> } = JSON.parse(String(stdout))
        return sums.map(({ writer }) => writer).filter((writer) => writer !== "recorded")
      })
      assert.deepStrictEqual(yield* measured(), names)
      assert.deepStrictEqual(yield* measured("--strategy", "pi,palimpsest"), ["pi", "palimpsest"])
    })
  )

  const list = names.join(", ")
  for (const [what, args, says] of [
    ["compress", ["compress", example, "--strategy", "best"], `"best". Expected: one of ${list}`],
    [
      "compress with two",
      ["compress", example, "--strategy", "pi,openclaw"],
      `"pi,openclaw". Expected: one of ${list}`
    ],
    ["ask", ["ask", "--strategy", "best", "hi"], `"best". Expected: one of ${list}`],
    ["chat", ["chat", "--strategy", "pi,gemini"], `"pi,gemini". Expected: one of ${list}`],
    [
      "eval",
      ["eval", example, "--strategy", "pi,best"],
      `"pi,best". Expected: strategies with commas between them, of ${list}`
    ]
  ] as const) {
    it.effect(`${what} refuses an unknown strategy in one line that lists those that exist`, () =>
      Effect.gen(function* () {
        const { status, stderr, stdout } = yield* run(args)
        assert.deepStrictEqual([status, String(stdout)], [2, ""])
        const [line, ...rest] = stderr.split("\n")
        assert.strictEqual(line, `palimpsest: Invalid value for flag --strategy: ${says}`)
        assert.match(rest.join("\n"), /^(?:Try [^\n]+\n)?$/)
      })
    )
  }

  it.effect("settings with an unknown strategy are refused in one line that lists those that exist", () =>
    Effect.gen(function* () {
      const home = yield* scratch
      yield* Effect.promise(() => writeFile(path.join(home, "settings.json"), `{"strategy": "best"}`))
      const { status, stderr } = yield* run(["ask", "hi"], { env: { PALIMPSEST_HOME: home, GEMINI_API_KEY: "k" } })
      assert.strictEqual(status, 2)
      const expected = names.map((name) => `"${name}"`).join(" or ")
      assert.match(stderr, new RegExp(`^palimpsest: [^\n]*settings.json, strategy: expected ${expected}\n$`))
    })
  )
})
