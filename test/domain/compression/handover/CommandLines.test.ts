import { assert, describe, it } from "@effect/vitest"
import type { CommandRun } from "../../../../src/domain/compression/evidence/Attempts.ts"
import { cost } from "../../../../src/domain/compression/handover/Budget.ts"
import { commandItems, commandLine, ranLine } from "../../../../src/domain/compression/handover/CommandLines.ts"
import { Handle } from "../../../../src/domain/content/Handle.ts"
import { entryId } from "../../../../src/domain/conversation/Conversation.ts"

/** Commands with their exit codes; `unclear` where neither the code nor the output of a pipe tells. The failures of `open` have not ended. */
const listed = (
  open: ReadonlyArray<string>,
  ...commands: ReadonlyArray<readonly [command: string, exit: number | "unclear"]>
) =>
  commandItems(
    new Map(
      commands.map(([command, exit], index): readonly [string, CommandRun] => [
        command,
        {
          ...(exit === "unclear" ? { exit: 0, ok: undefined } : { exit, ok: exit === 0 }),
          entry: entryId(index + 1),
          handle: Handle.make("h_aaaaaaaaaa")
        }
      ])
    ),
    (text) => text,
    (command) => open.includes(command)
  )
const lines = (list: ReturnType<typeof listed>, budget = 1_000) =>
  list(budget).flatMap(({ text }) =>
    text
      .split("\n")
      .slice(1)
      .map((line) => line.trim())
  )

describe("a command", () => {
  it("stands as it ran where it is the last action, and without filters of its output in the list", () => {
    const command = "npm run build 2>&1 |\n  head -5"
    assert.deepStrictEqual([ranLine(command), commandLine(command)], ["npm run build 2>&1 | head -5", "npm run build"])
    const request = `gh pr create --title "Add an export" --body "$(cat <<'EOF'\n## Summary\n- CSV\nEOF\n)"`
    assert.strictEqual(commandLine(request), 'gh pr create --title "Add an export"')
    const comment = `gh pr comment 7 --body "$(cat <<'EOF'\nThe export is ready.\nSee above.\nEOF\n)"`
    assert.strictEqual(commandLine(comment), 'gh pr comment 7 --body "The export is ready.…"')
  })
})

