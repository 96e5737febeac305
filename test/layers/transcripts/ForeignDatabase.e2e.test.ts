import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import * as ForeignDatabase from "../../../src/layers/transcripts/ForeignDatabase.ts"
import * as OpencodeDatabase from "../../../src/layers/transcripts/OpencodeDatabase.ts"
import {
  crowdedDatabase,
  endlessDatabase,
  hostileDatabase,
  readable,
  unreadable
} from "../../support/hostileDatabases.ts"
import { needs } from "../../support/machine.ts"
import { opencodeDatabase, tides } from "../../support/opencodeDatabase.ts"
import { readersOf, untilNone, untilThere } from "../../support/processGroups.ts"

const withFolder = <A, E>(use: (folder: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "foreign-"))),
    use,
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

/** Lists the sessions, and reads the one that there is. */
const readAll = (file: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const database = yield* ForeignDatabase.open(file)
      const rows: Array<unknown> = []
      const sessions = yield* OpencodeDatabase.list(database, file)
      yield* OpencodeDatabase.forEachRow(database, "ses_1", (row) => rows.push(row))
      return { sessions, rows }
    })
  )

describe("a database of another program", () => {
  it.live.each(Object.entries(unreadable))("with %s is refused in one line", ([, change]) =>
    withFolder(
      Effect.fnUntraced(function* (folder) {
        const file = hostileDatabase(folder, change)
        const { message } = yield* Effect.flip(readAll(file))
        assert.match(message, /^\S+opencode\.db: cannot be (opened|read) \(.{10,100}\)$/)
      })
    )
  )

  it.live("is read as it is, whatever else its tables have", () =>
    withFolder(
      Effect.fnUntraced(function* (folder) {
        const plain = yield* readAll(opencodeDatabase(path.join(folder, "plain"), tides))
        assert.strictEqual(
          plain.rows.length,
          1 + tides.messages.length + tides.messages.flatMap(({ parts }) => parts).length
        )
        for (const [name, change] of Object.entries(readable)) {
          const file = hostileDatabase(path.join(folder, name.slice(0, 5)), change)
          const before = readFileSync(file)
          const { rows, sessions } = yield* readAll(file)
          assert.strictEqual(rows.length, plain.rows.length, name)
          assert.isTrue(sessions.every(({ updatedAt }) => Math.abs(updatedAt) < 1e14))
          assert.deepStrictEqual(readFileSync(file), before)
        }
      })
    )
  )

  it.live("has a bound on its sessions", () =>
    withFolder(
      Effect.fnUntraced(function* (folder) {
        const { message } = yield* Effect.flip(readAll(crowdedDatabase(folder)))
        assert.include(message, "more than 100000 rows")
      })
    )
  )

  needs("Linux")("that keeps SQLite busy for ever", () => {
    it.effect("is given up after a time, and not asked again", () =>
      withFolder(
        Effect.fnUntraced(function* (folder) {
          const file = endlessDatabase(folder)
          const twice = Effect.gen(function* () {
            const database = yield* ForeignDatabase.open(file)
            const ask = Effect.flip(OpencodeDatabase.forEachRow(database, "ses_1", () => {}))
            const first = yield* ask
            yield* untilNone(() => readersOf(file))
            return [first.message, (yield* ask).message]
          })
          const reading = yield* Effect.forkChild(Effect.scoped(twice))
          yield* untilThere(Effect.sync(() => readersOf(file).length === 1))
          yield* TestClock.adjust("1 minute")
          const [first, second] = yield* Fiber.join(reading)
          assert.include(first, "no answer within 60 s")
          assert.strictEqual(second, first)
        })
      )
    )

    it.live("ends with the fiber that reads it", () =>
      withFolder(
        Effect.fnUntraced(function* (folder) {
          const file = endlessDatabase(folder)
          const reading = yield* Effect.forkChild(readAll(file))
          yield* untilThere(Effect.sync(() => readersOf(file).length === 1))
          yield* Fiber.interrupt(reading)
          yield* untilNone(() => readersOf(file))
        })
      )
    )
  })
})
