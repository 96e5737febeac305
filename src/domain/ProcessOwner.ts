import { Schema } from "effect"

/** A process, told apart from every other one that had or will have its number. */
export const ProcessOwner = Schema.Struct({
  pid: Schema.Int.check(Schema.isGreaterThan(0)),
  /** When it started, as the kernel counts: another process of the same number started at another time. */
  start: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,20}$/))),
  /** Where its number means something (see `machineOf`). */
  machine: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[a-z0-9]{1,16}_[a-z0-9]{1,16}_[a-z0-9]{1,16}$/)))
})
export type ProcessOwner = typeof ProcessOwner.Type

/** What tells machines apart, each as letters and digits. */
export interface Machine {
  /** Of this start of the machine: another one after each boot. */
  readonly boot: string
  /** Of the container: process numbers of two containers do not mean the same. */
  readonly container: string
  /** Of the machine, for good. One whose name only is known begins with `n`: others may be called the same. */
  readonly host: string
}

/** A machine in one word. */
export const machineOf = ({ boot, container, host }: Machine): string => `${boot}_${container}_${host}`

/**
 * Where a process ran, seen from another one: `here`, where its number means the same; `before`, on this machine before it was
 * last started, so that it is gone; `elsewhere`, on another machine or in another container, where nobody here can ask for it.
 */
export const whereabouts = (owner: ProcessOwner, self: ProcessOwner): "here" | "before" | "elsewhere" => {
  // Older versions of this program did not say it.
  if (owner.machine === undefined || self.machine === undefined || owner.machine === self.machine) return "here"
  const [boot, , host] = owner.machine.split("_")
  const [ownBoot, , ownHost] = self.machine.split("_")
  return boot !== ownBoot && host === ownHost && host?.startsWith("n") === false ? "before" : "elsewhere"
}

/** `.palimpsest-<pid>-<start>-<machine>-<unique>.tmp`; what is not known is a `0`. */
const temporaryPattern = /^\.palimpsest-(?:(\d{1,10})-(\d{1,20})-([a-z0-9_]{1,50})-)?([a-z0-9]{1,40})\.tmp$/

/** The name of a temporary file, which says whose it is: who finds it later can tell whether it is still needed. */
export const temporaryName = (owner: ProcessOwner | undefined, unique: string): string =>
  owner === undefined
    ? `.palimpsest-${unique}.tmp`
    : `.palimpsest-${owner.pid}-${owner.start ?? "0"}-${owner.machine ?? "0"}-${unique}.tmp`

/** Whether a name is that of a temporary file of this program's. */
export const isTemporary = (name: string): boolean => temporaryPattern.test(name)

const isOwner = Schema.is(ProcessOwner)

/** Whose temporary file has this name; undefined: it does not say. */
export const ownerOf = (name: string): ProcessOwner | undefined => {
  const [, pid, start, machine] = temporaryPattern.exec(name) ?? []
  const owner = {
    pid: Number(pid),
    ...(start === undefined || start === "0" ? {} : { start }),
    ...(machine === undefined || machine === "0" ? {} : { machine })
  }
  return isOwner(owner) ? owner : undefined
}
