import { assert, describe, it } from "@effect/vitest"
import {
  type CheckKind,
  checksOf,
  commitsIn,
  isMilestone,
  programsOf,
  succeeded
} from "../../../../src/domain/compression/evidence/Commands.ts"
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

describe("the programs of a command", () => {
  const programs: ReadonlyArray<readonly [command: string, programs: ReadonlyArray<string>]> = [
    ["git push origin main", ["git push"]],
    ["cd app && git push", ["git push"]],
    ["git -C app push", ["git push"]],
    ["git --no-pager push", ["git push"]],
    ["npm run test -- --watch=false", ["npm test"]],
    ["npm test", ["npm test"]],
    ["npx vitest run test/a.test.ts", ["vitest"]],
    ["FOO=1 BAR=2 make all", ["make all"]],
    ["make 2>&1 | tail -3", ["make"]],
    ["go test ./... && go vet ./...", ["go test", "go vet"]],
    ["git add . && git commit -m 'x && y; z'", ["git add", "git commit"]],
    ["git commit -m \"$(cat <<'EOF'\nAdd `npm test` && more | less\nEOF\n)\"", ["git commit"]],
    ["sudo systemctl restart nginx", ["systemctl restart"]],
    ["timeout 60 npm test", ["npm test"]],
    ["ls -la | grep x", []],
    ["echo hi; cat a", []],
    ["npx vitest run a && pnpm exec vitest run b", ["vitest"]],
    ['git commit -m "a message that was cut; npm …', ["git commit"]],
    ["", []]
  ]
  it.each(programs)("%s", (command, expected) => {
    assert.deepStrictEqual(programsOf(command), [...expected])
  })
})

describe("commits that git confirmed", () => {
  const outputs: ReadonlyArray<
    readonly [name: string, output: string, commits: ReadonlyArray<readonly [hash: string, subject: string]>]
  > = [
    ["a commit", "[main 1a2b3c4] Add a parser\n 2 files changed", [["1a2b3c4", "Add a parser"]]],
    ["the first commit", "[main (root-commit) 1a2b3c4] Begin", [["1a2b3c4", "Begin"]]],
    ["without a branch", "[detached HEAD 1a2b3c4d5] Add it", [["1a2b3c4d5", "Add it"]]],
    ["a branch with a slash", "[feat/x-1.2 1a2b3c4] feat(x): add [y]", [["1a2b3c4", "feat(x): add [y]"]]],
    ["an amended one", "[main 9f8e7d6] Add a parser\n Date: Mon Nov 23 2026", [["9f8e7d6", "Add a parser"]]],
    [
      "several",
      "[main 1a2b3c4] One\n[main 2b3c4d5] Two",
      [
        ["1a2b3c4", "One"],
        ["2b3c4d5", "Two"]
      ]
    ],
    ["after the output of a hook", "lint ok\n✔ all\n[main 1a2b3c4] One\n 1 file", [["1a2b3c4", "One"]]],
    ["in German", "[main 1a2b3c4] Füge Prüfung hinzu\n 1 Datei geändert", [["1a2b3c4", "Füge Prüfung hinzu"]]],
    ["the first commit in German", "[main (Root-Commit) 1a2b3c4] Anfang", [["1a2b3c4", "Anfang"]]],
    ["the first commit in Japanese", "[main (ルートコミット) 1a2b3c4] 初期", [["1a2b3c4", "初期"]]],
    ["CRLF", "[main 1a2b3c4] One\r\n 1 file changed\r\n", [["1a2b3c4", "One"]]],
    ["a log line", "1a2b3c4 One", []],
    ["a bracket that is none", "[12:00:01] deadbeef", []],
    ["nothing to commit", "nothing to commit, working tree clean", []]
  ]
  it.each(outputs)("%s", (_, output, commits) => {
    assert.deepStrictEqual(
      commitsIn(output).map(({ hash, subject }) => [hash, subject]),
      commits.map((each) => [...each])
    )
  })
})

describe("what a command is worth in a handover", () => {
  it.each(["git push", "bd close x-1 --reason='done'", "gh pr create --fill", "npm publish", "git tag v1"])(
    "%s is a milestone",
    (command) => {
      assert.isTrue(isMilestone(command))
      assert.isFalse(isLook(command))
    }
  )
  it.each(["ls -la", "cd app && git status", "grep -rn x .", "git -C app log --oneline", "sed -n 1,9p a.ts", "cat a"])(
    "%s only looks",
    (command) => {
      assert.isTrue(isLook(command))
      assert.isFalse(isMilestone(command))
    }
  )
  it.each(["npm test", "rm a.ts", "echo 'git push'", "sed -i s/a/b/ a.ts", "node app.js"])(
    "%s is neither",
    (command) => {
      assert.isFalse(isMilestone(command))
    }
  )
})
