import { assert, describe, it } from "@effect/vitest"
import type { Action, Command } from "../../../src/domain/actions/Action.ts"
import { actionsOf } from "../../../src/domain/actions/Actions.ts"
import { shellFileActions } from "../../../src/domain/actions/ShellEffects.ts"
import { exitCode } from "../../../src/domain/actions/ToolResults.ts"
import { call, type Part, response } from "../../../src/domain/content/Content.ts"
import { corpus } from "../../support/corpus.ts"

const ok = (output = "ok"): Part => response("tool", { output })
const failed = (error = "no"): Part => response("tool", { error })
const did = (name: string, args: unknown, answer: Part | undefined = ok()) => actionsOf(call(name, args), answer)
const read = (path: string): Action => ({ _tag: "Read", path })
const write = (path: string, created?: boolean): Action => ({ _tag: "Write", path, created })
const edit = (path: string): Action => ({ _tag: "Edit", path })
const restore = (path: string): Action => ({ _tag: "Restore", path })
const remove = (path: string): Action => ({ _tag: "Delete", path })
const ran = (command: string, exit: number | undefined): Command => ({ _tag: "Command", command, exit })

/** Calls of the agents' tools, and what each did. Without a response, it went well. */
const calls = corpus<{
  readonly agent: string
  readonly tool: string
  readonly args: unknown
  readonly response?: object
  readonly actions: ReadonlyArray<object>
}>("calls-of-tools")

it.each(calls.map((one) => [one.agent, `${one.tool} ${JSON.stringify(one.args)}`, one] as const))(
  "%s: %s",
  (_, __, { actions, args, response: answer, tool }) => {
    const done = did(tool, args, answer === undefined ? ok() : response("tool", answer))
    // What is undefined is no key of the row.
    assert.deepStrictEqual(JSON.parse(JSON.stringify(done)), actions)
  }
)

describe("a call", () => {
  it.each(["read_file", "Write", "Edit", "replace", "apply_patch", "delete_file"])(
    "%s that failed or was never answered did nothing to files",
    (tool) => {
      for (const answer of [failed(), undefined]) {
        const actions = actionsOf(call(tool, { file_path: "a.ts", input: "*** Delete File: a.ts" }), answer)
        assert.deepStrictEqual(
          actions.filter(({ _tag }) => ["Read", "Write", "Edit", "Delete"].includes(_tag)),
          []
        )
      }
    }
  )

  it("a shell command is always reported, its file changes only when it succeeded", () => {
    assert.deepStrictEqual(did("Bash", { command: "rm a" }, failed("Exit code 1\nrm: a: No such file")), [
      ran("rm a", 1)
    ])
    assert.deepStrictEqual(actionsOf(call("Bash", { command: "rm a" }), undefined), [ran("rm a", undefined)])
    assert.deepStrictEqual(did("Bash", { command: "rm a" }), [ran("rm a", 0), remove("a")])
  })

  it("patterns of read_many_files are not files", () => {
    assert.deepStrictEqual(did("read_many_files", { include: ["src/**/*.ts", "a.ts"] }), [read("a.ts")])
  })

  it("no arguments make it throw", () => {
    for (const args of [
      undefined,
      null,
      1,
      "x",
      [],
      {},
      { command: 3 },
      { todos: {} },
      { file_path: "" },
      { paths: [1] }
    ]) {
      for (const tool of ["Read", "Write", "Edit", "Bash", "shell", "write_todos", "apply_patch", "Grep", "unknown"]) {
        assert.isArray(actionsOf(call(tool, args), ok()))
      }
    }
    assert.deepStrictEqual(actionsOf({ text: "no call" }, ok()), [])
  })
})

const labelled = (output: string, code: string, signal = "(none)") =>
  `Command: x\nDirectory: (root)\nOutput: ${output}\nError: (none)\nExit Code: ${code}\nSignal: ${signal}\nBackground PIDs: (none)\nProcess Group PGID: 7`

