import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, FileSystem, Path, Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as FileAgentSlots from "../../../src/layers/agent/FileAgentSlots.ts"
import * as AgentSlots from "../../../src/services/agent/AgentSlots.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A folder of the test's own, and slots in it, as two processes would have them. */
const shared = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = path.join(yield* fs.makeTempDirectoryScoped(), "home")
  const one = yield* FileAgentSlots.make(home, undefined)
  return { fs, home, folder: path.join(home, "running"), one, other: yield* FileAgentSlots.make("/nowhere", one.name) }
})

describe("slots", () => {
  const memory = AgentSlots.inMemory()
  const variants = [
    ["of one process", Effect.sync(() => ({ one: memory, other: memory }))],
    ["of several processes", Effect.map(shared, ({ one, other }) => ({ one, other }))]
  ] as const
  it.effect.each(variants)(
    "%s are taken up to their number, and free again when the scope closes",
    NodeServices.layer,
    function* ([, made]) {
      const { one, other } = yield* made
      const scope = yield* Scope.make()
      assert.deepStrictEqual(
        yield* Effect.all([one.take(3), other.take(3), one.take(3), other.take(3), one.take(3)], {
          concurrency: 5
        }).pipe(
          Effect.map((taken) => taken.filter((isTaken) => isTaken).length),
          Scope.provide(scope)
        ),
        3
      )
      assert.isFalse(yield* Effect.scoped(other.take(3)))
      assert.isTrue(yield* Effect.scoped(other.take(4)))
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(yield* other.take(1))
      assert.isFalse(yield* one.take(1))
    }
  )

  it.effect("of a killed process are free, and what it left is removed", NodeServices.layer, function* () {
    const { folder, fs, home, one } = yield* shared
    const dead = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"])
    yield* Effect.promise(() => once(dead, "spawn"))
    yield* fs.makeDirectory(folder, { recursive: true })
    const lock = JSON.stringify({ pid: dead.pid, since: 0, token: "t" })
    for (const file of [`${one.name}-1.lock`, `${folder}/b2-1.lock`]) yield* fs.writeFileString(file, lock)
    const living = yield* FileAgentSlots.make(home, one.name)
    assert.isFalse(yield* living.take(1))
    dead.kill("SIGKILL")
    yield* Effect.promise(() => once(dead, "exit"))
    assert.isTrue(yield* living.take(1))
    assert.isFalse(yield* one.take(1))
    assert.deepStrictEqual(yield* fs.readDirectory(folder), [`${one.name.slice(folder.length + 1)}-1.lock`])
  })

  it.effect(
    "without files are those of the process that named them; no other can take one",
    NodeServices.layer,
    function* () {
      const { fs } = yield* shared
      const one = yield* FileAgentSlots.make(yield* fs.makeTempFileScoped(), undefined)
      assert.isTrue(yield* one.take(1))
      assert.isFalse(yield* one.take(1))
      const other = yield* FileAgentSlots.make("/nowhere", one.name)
      assert.include((yield* Effect.flip(other.take(8))).message, "running agents cannot be counted")
    }
  )
})
