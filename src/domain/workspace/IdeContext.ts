/** What the user has open in their editor, and how the model is informed of it. */

import { Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import { escapeOpeners } from "../text/UntrustedText.ts"
import { jsonEscapes } from "../text/WorkspacePath.ts"

/** The cursor position; both count from 1. */
const Cursor = Schema.Struct({ line: Schema.Finite, character: Schema.Finite })
type Cursor = typeof Cursor.Type

/** An open file. Cursor and selection belong to the active file. */
export const OpenFile = Schema.Struct({
  /** Absolute, as the editor reports it. */
  path: Schema.String,
  /** When the file was last active, in milliseconds. */
  timestamp: Schema.Finite,
  isActive: Schema.optionalKey(Schema.Boolean),
  cursor: Schema.optionalKey(Cursor),
  selectedText: Schema.optionalKey(Schema.String)
})
export type OpenFile = typeof OpenFile.Type

/** The editor's state. */
export const IdeState = Schema.Struct({
  openFiles: Schema.Array(OpenFile),
  /** Whether the user trusts the folder, by the editor's own question. */
  isTrusted: Schema.optionalKey(Schema.Boolean)
})
export type IdeState = typeof IdeState.Type

/** The file an editor writes, in Gemini CLI's format. Unknown keys are ignored. */
export const IdeFile = Schema.Struct({
  workspaceState: Schema.optionalKey(
    Schema.Struct({
      openFiles: Schema.optionalKey(Schema.Array(OpenFile)),
      isTrusted: Schema.optionalKey(Schema.Boolean)
    })
  )
})

/** Limits on what the model is shown. */
export interface IdeLimits {
  readonly openFiles: number
  /** Characters of the selection. */
  readonly selection: number
}

/** Gemini CLI's limits. */
export const defaultIdeLimits: IdeLimits = { openFiles: 10, selection: 16_384 }

/** Longest path in characters (PATH_MAX on Linux). */
const maxPathChars = 4_096

const cut = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${firstUnits(text, maxChars)}… [cut here: ${maxChars} of ${text.length} characters]` : text

const without = ({ path, timestamp }: OpenFile): OpenFile => ({ path, timestamp })

/**
 * Normalizes the state: the most recent file comes first, and only that file may be active with a cursor and a
 * selection, which is cut to its limit. Files without a usable path are dropped.
 */
export const normalise = ({ openFiles, ...rest }: IdeState, limits: IdeLimits = defaultIdeLimits): IdeState => {
  const files = openFiles
    .filter(({ path }) => path.trim() !== "" && path.length <= maxPathChars)
    .toSorted((one, other) => other.timestamp - one.timestamp)
  const normalized = files.map((file, index): OpenFile => {
    if (index > 0 || file.isActive !== true) return without(file)
    const { cursor, selectedText = "" } = file
    return {
      ...without(file),
      isActive: true,
      ...(cursor === undefined ? {} : { cursor: { line: cursor.line, character: cursor.character } }),
      ...(selectedText === "" ? {} : { selectedText: cut(selectedText, limits.selection) })
    }
  })
  return { ...rest, openFiles: normalized.slice(0, Math.max(0, limits.openFiles)) }
}

/** Invisible characters and characters that change text direction. Line breaks of the JSON itself are kept. */
const hidden = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** JSON with invisible characters escaped. It parses to the same texts. */
const fenced = (value: unknown): string =>
  `\`\`\`json\n${escapeOpeners(JSON.stringify(value, null, 2).replace(hidden, jsonEscapes), jsonEscapes)}\n\`\`\``

const activeOf = ({ openFiles }: IdeState): OpenFile | undefined => openFiles.find(({ isActive }) => isActive === true)

const detailsOf = ({ cursor, path, selectedText }: OpenFile) => ({
  path,
  ...(cursor === undefined ? {} : { cursor }),
  ...(selectedText === undefined ? {} : { selectedText })
})

/** Describes a whole state; undefined when no file is open. */
export const full = (state: IdeState): string | undefined => {
  if (state.openFiles.length === 0) return undefined
  const active = activeOf(state)
  const others = state.openFiles.filter((file) => file !== active).map(({ path }) => path)
  return `Open in the user's editor, as the editor reports it:\n${fenced({
    ...(active === undefined ? {} : { activeFile: detailsOf(active) }),
    ...(others.length === 0 ? {} : { otherOpenFiles: others })
  })}`
}

const isAt = (one: Cursor | undefined, other: Cursor | undefined): boolean =>
  one?.line === other?.line && one?.character === other?.character

/**
 * Describes the change from one normalized state to the next; undefined when nothing changed. The first state is
 * described whole.
 */
export const delta = (before: IdeState | undefined, after: IdeState | undefined): string | undefined => {
  if (before === undefined) return after === undefined ? undefined : full(after)
  const now: IdeState = after ?? { openFiles: [] }
  const pathsOf = ({ openFiles }: IdeState) => new Set(openFiles.map(({ path }) => path))
  const was = pathsOf(before)
  const is = pathsOf(now)
  const opened = [...is].filter((path) => !was.has(path))
  const closed = [...was].filter((path) => !is.has(path))
  const active = activeOf(now)
  const last = activeOf(before)
  const isSame = active?.path === last?.path
  const changes = {
    ...(opened.length === 0 ? {} : { filesOpened: opened }),
    ...(closed.length === 0 ? {} : { filesClosed: closed }),
    ...(isSame
      ? {}
      : { activeFileChanged: active === undefined ? { path: null, previousPath: last?.path } : detailsOf(active) }),
    ...(isSame && active !== undefined && !isAt(active.cursor, last?.cursor)
      ? { cursorMoved: { path: active.path, cursor: active.cursor ?? null } }
      : {}),
    ...(isSame && active !== undefined && active.selectedText !== last?.selectedText
      ? { selectionChanged: { path: active.path, selectedText: active.selectedText ?? "" } }
      : {})
  }
  return Object.keys(changes).length === 0
    ? undefined
    : `Changes in the user's editor since then, as the editor reports them:\n${fenced({ changes })}`
}
