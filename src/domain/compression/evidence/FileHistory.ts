/** The files that calls read, changed, created and deleted, the file touched last at the end. */

import type { Action } from "../../actions/Action.ts"
import { replacementsIn, toolKind } from "../../actions/AgentTools.ts"
import type { Part } from "../../content/Content.ts"
import type { Handle } from "../../content/Handle.ts"
import { type EntryId, sequenceOf } from "../../conversation/Conversation.ts"
import { visibleLine } from "../../text/InvisibleCharacters.ts"
import { relativePath } from "../../text/WorkspacePath.ts"

/** Stand in a snapshot above the files that were changed, and those that were only read. */
export const fileHeadings = { changed: "changed:", read: "read, but not changed:" }

/** The state of a file after the last call that touched it. */
export interface FileState {
  readonly state: "read" | "created" | "modified" | "deleted"
  /** Number of writes and edits. */
  readonly changes: number
  /** The entry of the last of them, but for what a shell wrote: that may be a log. Undefined: none. */
  readonly changed?: EntryId | undefined
  /** The entry of the first of them. */
  readonly since?: EntryId | undefined
  readonly entry: EntryId
  /** The handle of the last response that showed the content of the file, as far as it was not much shorter than one before. */
  readonly handle: Handle | undefined
  /** Tokens of that response. */
  readonly shown: number
}

/** The files by path, below the working directory relative to it. */
export interface FileHistory {
  readonly cwd: string | undefined
  readonly files: Map<string, FileState>
  /** The latest edits, oldest first. */
  edits: Array<Edit>
  /** The entry of the last commit: what was changed before it is not taken back. */
  committed: EntryId | undefined
  /** The entry of the last commit that a command took back, of which the new files go with it. */
  takenBack: EntryId | undefined
}

/** Returns a history without files. */
export const noFiles = (cwd: string | undefined): FileHistory => ({
  cwd,
  files: new Map(),
  edits: [],
  committed: undefined,
  takenBack: undefined
})

/** One change of a file, and the text that it wrote. */
export interface Edit {
  readonly path: string
  readonly entry: EntryId
  readonly text: string
  /** Whether it wrote the whole file. */
  readonly isWhole?: true
}

const maxEdits = 60
/** Only this much of a text is kept. */
const maxEditChars = 2_000

/** Returns the form in which a history and a snapshot name a file. */
export const nameOf = ({ cwd }: FileHistory, path: string): string => visibleLine(relativePath(path, cwd))

const nextState = (before: FileState | undefined, action: Action): FileState["state"] => {
  const existed = before !== undefined && before.state !== "deleted"
  switch (action._tag) {
    case "Delete":
      return "deleted"
    case "Write":
      if (before?.state === "created") return "created"
      return (action.created ?? !existed) ? "created" : "modified"
    case "Edit":
      return before?.state === "created" ? "created" : "modified"
    default:
      return existed ? before.state : "read"
  }
}

/** What a call did to files. */
interface Touch {
  readonly entry: EntryId
  readonly call: Part
  readonly action: Action & { readonly path: string }
  readonly handle: Handle | undefined
  /** Tokens of the response. */
  readonly tokens: number
}

/** A read that is shorter than this share of an earlier one shows only a part, so the handle of the earlier one is kept. */
const partShare = 0.5

const record = ({ files }: FileHistory, path: string, { action, call, entry, handle, tokens }: Touch): void => {
  const before = files.get(path)
  const isShown = action._tag === "Read" && handle !== undefined && tokens >= (before?.shown ?? 0) * partShare
  const isChange = action._tag === "Write" || action._tag === "Edit"
  const isByShell = toolKind(call.functionCall?.name ?? "", call.functionCall?.args) === "command"
  const changed = isChange && !(isByShell && action._tag === "Write") ? entry : before?.changed
  // Inserted again, so that the file touched last comes last.
  files.delete(path)
  files.set(path, {
    state: nextState(before, action),
    changes: (before?.changes ?? 0) + (isChange ? 1 : 0),
    changed,
    since: before?.since ?? (action._tag === "Read" ? undefined : entry),
    entry,
    handle: isShown ? handle : before?.handle,
    shown: isShown ? tokens : (before?.shown ?? 0)
  })
}

