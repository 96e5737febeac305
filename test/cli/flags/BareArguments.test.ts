import { assert, describe, it } from "@effect/vitest"
import { withCommand, withResume } from "../../../src/cli/flags/BareArguments.ts"

describe("flags without a command", () => {
  const rows: ReadonlyArray<readonly [given: string, expected: string]> = [
    ["-p why?", "ask why?"],
    ["--print why?", "ask why?"],
    ["--prompt=why?", "ask why?"],
    ["-p -m pro why?", "ask -m pro why?"],
    ["-m pro -p why?", "ask -m pro why?"],
    ["-c -p more", "ask -c more"],
    ["-r 3 --print more --approve all", "ask -r 3 more --approve all"],
    ["-p x --output-format json", "ask x --json"],
    ["-p x --output-format=stream-json", "ask x --stream-json"],
    ["-p x -o text", "ask x"],
    ["-p x --output-format yaml", "ask x --output-format yaml"],
    ["-p", "ask"],
    ["-p --help", "ask --help"],
    ["-c", "chat -c"],
    ["-r", "chat -r"],
    ["--resume=latest", "chat --resume=latest"],
    ["-m pro", "chat -m pro"],
    ["--model pro --continue", "chat --model pro --continue"],
    ["", ""],
    ["--help", "--help"],
    ["ask -p x", "ask -p x"],
    ["recall file -p", "recall file -p"],
    ["help", "--help"],
    ["help sessions list", "sessions list --help"],
    ["ask help", "ask help"]
  ]
  for (const [given, expected] of rows) {
    it(`palimpsest ${given}: ${expected}`, () =>
      assert.strictEqual(withCommand(given.split(" ").filter((word) => word !== "")).join(" "), expected))
  }
})

describe("the session after --resume", () => {
  const rows = [
    ["chat --resume", "chat --resume"],
    ["chat --resume latest", "chat --resume=latest"],
    ["chat -r 3 --plain", "chat -r=3 --plain"],
    ["chat --resume --plain", "chat --resume --plain"],
    ["ask --resume latest why?", "ask --resume=latest why?"],
    ["ask -- --resume x", "ask -- --resume x"],
    ["sessions --resume x", "sessions --resume x"]
  ]
  it.each(rows)("%s: %s", (given = "", expected) =>
    assert.strictEqual(withResume(given.split(" ")).join(" "), expected)
  )
})
