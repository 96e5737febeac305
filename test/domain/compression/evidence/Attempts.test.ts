import { assert, describe, it } from "@effect/vitest"
import { makesCommit } from "../../../../src/domain/compression/evidence/Commits.ts"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { isLook } from "../../../../src/domain/compression/evidence/ReadOnlyCommands.ts"
import { call, model, response, user } from "../../../../src/domain/content/Content.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { entriesOf, entryOf } from "../../../support/entries.ts"
import { broke, calls, edited, type MadeCall, ran, saw, wrote } from "../../../support/toolCalls.ts"

const evidenceIn = (cwd: string | undefined, ...made: ReadonlyArray<MadeCall>) =>
  runSync(gatherEvidence(entriesOf(calls(...made)), { cwd }))
const evidenceOf = (...made: ReadonlyArray<MadeCall>) => evidenceIn(undefined, ...made)
const failed = (command: string, error = "no"): MadeCall => broke(command, `Exit code 1\nerror: ${error}`)
const begun = (command: string, id: string): MadeCall => [
  "Bash",
  { command, run_in_background: true },
  { output: `Command running in background with ID: ${id}` }
]
const ended = (bash_id: string, exit: number, output = ""): MadeCall => [
  "BashOutput",
  { bash_id },
  { output: `<status>completed</status>\n<exit_code>${exit}</exit_code>\n<stdout>${output}</stdout>` }
]

