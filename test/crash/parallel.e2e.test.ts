import { Context, Effect, Layer, Scope } from "effect"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { SessionStore } from "../../src/services/session/SessionStore.ts"
import { newFolder } from "../support/paths.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { bundledProgram } from "./bundledProgram.ts"
import { chance } from "./sight.ts"
import { type Kind, kinds, layersOf, write } from "./writer.ts"

/**
 * Many processes change the same files at once, and some are killed while they do. `PALIMPSEST_WRITERS=50` begins 50 of each kind.
 */

const writers = Number(process.env["PALIMPSEST_WRITERS"] ?? 1)
/** What each of them writes, one after the other. One that is killed has more to write than it can, however late its end comes. */
const each = 6
const endless = 2_000
/** Processes at once: the kinds go one after the other. */
const fibers = 25

const fresh = (): string => {
  const folder = newFolder("parallel-")
  for (const name of ["home", "user", "work"]) mkdirSync(path.join(folder, name))
  mkdirSync(path.join(folder, "work", ".git"))
  return folder
}

/** Folders that can be refused: there is one for each name. */
const foldersFor = (folder: string, names: ReadonlyArray<string>): void => {
  for (const name of names) mkdirSync(path.join(folder, "work", name), { recursive: true })
}

const files: Readonly<Record<Exclude<Kind, "add" | "session">, string>> = {
  trust: "home/trusted-folders.json",
  setting: "home/settings.json",
  grant: "home/settings.json",
  fact: "home/GEMINI.md",
  project: "work/GEMINI.md",
  hooks: "home/known-hooks.json",
  calibration: "home/calibrations.json"
}

/** Which of these names the files do not hold. */
const lost = (folder: string, kind: Kind, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (kind === "add") return []
  if (kind === "session") {
    return names.filter((name) => !existsSync(path.join(folder, "home", "sessions", `${name}.jsonl`)))
  }
  const place = path.join(folder, files[kind])
  const text = existsSync(place) ? readFileSync(place, "utf8") : ""
  return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))
}

/** All that lies about when nobody is at work. */
const leftovers = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.(?:tmp|lock|new)|\.lock\./.test(name))

const program = Effect.runSync(Effect.cached(bundledProgram("writer")))

/** Runs a writer; what it acknowledged. `blow`: it is killed a moment after so many of its lines. */
const run = Effect.fnUntraced(function* (
  folder: string,
  kind: Kind,
  name: string,
  blow: { readonly lines: number; readonly millis: number } | undefined
) {
  const file = yield* program
  return yield* Effect.callback<{
    readonly said: ReadonlyArray<string>
    readonly wasKilled: boolean
    readonly stderr: string
  }>((resume) => {
    const child = spawn(process.execPath, [file, folder, kind, name, String(blow === undefined ? each : endless)], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    let out = ""
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk))
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      out += chunk
      if (blow !== undefined && out.split("\n").length > blow.lines) {
        setTimeout(() => child.kill("SIGKILL"), blow.millis)
      }
    })
    child.on("close", (_, signal) =>
      resume(Effect.succeed({ said: out.split("\n").slice(0, -1), wasKilled: signal === "SIGKILL", stderr }))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })
})

/** Whether this one of the writers is killed. */
const isKilled = (at: number): boolean => at % 3 === 0

describe("processes that change the same files", () => {
  it.live(
    `lose nothing acknowledged and block no other process, though every third is killed (${writers} of each kind)`,
    function* () {
      const folder = fresh()
      const roll = chance(15)
      const crowd = kinds.flatMap((kind) =>
        Array.from({ length: writers }, (_, index) => ({ kind, name: `${kind}${index}` }))
      )
      foldersFor(
        folder,
        crowd.flatMap(({ name }, at) => Array.from({ length: isKilled(at) ? endless : each }, (_, n) => `${name}x${n}`))
      )
      const ended = yield* Effect.forEach(
        crowd,
        ({ kind, name }, index) =>
          Effect.map(
            run(folder, kind, name, isKilled(index) ? { lines: roll(each - 1), millis: roll(12) } : undefined),
            (ending) => ({ ...ending, kind, name })
          ),
        { concurrency: Math.max(8, writers) }
      )
      for (const [at, { kind, name, said, stderr, wasKilled }] of ended.entries()) {
        assert.strictEqual(wasKilled, isKilled(at), `${name}: ${stderr}`)
        if (!wasKilled) assert.lengthOf(said, each, `${name}: ${stderr}`)
        assert.deepStrictEqual(lost(folder, kind, said), [], name)
      }
      // Whatever the dead left: one more of each is done at once, and sweeps.
      foldersFor(folder, kinds)
      yield* Effect.forEach(kinds, (kind) => write(folder, kind, `last${kind}`), { discard: true }).pipe(
        Effect.provide(
          layersOf(
            (foldersFor(
              folder,
              kinds.map((kind) => `last${kind}`)
            ),
            folder)
          )
        )
      )
      yield* Effect.provide(
        SessionStore.use((_) => _.list),
        layersOf(folder)
      )
      assert.deepStrictEqual(leftovers(folder), [])
    }
  )

  for (const kind of kinds) {
    it.live(`${kind}: ${2 * fibers} fibers over two layers, which stand for two processes, lose nothing`, function* () {
      const folder = fresh()
      const names = Array.from({ length: 2 * fibers }, (_, index) => `n${index}`)
      foldersFor(folder, names)
      const both = [yield* Layer.build(layersOf(folder)), yield* Layer.build(layersOf(folder))]
      yield* Effect.forEach(
        names,
        (name, index) => {
          const context = both[index % 2]
          return context === undefined
            ? Effect.void
            : Effect.provideContext(write(folder, kind, name), Context.omit(Scope.Scope)(context))
        },
        { concurrency: "unbounded", discard: true }
      )
      assert.deepStrictEqual(lost(folder, kind, names), [])
      assert.deepStrictEqual(leftovers(folder), [])
    })
  }

  it.live("that create a session of the same name: exactly one succeeds", function* () {
    const folder = fresh()
    const layers = yield* Effect.forEach([1, 2, 3, 4], () => Layer.build(layersOf(folder)))
    for (const kind of ["session", "add"] as const) {
      const held = yield* Effect.forEach(
        layers,
        (context) => {
          const { add, create } = Context.get(context, SessionStore)
          const started = { _tag: "Started", version: 1, at: 1, estimator: "x" } as const
          const begun =
            kind === "add"
              ? add([{ ...started, session: "one" }])
              : Effect.asVoid(create({ ...started, session: "two" }))
          return Effect.result(begun)
        },
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        held.filter(({ _tag }) => _tag === "Success"),
        1
      )
      for (const one of held) {
        if (one._tag === "Failure")
          assert.match(one.failure.message, /^session (?:one|two) (?:exists already|is in use by process \d+; .*)$/)
      }
    }
  })
})
