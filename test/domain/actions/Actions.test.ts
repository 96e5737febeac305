import { assert, describe, it } from "@effect/vitest"
import type { Action, Command } from "../../../src/domain/actions/Action.ts"
import { actionsOf } from "../../../src/domain/actions/Actions.ts"
import { shellFileActions } from "../../../src/domain/actions/ShellEffects.ts"
import { exitCode } from "../../../src/domain/actions/ToolResults.ts"
import { call, type Part, response } from "../../../src/domain/content/Content.ts"

const ok = (output = "ok"): Part => response("tool", { output })
const failed = (error = "no"): Part => response("tool", { error })
const did = (name: string, args: unknown, answer: Part | undefined = ok()) => actionsOf(call(name, args), answer)
const read = (path: string): Action => ({ _tag: "Read", path })
const write = (path: string, created?: boolean): Action => ({ _tag: "Write", path, created })
const edit = (path: string): Action => ({ _tag: "Edit", path })
const remove = (path: string): Action => ({ _tag: "Delete", path })
const search = (query: string): Action => ({ _tag: "Search", query })
const ran = (command: string, exit: number | undefined): Command => ({ _tag: "Command", command, exit })

const printed = (command: string, exit: number | undefined, output: string, isExitHidden?: true): Action => ({
  ...ran(command, exit),
  output,
  ...(isExitHidden === undefined ? {} : { isExitHidden })
})
const blocks = (...texts: ReadonlyArray<string>): Part =>
  response("exec", { content: texts.map((text) => ({ type: "input_text", text })) })

type Case = readonly [tool: string, args: unknown, actions: ReadonlyArray<Action>, answer?: Part]

