import { Deferred, Effect, Fiber } from "effect"
import { mkdirSync, mkdtempSync, rmSync, unlinkSync } from "node:fs"
import path from "node:path"
import { program, run } from "../cli/program.ts"
import { databaseFolder, endlessDatabase, hostileDatabase, noFile, unreadable } from "../support/hostileDatabases.ts"
import { needs } from "../support/machine.ts"
import { readersOf, untilNone, untilThere } from "../support/processGroups.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Databases of opencode that somebody made, and the commands that read them. */

const inHome = Effect.fnUntraced(function* (make: (folder: string) => string) {
  const { folder } = yield* program
  const home = mkdtempSync(path.join(folder, "databases-"))
  mkdirSync(databaseFolder(home), { recursive: true })
  const file = make(databaseFolder(home))
  const env = { HOME: home, XDG_DATA_HOME: "", OPENCODE_DB: file, PALIMPSEST_HOME: path.join(home, "own") }
  return { file, env }
})

const hostile: Readonly<Record<string, (folder: string) => string>> = {
  "a view without an end": (folder) => hostileDatabase(folder, unreadable["a view without an end"] ?? assert.fail()),
  ...Object.fromEntries(
    Object.entries(noFile).map(([name, make]) => [
      name,
      (folder: string) =>
        hostileDatabase(folder, (file) => {
          unlinkSync(file)
          make(file)
        })
    ])
  )
}

describe("a hostile database", () => {
  it.live.each(Object.entries(hostile))("that is %s costs each command one line", function* ([, make]) {
    const { env, file } = yield* inHome(make)
    for (const args of [
      ["find"],
      ["find", "tide"],
      ["cost"],
      ["cost", `${file}#ses_1`],
      ["inspect", `${file}#ses_1`]
    ]) {
      const { status, stderr } = yield* run(args, { env })
      const lines = stderr.split("\n").filter((line) => line.includes(file) && !line.includes("(looked in "))
      assert.strictEqual(lines.length, 1, `${args[0]}: ${stderr}`)
      assert.match(lines[0] ?? "", /opencode\.db: cannot be (opened|read) \(/)
      assert.include([0, 1, 2], status)
    }
  })

  needs("Linux")("that keeps SQLite busy for ever", () => {
    const signals = [
      ["SIGINT", 130, "find"],
      ["SIGTERM", 143, "inspect"],
      ["SIGHUP", 129, "cost"],
      ["SIGKILL", null, "find"]
    ] as const
    for (const [signal, status, command] of signals) {
      it.live(`ends with ${command} on ${signal}`, function* () {
        const { env, file } = yield* inHome(endlessDatabase)
        const args = command === "inspect" ? [command, `${file}#ses_1`] : [command]
        const started = yield* Deferred.make<{ readonly kill: (signal: NodeJS.Signals) => void }>()
        const running = yield* Effect.forkChild(
          run(args, { env, started: (child) => Deferred.doneUnsafe(started, Effect.succeed(child)) })
        )
        const child = yield* Deferred.await(started)
        yield* untilThere(Effect.sync(() => readersOf(file).length === 1))
        child.kill(signal)
        const ended = yield* Fiber.join(running)
        assert.strictEqual(ended.status, status)
        yield* untilNone(() => readersOf(file))
        rmSync(env.HOME, { recursive: true })
      })
    }
  })
})
