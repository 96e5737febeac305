/**
 * Plans how `install` and `uninstall` change a file of another agent. A record of what `install` put into the file lets `uninstall`
 * give back the very bytes; where the file has changed since, only what is ours is removed.
 */

import { Result, Schema } from "effect"
import { valueAt } from "./SettingsKey.ts"
import { jsonOf, type SettingsProblem } from "./SettingsText.ts"

/** What an edit makes of a text. */
export type EditResult =
  | { readonly _tag: "Written"; readonly text: string }
  | { readonly _tag: "Unchanged" }
  /** Something of the user's own stands where ours would: `what` names it. */
  | { readonly _tag: "Foreign"; readonly what: string }
  | { readonly _tag: "Refused"; readonly reason: string }

/** An edit that cannot be made. */
export const refused = (reason: string): EditResult => ({ _tag: "Refused", reason })

/** Edits what was read of a text; where it cannot be read, the failure is the result. */
export const edited = <A>(read: Result.Result<A, EditResult>, edit: (value: A) => EditResult): EditResult =>
  Result.merge(Result.map(read, edit))

/** The result of an edit of JSON. */
export const jsonEdit = (edit: Result.Result<string, SettingsProblem>): EditResult =>
  Result.match(edit, {
    onFailure: ({ text }) => refused(text),
    onSuccess: (text) => ({ _tag: "Written", text })
  })

/** The object in a JSON file of settings; a blank file has an empty one. */
export const jsonObject = (text: string): Result.Result<Readonly<Record<string, unknown>>, EditResult> =>
  Result.mapError(text.trim() === "" ? Result.succeed({}) : jsonOf(text), (problem) => refused(problem.text))

/** Whether a JSON text stays one without what was inserted, which was whole members and items. */
export const isJsonRest = (rest: string): boolean => Result.isSuccess(jsonObject(rest))

/** One thing that `install` puts into a file: a server, a hook, a plugin. */
export interface FileEdit {
  /** Adds it, or corrects how it is started. */
  readonly add: (text: string) => EditResult
  /** Removes it, and what `removable` names (dotted paths) of the objects and lists around it, if nothing else is in them. */
  readonly remove: (text: string, removable: ReadonlyArray<string>) => EditResult
  /** Whether `rest` is a text from which only ours is gone. */
  readonly isRest: (rest: string, text: string) => boolean
  /** Whether the file holds nothing else. */
  readonly isWholeFile: boolean
  /** The objects and lists around it, as dotted paths. */
  readonly containers: ReadonlyArray<string>
}

/** A change of a text at one place, in UTF-16 units. */
const Splice = Schema.Struct({ at: Schema.Natural, removed: Schema.String, inserted: Schema.String })
type Splice = typeof Splice.Type

/** What `install` did to a file. */
export const InstallRecord = Schema.Struct({
  /** Whether there was no file. */
  created: Schema.Boolean,
  /** The changes, each of the text that the one before it left. Empty: all of ours was there before. */
  splices: Schema.Array(Splice),
  /** The objects and lists that did not exist, as dotted paths. */
  containers: Schema.Array(Schema.String)
})
export type InstallRecord = typeof InstallRecord.Type

/** How a file changes. */
export interface FilePlan {
  /** The text afterwards; undefined: there is no file. */
  readonly after: string | undefined
  /** The record to keep afterwards; undefined: none. */
  readonly record: InstallRecord | undefined
  /** What the user has in the place of ours, and keeps. */
  readonly foreign: ReadonlyArray<string>
  /** Whether ours stays because it was there before `install`. */
  readonly stays: boolean
}

