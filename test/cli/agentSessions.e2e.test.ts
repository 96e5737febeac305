import { Effect, Schema } from "effect"
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Found } from "../../src/cli/commands/find.ts"
import { Secrets } from "../../src/cli/commands/secrets.ts"
import { CostReport } from "../../src/cli/output/CostReport.ts"
import { root } from "../support/paths.ts"
import { sessionFile } from "../support/sessions.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"
import * as Scene from "./scene.ts"

/** The commands that work on the sessions of other agents, on a machine with three of them. */

const token = `${"gh"}p_${"Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4Ef7Hi0"}`
const uuid = "491e126e-1e71-469c-ade2-fcc8af567c74"

const machine = Effect.gen(function* () {
  const { folder } = yield* program
  const home = path.join(folder, "agents")
  const claude = path.join(home, ".claude/projects/-home-marco-projects-spotter")
  const codex = path.join(home, ".codex/sessions/2026/02/03")
  for (const one of [claude, codex]) mkdirSync(one, { recursive: true })
  copyFileSync(example, path.join(claude, `${uuid}.jsonl`))
  copyFileSync(
    path.join(root, "test/fixtures/codex/codex-today.jsonl"),
    path.join(codex, "rollout-2026-02-03-tides.jsonl")
  )
  const message = { role: "user", content: `deploy with ${token}` }
  const line = {
    type: "user",
    uuid: "a",
    parentUuid: null,
    sessionId: "leaky",
    cwd: "/p",
    timestamp: "2026-02-03T10:00:00Z",
    message
  }
  writeFileSync(path.join(claude, "leaky.jsonl"), `${JSON.stringify(line)}\n{"type":"us`)
  writeFileSync(path.join(claude, "broken.jsonl"), "\0\0\0")
  const unset = {
    CLAUDE_CONFIG_DIR: "",
    CODEX_HOME: "",
    XDG_DATA_HOME: "",
    XDG_CONFIG_HOME: "",
    PI_CODING_AGENT_DIR: ""
  }
  const env = { ...unset, HOME: home, USERPROFILE: home, GEMINI_CLI_HOME: home, PALIMPSEST_HOME: `${home}-own` }
  const before = () => readdirSync(home, { recursive: true }).toSorted()
  return { home, env, before }
})

const decode = <S extends Schema.Codec<unknown, unknown>>(schema: S, stdout: Buffer) =>
  Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(schema)))(String(stdout))

