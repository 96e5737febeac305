import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { run } from "./program.ts"
import {
  type Args,
  bodyOf,
  calls,
  chat,
  environment,
  gone,
  lineOf,
  place as scene,
  type Place,
  results,
  says,
  serve,
  turnsOf
} from "./scene.ts"

/** Tools through the built program: what runs, what is asked, and what the model is told, against a Gemini API on loopback. */

const toolNames = (request: FakeGemini.FakeRequest | undefined) =>
  (bodyOf(request).tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name))

/** A trusted folder, and a home with these settings. */
const place = (name: string, settings: object = {}) =>
  scene(`tools-${name}`, { home: { "settings.json": settings }, trust: "trusted" })

const ask = (fake: FakeGemini.FakeGemini, where: Place, ...args: ReadonlyArray<string>) =>
  run(["ask", "Do it", ...args], { cwd: where.cwd, env: environment(where, fake) })

describe("ask with tools", () => {
  it.live("runs a reading tool, sends its result, and prints the last turn's answer", function* () {
    const fake = yield* serve(calls(["read_file", { file_path: "notes.txt" }]), says("It says hello."))
    const where = yield* place("read")
    writeFileSync(path.join(where.cwd, "notes.txt"), "hello from the notes\n")
    const ended = yield* ask(fake, where, "--json")
    const report = JSON.parse(String(ended.stdout))
    assert.deepStrictEqual(
      [ended.status, report.answer, report.turns, report.finishReason, report.error, report.usage.prompt],
      [0, "It says hello.", 2, "STOP", null, 20]
    )
    assert.deepStrictEqual(
      report.calls.map(({ duration, ...call }: Args) => [typeof duration, call]),
      [["number", { name: "read_file", title: "read_file notes.txt", status: "success", message: null }]]
    )
    assert.strictEqual(report.events.ToolCallResponse, 1)
    assert.match(ended.stderr, /^palimpsest: ✓ Read notes\.txt/)
    const [first, second] = yield* turnsOf(fake)
    assert.includeMembers(toolNames(first), ["read_file", "write_file", "run_shell_command"])
    assert.include(JSON.stringify(results(second)), "hello from the notes")
  })

  it.live("denies changes when no terminal is attached, and informs the model", function* () {
    const wanted = { file_path: "new.txt", content: "text\n" }
    const fake = yield* serve(
      calls(["write_file", wanted], ["run_shell_command", { command: "touch ran" }]),
      says("I may not.")
    )
    const where = yield* place("denied")
    const ended = yield* ask(fake, where)
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "I may not.\n"])
    assert.deepStrictEqual(ended.stderr.split("\n"), [
      "palimpsest: ✗ Write new.txt · not allowed; allow it with --approve",
      "palimpsest: ✗ Run touch ran · not allowed; allow it with --approve",
      ""
    ])
    assert.isFalse(existsSync(path.join(where.cwd, "new.txt")))
    assert.isFalse(existsSync(path.join(where.cwd, "ran")))
    const [, second] = yield* turnsOf(fake)
    for (const response of results(second)) assert.include(String(response["error"]), "denied this call")
  })

  it.live("--approve edits does not write files that run by themselves, and explains why and what to do", function* () {
    const hostile = (file_path: string) => ["write_file", { file_path, content: "touch PWNED\n" }] as const
    const files = [".husky/pre-commit", ".git/config", "sub/.vscode/tasks.json", ".env", "AGENTS.md", "link/ci.yml"]
    const fake = yield* serve(
      calls(
        ...files.map(hostile),
        hostile("src/a.sh"),
        ["replace", { file_path: "package.json", old_string: "vitest", new_string: "touch PWNED" }],
        ["replace", { file_path: "package.json", old_string: "1.0.0", new_string: "1.0.1" }]
      ),
      says("I may not.")
    )
    const where = yield* place("steering")
    const packageFile = path.join(where.cwd, "package.json")
    writeFileSync(packageFile, `{"version": "1.0.0", "scripts": {"test": "vitest"}}`)
    mkdirSync(path.join(where.cwd, ".github", "workflows"), { recursive: true })
    symlinkSync(path.join(where.cwd, ".github", "workflows"), path.join(where.cwd, "link"))
    const ended = yield* ask(fake, where, "--approve", "edits")
    assert.strictEqual(ended.status, 0)
    for (const file of files) assert.isFalse(existsSync(path.join(where.cwd, file)), file)
    assert.isTrue(existsSync(path.join(where.cwd, "src", "a.sh")))
    assert.strictEqual(readFileSync(packageFile, "utf8"), `{"version": "1.0.1", "scripts": {"test": "vitest"}}`)
    const lines = ended.stderr.split("\n")
    assert.deepStrictEqual(lines.slice(0, 3), [
      "palimpsest: write_file .husky/pre-commit needs approval, because git runs it, or programs that it names. Files that run by themselves are asked for whatever edits may run; docs/approval.md lists them; --approve all runs it without asking",
      "palimpsest: ✗ Write .husky/pre-commit · not allowed; allow it with --approve",
      "palimpsest: write_file .git/config needs approval, because git runs it, or programs that it names; --approve all runs it without asking"
    ])
    assert.include(
      ended.stderr,
      "replace package.json needs approval, because its scripts would change, and npm or other programs run them"
    )
    const [, second] = yield* turnsOf(fake)
    assert.include(String(results(second)[0]?.["error"]), "leave this file unchanged, and say in your answer")
  })

  it.live("--approve edits does not write files that a hook runs or memory imports, whatever their name", function* () {
    const change = (file_path: string) => ["write_file", { file_path, content: "touch PWNED\n" }] as const
    const fake = yield* serve(
      calls(change("check.sh"), change("./sub/../check.sh"), change("docs/rules.txt"), change("docs/other.txt")),
      says("I may not.")
    )
    const hook = { type: "command", command: `sh "$GEMINI_PROJECT_DIR"/check.sh` }
    const where = yield* scene("tools-hooked", {
      home: { "settings.json": { hooks: { AfterTool: [{ hooks: [hook] }] } } },
      work: { "check.sh": "true\n", "GEMINI.md": "@docs/rules.txt\n", "docs/rules.txt": "Be kind.\n" },
      trust: "trusted"
    })
    const ended = yield* ask(fake, where, "--approve", "edits")
    assert.strictEqual(readFileSync(path.join(where.cwd, "check.sh"), "utf8"), "true\n")
    assert.strictEqual(readFileSync(path.join(where.cwd, "docs", "rules.txt"), "utf8"), "Be kind.\n")
    assert.isTrue(existsSync(path.join(where.cwd, "docs", "other.txt")))
    assert.isFalse(existsSync(path.join(where.cwd, "PWNED")))
    assert.include(
      ended.stderr,
      "write_file check.sh needs approval, because a hook or an MCP server in your settings runs it"
    )
    assert.include(ended.stderr, "write_file docs/rules.txt needs approval, because it instructs this or another agent")
  })

  it.live("runs what the settings allow, without the keys; --approve all runs everything", function* () {
    const where = yield* place("allowed", { allowed: ["shell:touch"] })
    const fake = yield* serve(
      calls(["run_shell_command", { command: "touch ran" }], ["run_shell_command", { command: "mkdir made" }]),
      says("Done.")
    )
    const ended = yield* ask(fake, where)
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "Done.\n"])
    assert.isTrue(existsSync(path.join(where.cwd, "ran")))
    assert.isFalse(existsSync(path.join(where.cwd, "made")))
    const command = `echo "key <$GEMINI_API_KEY> home <$PALIMPSEST_HOME>" > seen`
    const again = yield* serve(calls(["run_shell_command", { command }]), says("Done."))
    assert.strictEqual((yield* ask(again, where, "--approve", "all")).status, 0)
    assert.strictEqual(readFileSync(path.join(where.cwd, "seen"), "utf8"), `key <> home <${where.home}>\n`)
  })

  it.live("asks per MCP server of the settings, and reports an unavailable one in a line", function* () {
    const server = path.join(path.dirname(import.meta.dirname), "support", "mcpServer.ts")
    const where = yield* place("mcp", {
      mcpServers: {
        mine: { command: process.execPath, args: ["--disable-warning=ExperimentalWarning", server] },
        broken: { command: "/no/such/program" }
      }
    })
    const call = calls(["mcp_mine_echo", { text: "hello there" }])
    const asked = yield* serve(call, says("No."))
    const denied = yield* ask(asked, where)
    assert.strictEqual(denied.status, 0)
    assert.match(denied.stderr, /^palimpsest: The MCP server broken is ignored: [^\n]+\n/)
    assert.match(denied.stderr, /✗ mcp_mine_echo [^\n]* · not allowed/)
    const allowed = yield* serve(call, says("Yes."))
    const ended = yield* ask(allowed, where, "--approve", "all")
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "Yes.\n"])
    assert.include(JSON.stringify(results((yield* turnsOf(allowed))[1])), "hello there")
  })

  it.live("runs an agent for the model, shows its progress on stderr, and returns only its result", function* () {
    const fake = yield* serve(
      calls(["generalist", { request: "Read the notes." }]),
      calls(["read_file", { file_path: "notes.txt" }]),
      calls(["complete_task", { result: "They say hello." }]),
      says("It found hello.")
    )
    const where = yield* place("subagent")
    writeFileSync(path.join(where.cwd, "notes.txt"), "hello from the notes\n")
    const ended = yield* ask(fake, where)
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "It found hello.\n"])
    assert.match(ended.stderr, /generalist › Read notes\.txt\n[^]*✓ generalist Read the notes\. · generalist is done/)
    const all = yield* turnsOf(fake)
    assert.lengthOf(all, 4)
    assert.notInclude(toolNames(all[1]), "generalist")
    const last = JSON.stringify(results(all[3]))
    assert.include(last, "They say hello.")
    assert.notInclude(last, "hello from the notes")
  })

  it.live("backgroundAgents: runs an agent in the background and delivers its result as a message", function* () {
    const isChild = (request: FakeGemini.FakeRequest) => toolNames(request).includes("complete_task")
    const own = [calls(["sessions_spawn", { agent: "generalist", task: "Count." }]), calls(["sessions_yield", {}])]
    let turn = 0
    const fake = yield* FakeGemini.make((request) =>
      request.method === "countTokens"
        ? FakeGemini.tokens(100)
        : isChild(request)
          ? calls(["complete_task", { result: "It is forty-two." }])
          : (own[turn++] ?? says("Forty-two."))
    )
    const where = yield* place("background", { backgroundAgents: true })
    const ended = yield* ask(fake, where)
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "Forty-two.\n"])
    const last = (yield* turnsOf(fake)).filter((request) => !isChild(request)).at(-1)
    const sent = JSON.stringify(bodyOf(last).contents)
    assert.include(sent, "It is forty-two.")
    assert.strictEqual(sent.split("It is forty-two.").length, 2)
  })

  it.live("--no-tools sends no tools", function* () {
    const fake = yield* serve(says("Hello."))
    const where = yield* place("no-tools")
    assert.strictEqual((yield* ask(fake, where, "--no-tools")).status, 0)
    assert.deepStrictEqual(toolNames((yield* turnsOf(fake))[0]), [])
  })

  it.live("uses other folders only when --add-dir names them", function* () {
    const where = yield* place("add-dir")
    const other = path.join(path.dirname(where.cwd), "other")
    mkdirSync(other, { recursive: true })
    const file = path.join(realpathSync(other), "far.txt")
    writeFileSync(file, "far away\n")
    const reading = calls(["read_file", { file_path: file }])
    const outside = yield* serve(reading, says("No."))
    assert.strictEqual((yield* ask(outside, where)).status, 0)
    assert.match(JSON.stringify(results((yield* turnsOf(outside))[1])), /outside the workspace/)
    const inside = yield* serve(reading, says("Yes."))
    assert.strictEqual((yield* ask(inside, where, "--add-dir", "../other")).status, 0)
    assert.include(JSON.stringify(results((yield* turnsOf(inside))[1])), "far away")
    const wrong = yield* ask(inside, where, "--add-dir", "../nowhere")
    assert.strictEqual(wrong.status, 2)
    assert.match(wrong.stderr, /^palimpsest: [^\n]*nowhere[^\n]*\n$/)
  })

  it.live("maxTurns ends a run with status 1 and a report of the work so far", function* () {
    const reading = calls(["list_directory", { dir_path: "." }])
    const fake = yield* serve(reading, reading, reading)
    const where = yield* place("turns", { maxTurns: 2 })
    const ended = yield* ask(fake, where, "--json")
    const report = JSON.parse(String(ended.stdout))
    assert.deepStrictEqual(
      [ended.status, report.answer, report.error._tag, report.error.limit, report.calls.length],
      [1, null, "LimitReached", "turns", 2]
    )
    assert.match(ended.stderr, /took 2 turns, which is its limit/)
  })
})

