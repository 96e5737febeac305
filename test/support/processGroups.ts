import { Effect, Layer } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"

/** A running process. */
export interface Process {
  readonly pid: number
  readonly group: number
}

/** Field 3 of `/proc/<pid>/stat` is the state, field 5 the group; field 2 is a name that may contain anything. */
const fromProc = (pid: string): ReadonlyArray<Process> => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const [state = "Z", , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return state === "Z" || state === "X" ? [] : [{ pid: Number(pid), group: Number(group) }]
  } catch {
    // It has ended since the folder was listed.
    return []
  }
}

const fromPs = (): ReadonlyArray<Process> =>
  execFileSync("ps", ["-A", "-o", "pid=,pgid=,stat="], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => {
      const [pid, group, state = "Z"] = line.trim().split(/\s+/)
      return state.startsWith("Z") ? [] : [{ pid: Number(pid), group: Number(group) }]
    })

/** All running processes, without ended ones that were not reaped. Small systems have `/proc` but no `ps`. */
export const processes = (): ReadonlyArray<Process> =>
  existsSync("/proc/self/stat")
    ? readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .flatMap(fromProc)
    : fromPs()

/** The numbers of the processes that have a file open. Needs `/proc`. */
export const readersOf = (file: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      const folder = `/proc/${pid}/fd`
      return /^\d+$/.test(pid) && readdirSync(folder).some((fd) => readlinkSync(`${folder}/${fd}`) === file)
    } catch {
      // It has ended, or closed the file.
      return false
    }
  })

/** A turn of the real clock, even in a test with a test clock. */
const moment = Effect.callback<void>((resume) => void setTimeout(() => resume(Effect.void), 10))

/** How often is looked before a wait is given up: half a minute, and more on a busy machine, where each look takes longer. */
const looks = 3_000

/** Waits until none of these is left: on a busy machine a killed process takes time to end. */
export const untilNone = Effect.fnUntraced(function* (left: () => ReadonlyArray<unknown>) {
  for (let look = 0; left().length > 0; look += 1) {
    if (look > looks) return yield* Effect.die(new Error(`still at work: ${JSON.stringify(left())}`))
    yield* moment
  }
})

/** Waits until the effect of a process is visible, and its output so far has been read. */
export const untilThere = Effect.fnUntraced(function* <E, R>(look: Effect.Effect<boolean, E, R>) {
  for (let looked = 0; !(yield* look); looked += 1) {
    if (looked > looks) return yield* Effect.die(new Error("waited for the effect of a process, which did not come"))
    yield* moment
  }
  yield* moment
})

/** Watches a spawner: the group of every process it started, and the groups that still have running processes. */
export const watched = Effect.map(ChildProcessSpawner.ChildProcessSpawner, (spawner) => {
  const groups: Array<number> = []
  return {
    groups,
    left: (): ReadonlyArray<number> => {
      const now = new Set(processes().map(({ group }) => group))
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