describe("commands", () => {
  it("stand in the order of their last runs, each once", () => {
    const { commands } = evidenceOf(ran("make a"), ran("make b"), ran("make c"), failed("make a"), ran("make b"))
    assert.deepStrictEqual(
      [...commands].map(([command, { entry, exit }]) => [command, exit, entry]),
      [
        ["make c", 0, "e5"],
        ["make a", 1, "e7"],
        ["make b", 0, "e9"]
      ]
    )
  })

  it("of two in the background, each has its own end, and the checks that it ran", () => {
    const two = [begun("npm test", "b1"), begun("npx tsc --noEmit", "b2")]
    const states = [[], [ended("b2", 1)], [ended("b1", 0, "3 passed")], [ended("b1", 1), ended("b2", 0)]].map(
      (ends) => {
        const { checks } = evidenceOf(...two, ...ends)
        return Object.fromEntries([...checks].map(([kind, { ok }]) => [kind, ok]))
      }
    )
    assert.deepStrictEqual(states, [
      { tests: undefined, types: undefined },
      { tests: undefined, types: false },
      { tests: true, types: undefined },
      { tests: false, types: true }
    ])
  })

  it.each<readonly [name: string, tool: string, answer: object, ok: boolean | undefined]>([
    ["opencode, whose exit code stands beside the output", "bash", { error: "1 failed: ledger rounds wrongly" }, false],
    ["a stopped one", "bash", { error: "User aborted the command" }, undefined]
  ])("that failed without an exit code are judged by what they printed: %s", (_, tool, answer, ok) => {
    const { checks, commands } = evidenceOf([tool, { command: "npm test" }, answer])
    assert.deepStrictEqual([commands.get("npm test")?.ok, checks.get("tests")?.ok], [ok, ok])
  })

  it("in the JSON of Codex of 2025 make commits, and fail with what they printed", () => {
    const shell = (line: string, output: string, exit_code: number): MadeCall => [
      "shell",
      { command: ["powershell.exe", "-NoProfile", "-Command", line] },
      { output: JSON.stringify({ output, metadata: { exit_code, duration_seconds: 0.2 } }) }
    ]
    const { commits, failures } = evidenceOf(
      shell("git commit -am x", "[main 1234567] round half even\n 1 file changed", 0),
      shell("npm test", "1 failed: ledger rounds wrongly\n", 1)
    )
    assert.deepStrictEqual(
      [commits.map(({ hash }) => hash), failures.get("npm test")?.text],
      [["1234567"], "1 failed: ledger rounds wrongly"]
    )
  })

  it("in the background end where a notification says so", () => {
    const told = (name: "task" | "shell", id: string, summary: string) =>
      `<${name === "task" ? name : "bash"}-notification>\n<${name}-id>${id}</${name}-id>\n<summary>${summary}</summary>\n` +
      `</${name === "task" ? name : "bash"}-notification>`
    const checksAfter = (text: string, later: ReadonlyArray<MadeCall> = []) => {
      const calls = [begun("npm test", "b1"), begun("npx tsc --noEmit", "b2"), ...later].flatMap(
        ([name, args, answer], at) => [model(call(name, args, `c${at}`)), user(response(name, answer, `c${at}`))]
      )
      const entries = [...entriesOf(calls), entryOf(calls.length + 1, user({ text }), { author: "program" })]
      const { checks } = runSync(gatherEvidence(entries))
      return Object.fromEntries([...checks].map(([kind, { ok }]) => [kind, ok]))
    }
    const agent = told("task", "a1", 'Agent "look" completed')
    assert.deepStrictEqual(
      [
        agent + told("task", "b1", 'Background command "Test" completed (exit code 0)'),
        told("task", "b1", 'Background command "Test" failed with exit code 2'),
        told("shell", "b2", 'Background command "Types" failed with exit code 1.'),
        told("task", "b1", 'Background command "Test" was stopped')
      ].map((text) => checksAfter(text)),
      [
        { tests: true, types: undefined },
        { tests: false, types: undefined },
        { tests: undefined, types: false },
        { tests: undefined, types: undefined }
      ]
    )
    // A later run, and an end that was asked for, say more than a notification of the first.
    for (const later of [ran("npm test", "3 passed"), ended("b1", 0, "3 passed")]) {
      const late = told("task", "b1", 'Background command "Test" failed with exit code 2')
      assert.deepStrictEqual(checksAfter(late, [later]), { tests: true, types: undefined })
    }
  })

  it("that print how a command runs on have ended with their exit code", () => {
    const { commands } = evidenceOf(failed("npm test", "no\nCommand running in background with ID: b9"))
    assert.strictEqual(commands.get("npm test")?.exit, 1)
  })

  it("that fail in the background are the failures, not the calls that ask for their end", () => {
    const started: MadeCall = [
      "exec_command",
      { cmd: "npm test" },
      { output: "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n" }
    ]
    const asked: MadeCall = [
      "write_stdin",
      { session_id: 7, chars: "" },
      { error: "Wall time: 1 seconds\nProcess exited with code 1\nOutput:\nerror: 1 failing" }
    ]
    const { failures } = evidenceOf(started, asked)
    assert.deepStrictEqual(
      [...failures].map(([subject, { entry, text }]) => [subject, entry, text]),
      [["npm test", "e3", "error: 1 failing"]]
    )
    assert.deepStrictEqual([...evidenceOf(started, asked, ran("npm test", "3 passed")).failures], [])
    // Ctrl-C of the agent is no failure.
    const [tool, , answer] = asked
    for (const chars of ["\u0003", "\u0003\u0003", "q\u0003\n"]) {
      const stopped = evidenceOf(started, [tool, { session_id: 7, chars }, answer])
      assert.deepStrictEqual([[...stopped.failures], stopped.checks.get("tests")?.ok], [[], undefined])
    }
  })

  it("that published something have its address, unless that is very long", () => {
    const addressIn = (output: string) =>
      evidenceOf(ran("gh pr create", output)).commands.get("gh pr create")?.address?.length
    const address = "https://git.example/pull/7"
    for (const output of [address, `Creating…\n${address}\n`, `Output: ${address}\nExit Code: 0`])
      assert.strictEqual(addressIn(output), address.length)
    assert.isUndefined(addressIn(`${address}?${"x".repeat(200)}`))
  })

  it("whose exit code a script of Codex hides are failures with the lines that say why", () => {
    const script = 'const r = await tools.exec_command({"cmd":"cargo test"}); text(r.output)'
    const printed = "test result: FAILED. 2 passed; 1 failed\nerror: test failed, to rerun pass `--lib`"
    const content = ["Script completed\nWall time 1 seconds\nOutput:\n", printed].map((text) => ({
      type: "text",
      text
    }))
    const { failures } = evidenceOf(["exec", { input: script }, { content }])
    assert.deepStrictEqual(
      [...failures].map(([subject, { isQuoted }]) => [subject, isQuoted]),
      [["cargo test", true]]
    )
  })

  it.each([
    ["a code beside each output", ["exit 1", "2 skipped", "exit=0", "built"], [1, 0]],
    ["a code in front of one output of two", ["exit 1", "2 skipped", "built"], [0, 0]]
  ])("have the exit codes that a script of Codex prints: %s", (_, printed, exits) => {
    const script = ["npm test", "npm run build"]
      .map(
        (cmd) =>
          `const r = await tools.exec_command({cmd: "${cmd}"}); text(\`exit ${"${r.exit_code}"}\`); text(r.output)`
      )
      .join("\n")
    const content = ["Script completed\nWall time 1 seconds\nOutput:\n", ...printed].map((text) => ({
      type: "text",
      text
    }))
    const { commands } = evidenceOf(["exec", { input: script }, { content }])
    assert.deepStrictEqual(
      [...commands.values()].map(({ exit }) => exit),
      exits
    )
  })

  it("a script of Codex that failed is a failure, with no command in it, too", () => {
    const failed = "Script failed\nWall time 0.1 seconds\nOutput:\nError: no such tool\n"
    const { failures } = evidenceOf(["exec", { input: "await tools.nothing({})" }, { output: failed }])
    assert.deepStrictEqual(
      [...failures.values()].map(({ text }) => text),
      ["Script failed\nError: no such tool"]
    )
  })

  it("end the failures of their own program alone", () => {
    const { failures } = evidenceOf(
      failed("terraform plan", "no provider"),
      failed("docker build .", "no image"),
      ran("terraform plan -out x")
    )
    assert.deepStrictEqual([...failures.keys()], ["docker build ."])
  })

  it("that run dry end no failure of the real thing, which ends theirs, and pass no check", () => {
    const { checks, failures } = evidenceOf(
      failed("npm publish", "403"),
      ran("npm publish --dry-run"),
      failed("helm upgrade web . --dry-run", "no chart"),
      failed("make test", "1 failed"),
      ran("make -n test"),
      failed("kubectl apply --dry-run=server -f a.yaml", "no field"),
      ran("kubectl apply -f b.yaml")
    )
    assert.deepStrictEqual([...failures.keys()], ["npm publish", "helm upgrade web . --dry-run", "make test"])
    assert.strictEqual(checks.get("tests")?.ok, false)
  })

  it.each([
    ["pytest tests", "pytest --collect-only -q"],
    ["pytest tests", "pytest --version"],
    ["pytest tests", "pytest --fixtures"],
    ["npm publish", "npm publish --help"],
    ["npm test", "npm -v"],
    ["terraform plan", "terraform init"],
    ["helm upgrade web .", "helm list"]
  ])("a failure of %s is not ended by %s", (command, question) => {
    const { checks, failures } = evidenceOf(failed(command, "no"), ran(question))
    assert.deepStrictEqual([...failures.keys()], [command])
    assert.notStrictEqual(checks.get("tests")?.ok, true)
  })

  it.each(["./run_tests.sh -v", "prove -v", "./deploy.sh -V"])("%s runs what it is for", (command) => {
    const { failures } = evidenceOf(failed(command), ran(command.replace(/ -v/i, "")))
    assert.strictEqual(failures.size, 0)
    assert.isFalse(isLook(command))
  })

  it("that pass a check end failures of calls that run no program, but no refusal", () => {
    const refused: MadeCall = [
      "Edit",
      { file_path: "b.ts", old_string: "a", new_string: "b" },
      {
        error:
          "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nask me first"
      }
    ]
    const { failures } = evidenceOf(
      failed("sed -i s/a/b/ a.ts", "a.ts: no such file"),
      refused,
      wrote("c.ts", "x"),
      ran("npm test", "3 passed")
    )
    assert.deepStrictEqual([...failures.keys()], ["Edit b.ts"])
  })
})

