import { assert, describe, it } from "@effect/vitest"
import {
  type CheckKind,
  checksOf,
  isMilestone,
  programsOf,
  succeeded
} from "../../../../src/domain/compression/evidence/Commands.ts"
import { commitsIn } from "../../../../src/domain/compression/evidence/Commits.ts"
import { isLook } from "../../../../src/domain/compression/evidence/ReadOnlyCommands.ts"
import { corpus } from "../../../support/corpus.ts"

describe("which checks a command runs", () => {
  // What only names a check, reads its file or prepares it runs none.
  const checks = corpus<readonly [command: string, kinds: ReadonlyArray<CheckKind>]>("commands-with-checks")
  it.each(checks)("%s", (command, kinds) => {
    assert.deepStrictEqual(checksOf(command), [...kinds])
  })
})

describe("whether a command succeeded", () => {
  const runs = [
    ...corpus<readonly [name: string, command: string, exit: number | null, output: string, ok: boolean | null]>(
      "runs-of-checks"
    ),
    ["an old failure before the end is the end's", "pytest | tail", 0, `${"x".repeat(9_000)}\n3 passed`, true]
  ] as const
  it.each(runs)("%s", (_, command, exit, output, ok) => {
    assert.strictEqual(succeeded(command, exit ?? undefined, output), ok ?? undefined)
  })
})

const programs = corpus<{ readonly command: string; readonly programs: ReadonlyArray<string> }>("programs-of-commands")
it.each(programs)("the programs of a command $command", ({ command, programs: expected }) => {
  assert.deepStrictEqual(programsOf(command), expected)
})

const outputs = corpus<{
  readonly rule: string
  readonly output: string
  readonly commits: ReadonlyArray<readonly [hash: string, subject: string]>
}>("commits-in-outputs")
it.each(outputs)("commits that git confirmed $rule", ({ commits, output }) => {
  assert.deepStrictEqual(
    commitsIn(output).map(({ hash, subject }) => [hash, subject] as const),
    commits
  )
})

describe("what a command is worth in a handover", () => {
  it.each([
    "git push",
    "git -C app push",
    "gh -R owner/repo pr merge 12",
    "npm --prefix web publish",
    "bd close x-1 --reason='done'",
    "gh pr create --fill",
    "npm publish",
    "git tag v1"
  ])("%s is a milestone", (command) => {
    assert.isTrue(isMilestone(command))
    assert.isFalse(isLook(command))
  })
  it.each(["ls -la", "cd app && git status", "grep -rn x .", "git -C app log --oneline", "sed -n 1,9p a.ts", "cat a"])(
    "%s only looks",
    (command) => {
      assert.isTrue(isLook(command))
      assert.isFalse(isMilestone(command))
    }
  )
  it.each([
    "npm test",
    "rm a.ts",
    "./publish.sh --dry-run",
    "gh pr create --dry-run",
    "echo 'git push'",
    "sed -i s/a/b/ a.ts",
    "node app.js"
  ])("%s is neither", (command) => {
    assert.isFalse(isMilestone(command))
  })
})
