import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import path from "node:path"
import { strategies } from "../../src/domain/compression/strategies/Strategies.ts"
import { sessionFile } from "../support/sessions.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

/** `--strategy` and the setting `strategy` in the built program. */

const names = strategies.map(({ name }) => name)

const recording = sessionFile("claude-code-1512-lines")

describe("strategies", () => {
  it.effect("compress says when a strategy leaves more than the window", function* () {
    const args = ["compress", example, "--limit", "500", "--summarizer", "extractive"]
    const noteOf = Effect.map(
      run([...args, "--strategy", "pi"]),
      ({ stdout }) => /^  note: .*$/m.exec(String(stdout))?.[0]
    )
    assert.strictEqual(yield* noteOf, "  note: still larger than the window; --strategy palimpsest has stronger steps")
    assert.notInclude(String((yield* run(args)).stdout), "still larger")
  })

  it.effect.each(names)("compress with %s names the message that alone is larger than the window", (strategy) =>
    Effect.gen(function* () {
      const { folder } = yield* program
      const file = path.join(folder, `one-${strategy}.json`)
      writeFileSync(
        file,
        JSON.stringify([{ role: "user", parts: [{ text: "many words of one prompt ".repeat(2_000) }] }])
      )
      const args = [
        "compress",
        file,
        "--force",
        "--limit",
        "4000",
        "--summarizer",
        "extractive",
        "--strategy",
        strategy
      ]
      const { stubborn = [] } = JSON.parse(String((yield* run([...args, "--json"])).stdout))
      assert.deepStrictEqual([stubborn.length, stubborn[0].entry, stubborn[0].what], [1, "e1", "user text"])
      assert.match(
        String((yield* run(args)).stdout),
        /user text e1 alone has [\d,]+ tokens; shorten it, or use a model/
      )
    })
  )

  it.effect("eval measures all strategies, or those that are named", function* () {
    const measured = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
      const { stdout } = yield* run(["eval", recording, "--budget", "2k", "--preserve", "0.3", ...args, "--json"])
      const { sums }: { readonly sums: ReadonlyArray<{ readonly writer: string }> } = JSON.parse(String(stdout))
      return sums.map(({ writer }) => writer).filter((writer) => writer !== "recorded")
    })
    assert.deepStrictEqual(yield* measured(), names)
    assert.deepStrictEqual(yield* measured("--strategy", "pi,palimpsest"), ["pi", "palimpsest"])
  })
})