/** Whether a path lies in a folder; `.` is the working directory. */
export const liesIn = (path: string, folder: string): boolean =>
  folder === "." ? !/^(?:[/~]|[A-Za-z]:)/.test(path) : relativePath(path, folder) !== path

/** Whether something happened after an entry. */
const isAfter = (since: EntryId | undefined, entry: EntryId | undefined): boolean =>
  entry === undefined || (since !== undefined && sequenceOf(since) > sequenceOf(entry))

/**
 * Takes back the changes of a file, or of those in a folder: `ofNew` of new files, which git does not know; else of all others. Git keeps
 * what was committed, but for commits that were taken back with it.
 */
const restore = (history: FileHistory, place: string, ofNew: boolean): void => {
  const { committed, edits, files, takenBack } = history
  const file = files.get(place)
  for (const [path, one] of file === undefined ? [...files] : [[place, file] as const]) {
    const { since, state } = one
    if (!isAfter(since, committed) || !(path === place || liesIn(path, place))) continue
    const isGone = ofNew || (takenBack !== undefined && !isAfter(since, takenBack))
    if (state === "created") {
      if (isGone) files.delete(path)
    } else if (!ofNew && state !== "read")
      files.set(path, { ...one, state: "read", changes: 0, changed: undefined, since: undefined })
  }
  history.edits = edits.filter(({ path }) => (files.get(path)?.state ?? "read") !== "read")
}

/** Folders that a build or an installation makes anew: that one was deleted says nothing of it. */
const madeAnew =
  /(?:^|\/)(?:node_modules|dist|build|out|target|coverage|\.next|\.turbo|\.cache|\.?venv|__pycache__|\.(?:pytest|mypy|ruff)_cache)\/?$/

/** Whether a deleted folder is one of those, and none that calls wrote as a file. */
const isMadeAnew = ({ files }: FileHistory, path: string, { action }: Touch): boolean =>
  action._tag === "Delete" && madeAnew.test(path) && !files.has(path)

/** Forgets that the folders of a file were deleted: it lies in them. */
const keepFolders = ({ files }: FileHistory, path: string): void => {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const folder = path.slice(0, end)
    if (files.get(folder)?.state === "deleted") files.delete(folder)
  }
}

/** Records what a call did to a file. Deleting a folder deletes the files in it. */
export const recordTouch = (history: FileHistory, done: Touch): void => {
  if (done.action._tag === "Restore") {
    const { ofNew = false, path } = done.action
    restore(history, path === history.cwd ? "." : nameOf(history, path), ofNew)
    return
  }
  const path = nameOf(history, done.action.path)
  if (!isMadeAnew(history, path, done)) record(history, path, done)
  if (done.action._tag !== "Delete") keepFolders(history, path)
  if (done.action._tag === "Write" || done.action._tag === "Edit") {
    for (const [before, text] of replacementsIn(done.call.functionCall?.args)) {
      // What an earlier edit wrote stands as this one leaves it.
      history.edits = history.edits
        .slice(-maxEdits)
        .map((edit) =>
          edit.path === path && before !== ""
            ? { ...edit, text: edit.text.replace(before, () => text).slice(0, maxEditChars) }
            : edit
        )
      if (text.trim() === "") continue
      history.edits.push({
        path,
        entry: done.entry,
        text: text.slice(0, maxEditChars),
        ...(done.action._tag === "Write" ? { isWhole: true } : {})
      })
    }
    history.edits.splice(0, history.edits.length - maxEdits)
  }
  if (done.action._tag !== "Delete") return
  for (const inside of Array.from(history.files.keys())) {
    if (liesIn(inside, path)) record(history, inside, done)
  }
}
