import { Effect } from "effect"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { program, run } from "../cli/program.ts"
import { oddSession as odd, survivors } from "../support/oddSecrets.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** A session with secrets in odd places, through everything that promises to leave them out. */

/** At most one of a hundred may survive. */
const maxSurvivors = 1

/** The session as Claude Code keeps it, in a home folder of its own. */
const scene = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const home = path.join((yield* program).folder, "odd-home")
      const project = path.join(home, ".claude", "projects", "-w")
      const session = path.join(project, odd.id)
      mkdirSync(path.join(session, "subagents"), { recursive: true })
      mkdirSync(path.join(session, "tool-results"))
      mkdirSync(path.join(home, "work"))
      writeFileSync(`${session}.jsonl`, odd.text)
      writeFileSync(path.join(session, "subagents", "agent-a0dd5ec.jsonl"), odd.subagent)
      writeFileSync(path.join(session, "tool-results", odd.output.name), odd.output.text)
      const env = {
        HOME: home,
        USERPROFILE: home,
        PALIMPSEST_HOME: path.join(home, "palimpsest"),
        DEPLOY_PASSWORD: odd.variable
      }
      return { env, file: `${session}.jsonl`, projects: path.dirname(project), work: path.join(home, "work") }
    })
  )
)

/** The names and contents of all files below a folder. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((file) => {
    const place = path.join(file.parentPath, file.name)
    return [place, ...(file.isFile() ? [readFileSync(place, "utf8")] : [])]
  })

/** Runs the program in a folder of its own. Returns all that it printed and wrote. */
const shownBy = Effect.fnUntraced(function* (name: string, args: ReadonlyArray<string>, input?: string) {
  const { env, work } = yield* scene
  const folder = path.join(work, name)
  mkdirSync(folder)
  const { status, stderr, stdout } = yield* run(args, { cwd: folder, env, ...(input === undefined ? {} : { input }) })
  assert.strictEqual(status, 0, stderr)
  return [String(stdout), stderr, ...filesIn(folder).map((text) => text.replace(folder, ""))].join("\n")
})

const assertFew = (text: string) => {
  const left = survivors(text, odd.secrets)
  assert.isAtMost(left.length, maxSurvivors, left.join("; "))
}

const copies: ReadonlyArray<readonly [name: string, args: ReadonlyArray<string>]> = [
  ["the session's own format", ["copy.jsonl"]],
  ["with the files beside it", ["copy.jsonl", "--all"]],
  ["claude", ["copy.jsonl", "--to", "claude"]],
  ["codex", ["copy.jsonl", "--to", "codex"]],
  ["gemini", ["copy.jsonl", "--to", "gemini"]],
  ["pi", ["copy.jsonl", "--to", "pi"]],
  ["palimpsest", ["copy.jsonl", "--to", "palimpsest"]],
  ["contents", ["copy.json", "--to", "contents"]],
  ["markdown", ["copy.md"]]
]

const call = (id: number, method: string, params: object) => ({ jsonrpc: "2.0", id, method, params })
const requests = (calls: ReadonlyArray<object>): string =>
  [
    call(0, "initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" }
    }),
    { jsonrpc: "2.0", method: "notifications/initialized" },
    ...calls
  ]
    .map((one) => `${JSON.stringify(one)}\n`)
    .join("")

describe("secrets in odd places", () => {
  it.effect("are more than a hundred, and the session shows all of them", function* () {
    const { projects } = yield* scene
    assert.isAtLeast(odd.secrets.length, 100)
    const text = [...filesIn(projects), odd.variable].join("\n")
    assert.strictEqual(survivors(text, odd.secrets).length, odd.secrets.length)
  })

  it.effect.each(copies)("are absent from a copy: %s", function* ([name, args]) {
    assertFew(yield* shownBy(`copy-${name.replaceAll(/\W/g, "-")}`, ["export", odd.id, ...args, "--redact"]))
  })

  it.effect("are absent from a session that was rescued", function* () {
    const { projects, work } = yield* scene
    const before = new Set(filesIn(projects))
    const folder = path.join(work, "rescued")
    mkdirSync(folder)
    const shown = yield* shownBy("rescue", ["rescue", odd.id, "--redact", "--folder", folder])
    const written = filesIn(projects).filter((text) => !before.has(text))
    assert.isAtLeast(written.length, 2)
    assertFew([shown, ...written].join("\n"))
  })

  it.effect("are absent from what is shown to other people", function* () {
    const { file } = yield* scene
    assertFew(yield* shownBy("page", ["inspect", file, "--share", "--html", "page.html"]))
    assertFew(yield* shownBy("text", ["inspect", file, "--share"]))
    assertFew(yield* shownBy("json", ["inspect", file, "--share", "--json"]))
    assertFew(yield* shownBy("report", ["secrets", odd.id, "--json"]))
  })

  it.effect("are absent from snapshots", function* () {
    const { file } = yield* scene
    for (const strategy of ["palimpsest", "gemini"]) {
      const flags = ["--strategy", strategy, "--force", "--summarizer", "extractive", "--preserve", "0.05"]
      const shown = yield* shownBy(strategy, ["compress", file, ...flags, "--budget", "20k", "--json"])
      assert.include(shown, '"snapshot"')
      const { snapshot } = JSON.parse(shown.slice(0, shown.lastIndexOf("}") + 1))
      assert.isAtLeast(snapshot.length, 500)
      assertFew(snapshot)
    }
  })

  it.effect("are absent from answers to agents", function* () {
    const { file } = yield* scene
    const asked = [
      call(1, "tools/call", { name: "list_sessions", arguments: {} }),
      call(2, "tools/call", { name: "what_changed", arguments: { since: "e1" } }),
      call(3, "tools/call", { name: "snapshot", arguments: { tokens: 20_000 } }),
      call(4, "resources/read", { uri: "palimpsest://session/snapshot" }),
      call(5, "resources/read", { uri: "palimpsest://session/changes" }),
      ...["key", "\\w", "password|pin|number", "."].map((pattern, at) =>
        call(10 + at, "tools/call", { name: "search_history", arguments: { pattern, tokens: 20_000 } })
      )
    ]
    const flags = ["mcp", file, "--others", "--folder", "/w"]
    const answers = yield* shownBy("answers", flags, requests(asked))
    assertFew(answers)
    const handles = [...new Set(answers.match(/h_[a-z2-7]{10,}/g))]
    assert.isAtLeast(handles.length, 50)
    const recalled = yield* shownBy(
      "recalled",
      flags,
      requests(handles.map((handle, at) => call(at + 1, "tools/call", { name: "recall", arguments: { handle } })))
    )
    assert.isAtLeast(recalled.split("[redacted: ").length, 50)
    assertFew(recalled)
  })
})