const spliceOf = (before: string, after: string): Splice => {
  const shorter = Math.min(before.length, after.length)
  let at = 0
  while (at < shorter && before[at] === after[at]) at += 1
  let end = 0
  while (end < shorter - at && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1
  return { at, removed: before.slice(at, before.length - end), inserted: after.slice(at, after.length - end) }
}

/** The place of an inserted text: where it was put, else the only place where it stands now. */
const placeOf = (text: string, { at, inserted }: Splice): number | undefined => {
  if (text.startsWith(inserted, at)) return at
  const first = text.indexOf(inserted)
  return first >= 0 && first === text.lastIndexOf(inserted) ? first : undefined
}

/** Takes the changes of a record back. Undefined when one of them is no longer there as it was made. */
const undone = (text: string, { splices }: InstallRecord, edits: ReadonlyArray<FileEdit>): string | undefined => {
  let rest = text
  for (const splice of splices.toReversed()) {
    const at = placeOf(rest, splice)
    if (at === undefined) return undefined
    rest = `${rest.slice(0, at)}${splice.removed}${rest.slice(at + splice.inserted.length)}`
  }
  // The user may have added something that needs what was taken back, such as a comma.
  return edits.every(({ isRest }) => isRest(rest, text)) ? rest : undefined
}

/** Whether a text has something of ours. */
const isOurs = (text: string, edits: ReadonlyArray<FileEdit>): boolean =>
  edits.some(({ remove }) => remove(text, [])._tag === "Written")

interface Edited {
  readonly text: string
  readonly splices: ReadonlyArray<Splice>
  readonly foreign: ReadonlyArray<string>
}

/** Applies edits one after the other. The failure says why the file is not changed. */
const applied = (text: string, changes: ReadonlyArray<(text: string) => EditResult>): Result.Result<Edited, string> => {
  let next = text
  const splices: Array<Splice> = []
  const foreign: Array<string> = []
  for (const change of changes) {
    const result = change(next)
    if (result._tag === "Refused") return Result.fail(result.reason)
    if (result._tag === "Foreign") foreign.push(result.what)
    if (result._tag === "Written") {
      splices.push(spliceOf(next, result.text))
      next = result.text
    }
  }
  return Result.succeed({ text: next, splices, foreign })
}

const missingContainers = (text: string, edits: ReadonlyArray<FileEdit>): ReadonlyArray<string> => {
  const json = Result.getOrElse(jsonOf(text), () => ({}))
  return edits.flatMap(({ containers }) => containers).filter((each) => valueAt(json, each.split(".")) === undefined)
}

/** Text of a new JSON file, over several lines. */
const laidOut = (text: string): string =>
  Result.getOrElse(
    Result.map(jsonOf(text), (value) => `${JSON.stringify(value, undefined, 2)}\n`),
    () => text
  )

/** Plans the installation in a file. `before` is undefined when there is no file. */
export const planInstall = (
  before: string | undefined,
  record: InstallRecord | undefined,
  edits: ReadonlyArray<FileEdit>
): Result.Result<FilePlan, string> => {
  const added = applied(
    before ?? "",
    edits.map((edit) => edit.add)
  )
  if (Result.isFailure(added)) return Result.fail(added.failure)
  const { foreign, splices, text } = added.success
  if (before === undefined) {
    const whole = laidOut(text)
    const splices = [{ at: 0, removed: "", inserted: whole }]
    const created = { created: true, splices, containers: missingContainers("", edits) }
    return Result.succeed({ after: whole, record: created, foreign, stays: false })
  }
  const found = record === undefined ? undefined : undone(before, record, edits)
  // A file that an earlier version wrote, and nobody changed since, is no other's.
  if (found === "" && record?.created === true && edits.every(({ isWholeFile }) => isWholeFile)) {
    return planInstall(undefined, undefined, edits)
  }
  const isKnown = record !== undefined && (found !== undefined || isOurs(before, edits))
  const kept = isKnown
    ? { ...record, splices: [...record.splices, ...splices] }
    : { created: false, splices, containers: missingContainers(before, edits) }
  return Result.succeed({ after: text, record: isOurs(text, edits) ? kept : undefined, foreign, stays: false })
}

/** Whether a file that `install` created holds nothing any more. */
const isBlank = (text: string): boolean => /^\s*(?:\{\s*\}\s*)?$/.test(text)

/** Plans the removal of what `install` added to a file. */
export const planUninstall = (
  before: string,
  record: InstallRecord | undefined,
  edits: ReadonlyArray<FileEdit>
): Result.Result<FilePlan, string> => {
  const found = record === undefined ? undefined : undone(before, record, edits)
  const { containers = [], created = false } = record ?? {}
  const removed =
    found === undefined
      ? applied(
          before,
          edits.map((edit) => (text) => edit.remove(text, containers))
        )
      : Result.succeed<Edited>({ text: found, splices: [], foreign: [] })
  return Result.map(removed, ({ foreign, text }) => ({
    after: created && isBlank(text) ? undefined : text,
    record: undefined,
    foreign,
    stays: isOurs(text, edits)
  }))
}
