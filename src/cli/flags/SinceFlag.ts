import { Option } from "effect"
import { Flag } from "effect/cli"
import * as Input from "./SharedFlags.ts"

/** The flag `--since`: a duration before now, or a date. */

const unitMillis: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** A time: milliseconds before now, or since 1970. */
export type Since = { readonly _tag: "Ago"; readonly millis: number } | { readonly _tag: "At"; readonly at: number }

/** Parses `30m`, `12h`, `7d`, `2w`, `2026-02-03` or a whole ISO time; undefined for anything else. */
const parseSince = (text: string): Since | undefined => {
  const [, digits, unit] = /^(\d{1,6})\s*([mhdw])$/i.exec(text.trim()) ?? []
  const millis = unitMillis[(unit ?? "").toLowerCase()]
  if (digits !== undefined && millis !== undefined) return { _tag: "Ago", millis: Number(digits) * millis }
  const at = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$/.test(text.trim())
    ? Date.parse(text.trim())
    : Number.NaN
  return Number.isFinite(at) ? { _tag: "At", at } : undefined
}

/** Returns the time in milliseconds since 1970. */
export const timeOf = (since: Since | undefined, now: number): number | undefined =>
  since === undefined ? undefined : since._tag === "At" ? since.at : now - since.millis

/** The flag. */
export const flag = Input.optional(
  Flag.String("since").pipe(
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(parseSince(text)),
      () => "a time such as 12h, 7d or 2026-02-03"
    ),
    Flag.withMetavar("time")
  ),
  "Only sessions that changed since then: 12h, 7d, 2026-02-03"
)
