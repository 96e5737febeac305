import { Effect, Layer } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { spawnSync } from "node:child_process"

/** The groups that have a process at work. Dead ones that nobody has reaped yet are none. */
const living = (): ReadonlySet<number> => {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pgid=,stat="], { encoding: "utf8" })
  return new Set(
    stdout.split("\n").flatMap((line) => {
      const [group, state = "Z"] = line.trim().split(/\s+/)
      return state.startsWith("Z") ? [] : [Number(group)]
    })
  )
}

/** Watches a spawner: the group of every process it started, and those of them where something is still at work. */
export const watched = Effect.map(ChildProcessSpawner.ChildProcessSpawner, (spawner) => {
  const groups: Array<number> = []
  return {
    groups,
    left: (): ReadonlyArray<number> => {
      const now = living()
      return groups.filter((group) => now.has(group))
    },
    layer: Layer.succeed(
      ChildProcessSpawner.ChildProcessSpawner,
      ChildProcessSpawner.make((command) =>
        Effect.tap(spawner.spawn(command), (handle) => Effect.sync(() => groups.push(handle.pid)))
      )
    )
  }
})
