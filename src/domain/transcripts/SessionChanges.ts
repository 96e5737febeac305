/** What changed in a session since a point: files, commits, checks and commands. */

import type { CommandRun } from "../compression/evidence/Attempts.ts"
import type { Evidence } from "../compression/evidence/Evidence.ts"
import { isLook } from "../compression/evidence/ReadOnlyCommands.ts"
import type { Entry, EntryId } from "../conversation/Conversation.ts"
import { sequenceOf } from "../conversation/Conversation.ts"
import { clipped } from "../text/Bytes.ts"
import { untrustedLine } from "../text/UntrustedText.ts"

/** A point of a session: an entry, or a time in milliseconds since 1970. */
export type SincePoint =
  | { readonly _tag: "Entry"; readonly entry: EntryId }
  | { readonly _tag: "Time"; readonly at: number }

/** Parses an entry (`e12`), an ISO time or a time of the form `30m`, `2h`, `1d` before `now`; undefined for anything else. */
export const parseSince = (text: string, now: number): SincePoint | undefined => {
  const trimmed = text.trim()
  if (/^e[1-9]\d*$/.test(trimmed)) return { _tag: "Entry", entry: trimmed as EntryId }
  const [, count, unit] = /^(\d+)\s*([mhd])$/.exec(trimmed) ?? []
  if (count !== undefined) {
    return { _tag: "Time", at: now - Number(count) * (unit === "m" ? 60e3 : unit === "h" ? 3.6e6 : 86.4e6) }
  }
  const at = Date.parse(trimmed)
  return Number.isNaN(at) ? undefined : { _tag: "Time", at }
}

/** Returns the entries after a point. Entries without a time belong to the one before them. */
export const entriesSince = (entries: ReadonlyArray<Entry>, since: SincePoint): ReadonlyArray<Entry> => {
  if (since._tag === "Entry") return entries.filter(({ id }) => sequenceOf(id) > sequenceOf(since.entry))
  const first = entries.findIndex(({ at }) => at !== undefined && at > since.at)
  return first < 0 ? [] : entries.slice(first)
}

const maxItems = 60
const maxLineChars = 200

const section = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (lines.length === 0) return []
  const shown = lines.slice(-maxItems)
  const more = lines.length - shown.length
  return [`${title}:`, ...(more > 0 ? [`- (${more} earlier ones)`] : []), ...shown.map((line) => `- ${line}`)]
}

const line = (text: string): string => clipped(untrustedLine(text), maxLineChars)

const outcome = ({ exit, ok }: Pick<CommandRun, "exit" | "ok">): string =>
  ok === undefined ? "" : ok ? " succeeded" : exit === undefined ? " failed" : ` failed, exit ${exit}`

/** Names the entry of a change, and the handle of its result. */
const place = ({ entry, handle }: { readonly entry: EntryId; readonly handle: string | undefined }): string =>
  handle === undefined ? entry : `${entry} ${handle}`

/** Writes what evidence says about changes, each with the handle of its result, the latest last. */
export const changesText = ({ checks, commands, commits, failures, files }: Evidence): string =>
  [
    section(
      "Files changed",
      [...files].flatMap(([path, file]) => {
        const changes = file.changes > 1 ? `, ${file.changes} changes` : ""
        return file.state === "read" ? [] : [`${line(path)} (${file.state}${changes}, ${place(file)})`]
      })
    ),
    section(
      "Commits",
      commits.map(({ entry, hash, subject }) => `${line(hash)} ${line(subject)} (${entry})`)
    ),
    section(
      "Checks",
      [...checks].map(([kind, run]) => `${kind}:${outcome({ ok: run.ok })} (${place(run)})`)
    ),
    section(
      "Commands that do more than read",
      [...commands].flatMap(([command, run]) =>
        isLook(command) ? [] : [`${line(command)}${outcome(run)} (${place(run)})`]
      )
    ),
    section(
      "Failures that nothing has resolved",
      [...failures].map(([subject, failure]) => `${line(subject)} (${place(failure)})`)
    )
  ]
    .flat()
    .join("\n")
