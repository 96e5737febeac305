/**
 * What the records that writers make have in common: ids, times and the names of providers. Ids that a conversation lacks are always the
 * same for the same conversation.
 */

import type { Draft } from "../conversation/Conversation.ts"
import { isTime } from "../text/Time.ts"
import { draftsOf, type Step } from "./Transcript.ts"

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0").slice(-digits)

/** Hashes a text (FNV-1a, 32 bits). */
const hash = (text: string, seed: number): number => {
  let value = (0x811c9dc5 ^ seed) >>> 0
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value
}

/** Derives hexadecimal digits from a text, eight at a time. They have no security purpose: they only need to be the same for the same text. */
export const digitsOf = (text: string, count: number): string =>
  Array.from({ length: count / 8 }, (_, n) => hex(hash(text, Math.imul(n, 0x9e3779b1)), 8)).join("")

/** Whether an id is a UUID. */
export const isUuid = (id: string | undefined): id is string =>
  id !== undefined && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)

/** Returns the n-th UUID (version 8, by our own rule) of a session, the same every time. */
export const uuidOf =
  (session: string) =>
  (n: number): string => {
    const random = hex(hash(session, 1), 8) + hex(hash(session, 2), 8)
    return `${random.slice(0, 8)}-${random.slice(8, 12)}-8${random.slice(12, 15)}-8${hex(hash(session, 3), 3)}-${hex(n, 12)}`
  }

/** Returns the n-th id of eight hexadecimal digits of a session. No two of 2^32 are the same. */
export const shortIdOf =
  (session: string) =>
  (n: number): string =>
    hex((hash(session, 4) + Math.imul(n, 0x9e3779b1)) >>> 0, 8)

/** Returns the n-th id for a call that had none, or none that an API accepts. */
export const callIdOf =
  (session: string) =>
  (n: number): string =>
    `toolu_${hex(hash(session, 5), 8)}${hex(n, 16)}`

/** Keeps ids unique: a known id when it is free, else the next free one. */
export class Ids {
  private readonly usedIds = new Set<string>()
  private made = 0
  private readonly make: (n: number) => string

  constructor(make: (n: number) => string) {
    this.make = make
  }

  /** Claims a known id. Returns false when it is taken. */
  claim(id: string): boolean {
    if (this.usedIds.has(id)) return false
    this.usedIds.add(id)
    return true
  }

  /** Returns the next free id. */
  fresh(): string {
    for (;;) {
      const id = this.make(this.made)
      this.made += 1
      if (this.claim(id)) return id
    }
  }
}

/** The first time after those that have a year of four digits. */
const year10000 = 253_402_300_800_000

/**
 * Returns times in order. A message without a time gets the last known one; before all of them, the first. `hasShortYears`: a time
 * needs a year of four digits.
 */
export const clock = (steps: ReadonlyArray<Step>, hasShortYears = false) => {
  const inRange = (at: number | undefined): at is number =>
    at !== undefined && (hasShortYears ? at >= 0 && at < year10000 : isTime(at))
  let now = steps.flatMap(draftsOf).find(({ at }) => inRange(at))?.at ?? 0
  return {
    /** Milliseconds since 1970. A repeated message keeps its time and does not affect others. */
    at: (draft: Draft | undefined, isAgain = false): number => {
      const at = inRange(draft?.at) ? draft.at : now
      if (!isAgain) now = at
      return at
    },
    get now() {
      return now
    }
  }
}

const providers: ReadonlyArray<readonly [model: RegExp, provider: string]> = [
  [/claude/i, "anthropic"],
  [/^(gpt|o\d|codex)/i, "openai"],
  [/gemini/i, "google"]
]

/** Returns the provider of a model, as agents name it. */
export const providerOf = (model = ""): string => providers.find(([name]) => name.test(model))?.[1] ?? "unknown"

/** Milliseconds since 1970 as ISO text. */
export const isoTime = (at: number): string => new Date(at).toISOString()