describe("the list of commands", () => {
  it("begins with open failures and what was published; a failure that a success ended is no state", () => {
    const list = listed(["npm run docs"], ["npm run docs", 1], ["npm run old", 1], ["npm install", 0], ["git push", 0])
    assert.deepStrictEqual(lines(list), ["git push", "npm run docs → exit 1 (e1 h_aaaaaaaaaa)", "npm install"])
  })

  it("leaves out checks that passed, which have lines of their own, but not those that published or fail", () => {
    const list = listed(["npm run lint"], ["npm test", 0], ["npm run lint", 1], ["npm test && git push", 0])
    assert.deepStrictEqual(lines(list), ["npm test && git push", "npm run lint → exit 1 (e2 h_aaaaaaaaaa)"])
  })

  it("leaves out what only changed files, staged them or fetched, unless it failed", () => {
    const each = "for file in src/*.ts; do sed -i 's/a/b/' $file; done"
    const list = listed(
      ["cp a b"],
      [each, 0],
      ["git add -A && chmod +x run", 0],
      ["git fetch && git log -3", 0],
      ["cp a b", 1]
    )
    assert.deepStrictEqual(lines(list), ["cp a b → exit 1 (e4 h_aaaaaaaaaa)"])
  })

  it.each([
    ["git fetch https://example.com/a.git", false],
    ["git fetch git@example.com:a.git main", false],
    ["git fetch --filter=blob:none origin main", false],
    ["git fetch origin main:main", true],
    ["git fetch -f origin +main:main", true],
    ["chmod +x bin/run", false],
    ["chmod +x .git/hooks/pre-commit", true],
    ["chmod 600 /etc/app.key", true],
    ["chmod 600 ~/.ssh/id", true]
  ])("%s is listed or not", (command, isListed) => {
    assert.deepStrictEqual(lines(listed([], [command, 0])), isListed ? [command] : [])
  })

  it("leaves out runs that a later one of the same command outdates, and looks", () => {
    const list = listed(
      ["npm ci | tail -3"],
      ["npm ci | tail -3", 1],
      ["git log -3", 0],
      ["npm link", 0],
      ["npm ci | tail -9", 0]
    )
    assert.deepStrictEqual(lines(list), ["npm ci", "npm link"])
  })

  it("says that the others succeeded only where one has no result beside it", () => {
    const headings = [
      listed(["make a"], ["make a", 1]),
      listed(["make a"], ["make a", 1], ["make b", 0]),
      listed([], ["rename 'a → b' x", 0])
    ].map((list) => list(1_000)[0]?.text.split("\n")[0])
    assert.deepStrictEqual(headings, [
      "- commands, latest first:",
      "- commands, latest first; they succeeded if no result stands beside:",
      "- commands, latest first; they succeeded if no result stands beside:"
    ])
  })

  it("says what did not succeed, which has an open failure, and where something was published", () => {
    const run = { exit: undefined, ok: undefined, entry: entryId(1), handle: undefined }
    const runs: ReadonlyArray<readonly [string, CommandRun]> = [
      ["npm run serve", run],
      ["gh pr create", { ...run, exit: 0, ok: true, address: "https://git.example/pull/7" }]
    ]
    const list = commandItems(
      new Map(runs),
      (text) => text,
      (command) => command === "npm run serve"
    )
    assert.deepStrictEqual(lines(list), [
      "gh pr create → https://git.example/pull/7",
      "npm run serve → did not succeed (e1)"
    ])
  })

  it("names what was cancelled with the calls beside it", () => {
    const run: CommandRun = { exit: undefined, ok: undefined, isCancelled: true, entry: entryId(1), handle: undefined }
    const list = commandItems(
      new Map([["npm run migrate", run]]),
      (text) => text,
      () => false
    )
    assert.deepStrictEqual(lines(list), ["npm run migrate → cancelled, may have run in part (e1)"])
  })

  it("names what has no clear result, but for looks and checks", () => {
    const list = listed(
      [],
      ["./deploy.sh | tail -3", "unclear"],
      ["cat a.log | tail", "unclear"],
      ["npm test | tail", "unclear"]
    )
    assert.deepStrictEqual(lines(list), ["./deploy.sh → no clear result (e1 h_aaaaaaaaaa)"])
  })

  it("tells long commands with the same beginning apart by their results", () => {
    const beginning = `docker run ${"-v /a:/b ".repeat(30)}image`
    const list = listed(
      [`${beginning} one`],
      [`${beginning} one`, 1],
      [`${beginning} two`, 0],
      [`${beginning} three`, 0]
    )
    assert.deepStrictEqual(
      lines(list).map((line) => line.replace(/^.*…/, "")),
      [" → exit 1 (e1 h_aaaaaaaaaa)", ""]
    )
  })

  it("shows commands whole, the very long ones up to the end of a word", () => {
    const long = `rsync ${Array.from({ length: 30 }, (_, n) => `folder/file${n}.txt`).join(" ")}`
    const [line = ""] = lines(listed([], [long, 0]))
    assert.isAtMost(line.length, 201)
    assert.match(line, /\/file\d+\.txt…$/)
  })

  it("shows a here-document that is an argument by its first line", () => {
    const list = listed(
      [],
      [`git commit -m "$(cat <<'EOF'\nfix: close the socket\n\nLong text.\nEOF\n)" && git push`, 0]
    )
    assert.deepStrictEqual(lines(list), ['git commit -m "fix: close the socket…" && git push'])
  })

  it("reads a here-document of a megabyte: quadratic time would exceed the test's limit", () => {
    assert.strictEqual(
      commandLine(`gh pr create --body "$(cat <<EOF\nOne\n${"\n".repeat(1_000_000)}`),
      'gh pr create --body "One…'
    )
  })

  it("fits its budget, about: together lines may take slightly more than one by one", () => {
    const list = listed([], ...Array.from({ length: 100 }, (_, n) => [`make target-${n} VERBOSE=1`, 0] as const))
    for (const budget of [0, 20, 40, 200, 1_000]) {
      assert.isAtMost(
        list(budget).reduce((sum, item) => sum + cost(item), 0),
        budget * 1.03
      )
    }
  })
})