it.each([
  ["a shell", ran("sed -i s/a/b/ src/a.ts")],
  ["a tool", wrote("/work/app/src/a.ts", "b")]
] as const)("the failure of an edit ends where %s changes the file, by whatever name", (_, change) => {
  const edit: MadeCall = [
    "Edit",
    { file_path: "/work/app/src/a.ts", old_string: "a", new_string: "b" },
    { error: "not found" }
  ]
  const { failures } = runSync(gatherEvidence(entriesOf(calls(edit, change)), { cwd: "/work/app" }))
  assert.deepStrictEqual([...failures.keys()], [])
})

it.each([
  ["gh api repos/a/b/pulls/7/comments | jq x", 0],
  ["gh pr view 7 --json x", 0],
  ["gh pr checks 7", 1],
  ["gh run watch 12 --exit-status", 1],
  ["gh pr create --fill", 1]
] as const)("a look that failed leaves nothing open, but one at checks: %s", (command, open) => {
  assert.lengthOf([...evidenceOf(failed(command)).failures], open)
})

it("what Gemini CLI writes around an output is no part of it", () => {
  const shell = (command: string, output: string): MadeCall => [
    "run_shell_command",
    { command },
    { output: `Output: ${output}\nProcess Group PGID: 4711` }
  ]
  const { checks, commands, commits, failures } = evidenceOf(
    shell("git commit -m x", "[main 1a2b3c4] Add a limit\n 1 file changed"),
    shell("npm run lint; echo $?", "fine\n0"),
    shell("npx tsc | head", "error TS2304: no x\n")
  )
  assert.deepStrictEqual(
    commits.map(({ hash, subject }) => [hash, subject]),
    [["1a2b3c4", "Add a limit"]]
  )
  assert.deepStrictEqual([commands.get("npm run lint; echo $?")?.ok, checks.get("types")?.ok], [true, false])
  assert.strictEqual(failures.get("npx tsc | head")?.text, "error TS2304: no x")
})