const terminal = needs("tmux")

terminal("a chat with tools", () => {
  it.live("asks before a command runs: once, no with a reason, always", function* () {
    const touch = (name: string) => calls(["run_shell_command", { command: `touch ${name}` }])
    const call = { id: "a", name: "run_shell_command", args: { command: "touch one" } }
    const fake = yield* serve(
      FakeGemini.sse(FakeGemini.response([{ text: "I make **one** first." }, { functionCall: call }])),
      says("Made one."),
      touch("two"),
      says("As you like."),
      touch("three"),
      touch("four"),
      says("Made both.")
    )
    const where = yield* place("ask-command")
    const screen = yield* chat(fake, where)
    yield* screen.prompt()

    // What was typed before is no answer.
    yield* screen.say("make one")
    const asked = yield* screen.asked
    assert.include(asked, "> make one\nI make one first.\n\nRun this command?\n  touch one\n\ny  yes, once")
    assert.match(
      asked.replaceAll("\n", " "),
      /y {2}yes, once s {2}yes, in this session: touch with plain options, in the workspace a {2}yes, always here: [a-z ]+ e {2}edit the command first n {2}no, because … · Esc cancels the turn/
    )
    yield* screen.say("what?", /allow\? what\?\n"what\?" is not an answer; type y, s, a, e or n\.[^]*allow\?$/)
    assert.isFalse(existsSync(path.join(where.cwd, "one")))
    yield* screen.say("y", "Made one.")
    assert.isTrue(existsSync(path.join(where.cwd, "one")))
    assert.include(yield* screen.prompt(), "✓ Run touch one")

    yield* screen.say("make two")
    yield* screen.asked
    yield* screen.ask("n make another one", "As you like.")
    assert.isFalse(existsSync(path.join(where.cwd, "two")))
    const told = results((yield* turnsOf(fake))[3])
    assert.include(JSON.stringify(told), "make another one")

    yield* screen.say("make both")
    yield* screen.asked
    yield* screen.ask("a", "Made both.")
    assert.isTrue(existsSync(path.join(where.cwd, "three")) && existsSync(path.join(where.cwd, "four")))
    assert.deepStrictEqual(JSON.parse(readFileSync(path.join(where.home, "settings.json"), "utf8")), {
      allowed: [`shell:touch in ${where.cwd}`]
    })
  })

  it.live("shows a diff before it writes a file, and asks no more after /approve edits", function* () {
    const fake = yield* serve(
      calls(["write_file", { file_path: "a.txt", content: "one\ntwo\n" }]),
      says("Written."),
      calls(["replace", { file_path: "a.txt", instruction: "x", old_string: "two", new_string: "three" }]),
      says("Changed.")
    )
    const where = yield* place("ask-edit")
    writeFileSync(path.join(where.cwd, "a.txt"), "one\n")
    const screen = yield* chat(fake, where)
    yield* screen.prompt()
    yield* screen.say("write")
    const asked = yield* screen.asked
    assert.match(asked, /Change a\.txt\? \+1 −0\n {2}1 {2}one\n {2}2 \+two\n/)
    yield* screen.ask("y", /✓ Write a\.txt · \+1 −0 ▸\n\nWritten\./)
    yield* screen.say("/approve edits", "run without asking")
    const changed = yield* screen.say("change", "Changed.")
    assert.match(changed, /✓ Edit a\.txt · \+1 −1\n {2}1 {2}one\n {2}2 -two\n {2}2 \+three\n/)
    assert.strictEqual(readFileSync(path.join(where.cwd, "a.txt"), "utf8"), "one\nthree\n")
    yield* screen.prompt()
    yield* screen.say("/tools")
    const tools = (yield* screen.until(/run_shell_command[^]*\n>$/)).replaceAll(/\s+/g, " ")
    assert.match(tools, /run_shell_command .*Asks first\./)
  })

  it.live("Ctrl+C ends a command with all its processes, keeps completed work, and the chat continues", function* () {
    const command = "sleep 1000 & echo $! > pid; wait"
    const fake = yield* serve(calls(["run_shell_command", { command }]), says("Then not."))
    const where = yield* place("cancel-command")
    const screen = yield* chat(fake, where, "--approve", "all")
    yield* screen.prompt()
    yield* screen.say("wait long")
    const pid = Number(yield* lineOf(path.join(where.cwd, "pid")))
    yield* screen.until(/^. Run sleep 1000/m)
    yield* screen.press("C-c")
    yield* screen.until("Cancelled. Everything up to here is kept.")
    yield* screen.prompt()
    yield* gone([pid])
    yield* screen.say("never mind", "Then not.")
    const [, second] = yield* turnsOf(fake)
    const sent = JSON.stringify(bodyOf(second).contents)
    assert.include(sent, "[Operation Cancelled]")
    assert.include(sent, "never mind")
  })
})
