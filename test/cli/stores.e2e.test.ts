import { Effect } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

/** Sessions of the command line in each store: `PALIMPSEST_STORE` and `sessions copy --to`. */

const id = "019c498c-d882-75a3-89c2-50eec883c4a9"

const folderOf = Effect.fnUntraced(function* (name: string) {
  const { folder } = yield* program
  const made = path.join(folder, `stores-${name}`)
  mkdirSync(made, { recursive: true })
  return made
})

/** Runs of the program with the sessions of one store. */
const at =
  (folder: string, store: string | undefined, url = "") =>
  (...args: ReadonlyArray<string>) =>
    Effect.map(
      run(args, {
        cwd: folder,
        env: {
          HOME: folder,
          PALIMPSEST_HOME: path.join(folder, "home"),
          ...(store === undefined ? {} : { PALIMPSEST_STORE: store }),
          ...(url === "" ? {} : { GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: url })
        }
      }),
      ({ status, stderr, stdout }) => ({ status, stdout: String(stdout), stderr })
    )

/** Carries a session from files to a store, goes on with it there, and carries it back into other files. */
const roundTrip = Effect.fnUntraced(function* (folder: string, store: string) {
  const fake = yield* FakeGemini.make(({ method }) =>
    method === "countTokens"
      ? FakeGemini.tokens(5)
      : FakeGemini.sse(FakeGemini.response([{ text: "It is green now." }]))
  )
  const files = at(folder, undefined)
  const there = at(folder, store, fake.url)
  const back = at(folder, "files:back")
  assert.strictEqual((yield* files("sessions", "import", example)).status, 0)
  const copied = yield* files("sessions", "copy", "--to", store)
  assert.deepStrictEqual([copied.status, copied.stdout], [0, ""])
  assert.strictEqual(copied.stderr, `palimpsest: session ${id} was copied (28 events)\n`)
  /** What a store has of the session. */
  const told = Effect.fnUntraced(function* (store: typeof files, name: string) {
    const { status, stderr } = yield* store("sessions", "export", id, `${name}.json`)
    assert.strictEqual(status, 0, stderr)
    return readFileSync(path.join(folder, `${name}.json`), "utf8")
  })
  const original = yield* told(files, "files")
  assert.strictEqual(yield* told(there, "there"), original)

  const asked = yield* there("ask", "and now?", "--session", id, "--model", "gemini-2.5-flash")
  assert.deepStrictEqual([asked.status, asked.stdout], [0, "It is green now.\n"])
  const longer = yield* told(there, "longer")
  assert.include(longer, "It is green now.")
  assert.strictEqual((yield* there("sessions", "copy", "--to", "files:back", id)).status, 0)
  assert.strictEqual(yield* told(back, "back"), longer)
  // It went on there: the older copy does not replace it.
  const older = yield* files("sessions", "copy", "--to", store)
  assert.deepStrictEqual(older, {
    status: 1,
    stdout: "",
    stderr: `palimpsest: session ${id} was not copied: the other store has another one with this id, or it went on there; nothing was copied\npalimpsest: 1 session not copied\n`
  })
})

describe("sessions", () => {
  it.live("are carried from files to SQLite and back", () =>
    Effect.scoped(Effect.flatMap(folderOf("sqlite"), (folder) => roundTrip(folder, "sqlite:chats.db")))
  )

  it.effect.each([
    [
      "a server that is not there",
      "postgres://me@127.0.0.1:1/x",
      /^palimpsest: the database of the sessions could not be opened: .+\n$/
    ],
    ["an address of no store", "mongo:x", /^palimpsest: PALIMPSEST_STORE names no session store; expected .+\n$/]
  ] as const)("of %s are one clear line", function* ([, store, message]) {
    const { status, stderr, stdout } = yield* at(yield* folderOf("none"), store)("sessions", "list")
    assert.deepStrictEqual([status, stdout], [1, ""])
    assert.match(stderr, message)
  })

  it.effect("are not looked for in the files while settings that may name another store cannot be read", function* () {
    const folder = yield* folderOf("broken")
    mkdirSync(path.join(folder, "home"))
    writeFileSync(path.join(folder, "home", "settings.json"), '{ "store": "sqlite:sessions.db", ')
    const { status, stderr, stdout } = yield* at(folder, undefined)("sessions", "list")
    assert.deepStrictEqual([status, stdout], [1, ""])
    assert.match(stderr, /^palimpsest: .*settings\.json: expected JSON.*\n$/)
  })
})
