import { toolMatcher } from "../../../src/services/hooks/HookSystem.ts"
import { assert, it } from "../../support/vitest.ts"

it.effect.each<readonly [rule: string, matcher: string | undefined, tool: string, expected: boolean]>([
  ["no matcher means all", undefined, "glob", true],
  ["an empty one means all", " ", "glob", true],
  ["* means all", "*", "glob", true],
  ["a name", "write_file", "write_file", true],
  ["a part of a name", "file", "write_file", true],
  ["another name", "read_file", "write_file", false],
  ["a regular expression", "write_.*|replace", "write_file", true],
  ["which may not match", "^file", "write_file", false],
  ["and heeds case", "^WRITE", "write_file", false],
  ["what is not a regular expression is a name", "a(b", "a(b", true],
  ["and no other", "a(b", "a", false],
  ["one that would try every way on a long name", "^(([a-z])+.)+[A-Z]$", "a".repeat(100_000), false],
  ["the same, where it matches", "^(([a-z])+.)+[A-Z]$", `${"a".repeat(100_000)}Z`, true]
])("the matcher of a hook %s", function* ([, matcher, tool, expected]) {
  const matches = yield* toolMatcher(matcher)
  assert.strictEqual(yield* matches(tool), expected)
})