describe("commands that make a commit", () => {
  it.each([
    ["git -C lib/git commit -m x", true],
    ["git -c user.name='A B' -c user.email=a@b commit -m x", true],
    ["git add . && git --no-pager commit", true],
    ["git merge main", true],
    ["git merge --abort", false],
    ["git merge-base main HEAD", false],
    ["git diff src/commit.ts", false],
    ["git push -u origin fix/revert", false],
    ["git log --grep revert", false],
    ["git status\nnpm run commit", false],
    ["git commit --dry-run -m x", false],
    ["git revert --no-commit HEAD~2..", false],
    ["git cherry-pick -n 1a2b3c4", false],
    ["git merge --squash topic", false],
    ["git merge -n topic", true],
    ["git merge --squash topic && git commit -m x", true],
    ["git commit -n -m x", true],
    ['git commit -m "feat: add --dry-run option"', true],
    ["git -C lib commit -m 'say --dry-run' && git push --dry-run", true],
    ["git push --dry-run && git commit -m x && npm publish --dry-run", true]
  ])("%s: %s", (command, isOne) => assert.strictEqual(makesCommit(command), isOne))

  it.each(["git ", "git -c ", "-c a ", "git -c 'a", "git -c a='"])("repeated %s takes linear time", (piece) =>
    assert.isFalse(makesCommit(piece.repeat(100_000)))
  )
})

it.each([
  "<tool_use_error>Cancelled: parallel tool call Bash(npm run lint) errored</tool_use_error>",
  "<tool_use_error>Sibling tool call errored</tool_use_error>",
  "Streaming fallback - tool execution discarded",
  "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you how to proceed.",
  "[Request interrupted by user for tool use]"
])("a call that was not made to its end changes nothing, but may have run: %s", (error) => {
  const { checks, commands, failures, lastCall } = evidenceOf(
    failed("npm run build", "no module"),
    ran("npm test", "3 passed"),
    broke("npm test", error),
    broke("npm run build", error),
    broke("npm publish", error)
  )
  assert.deepStrictEqual([...failures.keys()], ["npm run build"])
  assert.strictEqual(checks.get("tests")?.ok, true)
  assert.deepStrictEqual(commands.get("npm publish")?.isCancelled, true)
  assert.strictEqual(lastCall?.action._tag === "Command" && lastCall.action.command, "npm test")
})