describe("exit codes", () => {
  const cases: ReadonlyArray<readonly [name: string, answer: Part | undefined, exit: number | undefined]> = [
    ["no answer", undefined, undefined],
    ["no word of it", ok("built"), 0],
    ["empty", ok(""), 0],
    ["an error that tells none", failed("The user doesn't want to proceed"), undefined],
    ["Claude Code", failed("Exit code 128\nfatal: no upstream"), 128],
    ["Pi", failed("grep: a: No such file\n\n\nCommand exited with code 2"), 2],
    ["Pi, cut off", failed("Command aborted"), undefined],
    ["Codex, as JSON", ok('{"output":"x\\n","metadata":{"exit_code":3,"duration_seconds":0.1}}'), 3],
    ["Codex, as text", ok("Exit code: 4\nWall time: 0.1 seconds\nOutput:\nx"), 4],
    ["Codex, exec", ok("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 5\nOutput:\nx"), 5],
    [
      "Codex, still running",
      ok("Chunk ID: 1\nWall time: 10 seconds\nProcess running with session ID 9\nOutput:\nx"),
      undefined
    ],
    ["Gemini CLI", ok(labelled("x", "6")), 6],
    ["Gemini CLI, all well", ok(labelled("x", "0")), 0],
    ["Gemini CLI of early 2026", ok(labelled("x", "0", "0")), 0],
    ["Gemini CLI, newer and all well", ok("Output: x\nProcess Group PGID: 7"), 0],
    ["Gemini CLI, newer", ok("Output: x\nExit Code: 2\nProcess Group PGID: 7"), 2],
    [
      "Gemini CLI of mid-2026, between marks",
      ok("<untrusted_context>\nOutput: x\nExit Code: 2\nProcess Group PGID: 7\n</untrusted_context>"),
      2
    ],
    [
      "Gemini CLI, with words of a hook",
      ok("<untrusted_context>\nOutput: x\nExit Code: 2\n</untrusted_context>\n\n<hook_context>b</hook_context>"),
      2
    ],
    [
      "Gemini CLI, with words of a hook and no marks",
      ok("Output: x\nExit Code: 2\n\n<hook_context>b</hook_context>\n"),
      2
    ],
    [
      "Gemini CLI, with words on changed arguments",
      ok(
        "Output: x\nExit Code: 2\n\n[System] Tool input parameters (command) were modified by a hook before execution."
      ),
      2
    ],
    [
      "Gemini CLI, between marks on Windows",
      ok("<untrusted_context>\r\nOutput: x\nExit Code: 2\n</untrusted_context>"),
      2
    ],
    ["Gemini CLI, ended by a signal", ok(labelled("x", "(none)", "SIGTERM")), undefined],
    ["Gemini CLI, of an output that speaks of exit codes", ok(labelled("it said\nExit Code: 1\nbut", "0")), 0],
    [
      "Claude Code, of an output that speaks of exit codes",
      ok("CI log:\nExit Code: 1\nProcess exited with code 1\n"),
      0
    ],
    ["Claude Code, of a JSON file with exit codes", ok('[{"exit_code": 7}]'), 0],
    [
      "Claude Code, in the background",
      ok("Command running in background with ID: b1. Output is being written to: /tmp/b1"),
      undefined
    ],
    [
      "Claude Code, moved to the background by the user after some output",
      ok("start\nCommand was manually backgrounded by user with ID: b1. Output is being written to: /tmp/b1"),
      undefined
    ],
    [
      "Claude Code, moved to the background after a while",
      ok("start\nCommand exceeded the blocking budget (15s) and was moved to the background with ID: b1. It goes on"),
      undefined
    ],
    ["Gemini CLI, in the background", ok("Command is running in background. PID: 7. Initial output:\nx"), undefined],
    ["a long output", failed(`${"x\n".repeat(5_000)}\nCommand exited with code 9`), 9]
  ]
  it.each(cases)("%s", (_, answer, exit) => {
    assert.strictEqual(exitCode(answer), exit)
  })
})

