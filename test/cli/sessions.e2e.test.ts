import { Effect } from "effect"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { type Around, example, program, run } from "./program.ts"
import * as Tmux from "./tmux.ts"

/** `sessions …` as a user's shell runs it, in a home of each test's own. */

const homeOf = Effect.fnUntraced(function* (name: string) {
  const { folder } = yield* program
  const home = path.join(folder, `sessions-${name}`)
  mkdirSync(home, { recursive: true })
  return home
})

const sessions = (home: string, args: ReadonlyArray<string>, around: Around = {}) =>
  run(["sessions", ...args], { ...around, env: { PALIMPSEST_HOME: home, ...around.env } })

/** Imports a file; the answer is the id. */
const taken = Effect.fnUntraced(function* (home: string, file: string, ...more: ReadonlyArray<string>) {
  const { status, stderr, stdout } = yield* sessions(home, ["import", file, ...more])
  assert.strictEqual(status, 0, stderr)
  return String(stdout).trim()
})

const listed = Effect.fnUntraced(function* (home: string, ...more: ReadonlyArray<string>) {
  const rows: ReadonlyArray<{ number: number; id: string; title: string | null; firstPrompt: string | null }> =
    JSON.parse(String((yield* sessions(home, ["list", "--json", ...more])).stdout))
  return rows
})

const logOf = (home: string, id: string) => path.join(home, "sessions", `${id}.jsonl`)
/** Everything of a session but its id. */
const whatIsIn = (home: string, id: string) => ({
  log: readFileSync(logOf(home, id), "utf8").replaceAll(id, "<id>"),
  blobs: readdirSync(`${logOf(home, id)}.blobs`)
    .filter((name) => !name.endsWith(".jsonl"))
    .sort()
})

const conversation = (home: string, name: string, words: string) => {
  const file = path.join(home, `${name}.json`)
  writeFileSync(
    file,
    JSON.stringify([
      { role: "user", parts: [{ text: words }] },
      { role: "model", parts: [{ text: `About ${words}` }] }
    ])
  )
  return file
}

/** Three sessions; `one` was written long ago, `three` last. Imported once; no test changes them. */
const unchanged = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const home = yield* homeOf("unchanged")
      const ids: Array<string> = []
      for (const [index, words] of ["one", "two", "three"].entries()) {
        const id = yield* taken(home, conversation(home, words, words))
        const at = 1_000_000_000 + index
        utimesSync(logOf(home, id), at, at)
        ids.push(id)
      }
      const [one = "", two = "", last = ""] = ids
      return { home, one, two, last, before: yield* listed(home) }
    })
  )
)

/** The contents of a home, with the times of its files, in a new one. */
const copied = Effect.fnUntraced(function* (from: string, name: string) {
  const home = yield* homeOf(name)
  cpSync(from, home, { recursive: true, preserveTimestamps: true })
  return home
})

const three = (name: string) =>
  Effect.flatMap(unchanged, (sessions) => Effect.map(copied(sessions.home, name), (home) => ({ ...sessions, home })))

it.effect("sessions list shows the most recent first, with number, first words and id", function* () {
  const { home, last, one, two } = yield* three("list")
  const rows = yield* listed(home)
  assert.deepStrictEqual(
    rows.map(({ firstPrompt, id, number }) => [number, firstPrompt, id]),
    [
      [1, "three", last],
      [2, "two", two],
      [3, "one", one]
    ]
  )
  assert.strictEqual((yield* listed(home, "--limit", "2")).length, 2)
  const { stderr, stdout } = yield* sessions(home, ["list", "--limit", "1"])
  assert.match(String(stdout), new RegExp(`^# +Title .*\\n1 +three .*2001-09-09 .*${last}\\n$`))
  assert.strictEqual(stderr, "palimpsest: 2 older sessions not shown\n")
})

describe("sessions show, rename", () => {
  it.effect("tree shows the messages and the current end; with --json all of them as data", function* () {
    const { home, one } = yield* unchanged
    const shown = yield* sessions(home, ["tree", one])
    assert.deepStrictEqual([shown.status, shown.stderr], [0, ""])
    assert.strictEqual(String(shown.stdout), "e1  user: one\ne2  model: About one  ← here\n")
    const { current, entries } = JSON.parse(String((yield* sessions(home, ["tree", one, "--json"])).stdout))
    assert.strictEqual(current, "e2")
    assert.deepStrictEqual(entries, [
      { id: "e1", parent: null, children: ["e2"], kind: "user", text: "one", at: null, label: null, isOnPath: true },
      {
        id: "e2",
        parent: "e1",
        children: [],
        kind: "model",
        text: "About one",
        at: null,
        label: null,
        isOnPath: true
      }
    ])
  })

  it.effect("finds a session by number, id prefix or title", function* () {
    const { home, two } = yield* three("show")
    const renamed = yield* sessions(home, ["rename", "2", "Second\tthing"])
    assert.deepStrictEqual([renamed.status, String(renamed.stdout)], [0, ""])
    for (const name of [two, "2", "Second thing"]) {
      const { stdout } = yield* sessions(home, ["show", name, "--json"])
      const { first, id, messages, title } = JSON.parse(String(stdout))
      assert.deepStrictEqual([id, title, messages, first[0].text], [two, "Second thing", 2, "two"])
    }
    const { stdout } = yield* sessions(home, ["show", "2"])
    assert.match(String(stdout), /^Second thing\nId +[^]*\n\nuser {2}two\nmodel {2}About two\n$/)
    // What a program added before may be long.
    const added = `<system-reminder>${"x".repeat(600)}</system-reminder>\nGo on.`
    const shown = yield* sessions(home, ["show", yield* taken(home, conversation(home, "added", added))])
    assert.match(String(shown.stdout), /\nuser {2}Go on\.\n/)
  })

  it.effect.each([
    ["no such session", ["show", "nope"], /no session nope/],
    ["the beginning of several ids", ["show", "0"], /names 3 sessions/],
    ["a title without words", ["rename", "1", " "], /the title is empty/],
    ["no such session among those to delete", ["delete", "1", "nope", "--yes"], /no session nope/],
    ["no terminal to ask on", ["delete", "1"], /--yes/],
    ["no such file to import", ["import", "nope.jsonl"], /no such file/]
  ] as const)("rejects bad input with status 2 and one line, and changes nothing: %s", function* ([, args, message]) {
    const { before, home } = yield* unchanged
    const { status, stderr, stdout } = yield* sessions(home, args, { cwd: home })
    assert.deepStrictEqual([status, String(stdout)], [2, ""])
    assert.match(stderr, message)
    assert.match(stderr, /^palimpsest: [^\n]+\n$/)
    assert.deepStrictEqual(yield* listed(home), before)
    assert.isFalse(existsSync(path.join(home, "out.jsonl")))
  })
})