it("a call of a tool that we know no more of ends the failure of the same call alone", () => {
  const made = (tool: string, text: string, answer: object): MadeCall => [tool, { text }, answer]
  const closed = { error: "MCP error -32000: Connection closed" }
  const { failures } = evidenceOf(
    failed("task build"),
    made("Task", "Migrate users", { error: "API error 529" }),
    made("task", "Build", { error: "API error 529" }),
    made("mcp__pg__query", "select 1", closed),
    made("mcp__pg__query", "select 3", closed),
    made("Task", "Read the docs", { output: "done" }),
    made("task", "Read the docs", { output: "done" }),
    made("mcp__pg__query", "select 2", { output: "2" }),
    made("mcp__pg__query", "select 3", { output: "3" }),
    ["TaskStop", { task_id: "b7" }, { error: "Task b7 is not running (status: completed)" }]
  )
  assert.deepStrictEqual(
    [...failures.keys()],
    ["task build", "Task Migrate users", "task Build", "mcp__pg__query select 1"]
  )
})

it("of two edits of a file in one message, the second ends the failure of the first", () => {
  const edit = (id: string) => call("Edit", { file_path: "a.ts", old_string: id, new_string: "x" }, id)
  const answers = user(response("Edit", { error: "String to replace not found" }, "1"), response("Edit", {}, "2"))
  const { failures } = runSync(gatherEvidence(entriesOf([model(edit("1"), edit("2")), answers])))
  assert.deepStrictEqual([...failures.keys()], [])
})

it("of many edits the last sixty stay, and of a file how often it was changed", () => {
  const edits = Array.from({ length: 70 }, (_, n): MadeCall => edited("a.ts", "x", `edit ${n}`))
  const read: MadeCall = saw("a.ts", "x")
  const { edits: kept, files } = evidenceOf(read, ...edits, read, saw("b.ts", "x"))
  assert.deepStrictEqual([kept.length, kept[0]?.text, kept.at(-1)?.text], [60, "edit 10", "edit 69"])
  assert.deepInclude(files.get("a.ts"), { state: "modified", changes: 70 })
  assert.deepInclude(files.get("b.ts"), { state: "read", changes: 0 })
  assert.deepStrictEqual([...files.keys()], ["a.ts", "b.ts"])
})