describe("shell", () => {
  const cases: ReadonlyArray<readonly [name: string, command: string, actions: ReadonlyArray<Action>]> = [
    ["rm", "rm a.ts b.ts", [remove("a.ts"), remove("b.ts")]],
    ["rm with options", "rm -rf -- build", [remove("build")]],
    ["rm of quoted names", "rm \"a b.ts\" 'c d.ts'", [remove("a b.ts"), remove("c d.ts")]],
    ["rm of an escaped name", "rm a\\ b.ts", [remove("a b.ts")]],
    ["rm of a name quoted in parts", 'rm src/"my file".ts', [remove("src/my file.ts")]],
    ["rm of patterns and variables", "rm *.log $FILE `cat list` {a,b}", []],
    ["rm that hides its errors", "rm -f a.ts 2>/dev/null", [remove("a.ts")]],
    ["rm that hides its errors, with a space", "rm -f a.ts 2> /dev/null || true", [remove("a.ts")]],
    ["rm with both outputs away", "rm a.ts > /dev/null 2>&1", [remove("a.ts")]],
    ["rm over two lines", "rm a.ts \\\n  b.ts", [remove("a.ts"), remove("b.ts")]],
    [
      "perl -pi",
      "perl -pi -e 's/a/b/' a.ts b.ts && perl -ne 'print' c.ts && perl -i.bak -pe x d.ts",
      [edit("a.ts"), edit("b.ts"), edit("d.ts")]
    ],
    [
      "perl with groups of letters, and two scripts",
      "perl -0777pi -e 's/a/b/' -e 's/c/d/' a.ts && perl -i -lpe's/a/b/' -- b.ts && ruby -pi.bak -e x c.rb",
      [edit("a.ts"), edit("b.ts"), edit("c.rb")]
    ],
    ["perl with a folder of modules", "perl -Ilib t/a.t && ruby -Ilib test/foo_test.rb", []],
    [
      "perl with a module",
      "perl -MTime::HiRes -ne 'print' log.txt && perl -MList::Util=sum -lane 'print sum @F' data.txt",
      []
    ],
    ["a script with an option of its own", "ruby script.rb -i input.txt && perl a.pl -pi -e x b.ts", []],
    ["git rm", "git rm a.ts", [remove("a.ts")]],
    ["git rm --cached leaves the file", "git rm --cached a.ts", []],
    ["sudo rm", "sudo rm /etc/a", [remove("/etc/a")]],
    ["rm with a variable set for it", "LANG=C rm a.ts", [remove("a.ts")]],
    ["mv", "mv a.ts b.ts", [remove("a.ts"), write("b.ts", true)]],
    ["mv that hides its errors", "mv a.ts b.ts 2>/dev/null", [remove("a.ts"), write("b.ts", true)]],
    ["mv with its folder first", "mv -t dist a.ts b.ts", []],
    ["touch with a date", "touch -d 2020-01-01 a.ts", [write("a.ts")]],
    ["mv into a folder", "mv a.ts lib/", [remove("a.ts"), write("lib/a.ts", true)]],
    ["git mv", "git mv a.ts b.ts", [remove("a.ts"), write("b.ts", true)]],
    ["cp", "cp a.ts b.ts", [write("b.ts")]],
    ["touch", "touch a b", [write("a"), write("b")]],
    ["tee", "make | tee log.txt", [write("log.txt")]],
    ["sed -i", "sed -i 's/a/b/' a.ts", [edit("a.ts")]],
    ["git in a folder", "git -C lib rm a.ts && git -C ../b -c a=b reset --hard", [remove("lib/a.ts"), restore("../b")]],
    ["git in a folder, whose output stays", "git -C lib show HEAD:a.ts > b.ts", [write("b.ts")]],
    ["a dry run", "git rm -n a.ts && git mv --dry-run a.ts b.ts && Remove-Item c.ts -WhatIf", []],
    ["mv that overwrites nothing", "mv -n a.ts b.ts", [remove("a.ts"), write("b.ts", true)]],
    ["git restore", "git restore a.ts", [restore("a.ts")]],
    ["git restore, of what is staged", "git restore --staged a.ts", []],
    ["git restore, of what is staged, in short", "git restore -S a.ts", []],
    ["git restore, of another commit", "git restore -s HEAD~3 a.ts && git restore --source=v1 a.ts", []],
    ["git checkout of a tag", "git checkout v1.2.3 && git checkout release-1.2 a.ts", []],
    ["git checkout of a file", "git checkout -- a.ts", [restore("a.ts")]],
    ["git checkout of a branch", "git checkout -b fix/a", []],
    ["git checkout of a file as it was committed", "git checkout HEAD -- a.ts; git checkout HEAD", [restore("a.ts")]],
    ["git checkout of all", "git checkout . && git restore .", [restore("."), restore(".")]],
    ["git reset", "git reset --hard HEAD~1; git reset a.ts", [restore(".")]],
    ["git stash, which brings back what it put away", "git stash -q && npm test; git stash pop", []],
    ["a program that has the name of a task of git", "restore a.ts && ./reset --hard", []],
    ["a redirect", "echo x > a.txt", [write("a.txt")]],
    ["a redirect without a space", "echo x>a.txt", [write("a.txt")]],
    ["a redirect that appends", "echo x >> a.txt", [write("a.txt")]],
    ["a redirect of errors", "make 2> err.log", [write("err.log")]],
    ["a redirect of everything", "make &> all.log", [write("all.log")]],
    ["a redirect and 2>&1", "make > all.log 2>&1", [write("all.log")]],
    ["2>&1 names no file", "make 2>&1 | tail -5", []],
    [">&2 names no file", "echo no >&2", []],
    ["/dev/null is no file", "make >/dev/null 2>/dev/null", []],
    ["what is read is not written", "sort < a.txt", []],
    ["a quoted > is no redirect", 'grep ">" a.html', []],
    ["a quoted command is none", "echo 'rm a.ts; mv b c > d'", []],
    ["a quoted > inside words", 'git commit -m "a -> b > c"', []],
    ["several commands", "rm a && rm b; rm c || rm d\nrm e | cat", ["a", "b", "c", "d", "e"].map(remove)],
    ["in a subshell", "(rm a.ts)", [remove("a.ts")]],
    ["a here-document", "cat > a.txt << 'EOF'\nrm b.txt\nx > c.txt\nEOF", [write("a.txt")]],
    ["a here-document, the file after it", "cat <<EOF > a.txt\nrm b.txt\nEOF", [write("a.txt")]],
    ["what follows a here-document", "cat > a.txt <<EOF\nrm b.txt\nEOF\nrm c.txt", [write("a.txt"), remove("c.txt")]],
    ["a here-document in a substitution", "git commit -m \"$(cat <<'EOF'\nx > y\nEOF\n)\"", []],
    ["a here-string", 'grep x <<< "a > b" && rm c', [remove("c")]],
    ["in another folder", "cd packages/a && rm b.ts", [remove("packages/a/b.ts")]],
    ["in this folder", "rm ./a.ts .\\b.ts", [remove("a.ts"), remove("b.ts")]],
    ["in a shell of its own", "cd lib && bash -lc \"rm 'a b.ts' > /dev/null\"", [remove("lib/a b.ts")]],
    ["in PowerShell", 'powershell.exe -NoProfile -Command "Set-Content a.txt x"', [write("a.txt")]],
    ["in cmd", "cmd /c del a.txt", [remove("a.txt")]],
    ["in cmd, with a path that has no drive", "del dist\\a.js & type README.md", [remove("dist\\a.js")]],
    ["in a shell of Unix, with an escaped blank", "rm src/my\\ notes.txt", [remove("src/my notes.txt")]],
    [
      "what a shell of its own prints",
      "cd lib && bash -c 'echo hi; rm b' > out.txt",
      [write("lib/out.txt"), remove("lib/b")]
    ],
    ["what it adds to a file", "bash -c 'echo hi' >> out.txt", [write("out.txt")]],
    ["what PowerShell prints", "powershell -c Get-Date > b.txt", [write("b.txt")]],
    ["a shell with other options", "bash -euo pipefail -c 'rm a'", [remove("a")]],
    ["PowerShell with them", 'powershell -NoProfile -ExecutionPolicy Bypass -c "ri a"', [remove("a")]],
    ["cmd with them", "cmd.exe /d /s /c del a", [remove("a")]],
    ["an option of a script", "bash run.sh -c 'rm a.txt'; bash /w/run.sh -c 'rm b'; bash -ex run.sh -c 'rm c'", []],
    ["operands of a command", "bash -c 'rm $1' _ a.txt", []],
    ["an option of PowerShell's script", "powershell -File b.ps1 -Command 'ri x' > out.txt", [write("out.txt")]],
    ["the control of services", "sc query foo; sc.exe query spooler", []],
    ["Set-Content by its short name", "sc -Path a.txt -Value x", [write("a.txt")]],
    ["words that are no cmdlets", "Test-Driven a\\ b; rm c\\ d", [remove("c d")]],
    ["Copy-Item", "Copy-Item -Destination C:\\b.ts -Path C:\\a.ts -Force", [write("C:\\b.ts")]],
    ["Move-Item", "Move-Item a.ts -Destination .\\lib\\", [remove("a.ts"), write("lib/a.ts", true)]],
    ["Rename-Item", "Rename-Item C:\\w\\a.ts b.ts", [remove("C:\\w\\a.ts"), write("C:\\w\\b.ts", true)]],
    ["New-Item", "New-Item -Path src -Name a.ts -ItemType File", [write("src/a.ts")]],
    ["New-Item of a folder", "New-Item -ItemType Directory -Path build", []],
    [
      "the methods of .NET",
      '[System.IO.File]::WriteAllText("C:\\a.ts", $x); [IO.File]::Delete("C:\\b.ts")',
      [write("C:\\a.ts"), remove("C:\\b.ts")]
    ],
    ["them in another folder", "cd lib; $x = [IO.File]::AppendAllText('a,b.ts')", [write("a,b.ts")]],
    ["their arguments on lines of their own", "[IO.File]::WriteAllText(\n  'a.ts',\n  $x\n)", [write("a.ts")]],
    ["them in a shell of its own", "powershell -c \"[IO.File]::Delete('a.ts')\"", [remove("a.ts")]],
    ["them in a text", "grep \"[IO.File]::WriteAllText('a.txt'\" x; echo \"[System.IO.File]::Delete('a.txt')\"", []],
    ["an absolute path in another folder", "cd packages/a && rm /w/b.ts", [remove("/w/b.ts")]],
    ["words that only look like it", "echo rm a; npm run rm; ./rm a; charm b", []],
    ["nothing", "", []]
  ]
  it.each(cases)("%s: %j", (_, command, actions) => {
    assert.deepStrictEqual(shellFileActions(command), actions)
  })

  it("what a shell of its own printed is read where nothing takes it", () => {
    assert.deepStrictEqual(shellFileActions('sh -c "cat in.txt"', { withReads: true }), [read("in.txt")])
    assert.deepStrictEqual(shellFileActions('sh -c "cat in.txt" > out.txt', { withReads: true }), [write("out.txt")])
    assert.deepStrictEqual(shellFileActions('sh -c "cat in.txt" | wc -l', { withReads: true }), [])
  })

  it("a command of a megabyte: quadratic time would exceed the test's limit", () => {
    for (const trap of [
      "a".repeat(1_000_000),
      '"'.repeat(1_000_001),
      "\\".repeat(1_000_001),
      "rm a ".repeat(200_000),
      "<".repeat(1_000_000),
      `rm a ${"\n".repeat(1_000_000)}`
    ]) {
      assert.isArray(shellFileActions(trap))
    }
  })
})

it("a script of Codex with a text of very many pieces", () => {
  const cmd = Array.from({ length: 14_000 }, () => '"a"').join(" + ")
  const [action] = did("exec", { input: `text(await tools.exec_command({ cmd: ${cmd.replaceAll(" ", "")} }))` })
  assert.strictEqual(action?._tag === "Command" ? action.command.length : 0, 14_000)
})

it.each([
  ["a.path", "after a value that is no literal"],
  ["10 * 1_000", "after a sum"],
  ["join(a, b)", "after a call"],
  ["[a.b, ...c]", "after a list of them"],
  ["{ a: b.c, d: e() }", "after an object of them"],
  ["wait({ a: 1 }, [2])", "after a call with an object and a list"],
  ["(() => { return '}, ' })()", "after a function"],
  ["1, ...(a ? { b: 1 } : {})", "after what is spread under a condition"]
])("the command of a script of Codex is read behind %s, %s", (value) => {
  const [action] = did("exec", { input: `text(await tools.exec_command({ first: ${value}, cmd: "npm test" }))` })
  assert.strictEqual(action?._tag === "Command" ? action.command : undefined, "npm test")
})
