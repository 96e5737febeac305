import { Effect } from "effect"
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "../support/vitest.ts"
import { instructionOf, place, runs, says, serve, turnsOf } from "./scene.ts"

/** `config` through the built program: the order of its sources, and the import of a whole home of Gemini CLI. */

const fixture = path.join(import.meta.dirname, "..", "fixtures", "gemini-home")

const filesIn = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort()
      .map((file) => [path.relative(folder, file), readFileSync(file, "utf8")])
  )

it.live("config list reads home, trusted folder, .env and environment, each overriding the one before", function* () {
  const where = yield* place("sources", {
    home: { "settings.json": { window: 1, shellIdle: 1, maxTurns: 1, preserve: 0.1 } },
    work: {
      ".palimpsest/settings.json": { window: 2, shellIdle: 2, maxTurns: 2 },
      ".env": "PALIMPSEST_WINDOW=3\nPALIMPSEST_SHELL_IDLE=3\n"
    }
  })
  const call = (...args: ReadonlyArray<string>) => runs(where, undefined, args, { env: { PALIMPSEST_WINDOW: "4" } })
  const listed = Effect.map(call("config", "list", "--json"), ({ stderr, stdout }) => {
    const { settings }: { settings: ReadonlyArray<{ key: string; value: number; from: ReadonlyArray<string> }> } =
      JSON.parse(String(stdout))
    return { stderr, rows: settings.map(({ from, key, value }) => `${key} ${value} ${from.join(" ")}`) }
  })
  const [home, here] = [`${where.home}/settings.json`, `${where.cwd}/.palimpsest/settings.json`]
  const untrusted = yield* listed
  assert.deepStrictEqual(untrusted.rows, [
    "window 4 PALIMPSEST_WINDOW",
    `shellIdle 1 ${home}`,
    `maxTurns 1 ${home}`,
    `preserve 0.1 ${home}`
  ])
  assert.match(
    untrusted.stderr,
    /settings\.json is ignored: the folder is not trusted; to trust it: palimpsest trust\n/
  )
  assert.strictEqual((yield* call("trust")).status, 0)
  assert.deepStrictEqual(yield* listed, {
    stderr: "",
    rows: [
      "window 4 PALIMPSEST_WINDOW",
      `shellIdle 3 PALIMPSEST_SHELL_IDLE in ${where.cwd}/.env`,
      `maxTurns 2 ${here}`,
      `preserve 0.1 ${home}`
    ]
  })
})

describe("config import gemini", () => {
  it.live("imports the user's home settings, reports what is left, and the second time nothing", function* () {
    const where = yield* place("import")
    cpSync(path.join(fixture, "home"), where.user, { recursive: true })
    cpSync(path.join(fixture, "project"), where.cwd, { recursive: true })
    const before = filesIn(where.user)

    const first = yield* runs(where, undefined, ["config", "import", "gemini"])
    assert.deepStrictEqual([first.status, first.stderr], [0, ""])
    const out = String(first.stdout)
    assert.match(out, /^Imported from \S+\.gemini:\n/)
    assert.match(out, /\nNot imported:\n(?: {2}\S+ +\S.*\n)+$/)
    const files = filesIn(where.home)
    // Nothing of the other program's was touched, and what came is the user's alone.
    assert.deepStrictEqual(filesIn(where.user), before)
    assert.strictEqual(statSync(path.join(where.home, "settings.json")).mode & 0o077, 0)

    const second = yield* runs(where, undefined, ["config", "import", "gemini"])
    assert.strictEqual(second.status, 0)
    assert.match(String(second.stdout), /^Nothing new to import from /)
    assert.deepStrictEqual(filesIn(where.home), files)

    // What was taken counts: settings can be read, hooks run, memory is sent.
    const listed = yield* runs(where, undefined, ["config", "get", "model"])
    assert.deepStrictEqual([listed.status, String(listed.stdout)], [0, "gemini-2.5-pro\n"])
    const fake = yield* serve(says("Hello."))
    // The folder that the settings add; their servers are elsewhere.
    mkdirSync(path.join(where.cwd, "..", "shared-docs"))
    const asked = yield* runs(where, fake, ["ask", "Hello", "--no-tools"])
    assert.deepStrictEqual([asked.status, String(asked.stdout)], [0, "Hello.\n"])
    assert.include(asked.stderr, "ready")
    const [one] = yield* turnsOf(fake)
    assert.include(instructionOf(one), "Answer in short sentences.")
    assert.include(JSON.stringify(one?.body), "The build runs on Fridays.")
    assert.include(JSON.stringify(one?.body), "branch: main")
  })

  // It lies in both homes then, and both are read.
  const rule = "Rule: ask before you delete."
  const sentOf = Effect.fnUntraced(function* (name: string, files: Readonly<Record<string, string>>) {
    const where = yield* place(name, { user: files })
    assert.strictEqual((yield* runs(where, undefined, ["config", "import", "gemini"])).status, 0)
    const { status, stdout } = yield* runs(where, undefined, ["prompt"])
    assert.strictEqual(status, 0)
    return String(stdout).split(rule).length - 1
  })
  it.live("sends imported memory once when it imports a file outside of both homes", function* () {
    const files = { ".gemini/GEMINI.md": `${rule}\n\n@../outside.md\n`, "outside.md": "Rule: be brief.\n" }
    assert.strictEqual(yield* sentOf("import-imports", files), 1)
  })

  // The folders of settings are meant from wherever one works; only who names one on the command line is stopped.
  it.live("reports a missing folder from the settings in one line and continues", function* () {
    const where = yield* place("import-folder", {
      home: { "settings.json": { includeDirectories: ["../no-such-folder"] } }
    })
    const fake = yield* serve(says("Hello."))
    const { status, stderr, stdout } = yield* runs(where, fake, ["ask", "Hello"])
    assert.deepStrictEqual([status, String(stdout)], [0, "Hello.\n"])
    assert.match(stderr, /^palimpsest: [^\n]*no-such-folder[^\n]*\n$/)
  })
})