describe("commits that were taken back are no longer told, and their files neither: A made a.ts, and B changed it and made b.ts", () => {
  const [first, second] = ["git commit -m A", "git commit -m B"]
  const log = [
    wrote("a.ts", "a"),
    ran(first, "[main 1a2b3c4] A"),
    edited("a.ts", "a", "b"),
    wrote("b.ts", "b"),
    ran(second, "[main 2b3c4d5] B")
  ]
  it.each<readonly [command: string, output: string, commits: string, a: string | undefined, b: string | undefined]>([
    ["git reset --hard HEAD~1", "HEAD is now at 1a2b3c4 A", "A", "created", undefined],
    ["git reset --hard 1a2b3c4", "HEAD is now at 1a2b3c4 A", "A", "created", undefined],
    ["git reset --hard HEAD^^", "", "", undefined, undefined],
    ["git reset --hard HEAD", "", "A B", "created", "created"],
    ["git reset --hard v1.2", "", "A B", "created", "created"],
    ["git reset --soft @~", "", "A", "created", "created"],
    ["git reset HEAD~1 -- b.ts", "", "A B", "created", "created"],
    ["git revert --no-edit HEAD", '[main 3c4d5e6] Revert "B"', 'A Revert "B"', "created", "created"],
    ["git commit --amend -m C", "[main 4d5e6f7] C", "A C", "created", "created"],
    ["git restore .", "", "A B", "created", "created"],
    ["git reset --hard 'HEAD^'", "HEAD is now at 1a2b3c4 A", "A", "created", undefined],
    ['powershell -Command "git reset --hard HEAD~1"', "", "A", "created", undefined],
    ['bash -lc "git reset --hard HEAD~1" | tail -1', "HEAD is now at 1a2b3c4 A", "A", "created", undefined],
    ["git reset --keep HEAD~1", "", "A", "created", "created"],
    ["git reset b.ts", "", "A B", "created", "created"],
    ["git reset HEAD~5 2>&1 | tail -1", "fatal: ambiguous argument 'HEAD~5'", "A B", "created", "created"],
    ["git -C ../other reset --soft HEAD~1", "", "A B", "created", "created"],
    ["git commit --amend --dry-run", "On branch main", "A B", "created", "created"],
    ["git commit -m C && git commit --amend -m D", "[main 3c4d5e6] C\n[main 4d5e6f7] D", "A B D", "created", "created"],
    ["git commit -m C && git reset --soft HEAD~1", "[main 3c4d5e6] C", "A B", "created", "created"],
    ["git reset --soft HEAD~1 && git commit -m C", "[main 3c4d5e6] C", "A C", "created", "created"],
    ["git commit -m C; npm test | tail -1", "[main 3c4d5e6] C\n1 failed", "A B C", "created", "created"],
    ["if true; then git commit -m C; fi", "[main 3c4d5e6] C", "A B C", "created", "created"]
  ])("%s", (command, output, commits, a, b) => {
    const { commands, commits: told, files } = evidenceOf(...log, ran(command, output))
    assert.deepStrictEqual(
      [told.map(({ subject }) => subject).join(" "), files.get("a.ts")?.state, files.get("b.ts")?.state],
      [commits, a, b]
    )
    assert.deepStrictEqual(
      [first, second].filter((made) => commands.has(made)),
      [first, second].slice(0, told.filter(({ subject }) => /^[AB]$/.test(subject)).length)
    )
  })

  it.each<readonly [what: string, commits: string, ...runs: ReadonlyArray<readonly [string, string?]>]>([
    ["a commit from before", "", ["git reset --hard 0a1b2c3"]],
    ["one that git names", "", ["git reset --hard v1.2", "HEAD is now at 0a1b2c3 Z"]],
    ["more steps than commits", "", ["git reset --soft HEAD~9"]],
    ["a branch that git names", "", ["git fetch && git reset --hard main", "HEAD is now at 0a1b2c3 Z"]],
    ["a remote branch", "", ["git fetch && git reset --hard origin/main"]],
    ["the upstream", "", ["git reset --soft '@{u}'"]],
    ["a branch that only it names", "A B", ["git reset --soft main"]],
    [
      "a remote branch that has them",
      "A B",
      ["git push"],
      ["git reset --hard origin/main", "HEAD is now at 0a1b2c3 M"]
    ],
    ["no place", "A B", ["git reset --hard", "HEAD is now at 0a1b2c3 Z"]],
    ["HEAD", "A B", ["git reset --hard HEAD", "HEAD is now at 0a1b2c3 Z"]],
    [
      "a remote branch that has the first ones",
      "A B",
      ["git push"],
      ["git commit -m C", "[main 3c4d5e6] C"],
      ["git reset --hard origin/main", "HEAD is now at 2b3c4d5 B"]
    ],
    [
      "one that may be a quiet commit",
      "A B",
      ["git commit -qm C"],
      ["git commit -m D", "[main 4d5e6f7] D"],
      ["git reset --hard 3c4d5e6"]
    ],
    ["one that may be made anew", "A B", ["git rebase main"], ["git reset --hard 3c4d5e6"]],
    ["one of them, and back", "A B", ["git reset --hard 1a2b3c4"], ["git reset --hard 2b3c4d5"]],
    [
      "one from before, and back by the log of references",
      "A B",
      ["git reset --hard 0a1b2c3"],
      ["git reset --hard 'HEAD@{1}'", "HEAD is now at 2b3c4d5 B"]
    ],
    ["a dry run of a push", "", ["git push --dry-run"], ["git reset --hard origin/main"]],
    ["a remote branch in another folder", "A B", ["cd /tmp/b && git fetch && git reset --hard origin/main"]],
    ["one in a subshell of another folder", "A", ["(cd /tmp/b && git pull); git reset --hard HEAD~1"]],
    ["a remote branch in the session's folder", "", ["cd /w && git reset --hard origin/main"]],
    ["one below it", "", ["git -C /w/lib reset --hard origin/main"]]
  ])("by a reset to %s", (_, commits, ...runs) => {
    const { commits: told } = evidenceIn(
      "/w",
      ...log,
      ...runs.map(([command = "", output = ""]) => ran(command, output))
    )
    assert.strictEqual(told.map(({ subject }) => subject).join(" "), commits)
  })

  it("by a revert, the revert of it, and a reset to before what a revert without a commit left", () => {
    const reverted = ran("git revert --no-edit HEAD", '[main 3c4d5e6] Revert "B"')
    const reapplied = ran("git revert --no-edit HEAD", '[main 4d5e6f7] Reapply "B"')
    const subjects = (...more: ReadonlyArray<MadeCall>) =>
      evidenceOf(...log, ...more).commits.map(({ subject }) => subject)
    assert.deepStrictEqual(subjects(reverted, reapplied), ["A", 'Reapply "B"'])
    assert.deepStrictEqual(subjects(ran("git revert -n HEAD"), ran("git reset --hard HEAD~1")), ["A"])
  })

  it("a quiet one counts among them", () => {
    const { commits } = evidenceOf(...log, edited("b.ts", "b", "c"), ran("git commit -qam C"), ran("git reset HEAD~1"))
    assert.deepStrictEqual(
      commits.map(({ hash }) => hash),
      ["1a2b3c4", "2b3c4d5"]
    )
    const amended = evidenceOf(...log, ran("git commit --amend --no-edit -q"), ran("git reset --soft HEAD~1"))
    assert.deepStrictEqual(
      amended.commits.map(({ subject }) => subject),
      ["A"]
    )
  })

  it("one that is amended quietly keeps its words", () =>
    assert.deepStrictEqual(
      evidenceOf(...log, ran("git commit --amend --no-edit -q")).commits.map(({ subject }) => subject),
      ["A", "B"]
    ))
})

