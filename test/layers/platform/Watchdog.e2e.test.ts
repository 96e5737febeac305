import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Layer, Scope } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { execFileSync } from "node:child_process"
import process from "node:process"
import { vi } from "vitest"
import { layer } from "../../../src/layers/platform/Watchdog.ts"
import { namespace, needs, programOf } from "../../support/machine.ts"
import { processes, untilNone, untilThere } from "../../support/processGroups.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const watched = layer.pipe(Layer.provideMerge(NodeServices.layer))

const sh = (command: string) =>
  ChildProcessSpawner.ChildProcessSpawner.use((spawner) =>
    spawner.spawn(ChildProcess.make("/bin/sh", ["-c", command], { stdin: "ignore", forceKillAfter: "2 seconds" }))
  )

/** Every signal that this process sends, and what looks whether something is there. */
const spying = Effect.acquireRelease(
  Effect.sync(() => vi.spyOn(process, "kill")),
  (spy) => Effect.sync(() => spy.mockRestore())
)

describe("Watchdog", () => {
  it.live.each(["exit 3", "sleep 0.3 & exit 0"])(
    "sends no signal to an empty group: %s",
    (command) =>
      Effect.gen(function* () {
        const spy = yield* spying
        const scope = yield* Scope.make()
        const handle = yield* Scope.provide(sh(command), scope)
        yield* Effect.exit(handle.exitCode)
        const isSeen = () =>
          spy.mock.calls.some(
            ([pid, signal], at) => pid === -handle.pid && signal === 0 && spy.mock.results[at]?.type === "throw"
          )
        yield* untilThere(Effect.sync(isSeen))
        const before = spy.mock.calls.length
        yield* Effect.ignore(handle.kill({ forceKillAfter: "1 second" }))
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(
          spy.mock.calls.slice(before).filter(([pid]) => Math.abs(pid) === handle.pid),
          []
        )
      }).pipe(Effect.scoped, Effect.provide(watched)),
    30_000
  )

  it.live(
    "ends the remaining processes, however much later",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const handle = yield* Scope.provide(sh("sleep 1000 >/dev/null 2>&1 & exit 0"), scope)
        yield* handle.exitCode
        yield* Effect.sleep("2500 millis")
        const left = () => processes().filter(({ group }) => group === handle.pid)
        assert.lengthOf(left(), 1)
        yield* Scope.close(scope, Exit.void)
        yield* untilNone(left)
      }).pipe(Effect.provide(watched)),
    30_000
  )

  it.live("ends what a scope released with the program, and not before", function* () {
    const [program, event] = yield* Effect.all([Scope.make(), Scope.make()])
    const context = yield* Layer.buildWithScope(watched, program)
    const released = sh("sleep 1000 >/dev/null 2>&1 & exit 0").pipe(Effect.tap(({ unref }) => unref))
    const handle = yield* released.pipe(Scope.provide(event), Effect.provideContext(context))
    yield* handle.exitCode
    yield* Scope.close(event, Exit.void)
    const left = () => processes().filter(({ group }) => group === handle.pid)
    assert.lengthOf(left(), 1)
    yield* Scope.close(program, Exit.void)
    yield* untilNone(left)
  })
})

/** Starts a process that ends, gives its number to another one's group, and ends as it is told; prints who is left. */
const taking = (end: string) => `
import { Effect, Layer } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { NodeServices } from "@effect/platform-node"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { layer } from "./src/layers/platform/Watchdog.ts"
const spawner = layer.pipe(Layer.provideMerge(NodeServices.layer))
await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
  const { spawn: start } = yield* ChildProcessSpawner.ChildProcessSpawner
  const handle = yield* start(ChildProcess.make("/bin/sh", ["-c", "exit 0"]))
  yield* handle.exitCode
  yield* Effect.sleep("100 millis")
  writeFileSync("/proc/sys/kernel/ns_last_pid", String(handle.pid - 1))
  const other = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" })
  other.unref()
  console.log(other.pid === handle.pid ? "taken" : "not taken")
  yield* Effect.sleep("100 millis")
  ${end}
})).pipe(Effect.provide(spawner)))
`

needs("a namespace of process numbers")("a number that somebody else has by now", () => {
  it.each([
    ["killed", 'process.kill(process.pid, "SIGKILL")'],
    ["at its end", ""]
  ])(
    "is left alone by a program that is %s",
    (_, end) => {
      // The watchdog's second signal comes after a second.
      const script = `"$0" --input-type=module -e "$1"; sleep 2; cat /proc/[0-9]*/comm | grep -c '^sleep$'; exit 0`
      const output = execFileSync(
        programOf("a namespace of process numbers") ?? "unshare",
        [...namespace, "/bin/sh", "-c", script, process.execPath, taking(end)],
        { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 60_000 }
      )
      assert.strictEqual(output, "taken\n1\n")
    },
    60_000
  )
})
