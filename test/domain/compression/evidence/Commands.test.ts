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
  const checks = corpus<readonly [command: string, kinds: ReadonlyArray<CheckKind>]>("commands-with-checks")
  it.each(checks)("%s", (command, kinds) => {
    assert.deepStrictEqual(checksOf(command), [...kinds])
  })
})

describe("whether a command succeeded", () => {
  const vitestPassed = " Test Files  3 passed (3)\n      Tests  24 passed (24)\n   Duration  1.2s"
  const runs: ReadonlyArray<
    readonly [name: string, command: string, exit: number | undefined, output: string, ok: boolean | undefined]
  > = [
    ["no exit code tells nothing", "npm test", undefined, vitestPassed, undefined],
    ["an exit code of its own decides", "npm test", 0, "1 failed", true],
    ["another exit code too", "npm test", 1, vitestPassed, false],
    ["&& passes the exit code on", "npm run build && npm test", 0, "0 errors, 1 failed", true],
    ["a pipe in quotes is none", 'npm test -- -t "a|b"', 0, "1 failed", true],
    ["vitest behind a pipe", "npx vitest run | tail -5", 0, vitestPassed, true],
    ["vitest failed", "npx vitest run 2>&1 | tail", 0, "Tests  2 failed | 22 passed (24)", false],
    ["vitest, file failed", "npx vitest run 2>&1 | tail", 0, " FAIL  test/a.test.ts > adds", false],
    ["jest", "jest | tail", 0, "Tests:       3 passed, 3 total", true],
    ["jest failed", "jest | tail", 0, "Tests:       1 failed, 2 passed, 3 total", false],
    ["pytest", "pytest | tail -1", 0, "===== 12 passed in 0.3s =====", true],
    ["pytest, with warnings", "pytest | tail -1", 0, "==== 12 passed, 2 warnings in 0.30s ====", true],
    ["pytest failed", "pytest | tail -1", 0, "== 1 failed, 11 passed in 0.3s ==", false],
    ["pytest errors", "pytest | tail -1", 0, "== 2 errors in 0.3s ==", false],
    ["unittest", "python -m unittest 2>&1 | tail -3", 0, "Ran 4 tests in 0.001s\n\nOK", true],
    ["unittest failed", "python -m unittest 2>&1 | tail -3", 0, "Ran 4 tests in 0.1s\n\nFAILED (failures=1)", false],
    ["go test", "go test ./... | tail", 0, "ok  \texample.com/a\t0.012s", true],
    ["go test failed", "go test ./... | tail", 0, "--- FAIL: TestA (0.00s)\nFAIL\texample.com/a\t0.1s", false],
    [
      "go test, one package failed",
      "go test ./... | grep -v x",
      0,
      "ok  \ta\t0.1s\nFAIL\tb [build failed]\nok  \tc\t0.1s",
      false
    ],
    ["cargo", "cargo test | tail", 0, "test result: ok. 5 passed; 0 failed; 0 ignored", true],
    ["cargo failed", "cargo test | tail", 0, "test result: FAILED. 4 passed; 1 failed; 0 ignored", false],
    ["cargo does not compile", "cargo build 2>&1 | tail", 0, "error[E0382]: borrow of moved value: `x`", false],
    ["mix", "mix test | tail -2", 0, "15 tests, 0 failures", true],
    ["mix failed", "mix test | tail -2", 0, "15 tests, 2 failures", false],
    ["mix with excluded", "mix test | tail -2", 0, "3 doctests, 15 tests, 0 failures, 2 excluded", true],
    ["rspec", "rspec | tail -1", 0, "12 examples, 0 failures", true],
    ["rspec failed", "rspec | tail -1", 0, "12 examples, 1 failure", false],
    ["phpunit", "vendor/bin/phpunit | tail -1", 0, "OK (4 tests, 9 assertions)", true],
    ["phpunit failed", "vendor/bin/phpunit | tail -2", 0, "FAILURES!\nTests: 4, Assertions: 9, Failures: 1.", false],
    ["tsc", "tsc --noEmit | head", 0, "src/a.ts(3,5): error TS2322: Type 'x' is not assignable.", false],
    ["tsc with pretty output", "tsc | head", 0, "src/a.ts:3:5 - error TS2322: Type 'x'.", false],
    ["tsc printed nothing", "tsc --noEmit | head", 0, "", true],
    ["tsc counts", "tsc | tail -1", 0, "Found 2 errors in the same file, starting at: src/a.ts:3", false],
    ["eslint failed", "eslint . | tail -2", 0, "✖ 3 problems (1 error, 2 warnings)", false],
    ["eslint warned", "eslint . | tail -2", 0, "✖ 2 problems (0 errors, 2 warnings)", true],
    ["oxlint", "oxlint | tail -1", 0, "Found 0 warnings and 0 errors.", true],
    ["golangci-lint", "golangci-lint run | tail", 0, "0 issues.", true],
    ["golangci-lint failed", "golangci-lint run | tail", 0, "2 issues:\n* errcheck: 2", false],
    ["ruff", "ruff check . | tail", 0, "All checks passed!", true],
    ["ruff failed", "ruff check . | tail", 0, "Found 4 errors.", false],
    ["mypy", "mypy src | tail -1", 0, "Success: no issues found in 12 source files", true],
    ["mypy failed", "mypy src | tail -1", 0, "Found 2 errors in 1 file (checked 12 source files)", false],
    ["credo", "mix credo | tail", 0, "895 mods/funs, found no issues.", true],
    ["make failed", "make 2>&1 | tail", 0, "make: *** [Makefile:3: all] Error 2", false],
    ["a nested make failed", "make 2>&1 | tail", 0, "make[1]: *** [Makefile:3: all] Error 2", false],
    ["mise failed", "mise run test | tail", 0, "[test] ERROR task failed", false],
    ["gradle", "./gradlew test | tail -3", 0, "BUILD SUCCESSFUL in 3s", true],
    ["gradle failed", "./gradlew test | tail -3", 0, "FAILURE: Build failed with an exception.", false],
    [
      "maven failed",
      "mvn test | tail -3",
      0,
      "[ERROR] Tests run: 4, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE",
      false
    ],
    ["npm failed", "npm run build | tail", 0, "npm ERR! code ELIFECYCLE", false],
    ["npm 10 failed", "npm run build | tail", 0, "npm error Lifecycle script `build` failed with error:", false],
    ["none failed is no failure", "npm test | tail", 0, "12 passed, 0 failed", true],
    [
      "the name of a test is no failure",
      "npx vitest run | tail",
      0,
      "✓ shows 3 errors in the log\n Tests  4 passed (4)",
      true
    ],
    ["tests that printed nothing", "npm test | tail -5", 0, "", undefined],
    ["types and tests that printed nothing", "tsc && npm test | tail", 0, "(no output)", undefined],
    ["nothing is told", "npm test | grep -c x", 0, "12", undefined],
    ["a command that is no check", "ls | head", 0, "a.ts", true],
    ["; hides the exit code too", "npm test; echo done", 0, "2 failed\ndone", false],
    ["|| hides it too", "npm test || true", 0, "Tests  2 failed", false],
    ["the status that was printed decides", "npm test; echo $?", 0, "something\n1", false],
    ["a printed status of 0", 'npm test > a.log 2>&1; echo "exit: $?"', 0, "exit: 0", true],
    ["a search behind a check that found nothing", "tsc --noEmit | grep src/a.ts", 1, "", undefined],
    ["a search that found nothing", "grep -rn x src", 1, "Exit code 1", undefined],
    ["a search that failed", "grep -rn x nowhere", 2, "grep: nowhere: No such file", false],
    ["a check before others on lines of their own", "npm test\necho done", 0, "Tests  2 failed\ndone", false],
    ["a preparation before ; hides nothing", "cd app; npm test", 0, "1 failed", true],
    ["pipefail passes it on", "set -o pipefail; npm test | tail -3", 0, "done", true],
    ["an old failure before the end is the end's", "pytest | tail", 0, `${"x".repeat(9_000)}\n3 passed`, true],
    ["CRLF", "pytest | tail", 0, "== 3 passed in 1s ==\r\n", true],
    ["colours", "npx vitest run | tail", 0, "\u001b[31mTests\u001b[39m  \u001b[1m1 failed\u001b[22m", false]
  ]
  it.each(runs)("%s", (_, command, exit, output, ok) => {
    assert.strictEqual(succeeded(command, exit, output), ok)
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
