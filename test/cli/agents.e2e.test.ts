import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { type Ended, program, run } from "./program.ts"

/** `agents` as a user's shell runs it, against a Gemini API on loopback. */

const reviewer = `---
name: reviewer
description: Reviews a change for mistakes
tools: [read_file]
max_turns: 3
---
You review. The task is \${query}.
`

/** A home and a working folder of this test's own, with these agents. */
const folders = Effect.fnUntraced(function* (name: string, agents: Readonly<Record<string, string>>) {
  const { folder } = yield* program
  const home = path.join(folder, `agents-${name}`, "home")
  const cwd = path.join(folder, `agents-${name}`, "work")
  mkdirSync(home, { recursive: true })
  mkdirSync(path.join(cwd, ".gemini", "agents"), { recursive: true })
  for (const [file, text] of Object.entries(agents)) writeFileSync(path.join(cwd, ".gemini", "agents", file), text)
  return { home, cwd }
})

const shell = Effect.fnUntraced(function* (
  name: string,
  agents: Readonly<Record<string, string>>,
  args: ReadonlyArray<string>,
  url = "http://127.0.0.1:9"
) {
  const { cwd, home } = yield* folders(name, agents)
  // The folder of the user who runs the tests may hold agents of their own.
  const env = {
    PALIMPSEST_HOME: home,
    HOME: home,
    GEMINI_CLI_TRUST_WORKSPACE: "true",
    GEMINI_API_KEY: "AIza-not-a-key",
    GOOGLE_GEMINI_BASE_URL: url
  }
  return yield* run(["agents", ...args], { cwd, env })
})

const out = ({ stdout }: Ended) => String(stdout)

const calls = (name: string, args: unknown) => FakeGemini.sse(FakeGemini.response([{ functionCall: { name, args } }]))

describe("agents", () => {
  it.effect("list: prints one line per agent with its source, and broken files on stderr", function* () {
    const ended = yield* shell("list", { "a.md": reviewer, "b.md": "---\nname: B\ndescription: x\n---\nx" }, ["list"])
    assert.strictEqual(ended.status, 0)
    assert.match(out(ended), /^NAME +KIND +FROM +PURPOSE\n/)
    assert.match(out(ended), /\ncodebase_investigator +local +built-in +Finds out/)
    assert.match(out(ended), /\nreviewer +local +project: \S+a\.md +Reviews a change for mistakes\n/)
    assert.match(ended.stderr, /^palimpsest: \S+b\.md: name: expected lower-case letters[^\n]*\n$/)
  })

  it.effect("list --json: prints one document that includes the problems", function* () {
    const ended = yield* shell("json", { "b.md": "words" }, ["list", "--json"])
    const { agents, problems }: { agents: ReadonlyArray<{ name: string }>; problems: ReadonlyArray<unknown> } =
      JSON.parse(out(ended))
    assert.include(
      agents.map(({ name }) => name),
      "generalist"
    )
    assert.lengthOf(problems, 1)
  })

  it.effect("show: prints the effective definition; an unknown name is bad input", function* () {
    const shown = yield* shell("show", { "a.md": reviewer }, ["show", "reviewer"])
    assert.match(out(shown), /^Name +reviewer\n/)
    assert.match(out(shown), /\nTools +read_file\n/)
    assert.match(out(shown), /\nLimits +3 turns, 10 minutes\n/)
    assert.match(out(shown), /\n\nYou review\. The task is \$\{query\}\.\n$/)
    const missing = yield* shell("show", {}, ["show", "nobody"])
    assert.strictEqual(missing.status, 2)
    assert.match(missing.stderr, /unknown agent nobody; available: [^\n]*cli_help, codebase_investigator,/)
  })

  it.effect("run: prints the result on stdout and the progress on stderr", function* () {
    const fake = yield* FakeGemini.make(
      FakeGemini.queue(calls("read_file", { file_path: "none.txt" }), calls("complete_task", { result: "It is fine." }))
    )
    const ended = yield* shell("run", { "a.md": reviewer }, ["run", "reviewer", "Look at it"], fake.url)
    assert.deepStrictEqual([ended.status, out(ended)], [0, "It is fine.\n"])
    assert.match(ended.stderr, /^palimpsest: reviewer › Read none\.txt\n/)
    const [first] = yield* fake.requests
    assert.include(JSON.stringify(first?.body), "The task is Look at it.")
  })

  it.effect("run: fails when the agent hands in no result, and prints what it wrote", function* () {
    const said = FakeGemini.sse(FakeGemini.response([{ text: "I wonder." }]))
    const fake = yield* FakeGemini.make(FakeGemini.queue(said, said))
    const ended = yield* shell("fails", { "a.md": reviewer }, ["run", "reviewer", "Look"], fake.url)
    assert.deepStrictEqual([ended.status, out(ended)], [1, ""])
    assert.match(
      ended.stderr,
      /reviewer did not finish \(ERROR_NO_COMPLETE_TASK_CALL\): It stopped without submitting.*I wonder\./
    )
  })
})
