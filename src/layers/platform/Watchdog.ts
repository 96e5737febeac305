/**
 * Ends the processes that this program started even when the program is killed and cannot end them itself (kill -9, out of memory).
 *
 * A small shell runs beside the program, in its own process group. It reads the numbers of running groups from a pipe. Only this
 * program holds the other end of the pipe (Node lets no child inherit it), so the pipe closes when the program ends, in whatever way.
 * The shell then asks the remaining groups to end and kills them a second later.
 *
 * A group is removed as soon as none of its processes is left: from then on its number may belong to other processes.
 *
 * Not covered: processes that left their group (`setsid`, daemons), and those that run as another user.
 */

import { Effect, Exit, Layer, Result, Scope } from "effect"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { spawn } from "node:child_process"
import process, { platform } from "node:process"

/**
 * The script reads lines `+ GROUP` and `- GROUP`. It ignores signals to the whole terminal or session. It needs only POSIX sh and
 * `sleep`; without `sleep` the second signal follows at once.
 */
const script = `trap '' HUP INT QUIT TERM
groups=
while read -r sign group; do
  others=
  for each in $groups; do [ "$each" = "$group" ] || others="$others $each"; done
  groups=$others
  [ "$sign" = - ] || groups="$groups $group"
done
[ -n "$groups" ] || exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done`

/** Maximum number of starts. A watchdog that ended is started again; one that cannot run here is given up. */
const maxStarts = 5

const make = () => {
  const groups = new Set<number>()
  let starts = 0
  let isOver = false
  let tell: ((line: string) => void) | undefined
  let hangUp = () => {}

  const start = (): void => {
    if (isOver || tell !== undefined || starts >= maxStarts) return
    starts += 1
    // An empty environment: no key, and no PATH folder from which `sleep` could come.
    const child = spawn("/bin/sh", ["-c", script], {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"]
    })
    child.on("error", () => {})
    child.stdin.on("error", () => {})
    child.once("exit", () => {
      tell = undefined
      if (groups.size > 0) start()
    })
    child.unref()
    tell = (line) => void child.stdin.write(line)
    hangUp = () => void child.stdin.end()
    for (const group of groups) tell(`+ ${group}\n`)
  }

  return {
    start,
    watch: (group: number): void => {
      groups.add(group)
      if (tell === undefined) start()
      else tell(`+ ${group}\n`)
    },
    forget: (group: number): void => {
      if (groups.delete(group)) tell?.(`- ${group}\n`)
    },
    end: (): void => {
      isOver = true
      hangUp()
    }
  }
}

/** Milliseconds between two checks of groups that outlive their first process. */
const pollInterval = 2_000

/** Returns whether a group has no process left. Until then the system does not reuse its number. */
const isEmpty = (group: number): boolean =>
  Result.match(
    Result.try(() => process.kill(-group, 0)),
    {
      // A group that may not be signalled exists: it runs as another user, or has ended and was not collected yet.
      onFailure: (error) => error instanceof Error && "code" in error && error.code === "ESRCH",
      onSuccess: () => false
    }
  )

/** Waits until a group has no process left. One timer checks all groups, and it does not keep the program alive. */
const makeLooking = () => {
  const awaited = new Map<number, () => void>()
  let timer: NodeJS.Timeout | undefined
  const look = () => {
    for (const [group, gone] of awaited) if (isEmpty(group)) gone()
  }
  const leave = (group: number) => {
    awaited.delete(group)
    if (awaited.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return (group: number) =>
    Effect.callback((resume) => {
      if (isEmpty(group)) return resume(Effect.void)
      awaited.set(group, () => {
        leave(group)
        resume(Effect.void)
      })
      timer ??= setInterval(look, pollInterval).unref()
      return Effect.sync(() => leave(group))
    })
}

/**
 * A spawner whose processes, with all of their groups, do not outlive this program. A process that its scope released (`handle.unref`)
 * keeps running until this program ends. No signal goes to an empty group, not even at the end of the scope. The watchdog starts with
 * the first process. Windows has no process groups: there the spawner is unchanged.
 */
export const layer: Layer.Layer<
  ChildProcessSpawner.ChildProcessSpawner,
  never,
  ChildProcessSpawner.ChildProcessSpawner
> = Layer.effect(
  ChildProcessSpawner.ChildProcessSpawner,
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    if (platform === "win32") return spawner
    const { end, forget, start, watch } = make()
    const untilEmpty = makeLooking()
    yield* Effect.addFinalizer(() => Effect.sync(end))
    const scope = yield* Effect.scope
    return ChildProcessSpawner.make((command) =>
      Effect.gen(function* () {
        // Of a pipeline only the last process is visible: its scope ends with the caller's, as do those of the others.
        const isOne = command._tag === "StandardCommand"
        if (isOne && command.options.detached === false) return yield* spawner.spawn(command)
        // Starts before the process: otherwise a kill right afterwards would leave the process unregistered.
        start()
        const own = yield* Scope.fork(yield* Effect.scope)
        let group: number | undefined
        let isGone = false
        let isReleased = false
        const gone = Effect.sync(() => {
          isGone = true
          if (group !== undefined) forget(group)
        })
        // Added first and so run last: the group has been ended by then, unless it was released.
        yield* Scope.addFinalizer(
          own,
          Effect.suspend(() => (isReleased ? Effect.void : gone))
        )
        const handle = yield* Scope.provide(spawner.spawn(command), own)
        group = handle.pid
        watch(group)
        yield* Effect.exit(handle.exitCode).pipe(
          Effect.andThen(untilEmpty(group)),
          Effect.andThen(gone),
          // The spawner's own finalizer also signals by number. It runs now, while the number is unused.
          Effect.andThen(isOne ? Scope.close(own, Exit.void) : Effect.void),
          Effect.forkIn(scope)
        )
        return ChildProcessSpawner.makeHandle({
          ...handle,
          unref: Effect.tap(handle.unref, () =>
            Effect.sync(() => {
              isReleased = true
            })
          ),
          kill: (options) => Effect.suspend(() => (isGone ? Effect.void : handle.kill(options)))
        })
      })
    )
  })
)
