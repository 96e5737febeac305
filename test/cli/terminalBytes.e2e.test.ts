import { Effect } from "effect"
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { handleOf, hashOf } from "../../src/domain/content/Handle.ts"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs, programOf } from "../support/machine.ts"
import { sharedCode } from "../support/temporaryFolder.ts"
import { assert, it } from "../support/vitest.ts"
import { program } from "./program.ts"
import { calls, chat, environment, place, type Place, runs, says, serve } from "./scene.ts"

/** Every command on a real terminal, with texts of others that would steer it wherever they can stand. */

/** The clipboard, a window title, a link, a cleared screen, hidden text, C1 controls, a device string, bidi, tags. */
const hostile =
  "\u001b]52;c;cHduZWQ=\u0007\u001b]0;pwned\u0007\u001b]8;;http://evil.test\u001b\\x\u001b[2J\u001b[8m\u009b2J\u0090q\u009c\u001bPq\u001b\\\u202egpj.exe\u2066\u200b\u{e0041}\u007f\b\r"
/** The same as the name of a file may hold it. */
const named = hostile.replaceAll("/", "_")

interface Shown {
  readonly status: number | null
  readonly bytes: Buffer
}

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`

/** Runs the program on a pseudo-terminal, and takes what reaches it. */
const onTerminal = Effect.fnUntraced(function* (
  where: Place,
  args: ReadonlyArray<string>,
  fake?: FakeGemini.FakeGemini
) {
  const { bundle } = yield* program
  return yield* Effect.callback<Shown>((resume) => {
    const command = [process.execPath, bundle, ...args].map(quoted).join(" ")
    const child = spawn(programOf("a pseudo-terminal by script") ?? "script", ["-qec", command, "/dev/null"], {
      cwd: where.cwd,
      env: {
        PATH: process.env["PATH"],
        ...sharedCode,
        SHELL: "/bin/sh",
        TERM: "xterm-256color",
        ...environment(where, fake)
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const out: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
    child.on("close", (status) => resume(Effect.succeed({ status, bytes: Buffer.concat(out) })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
})

/** Colours, ends of lines, and the progress line, which only slow work shows. */
const ours =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[(?:0|1|2|31|32|33)m|\r(?=[\r\n])|\r\u001b\[\?7l[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] [^\u001b\r]*\u001b\[K\u001b\[\?7h|\r\u001b\[K/gu

/** What reached the terminal that is neither text nor ours. */
const steering = (bytes: Buffer): ReadonlyArray<string> =>
  (
    bytes
      .toString("utf8")
      .replace(ours, "")
      .match(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu) ?? []
  ).map((character) => JSON.stringify(character))

const conversation = JSON.stringify([
  { role: "user", parts: [{ text: `Look at ${hostile} and ${"fix it. ".repeat(40)}` }] },
  {
    role: "model",
    parts: [
      { text: `I look ${hostile}` },
      { functionCall: { id: "1", name: `tool${hostile}`, args: { path: hostile } } }
    ]
  },
  {
    role: "user",
    parts: [{ functionResponse: { id: "1", name: `tool${hostile}`, response: { output: `${hostile}\n`.repeat(200) } } }]
  },
  { role: "model", parts: [{ text: `Done ${hostile}` }] }
])

const output = `${hostile}\n`.repeat(200)
const handle = handleOf(hashOf(createHash("sha256").update(output).digest()))

const scene = Effect.fnUntraced(function* (name: string) {
  const made = yield* place(name, {
    home: {
      "settings.json": { passEnvironment: [`m${hostile}`] },
      "GEMINI.md": `Remember ${hostile}\n`,
      "PALIMPSEST.md": `Remember ${hostile}\n`,
      "agents/odd.md": `---\nname: odd\ndescription: ${JSON.stringify(hostile)}\n---\nDo ${hostile}\n`,
      "agents/broken.md": `---\nname: ${hostile}\n`
    }
  })
  const cwd = path.join(made.cwd, `f${named}`)
  mkdirSync(cwd, { recursive: true })
  const where: Place = { ...made, cwd }
  writeFileSync(
    path.join(where.home, "trusted-folders.json"),
    JSON.stringify({ version: 1, folders: { [cwd]: "trusted" } })
  )
  const file = `talk${named}.json`
  writeFileSync(path.join(cwd, file), conversation)
  writeFileSync(path.join(cwd, "GEMINI.md"), `In the folder ${hostile}`)
  yield* runs(where, undefined, ["sessions", "import", file])
  return { file, where }
})

needs("a pseudo-terminal by script")("on a terminal", () => {
  it.live("no command prints terminal escapes from other people's text", function* () {
    const { file, where } = yield* scene("terminal-bytes")
    const commands: ReadonlyArray<ReadonlyArray<string>> = [
      ["recall", file, handle],
      ["recall", file, "h_nothing" + hostile],
      ["inspect", file],
      ["compress", file, "--force", "--summarizer", "extractive"],
      ["replay", file],
      ["eval", file],
      ["sessions", "list"],
      ["sessions", "show", "1"],
      ["sessions", "rename", "1", `title ${hostile}`],
      ["sessions", "list"],
      ["sessions", "export", "1", `out${named}.json`],
      ["sessions", "delete", `x${hostile}`],
      ["agents", "list"],
      ["agents", "show", "odd"],
      ["agents", "show", `none${hostile}`],
      ["memory", "show"],
      ["memory", "list"],
      ["memory", "add", `a fact ${hostile}`],
      ["prompt"],
      ["config", "list"],
      ["config", "get", "passEnvironment"],
      ["config", "doctor"],
      ["config", "set", "passEnvironment", hostile],
      ["config", "get", `no${hostile}`],
      ["trust", "--list"],
      ["trust", "."],
      ["ask", "hi", "--session", `x${hostile}`],
      [`no-such-command${hostile}`],
      ["inspect", `--no-such-flag${hostile}`],
      ["inspect", `missing${hostile}`]
    ]
    const faults = yield* Effect.forEach(
      commands,
      (command) =>
        Effect.map(onTerminal(where, command), ({ bytes }) => {
          assert.isNotEmpty(bytes, command.join(" "))
          const found = [...new Set(steering(bytes))]
          return found.length === 0 ? [] : [`${command.join(" ")}: ${found.join(" ")}`]
        }),
      { concurrency: 3 }
    )
    assert.deepStrictEqual(faults.flat(), [])
  })

  it.live("nor do answers, events and tool output of ask, in any chunks", function* () {
    const { where } = yield* scene("terminal-ask")
    writeFileSync(path.join(where.cwd, "odd.txt"), `${hostile}\n`)
    const pieces = [...`Answer ${hostile} ends`].map((text) => FakeGemini.response([{ text }]))
    for (const flags of [[], ["--stream-json"], ["--json"]]) {
      const fake = yield* serve(
        calls(
          ["read_file", { file_path: "odd.txt" }],
          ["run_shell_command", { command: `printf '%s' ${quoted(hostile)}` }]
        ),
        FakeGemini.sse(...pieces)
      )
      const { bytes } = yield* onTerminal(where, ["ask", "--approve", "all", ...flags, "look"], fake)
      assert.deepStrictEqual(steering(bytes), [], `${flags.join(" ")}: ${JSON.stringify(bytes.toString())}`)
      if (flags.length === 0) assert.include(bytes.toString(), "Answer \\u{1b}]52;c;cHduZWQ=\\u{7}")
    }
  })
})

needs("tmux")("a question in the chat", () => {
  it.live("shows exactly what is to be approved", function* () {
    const where = yield* place("terminal-approve", { trust: "trusted" })
    const command = `ls ${"\u202e"}a${" ".repeat(300)}; rm -rf b\u001b[2J\u009b1A\u00a0c`
    const fake = yield* serve(calls(["run_shell_command", { command }]), says("done"))
    const screen = yield* chat(fake, where)
    yield* screen.prompt()
    yield* screen.say("go")
    const shown = yield* screen.asked
    assert.include(shown.replace(/\s*\n\s*/g, " "), "ls \\u{202e}a [300 blanks] ; rm -rf b\\u{1b}[2J\\u{9b}1A\\u{a0}c")
    yield* screen.say("n", "done")
  })
})