it.each<readonly [command: string, paths: ReadonlyArray<string>]>([
  ["git clean -fd", ["old.ts"]],
  ["git clean -f -d lib", ["old.ts", "new.ts"]],
  ["git clean --force lib/new.ts", ["old.ts", "new.ts"]],
  ["git clean -f", ["old.ts", "new.ts", "lib/new.ts"]],
  ["git clean -fdx -e keep", ["old.ts", "new.ts", "lib/new.ts"]],
  ["git clean -fdq && git status", ["old.ts"]],
  ["git -C lib clean -fd", ["old.ts", "new.ts"]],
  ["git clean -nd", ["old.ts", "new.ts", "lib/new.ts"]],
  ["git clean -fdX", ["old.ts", "new.ts", "lib/new.ts"]]
])("%s deletes new files that are in no commit", (command, paths) => {
  const commit = ran("git commit -m x", "[main 1a2b3c4] x")
  const { files } = evidenceOf(
    wrote("old.ts", "a"),
    commit,
    wrote("new.ts", "a"),
    wrote("lib/new.ts", "a"),
    ran(command)
  )
  assert.deepStrictEqual([...files.keys()], paths)
})

it("a file that git restored has no changes since the last commit, and an unknown one is not touched", () => {
  const edit: MadeCall = edited("a.ts", "a", "b")
  const restore = ran("git checkout a.ts && git restore b.ts")
  const { edits, files } = evidenceOf(edit, restore)
  assert.deepStrictEqual([edits.length, [...files.keys()]], [0, ["a.ts"]])
  assert.deepInclude(files.get("a.ts"), { state: "read", changes: 0 })
  const commit = ran("git commit -am x", "[main 1a2b3c4] x\n 1 file changed")
  assert.deepInclude(evidenceOf(edit, commit, restore).files.get("a.ts"), { state: "modified", changes: 1 })
  const quiet = ran("git commit -qam x")
  assert.deepInclude(evidenceOf(edit, quiet, restore).files.get("a.ts"), { state: "modified", changes: 1 })
  const made: MadeCall = wrote("a.ts", "a")
  assert.deepInclude(evidenceOf(made, edit, restore).files.get("a.ts"), { state: "created", changes: 2 })
})