/** A home with one session, of a compressed conversation. */
const compressed = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const home = yield* homeOf("compressed")
      const small = path.join(home, "small.jsonl")
      yield* run(["compress", example, "--force", "--out", small])
      const id = yield* taken(home, small, "--title", "Small")
      assert.deepStrictEqual(
        (yield* listed(home)).map(({ title }) => title),
        ["Small"]
      )
      return { home, id }
    })
  )
)

describe("sessions export, import", () => {
  it.effect.each(["palimpsest", "claude"])("round-trips a compressed session through %s", function* (format) {
    const small = yield* compressed
    const { id } = small
    const home = yield* copied(small.home, `round-${format}`)
    const out = path.join(home, format === "contents" ? "out.json" : "out.jsonl")
    const written = yield* sessions(home, ["export", "Small", out, "--to", format])
    assert.strictEqual(written.status, 0, written.stderr)
    const again = yield* taken(home, out)
    assert.notStrictEqual(again, id)
    assert.deepStrictEqual(whatIsIn(home, again), whatIsIn(home, id))
    assert.isAbove(whatIsIn(home, id).blobs.length, 0)
  })

  it.effect("rejects a conversation without messages, and creates no session", function* () {
    const home = yield* homeOf("empty")
    const file = path.join(home, "empty.json")
    writeFileSync(file, "[]")
    const { status, stderr } = yield* sessions(home, ["import", file])
    assert.strictEqual(status, 2)
    assert.match(stderr, /^palimpsest: [^\n]+\n$/)
    assert.deepStrictEqual(yield* listed(home), [])
  })
})

describe("sessions delete", () => {
  it.effect("deletes all of the named sessions, also what a server keeps, after confirmation", function* () {
    const { home, last, one, two } = yield* three("delete")
    yield* sessions(home, ["rename", two, "Second"])
    mkdirSync(path.join(home, "served"))
    for (const id of [one, two]) writeFileSync(path.join(home, "served", `${id}.json`), "{}")
    const { status } = yield* sessions(home, ["delete", "Second", "1", last, "--yes"])
    assert.strictEqual(status, 0)
    assert.deepStrictEqual(
      (yield* listed(home)).map(({ id }) => id),
      [one]
    )
    assert.deepStrictEqual(
      readdirSync(path.join(home, "sessions")).filter((name) => !name.startsWith(one)),
      []
    )
    assert.deepStrictEqual(readdirSync(path.join(home, "served")), [`${one}.json`])
  })

  it.effect("deletes none while one is in use, and names its process", function* () {
    const { home, last } = yield* three("delete-held")
    const fake = yield* FakeGemini.make(() => [FakeGemini.streamHead, FakeGemini.stall])
    const env = { PALIMPSEST_HOME: home, GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: fake.url }
    yield* Effect.forkScoped(run(["ask", "x", "--session", last], { env }))
    yield* fake.received(0)
    const { status, stderr } = yield* sessions(home, ["delete", "1", "2", "3", "--yes"])
    assert.strictEqual(status, 1)
    assert.match(stderr, /^palimpsest: session [^\n]+ is in use by process \d+; nothing was deleted\n$/)
    assert.strictEqual((yield* listed(home)).length, 3)
  })
})

const onTerminal = () => {
  it.live.each([
    ["y deletes", "y", 2],
    ["Enter alone does not", "Enter", 3]
  ] as const)("asks before it deletes: %s", function* ([, key, left]) {
    const { home } = yield* three(`confirm-${key}`)
    const { bundle } = yield* program
    const screen = yield* Tmux.start({
      command: [process.execPath, bundle, "sessions", "delete", "1"],
      env: { PALIMPSEST_HOME: home }
    })
    yield* screen.until(/Delete "three" for good\?.*y\/N/)
    yield* screen.press(key)
    yield* screen.until(/palimpsest: .* deleted/)
    assert.strictEqual((yield* listed(home)).length, left)
  })
}

needs("tmux")("sessions on a terminal", onTerminal)