describe("the sessions of other agents", () => {
  it.effect("cost what their agent recorded, to the cent", function* () {
    const { env } = yield* machine
    const lines = readFileSync(sessionFile("pi-1019-lines"), "utf8").trim().split("\n")
    const recorded = lines.reduce((sum, line) => sum + (JSON.parse(line).message?.usage?.cost?.total ?? 0), 0)
    assert.isAbove(recorded, 30)
    const cost = yield* run(["cost", sessionFile("pi-1019-lines")], { env })
    assert.match(String(cost.stdout), new RegExp(`^\\$${recorded.toFixed(2).replace(".", "\\.")} for `))
  })

  it.effect(
    "--since without a request in that time, --by on a page, and install before its output is read",
    function* () {
      const { env, home } = yield* machine
      const recent = yield* run(["cost", "--agent", "claude", "--since", "1d"], { env })
      assert.match(recent.stderr, /no usage recorded in \d sessions in that time\n$/)
      const page = path.join(`${home}-own`, "cost.html")
      mkdirSync(path.dirname(page), { recursive: true })
      yield* run(["cost", uuid, "--by", "day", "--html", page], { env })
      const shown = readFileSync(page, "utf8")
      assert.deepStrictEqual(
        [shown.includes("By day"), shown.includes("By model"), shown.includes("cache broke</h2>")],
        [true, false, false]
      )
      const cwd = `${home}-installed`
      mkdirSync(cwd)
      yield* run(["install", "claude", "--yes"], { env, cwd, hangUp: true })
      assert.sameMembers(readdirSync(cwd), [".claude", ".mcp.json"])
    }
  )

  it.effect("of this program name secrets in large parts by handles that recall reads", function* () {
    const { env: others, home } = yield* machine
    const env = { ...others, PALIMPSEST_HOME: `${home}-stored` }
    const file = `${home}-large.jsonl`
    const text = `${"a line of a large message\n".repeat(500)}deploy with ${token}\n`
    writeFileSync(file, JSON.stringify([{ role: "user", parts: [{ text }] }]))
    const imported = yield* run(["sessions", "import", file], { env })
    const id = String(imported.stdout).trim()
    const secrets = yield* run(["secrets", id, "--only", "secrets"], { env })
    const [, handle = ""] = /GitHub token +1 time +(h_[a-z2-7]{10})\n/.exec(String(secrets.stdout)) ?? []
    const recalled = yield* run(["recall", id, handle], { env })
    assert.strictEqual(String(recalled.stdout), text)
  })

  it.effect("are listed, searched, priced, and copied without secrets, and stay as they are", function* () {
    const { before, env, home } = yield* machine
    const files = before()

    const listed = yield* run(["find"], { env })
    assert.strictEqual(listed.status, 0)
    assert.match(listed.stderr, /broken\.jsonl: is binary; expected UTF-8 text\n/)
    const shown = String(listed.stdout)
    assert.match(shown, /codex .*\/home\/dev\/tides .*The table of tides/)
    assert.include(shown, path.join(".claude/projects/-home-marco-projects-spotter", `${uuid}.jsonl`))
    for (const line of shown.split("\n")) if (!line.startsWith("  ")) assert.isAtMost(line.length, 100)

    const searched = yield* run(["find", "off by one", "--agent", "codex", "--json"], { env })
    const { sessions } = decode(Found, searched.stdout)
    assert.deepStrictEqual(
      sessions.map(({ agent, hits }) => [agent, hits[0]?.line, hits[0]?.speaker]),
      [["codex", 5, "user"]]
    )
    const packed = path.join(home, "session.jsonl.gz")
    writeFileSync(packed, Uint8Array.from([0x1f, 0x8b, 8, 0, 0]))
    const refused = yield* run(["cost", packed], { env })
    rmSync(packed)
    assert.strictEqual(refused.status, 2)
    assert.include(refused.stderr, "is compressed with gzip; unpack it first: gunzip -k FILE")

    const nothing = yield* run(["find", "--grep", "no such words"], { env })
    assert.deepStrictEqual([nothing.status, String(nothing.stdout)], [1, ""])

    const cost = decode(CostReport, (yield* run(["cost", "--json"], { env })).stdout)
    assert.deepStrictEqual(
      cost.agent.map(({ name, requests }) => [name, requests]),
      [
        ["claude", 17],
        ["codex", 3]
      ]
    )
    const one = yield* run(["cost", uuid.slice(0, 8)], { env })
    assert.match(String(one.stdout), /^\$0\.56 for 17 requests in 1 session\n/)

    const secrets = yield* run(["secrets", "--only", "secrets", "--json"], { env })
    assert.notInclude(String(secrets.stdout), token)
    assert.deepStrictEqual(
      decode(Secrets, secrets.stdout).sessions.map(({ id, places }) => [
        id,
        places.map(({ kind, line }) => [line, kind])
      ]),
      [["leaky", [[1, "GitHub token"]]]]
    )
    const out = path.join(home, "..", "copy.jsonl")
    const exported = yield* run(["export", "leaky", out, "--redact"], { env })
    assert.deepStrictEqual(
      [exported.status, exported.stderr],
      [0, `palimpsest: wrote ${out}\npalimpsest: replaced 1 secret; leaky is unchanged\n`]
    )
    assert.match(readFileSync(out, "utf8"), /"deploy with \[redacted: GitHub token #1\]"\}\}\n\{"type":"us$/)
    assert.deepStrictEqual(before(), files)

    const beside = path.join(home, ".claude/projects/-home-marco-projects-spotter/leaky")
    for (const [name, text] of [
      [
        "subagents/agent-1.jsonl",
        `{"type":"user","isSidechain":true,"sessionId":"leaky","message":{"content":"${token}"}}\n`
      ],
      ["tool-results/out.txt", `the token is ${token}\n`]
    ] as const) {
      mkdirSync(path.dirname(path.join(beside, name)), { recursive: true })
      writeFileSync(path.join(beside, name), text)
    }
    const whole = yield* run(["export", "leaky", out, "--redact", "--all"], { env })
    assert.include(whole.stderr, "2 files of subagents and outputs in ")
    assert.include(whole.stderr, "replaced 3 secrets")
    const copies = readdirSync(path.join(home, "..", "copy"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => readFileSync(path.join(parentPath, name), "utf8"))
    assert.strictEqual(copies.length, 2)
    for (const text of copies) {
      assert.include(text, "[redacted: GitHub token #1]")
      assert.notInclude(text, token)
    }
  })

  it.effect("cost refuses a broken line unless it is told to skip it, and reads standard input", function* () {
    const { env, home } = yield* machine
    const [first, ...rest] = readFileSync(example, "utf8").split("\n")
    const broken = path.join(home, "torn.jsonl")
    writeFileSync(broken, [first, "{broken", ...rest].join("\n"))
    for (const command of ["cost", "inspect"]) {
      const refused = yield* run([command, broken], { env })
      assert.strictEqual(refused.status, 2)
      assert.match(refused.stderr, /torn\.jsonl, line 2: not JSON .*; use --lenient to skip broken lines\n$/)
    }
    const total = (text: Buffer) => String(text).split("\n")[0]
    const whole = yield* run(["cost", example], { env })
    assert.strictEqual(total((yield* run(["cost", broken, "--lenient"], { env })).stdout), total(whole.stdout))
    const piped = yield* run(["cost", "-"], { env, input: readFileSync(example, "utf8") })
    assert.strictEqual(total(piped.stdout), total(whole.stdout))
    const rescued = yield* run(["rescue", "-", "--folder", home], { env, input: readFileSync(example, "utf8") })
    assert.strictEqual(rescued.status, 0, rescued.stderr)
    assert.notInclude(String(rescued.stdout), "original")
    for (const command of ["cost", "rescue"]) {
      const { status, stderr } = yield* run([command, "-"], { env, input: "no session" })
      assert.deepStrictEqual([status, stderr], [2, "palimpsest: standard input: is not a session of a known agent\n"])
    }
    const meta = '{"type":"session_meta","payload":{"id":"x","cwd":"/"}}\n'
    const refused = (command: string, input: string) =>
      Effect.map(run([command, "-"], { env, input }), ({ stderr }) => stderr.trimEnd().split("\n").at(-1))
    assert.match(
      (yield* refused("cost", `${meta}{broken\n${meta}`)) ?? "",
      /^palimpsest: standard input, line 2: not JSON/
    )
    assert.strictEqual(yield* refused("rescue", meta), "palimpsest: standard input holds no messages")
  })

  it.effect("a copy of a fork of Codex stands alone, without the secrets of what it goes on from", function* () {
    const { env, home } = yield* machine
    const folder = path.join(home, ".codex/sessions/2026/02/04")
    mkdirSync(folder, { recursive: true })
    const said = (text: string) => ({
      type: "response_item",
      payload: { type: "message", role: "user", content: [{ type: "input_text", text }] }
    })
    const lines = (...records: ReadonlyArray<object>) => records.map((record) => `${JSON.stringify(record)}\n`).join("")
    const password = "Zk3pQ9vXw7Lm2Tt8"
    const origin = lines({ type: "session_meta", payload: { id: "a", cwd: "/" } }, said(`DB_PASSWORD=${password}`))
    writeFileSync(path.join(folder, "rollout-1-a.jsonl"), origin)
    const history_base = { thread_id: "a", end_byte_offset: origin.length }
    const fork = path.join(folder, "rollout-2-b.jsonl")
    const meta = { type: "session_meta", payload: { id: "b", cwd: "/", history_base } }
    writeFileSync(fork, lines(meta, said(`connect with ${password}`)))
    for (const flags of [["--redact"], ["--redact", "--to", "codex"]]) {
      const copy = path.join(home, "copy.jsonl")
      const { status, stderr } = yield* run(["export", fork, copy, ...flags], { env })
      assert.strictEqual(status, 0, stderr)
      const text = readFileSync(copy, "utf8")
      assert.include(text, "DB_PASSWORD=[redacted: password #1]")
      assert.include(text, "connect with [redacted: password #1]")
      for (const left of [password, "history_base"]) assert.notInclude(text, left)
    }
  })

  it.effect("- is standard output for whatever is written, and the report gives way to it", function* () {
    const { env } = yield* machine
    const copied = yield* run(["export", example, "-"], { env })
    assert.strictEqual(String(copied.stdout), readFileSync(example, "utf8"))
    const own = String((yield* run(["sessions", "import", example], { env })).stdout).trim()
    const opencode = path.join(env.HOME, "opencode.json")
    const info = { id: "ses_1", role: "user", sessionID: "ses_1", time: { created: 1 } }
    const said = { type: "text", text: "hello" }
    writeFileSync(opencode, JSON.stringify({ info: { id: "ses_1" }, messages: [{ info, parts: [said] }] }))
    const unsaid = yield* run(["export", opencode, "-"], { env })
    assert.match(unsaid.stderr, /^palimpsest: standard output has no ending; add --to with one of the formats /)
    for (const args of [
      ["export", own, "-"],
      ["export", example, "-", "--to", "pi"],
      ["compress", example, "--force", "--out", "-"]
    ]) {
      const written = yield* run(args, { env })
      const read = yield* run(["inspect", "-", "--json"], { env, input: String(written.stdout) })
      assert.strictEqual(read.status, 0, read.stderr)
    }
    assert.match(String((yield* run(["inspect", example, "--html", "-"], { env })).stdout), /^<!doctype html>/)
    const refused = yield* Effect.forEach(
      [
        ["inspect", example, "--html", "-", "--json"],
        ["compress", example, "--out", "-", "--json"],
        ["export", example, "-", "--all"]
      ],
      (args) => run(args, { env })
    )
    assert.deepStrictEqual(
      refused.map(({ status }) => status),
      [2, 2, 2]
    )
  })

  it.effect("a history for the Gemini API, and standard input, are searched and exported like them", function* () {
    const { folder } = yield* program
    const place = path.join(folder, "history")
    mkdirSync(place)
    const env = { HOME: place, PALIMPSEST_HOME: path.join(place, "home") }
    const history = JSON.stringify([
      { role: "user", parts: [{ text: "hello" }] },
      { role: "model", parts: [{ text: `deploy with ${token}` }] }
    ])
    const file = path.join(place, "history.json")
    writeFileSync(file, history)
    const search = ["secrets", "--only", "secrets", "--json"]
    for (const [name, input, done] of [
      [file, "", "wrote"],
      ["-", history, "overwrote"]
    ] as const) {
      const found = yield* run([...search, name], { env, input })
      assert.notInclude(String(found.stdout), token)
      assert.deepStrictEqual(
        decode(Secrets, found.stdout).sessions.map(({ agent, places }) => [agent, places.map(({ line }) => line)]),
        [["contents", [2]]]
      )
      const out = path.join(place, "copy.json")
      const copied = yield* run(["export", name, out, "--redact"], { env, input })
      assert.deepStrictEqual(
        [copied.status, copied.stderr],
        [0, `palimpsest: ${done} ${out}\npalimpsest: replaced 1 secret\n`]
      )
      assert.strictEqual(readFileSync(out, "utf8").trim(), history.replace(token, "[redacted: GitHub token #1]"))
    }
    const lines = readFileSync(sessionFile("claude-code-short"), "utf8")
    const own = path.join(place, "own.jsonl")
    assert.strictEqual((yield* run(["export", "-", own], { env, input: lines })).status, 0)
    assert.include(readFileSync(own, "utf8"), '"isSidechain":false')
    const markdown = path.join(place, "own.md")
    assert.strictEqual((yield* run(["export", "-", markdown, "--from", "claude"], { env, input: lines })).status, 0)
    assert.match(readFileSync(markdown, "utf8"), /^# standard input\n\n## User\n/)
    for (const args of [
      ["export", "-", own, "--all"],
      ["export", file, file],
      ["secrets", "--from", "claude"]
    ]) {
      const refused = yield* run(args, { env, input: lines })
      assert.strictEqual(refused.status, 2, args.join(" "))
      assert.strictEqual(refused.stderr.trim().split("\n").length, 1, refused.stderr)
    }
  })

  it.effect("go on where their agent looks for them, also one without its folder, and in opencode", function* () {
    const { env, home } = yield* machine
    const project = path.join(home, "work")
    const folder = path.join(home, ".gemini/tmp/work")
    mkdirSync(path.join(folder, "chats"), { recursive: true })
    mkdirSync(project)
    writeFileSync(path.join(home, ".gemini/projects.json"), JSON.stringify({ projects: { [project]: "work" } }))
    const file = path.join(folder, "chats/session-2026-01-01T00-00-5f208923.jsonl")
    const message = { id: "m", timestamp: "2026-01-01T00:00:00Z", type: "user", content: [{ text: "Go on." }] }
    const head = { sessionId: "5f208923-408b-4acf-85fc-fd5531132390", projectHash: "4a", kind: "main" }
    writeFileSync(file, `${JSON.stringify(head)}\n${JSON.stringify(message)}\n`)

    const rescued = yield* run(["rescue", file], { env })
    assert.strictEqual(rescued.status, 0, rescued.stderr)
    const shown = String(rescued.stdout)
    assert.include(shown, `cd ${project} && gemini --resume `)
    const [written = ""] = new RegExp(`${path.join(folder, "chats")}/session-\\S+`).exec(shown) ?? []
    assert.include(readFileSync(written, "utf8"), "Go on.")

    const elsewhere = yield* run(["resume", file, "--in", "opencode"], { env })
    const [, document = ""] =
      / && opencode import (\S+) && opencode --session ses_/.exec(String(elsewhere.stdout)) ?? []
    assert.include(readFileSync(document, "utf8"), "Go on.")
    assert.strictEqual(path.dirname(document), path.join(`${home}-own`, "opencode"))
  })
})

it.live("a rated compression stands in inspect and cost, and is a question of eval", function* () {
  const fake = yield* Scene.serve(Scene.says(Array.from({ length: 900 }, (_, at) => `word_${at}`).join(" ")))
  const where = yield* Scene.place("rated")
  const told = Array.from({ length: 8 }, (_, at) => `mend part ${at} of src/app.ts please\n`)
  const lines = [...told, "/compress\n", "/rate bad it lost `src/app.ts`\n"].join("")
  const chat = yield* Scene.runs(where, fake, ["chat"], { input: lines })
  assert.include(chat.stderr, "Rated bad")
  const list = yield* Scene.runs(where, fake, ["sessions", "list", "--json"])
  const [{ id = "" } = {}] = JSON.parse(String(list.stdout))
  const rating = /e\d+ +rated bad: it lost `src\/app\.ts`/
  for (const args of [
    ["inspect", id],
    ["cost", id]
  ]) {
    assert.match(String((yield* Scene.runs(where, fake, args)).stdout), rating)
  }
  const page = path.join(where.cwd, "cost.html")
  yield* Scene.runs(where, fake, ["cost", id, "--by", "agent", "--html", page])
  assert.deepStrictEqual(readFileSync(page, "utf8").match(/By (?:agent|model|session)(?=<\/h2>)/g), ["By agent"])
  const questions = yield* Scene.runs(where, fake, ["inspect", id, "--questions"])
  assert.include(String(questions.stdout), '"answer":["src/app.ts"]')
  const file = path.join(where.cwd, "questions.jsonl")
  writeFileSync(file, questions.stdout)
  const asked = yield* Scene.runs(where, fake, ["eval", "--questions", file, example, "--strategy", "palimpsest"])
  assert.deepStrictEqual([asked.status, /questions/.test(String(asked.stdout))], [0, true])
})
