import { Schema } from "effect"

/** Identifies a process, distinct from all others that had or will have its number. */
export const ProcessOwner = Schema.Struct({
  pid: Schema.Int.check(Schema.isGreaterThan(0)),
  /** When it started, in the kernel's count. Another process with the same number started at another time. */
  start: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,20}$/))),
  /** Where its number is valid (see `machineOf`). */
  machine: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[a-z0-9]{1,16}_[a-z0-9]{1,16}_[a-z0-9]{1,16}$/)))
})
export type ProcessOwner = typeof ProcessOwner.Type

/** Identifies a machine; each field consists of letters and digits. */
export interface Machine {
  /** Identifies this boot of the machine; changes with each boot. */
  readonly boot: string
  /** Identifies the container: process numbers of two containers are unrelated. */
  readonly container: string
  /** Identifies the machine permanently. If only its name is available, the value begins with `n`: other machines may have the same name. */
  readonly host: string
}

/** Returns the identity of a machine as one word. */
export const machineOf = ({ boot, container, host }: Machine): string => `${boot}_${container}_${host}`

/**
 * Returns where a process ran, as seen from another one: `here`, where its number means the same; `before`, on this machine before its
 * last boot, so it has ended; `elsewhere`, on another machine or in another container, where this process cannot look it up.
 */
export const whereabouts = (owner: ProcessOwner, self: ProcessOwner): "here" | "before" | "elsewhere" => {
  // Older versions of this program did not record it.
  if (owner.machine === undefined || self.machine === undefined || owner.machine === self.machine) return "here"
  const [boot, , host] = owner.machine.split("_")
  const [ownBoot, , ownHost] = self.machine.split("_")
  return boot !== ownBoot && host === ownHost && host?.startsWith("n") === false ? "before" : "elsewhere"
}

/** `.palimpsest-<pid>-<start>-<machine>-<unique>.tmp`; an unknown part is `0`. */
const temporaryPattern = /^\.palimpsest-(?:(\d{1,10})-(\d{1,20})-([a-z0-9_]{1,50})-)?([a-z0-9]{1,40})\.tmp$/

/** The name of a temporary file. It names its owner, so that others can tell whether it is still needed. */
export const temporaryName = (owner: ProcessOwner | undefined, unique: string): string =>
  owner === undefined
    ? `.palimpsest-${unique}.tmp`
    : `.palimpsest-${owner.pid}-${owner.start ?? "0"}-${owner.machine ?? "0"}-${unique}.tmp`

/** Whether a temporary file of this program has this name. */
export const isTemporary = (name: string): boolean => temporaryPattern.test(name)

const isOwner = Schema.is(ProcessOwner)

/** The owner of a temporary file with this name; undefined when the name has none. */
export const ownerOf = (name: string): ProcessOwner | undefined => {
  const [, pid, start, machine] = temporaryPattern.exec(name) ?? []
  const owner = {
    pid: Number(pid),
    ...(start === undefined || start === "0" ? {} : { start }),
    ...(machine === undefined || machine === "0" ? {} : { machine })
  }
  return isOwner(owner) ? owner : undefined
}
