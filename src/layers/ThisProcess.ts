import { Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import { kill, pid } from "node:process"
import { machineOf, type ProcessOwner } from "../domain/ProcessOwner.ts"
import { Processes } from "../services/Processes.ts"
import { hashSync } from "./Sha256.ts"

/** A few letters and digits for a text; `0` where there is none. */
const short = (text: string | undefined): string => (text === undefined ? "0" : hashSync(text.trim()).slice(0, 10))

/** What the system says in a file of its own; undefined where it has no such file. */
const said = (read: () => string): Effect.Effect<string | undefined> =>
  Effect.orElseSucceed(Effect.try(read), () => undefined)

interface Stat {
  readonly state: string | undefined
  /** When the process started, in ticks since the machine did. */
  readonly start: string | undefined
}

/** Fields of `/proc/<pid>/stat`, the 3rd and the 22nd; the second is a name that may hold anything. */
const statOf = (number: number): Effect.Effect<Stat | undefined> =>
  Effect.map(
    said(() => readFileSync(`/proc/${number}/stat`, "utf8")),
    (stat) => {
      if (stat === undefined) return undefined
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return { state: fields.at(0), start: fields.at(19) }
    }
  )

/** Whether a process has this number. One that we may not signal has it too. */
const isThere = (number: number): Effect.Effect<boolean> =>
  Effect.try({
    try: () => kill(number, 0),
    catch: (cause) => typeof cause === "object" && cause !== null && "code" in cause && cause.code === "EPERM"
  }).pipe(Effect.catch((forbidden) => Effect.succeed(forbidden)))

const self = Effect.runSync(
  Effect.cached(
    Effect.gen(function* (): Effect.fn.Return<ProcessOwner> {
      const stat = yield* statOf(pid)
      const boot = yield* said(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
      const container = yield* said(() => readlinkSync("/proc/self/ns/pid"))
      // Images of a container hold the same number for all, and a network may call two machines the same: both together tell.
      const number = (yield* said(() => readFileSync("/etc/machine-id", "utf8")))?.trim() ?? ""
      const host = number === "" ? `n${short(hostname())}` : short(`${number} ${hostname()}`)
      const machine = machineOf({ boot: short(boot), container: short(container), host })
      return { pid, ...(stat?.start === undefined ? {} : { start: stat.start }), machine }
    })
  )
)

const processes: typeof Processes.Service = {
  self,
  find: Effect.fnUntraced(function* (number: number) {
    if (!(yield* isThere(number))) return undefined
    const stat = yield* statOf(number)
    // Killed, and not yet buried by who started it.
    return stat?.state === "Z" || stat?.state === "X" ? undefined : { start: stat?.start }
  }),
  unique: Effect.sync(() => randomBytes(6).toString("hex"))
}

/** This process among those of the machine. What is read of `/proc` is small and in memory: it is read at once. */
export const layer: Layer.Layer<never> = Layer.succeed(Processes, processes)

/** The same for one effect. */
export const provide = Effect.provideService(Processes, processes)