describe("what git takes back of edits of lib/a.ts, before a commit, and of b.ts, after it", () => {
  const edit = (file_path: string): MadeCall => edited(file_path, "a", "b = 1")
  const commit = ran("git commit -qam x")
  it.each([
    ["git checkout .", "modified", "read"],
    ["git restore .", "modified", "read"],
    ["git checkout b.ts lib", "modified", "read"],
    ["git reset --hard HEAD", "modified", "read"],
    ["cd /tmp/b && git reset --hard", "modified", "modified"],
    ["git checkout lib.x", "modified", "modified"],
    ["git checkout fix/b.ts", "modified", "modified"],
    ["restore b.ts", "modified", "modified"]
  ])("%s", (command, a, b) => {
    const { edits, files } = evidenceOf(edit("lib/a.ts"), commit, edit("b.ts"), ran(command))
    assert.deepStrictEqual([files.get("lib/a.ts")?.state, files.get("b.ts")?.state], [a, b])
    assert.deepStrictEqual(
      edits.map(({ path }) => path),
      b === "read" ? ["lib/a.ts"] : ["lib/a.ts", "b.ts"]
    )
  })

  it("a file that was deleted before the commit stays deleted", () => {
    const { files } = evidenceOf(
      edit("b.ts"),
      ran("rm b.ts"),
      commit,
      edit("a.ts"),
      ran("rm a.ts"),
      ran("git checkout .")
    )
    assert.deepStrictEqual([files.get("b.ts")?.state, files.get("a.ts")?.state], ["deleted", "read"])
  })

  it("in the working directory by its path, all", () => {
    const entries = entriesOf(calls(edit("/w/lib/a.ts"), ran("cd /w && git checkout -- .")))
    const { files } = runSync(gatherEvidence(entries, { cwd: "/w" }))
    assert.strictEqual(files.get("lib/a.ts")?.state, "read")
  })

  it("of a folder, the files in it", () => {
    const { files } = evidenceOf(edit("lib/a.ts"), edit("b.ts"), ran("cd lib && git checkout ."))
    assert.deepStrictEqual([files.get("lib/a.ts")?.state, files.get("b.ts")?.state], ["read", "modified"])
  })
})

it("a plan that was approved ends the refusal of the one before", () => {
  const plan = (text: string, answer: object): MadeCall => ["ExitPlanMode", { plan: text }, answer]
  const refused = plan("One.", { error: "The agent proposed a plan that was rejected by the user." })
  const subjects = (...made: ReadonlyArray<MadeCall>) => [...evidenceOf(...made).failures.keys()]
  assert.deepStrictEqual(subjects(refused), ["ExitPlanMode One."])
  assert.deepStrictEqual(subjects(refused, plan("Two.", { output: "User has approved your plan." })), [])
})

it("a long command that a snapshot at the beginning has in short is the one that runs again", () => {
  const command = `deploy ${"--region=eu-north-1 ".repeat(8)}all`
  const begin = `<state_snapshot>\n<task_state>\n- unresolved failure of ${command.slice(0, 100)}… (e2):\n    error: no\n</task_state>\n</state_snapshot>`
  const failures = (later: ReadonlyArray<MadeCall>) => {
    const entries = calls(...later).map((content, at) => entryOf(at + 2, content))
    const snapshot = entryOf(1, user({ text: begin }), { author: "summary" })
    return [...runSync(gatherEvidence([snapshot, ...entries])).failures.keys()]
  }
  assert.lengthOf(failures([]), 1)
  assert.deepStrictEqual(failures([failed(command)]), [command])
})
