/** Provides `Processes` on this machine: tells whether the process that owns a file still runs. */

import { Context, Effect, Layer, Option } from "effect"
import { randomBytes } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import { kill, pid } from "node:process"
import { machineOf, type ProcessOwner } from "../../domain/platform/ProcessOwner.ts"
import { Processes } from "../../services/platform/ProcessIdentity.ts"
import { hashSync } from "../../services/session/Sha256.ts"

/** Returns a few letters and digits that identify a text; `0` when there is none. */
const shortHash = (text: string | undefined): string => (text === undefined ? "0" : hashSync(text.trim()).slice(0, 10))

/** Reads a file of the system; undefined when it does not exist. */
const readOrUndefined = (read: () => string): string | undefined => Option.getOrUndefined(Option.liftThrowable(read)())

interface Stat {
  readonly state: string | undefined
  /** When the process started, in clock ticks since boot. */
  readonly start: string | undefined
}

/** Reads the 3rd and the 22nd field of `/proc/<pid>/stat`. The second is a name that may contain anything. */
const statOf = (number: number): Stat | undefined => {
  const stat = readOrUndefined(() => readFileSync(`/proc/${number}/stat`, "utf8"))
  if (stat === undefined) return undefined
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return { state: fields.at(0), start: fields.at(19) }
}

/** Returns whether a process has this number, including one that this process may not signal. */
const isThere = (number: number) =>
  Effect.try({
    try: () => kill(number, 0),
    catch: (cause) => typeof cause === "object" && cause !== null && "code" in cause && cause.code === "EPERM"
  }).pipe(Effect.catch((forbidden) => Effect.succeed(forbidden)))

/** What identifies this process. It never changes, so it is read when it is first asked for. */
const Self = Context.Reference<ProcessOwner>("palimpsest/layers/platform/ThisProcess/Self", {
  defaultValue: () => {
    const start = statOf(pid)?.start
    const boot = readOrUndefined(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
    const container = readOrUndefined(() => readlinkSync("/proc/self/ns/pid"))
    // Container images share one machine id, and two machines of a network may share a name; together they are distinct.
    const number = readOrUndefined(() => readFileSync("/etc/machine-id", "utf8"))?.trim() ?? ""
    const host = number === "" ? `n${shortHash(hostname())}` : shortHash(`${number} ${hostname()}`)
    const machine = machineOf({ boot: shortHash(boot), container: shortHash(container), host })
    return { pid, ...(start === undefined ? {} : { start }), machine }
  }
})

const processes: typeof Processes.Service = {
  self: Self,
  find: Effect.fnUntraced(function* (number: number) {
    if (!(yield* isThere(number))) return undefined
    const stat = statOf(number)
    // The process has ended, but its parent has not collected it yet.
    return stat?.state === "Z" || stat?.state === "X" ? undefined : { start: stat?.start }
  }),
  unique: Effect.sync(() => randomBytes(6).toString("hex"))
}

/** Identifies this process. `/proc` is small and in memory, so it is read synchronously. */
export const layer: Layer.Layer<never> = Layer.succeed(Processes, processes)

/** Provides `processes` to one effect. */
export const provide = Effect.provideService(Processes, processes)
