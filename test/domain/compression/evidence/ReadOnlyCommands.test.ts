import { assert, describe, it } from "@effect/vitest"
import { afterView, isLook, withoutView } from "../../../../src/domain/compression/evidence/ReadOnlyCommands.ts"

describe("commands that only read", () => {
  it.each([
    "git -C app log --oneline | head -3",
    "git branch --show-current",
    "git config --get user.name",
    "git stash list",
    "gh pr view 12 --json title 2>&1 | head -30",
    "gh api repos/a/b/pulls/1/comments --paginate | jq '.[].body'",
    "owner=$(gh repo view --json owner -q .owner) && echo $owner",
    "for f in a b; do git show $f; done",
    "node --version",
    "sed -n 1,20p a.ts",
    "curl -s https://example.com/a.json",
    "curl -fsSL https://example.com/a.json",
    "docker ps -a",
    "kubectl --context staging get pods",
    "git push --dry-run",
    "Get-Content -Path .\\src\\a.cs -TotalCount 40 | Select-String limit",
    'findstr /s "limit" src\\*.cs'
  ])("%s", (command) => assert.isTrue(isLook(command)))
  it.each([
    "npm test",
    "git branch -D old",
    "git stash",
    "git config user.name me",
    "git worktree add ../b",
    "git fetch origin && git log -1",
    "gh api repos/a/b/issues -f title=x",
    "gh pr create --fill",
    "curl -X POST https://example.com",
    "curl -sXPOST https://example.com",
    "curl -sd x=1 https://example.com",
    "sed -i s/a/b/ a.ts",
    "git status && npm run build",
    "docker run a",
    "Get-Content .\\a.txt | Set-Content .\\b.txt",
    "./scripts/test-all",
    "bin/format-code --fast",
    "Measure-Command { npm test }",
    "./deploy.sh"
  ])("but not %s", (command) => assert.isFalse(isLook(command)))
})

describe("filters that only choose which lines of an output are shown", () => {
  it.each([
    ["npm test 2>&1 | tail -20", "npm test"],
    ["npm test 2>&1 | grep -E 'FAIL|ok' | head -5", "npm test"],
    ['npm test | grep "a|b"', "npm test"],
    ["npm test > /dev/null 2>&1", "npm test"],
    ["npm test; echo $?", "npm test"],
    ["npm test | tee log", "npm test | tee log"],
    ["npm test && npm run lint", "npm test && npm run lint"],
    ["| tail", "| tail"]
  ])("%s is %s", (command, run) => assert.strictEqual(withoutView(command), run))
  it("is no part of what follows a command", () => {
    assert.strictEqual(afterView(" 2>&1 | tail -20 → exit 1 (e4)"), " → exit 1 (e4)")
    assert.strictEqual(afterView(" && npm run lint"), " && npm run lint")
  })
  it("takes time in proportion to its end alone", () => {
    const long = `echo ${"| tail x ".repeat(20_000)}&`
    assert.strictEqual(withoutView(long), long)
  })
})
