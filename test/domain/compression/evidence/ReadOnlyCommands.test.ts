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
    "kubectl -n staging get pods -o wide",
    "kubectl --kubeconfig a -n staging logs deploy/web",
    "helm -n staging list",
    "git --git-dir=a/.git -c core.pager=cat -C 'my app' status",
    "docker --context far ps",
    "docker compose -f a.yml -p app logs web",
    "gh -R owner/repo pr view 12",
    "gh pr --repo owner/repo view 12",
    "terraform -chdir=infra plan",
    "terraform -chdir=infra state list",
    "aws --profile work s3 ls s3://a",
    "aws --region eu-west-1 --output json ec2 describe-instances",
    "gcloud --project a compute instances list",
    "npm --prefix web ls",
    "node -v",
    "git push --dry-run",
    "git clean -ndx",
    "git rm -n a.ts",
    "kubectl apply --dry-run=server -f a.yaml",
    "npm publish --dry-run",
    "rsync -avn a/ b/",
    "make -n deploy",
    "Remove-Item .\\a.txt -WhatIf",
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
    "./deploy.sh --dry-run",
    "python migrate.py --dry-run",
    "npm run release -- --dry-run",
    "gh pr create --dry-run",
    "kubectl apply --dry-run=none -f a.yaml",
    "git commit -n -m x",
    "helm install web chart --version 1.2",
    "kubectl -n staging delete pod a",
    "gh -R owner/repo pr merge 12",
    "terraform -chdir=infra apply",
    "terraform plan -out=tfplan",
    "aws --profile work s3 cp a s3://a",
    "aws s3api get-object --bucket a --key b c",
    "npm --prefix web run build",
    "docker --context far rm a",
    "docker compose -f a.yml up -d",
    "gcloud --project a compute instances delete b",
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
