import { Effect, Layer } from "effect"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { spawn } from "node:child_process"
import { platform } from "node:process"

/**
 * Ends what this program started also when the program is killed and can end nothing itself (kill -9, no memory left).
 *
 * Beside the program runs one small shell, a process group of its own, that reads the numbers of the groups that are at work
 * from a pipe. Only this program holds the other end of the pipe (Node lets no child inherit it), so the pipe ends with the
 * program, however that ends; what is at work then is asked to end and, a second later, made to.
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

/**
 * A spawner whose processes, with all of their groups, do not outlive this program. What a scope let go of before
 * (`handle.unref`) runs on, as without it. The watchdog is started with the first process. Windows knows no groups: there the
 * spawner is what it was.
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
    yield* Effect.addFinalizer(() => Effect.sync(end))
    return ChildProcessSpawner.make((command) =>
      Effect.gen(function* () {
        let group: number | undefined
        // Added first, run last: the group has been ended by then.
        yield* Effect.addFinalizer(() => Effect.sync(() => (group === undefined ? undefined : forget(group))))
        const handle = yield* spawner.spawn(command)
        if (command._tag !== "StandardCommand" || command.options.detached !== false) {
          group = handle.pid
          watch(group)
        }
        return handle
      })
    )
  })
)
