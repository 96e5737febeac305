import { Effect, Exit, Layer, Result, Scope } from "effect"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { spawn } from "node:child_process"
import process, { platform } from "node:process"

/**
 * Ends what this program started also when the program is killed and can end nothing itself (kill -9, no memory left).
 *
 * Beside the program runs one small shell, a process group of its own, that reads the numbers of the groups that are at work
 * from a pipe. Only this program holds the other end of the pipe (Node lets no child inherit it), so the pipe ends with the
 * program, however that ends; what is at work then is asked to end and, a second later, made to.
 *
 * A group is forgotten as soon as nothing of it is left: its number may be that of somebody else's processes from then on.
 *
 * Not reached: processes that left their group (`setsid`, daemons), and those that run as another user.
 */

/**
 * Lines are `+ GROUP` and `- GROUP`. Signals that are meant for the whole terminal or session pass it by. POSIX sh and
 * `sleep` alone; where there is no `sleep` the second signal comes at once.
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

/** A watchdog that ended is started again; one that cannot live here is left be after so many times. */
const mostStarts = 5

const make = () => {
  const groups = new Set<number>()
  let starts = 0
  let isOver = false
  let tell: ((line: string) => void) | undefined
  let hangUp = () => {}

  const start = (): void => {
    if (isOver || tell !== undefined || starts >= mostStarts) return
    starts += 1
    // Nothing of the environment: no key, and no folder of a PATH that `sleep` could come from.
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

/** Milliseconds between two looks at what runs on after the process that started it. */
const lookEvery = 2_000

/** Whether nothing of a group is left. The system gives its number to nobody else before that. */
const isEmpty = (group: number): boolean =>
  Result.match(
    Result.try(() => process.kill(-group, 0)),
    {
      // What may not be asked is there: it runs as another user, or ended and nobody has taken note.
      onFailure: (error) => error instanceof Error && "code" in error && error.code === "ESRCH",
      onSuccess: () => false
    }
  )

/** Waits until nothing of a group is left. One timer looks at all of them; it keeps no program from its end. */
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
  return (group: number): Effect.Effect<void> =>
    Effect.callback((resume) => {
      if (isEmpty(group)) return resume(Effect.void)
      awaited.set(group, () => {
        leave(group)
        resume(Effect.void)
      })
      timer ??= setInterval(look, lookEvery).unref()
      return Effect.sync(() => leave(group))
    })
}

/**
 * A spawner whose processes, with all of their groups, do not outlive this program. What a scope let go of before
 * (`handle.unref`) runs on, as without it. No signal goes to a group of which nothing is left, at the end of the scope
 * neither. The watchdog is started with the first process. Windows knows no groups: there the spawner is what it was.
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
    const { end, forget, watch } = make()
    const untilEmpty = makeLooking()
    yield* Effect.addFinalizer(() => Effect.sync(end))
    const scope = yield* Effect.scope
    return ChildProcessSpawner.make((command) =>
      Effect.gen(function* () {
        // Of a pipeline only the last process is known: its scope ends with the caller's, as that of the others.
        const isOne = command._tag === "StandardCommand"
        if (isOne && command.options.detached === false) return yield* spawner.spawn(command)
        const own = yield* Scope.fork(yield* Effect.scope)
        let group: number | undefined
        let isGone = false
        const gone = Effect.sync(() => {
          isGone = true
          if (group !== undefined) forget(group)
        })
        // Added first, run last: the group has been ended by then.
        yield* Scope.addFinalizer(own, gone)
        const handle = yield* Scope.provide(spawner.spawn(command), own)
        group = handle.pid
        watch(group)
        yield* Effect.exit(handle.exitCode).pipe(
          Effect.andThen(untilEmpty(group)),
          Effect.andThen(gone),
          // The spawner's own finalizer signals by the number, too: now, while that is nobody's.
          Effect.andThen(isOne ? Scope.close(own, Exit.void) : Effect.void),
          Effect.forkIn(scope)
        )
        return ChildProcessSpawner.makeHandle({
          ...handle,
          kill: (options) => Effect.suspend(() => (isGone ? Effect.void : handle.kill(options)))
        })
      })
    )
  })
)
