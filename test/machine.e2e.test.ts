import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import path from "node:path"
import { lackOf } from "./support/machine.ts"
import { newFolder } from "./support/paths.ts"
import { skippedLines } from "./support/skippedTests.ts"

/** Runs the tests in `fixtures/machine`, with programs of their own on the PATH and some of them hidden. */
const run = (hidden: string) => {
  const bin = newFolder("bin-")
  for (const name of ["tmux", "rg", "chromium", "beside"]) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\necho a ${name}\n`)
    chmodSync(path.join(bin, name), 0o755)
  }
  const cli = path.join(path.dirname(import.meta.dirname), "node_modules", "vitest", "vitest.mjs")
  const folder = path.join(import.meta.dirname, "fixtures", "machine")
  const { CHROMIUM_PATH: _, ...rest } = process.env
  const { status, stdout } = spawnSync(
    process.execPath,
    [cli, "run", "--config", path.join(folder, "vitest.config.ts")],
    {
      cwd: folder,
      encoding: "utf8",
      env: {
        ...rest,
        PATH: [bin, process.env["PATH"]].join(path.delimiter),
        PALIMPSEST_TEST_WITHOUT: hidden,
        NO_COLOR: "1",
        FORCE_COLOR: undefined
      }
    }
  )
  return { status, lines: stdout.trimEnd().split("\n") }
}

describe("an optional program of a test", () => {
  it("is used where it exists, without a message", () => {
    const { lines, status } = run("")
    assert.strictEqual(status, 0, lines.join("\n"))
    assert.match(lines.join("\n"), /Tests +5 passed \(5\)/)
    assert.notMatch(lines.at(-1) ?? "", /skipped/)
  })

  it("can be hidden from tests and their children; the last lines list what was skipped, and how to get it", () => {
    const { lines, status } = run("tmux,rg,chromium")
    assert.strictEqual(status, 0, lines.join("\n"))
    assert.match(lines.join("\n"), /Tests +1 passed \| 4 skipped \(5\)/)
    const [one, two, three] = lines.slice(-3)
    assert.match(one ?? "", /^skipped: 2 tests need tmux \(\S.* install tmux\)$/)
    assert.match(two ?? "", /^skipped: 1 test needs ripgrep \(\S.* install ripgrep\)$/)
    assert.match(three ?? "", /^skipped: 1 test needs Chromium \(\S.* install chromium, or set CHROMIUM_PATH\)$/)
  })

  it("skips for other reasons are not counted", () => {
    assert.strictEqual(lackOf("a group > a test that needs nothing"), undefined)
    assert.deepStrictEqual(skippedLines(["a > b", "a [needs git: get git] > b", "c > d [needs git: get git] > e"]), [
      "skipped: 2 tests need git (get git)"
    ])
  })
})