const agents: ReadonlyArray<readonly [agent: string, cases: ReadonlyArray<Case>]> = [
  [
    "Gemini CLI",
    [
      ["read_file", { file_path: "/w/a.ts" }, [read("/w/a.ts")]],
      ["read_file", { absolute_path: "/w/a.ts" }, [read("/w/a.ts")]],
      ["read_many_files", { paths: ["a.ts", "b.ts"] }, [read("a.ts"), read("b.ts")]],
      [
        "write_file",
        { file_path: "a.ts", content: "" },
        [write("a.ts", true)],
        ok("Successfully created and wrote to new file: a.ts.")
      ],
      [
        "write_file",
        { file_path: "a.ts", content: "" },
        [write("a.ts", false)],
        ok("Successfully overwrote file: a.ts.")
      ],
      [
        "write_file",
        { file_path: "created/a.ts", content: "" },
        [write("created/a.ts", false)],
        ok("Successfully overwrote file: created/a.ts.")
      ],
      [
        "replace",
        { instruction: "do", file_path: "a.ts", old_string: "x" },
        [edit("a.ts")],
        ok("Successfully modified file: a.ts (1 replacements).")
      ],
      [
        "replace",
        { file_path: "a.ts", old_string: "" },
        [write("a.ts", true)],
        ok("Created new file: a.ts with provided content.")
      ],
      ["run_shell_command", { command: "ls" }, [ran("ls", 0)]],
      ["list_directory", { dir_path: "src" }, [search("dir_path=src")]],
      ["glob", { pattern: "**/*.ts" }, [search("**/*.ts")]],
      ["search_file_content", { pattern: "x", dir_path: "src" }, [search("x")]],
      ["google_web_search", { query: "effect" }, [search("effect")]],
      [
        "write_todos",
        { todos: [{ description: "a", status: "pending" }] },
        [{ _tag: "Todos", todos: [{ text: "a", status: "pending" }] }]
      ]
    ]
  ],
  [
    "Claude Code",
    [
      ["Read", { file_path: "/w/a.ts", offset: 3 }, [read("/w/a.ts")]],
      [
        "Write",
        { file_path: "/w/a.ts", content: "x" },
        [write("/w/a.ts", true)],
        ok("File created successfully at: /w/a.ts")
      ],
      [
        "Write",
        { file_path: "/w/a.ts", content: "x" },
        [write("/w/a.ts", false)],
        ok("The file /w/a.ts has been updated. Here's the result")
      ],
      ["Edit", { file_path: "/w/a.ts", old_string: "a", new_string: "b" }, [edit("/w/a.ts")]],
      ["MultiEdit", { file_path: "/w/a.ts", edits: [] }, [edit("/w/a.ts")]],
      ["NotebookEdit", { notebook_path: "/w/a.ipynb", new_source: "" }, [edit("/w/a.ipynb")]],
      ["Bash", { command: "make", description: "Build" }, [ran("make", 0)]],
      ["Grep", { pattern: "x", path: "src" }, [search("x")]],
      ["Glob", { pattern: "*.ts" }, [search("*.ts")]],
      ["WebFetch", { url: "https://a.b", prompt: "what" }, [search("https://a.b")]],
      [
        "TodoWrite",
        { todos: [{ content: "a", status: "in_progress", activeForm: "doing a" }] },
        [{ _tag: "Todos", todos: [{ text: "a", status: "in_progress" }] }]
      ],
      [
        "Task",
        { description: "look", prompt: "look around" },
        [{ _tag: "Other", summary: "description=look, prompt=look around" }]
      ]
    ]
  ],
  [
    "Codex",
    [
      ["shell", { command: ["bash", "-lc", "rm a.ts"], workdir: "/w" }, [ran("rm a.ts", 0), remove("a.ts")]],
      ["shell", { command: ["git", "status"] }, [ran("git status", 0)]],
      ["shell_command", { command: "ls" }, [ran("ls", 0)]],
      ["exec_command", { cmd: "ls" }, [ran("ls", 0)]],
      [
        "update_plan",
        { plan: [{ step: "a", status: "completed" }] },
        [{ _tag: "Todos", todos: [{ text: "a", status: "completed" }] }]
      ],
      [
        "apply_patch",
        {
          input:
            "*** Begin Patch\n*** Add File: n.ts\n+x\n*** Update File: a.ts\n@@\n-x\n+y\n*** Delete File: o.ts\n*** End Patch"
        },
        [write("n.ts", true), edit("a.ts"), remove("o.ts")]
      ],
      ["apply_patch", "*** Begin Patch\n*** Delete File: o.ts\n*** End Patch", [remove("o.ts")]],
      [
        "apply_patch",
        { input: "*** Begin Patch\n*** Update File: a.ts\n*** Move to: b.ts\n@@\n*** End Patch" },
        [remove("a.ts"), write("b.ts", true)]
      ],
      ["shell", { command: ["apply_patch", "*** Begin Patch\n*** Update File: a.ts\n*** End Patch"] }, [edit("a.ts")]],
      ["exec_command", { cmd: "nl -ba a.ts | sed -n '1,9p'" }, [ran("nl -ba a.ts | sed -n '1,9p'", 0), read("a.ts")]],
      ["exec_command", { cmd: "cat a.ts | grep x" }, [ran("cat a.ts | grep x", 0)]],
      ["exec_command", { cmd: "cat a.ts > b.ts" }, [ran("cat a.ts > b.ts", 0), write("b.ts")]],
      ["shell", { command: ["powershell.exe", "-Command", "gc a.ts"] }, [ran("gc a.ts", 0), read("a.ts")]],
      ["web_search", { type: "search", query: "effect" }, [search("effect")]]
    ]
  ],
  [
    "Codex's scripts",
    [
      [
        "exec",
        { input: 'const r = await tools.exec_command({"cmd": "head -n 9 a.ts"});\ntext(r.output);' },
        [printed("head -n 9 a.ts", 0, "x", true), read("a.ts")],
        ok("Script completed\nWall time 0.2 seconds\nOutput:\nx")
      ],
      [
        "exec",
        { input: "for (const cmd of ['a', `b`]) text(await tools.exec_command({ cmd, workdir: \"/w\" }))" },
        [printed("a", 2, "no\n"), printed("b", 0, "y", true)],
        blocks("Script completed\nWall time 1 second\nOutput:\n", '{"exit_code":2,"output":"no\\n"}', "y")
      ],
      [
        "exec",
        { input: "const cmd = 'npm ' + \"test\"; /* once */ text((await tools.exec_command({ cmd })).output)" },
        [printed("npm test", 1, "no\nProcess exited with code 1")],
        blocks("Script completed\nWall time 1.0 seconds\nOutput:\n", "no\nProcess exited with code 1")
      ],
      [
        "exec",
        { input: "await tools.exec_command({ cmd: 'make' }); await tools.apply_patch(`*** Delete File: a.ts`)" },
        [printed("make", undefined, "Script error:\nboom")],
        blocks("Script failed\nWall time 1.0 seconds\nOutput:\n", "Script error:\nboom")
      ],
      [
        "exec",
        { input: 'text(await tools["apply_patch"]("*** Begin Patch\\n*** Add File: a.ts\\n*** End Patch"))' },
        [write("a.ts", true)],
        ok("Script completed\nWall time 0.1 seconds\nOutput:\n{}")
      ],
      ["exec", { command: "ls" }, [ran("ls", 0)]],
      ["exec", { input: "text(1 + 1)" }, [{ _tag: "Other", summary: "input=text(1 + 1)" }]]
    ]
  ],
  [
    "opencode",
    [
      ["read", { filePath: "/w/a.ts", offset: 0 }, [read("/w/a.ts")]],
      ["write", { filePath: "/w/a.ts", content: "x" }, [write("/w/a.ts")], ok("Wrote file successfully.")],
      ["edit", { filePath: "/w/a.ts", oldString: "x", newString: "y" }, [edit("/w/a.ts")]],
      ["apply_patch", { patchText: "*** Begin Patch\n*** Add File: n.ts\n+x\n*** End Patch" }, [write("n.ts", true)]],
      [
        "todowrite",
        { todos: [{ content: "a", status: "x" }] },
        [{ _tag: "Todos", todos: [{ text: "a", status: "x" }] }]
      ]
    ]
  ],
  [
    "Windows",
    [
      [
        "PowerShell",
        { command: "Remove-Item -Force C:\\w\\a.ts" },
        [ran("Remove-Item -Force C:\\w\\a.ts", 0), remove("C:\\w\\a.ts")]
      ],
      [
        "PowerShell",
        { command: "Set-Content -Path a.ts -Value $x" },
        [ran("Set-Content -Path a.ts -Value $x", 0), write("a.ts")]
      ],
      [
        "PowerShell",
        { command: 'move .\\a.ts "D:\\b c\\"' },
        [ran('move .\\a.ts "D:\\b c\\"', 0), remove("a.ts"), write("D:\\b c/a.ts", true)]
      ],
      ["PowerShell", { command: "del /q .\\a.ts" }, [ran("del /q .\\a.ts", 0), remove("a.ts")]],
      ["bash", { command: 'rm "C:\\w\\new.ts"' }, [ran('rm "C:\\w\\new.ts"', 0), remove("C:\\w\\new.ts")]]
    ]
  ],
  [
    "Pi",
    [
      ["read", { path: "a.ts" }, [read("a.ts")]],
      ["write", { path: "a.ts", content: "x" }, [write("a.ts")], ok("Successfully wrote 1 bytes to a.ts")],
      ["edit", { path: "a.ts", oldText: "x", newText: "y" }, [edit("a.ts")]],
      ["bash", { command: "make" }, [ran("make", 0)]],
      ["grep", { pattern: "x", path: "." }, [search("x")]],
      ["find", { pattern: "*.ts" }, [search("*.ts")]],
      ["ls", { path: "src" }, [search("src")]]
    ]
  ]
]

describe.each(agents)("tools of %s", (_, cases) => {
  it.each(cases.map(([tool, ...rest]) => [`${tool} ${JSON.stringify(rest[0])}`, tool, rest] as const))(
    "%s",
    (__, tool, [args, actions, answer]) => {
      assert.deepStrictEqual(did(tool, args, answer), actions)
    }
  )
})

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
    ["an absolute path in another folder", "cd packages/a && rm /w/b.ts", [remove("/w/b.ts")]],
    ["words that only look like it", "echo rm a; npm run rm; ./rm a; charm b", []],
    ["nothing", "", []]
  ]
  it.each(cases)("%s: %j", (_, command, actions) => {
    assert.deepStrictEqual(shellFileActions(command), actions)
  })

  it("a command of a megabyte: quadratic time would exceed the test's limit", () => {
    for (const trap of [
      "a".repeat(1_000_000),
      '"'.repeat(1_000_001),
      "\\".repeat(1_000_001),
      "rm a ".repeat(200_000),
      "<".repeat(1_000_000)
    ]) {
      assert.isArray(shellFileActions(trap))
    }
  })
})
