import { Schema } from "effect"
import { firstUnits } from "./Bytes.ts"
import { escapedBy } from "./Protected.ts"
import { jsonEscaped } from "./WorkspacePath.ts"

/** What a person has open in their editor, and how a model is told of it (spec 6, IDE context). */

/** Where the cursor is; both count from 1. */
export const Cursor = Schema.Struct({ line: Schema.Finite, character: Schema.Finite })
export type Cursor = typeof Cursor.Type

/** An open file. Cursor and selection are those of the active one. */
export const OpenFile = Schema.Struct({
  /** Absolute, as the editor knows it. */
  path: Schema.String,
  /** When it was looked at last, in milliseconds. */
  timestamp: Schema.Finite,
  isActive: Schema.optionalKey(Schema.Boolean),
  cursor: Schema.optionalKey(Cursor),
  selectedText: Schema.optionalKey(Schema.String)
})
export type OpenFile = typeof OpenFile.Type

/** What the editor says. */
export const IdeState = Schema.Struct({
  openFiles: Schema.Array(OpenFile),
  /** Whether the person trusts the folder, by the editor's own question. */
  isTrusted: Schema.optionalKey(Schema.Boolean)
})
export type IdeState = typeof IdeState.Type

/** What an editor writes: Gemini CLI's shape. Keys that mean nothing here are left alone. */
export const IdeFile = Schema.Struct({
  workspaceState: Schema.optionalKey(
    Schema.Struct({
      openFiles: Schema.optionalKey(Schema.Array(OpenFile)),
      isTrusted: Schema.optionalKey(Schema.Boolean)
    })
  )
})

/** How much of it is told. */
export interface IdeLimits {
  readonly openFiles: number
  /** Characters of the selection. */
  readonly selection: number
}

/** Spec 6. */
export const defaultIdeLimits: IdeLimits = { openFiles: 10, selection: 16_384 }

/** Longer ones no system takes (PATH_MAX of Linux). */
const longestPath = 4_096

const cut = (text: string, most: number): string =>
  text.length > most ? `${firstUnits(text, most)}… [cut here: ${most} of ${text.length} characters]` : text

const without = ({ path, timestamp }: OpenFile): OpenFile => ({ path, timestamp })

/**
 * The state as it is told: what was looked at last comes first, and only that may be active, with its cursor and its selection,
 * which is cut before the list is (spec 6). Files without a path that can be one are left out.
 */
export const normalise = ({ openFiles, ...rest }: IdeState, limits: IdeLimits = defaultIdeLimits): IdeState => {
  const files = openFiles
    .filter(({ path }) => path.trim() !== "" && path.length <= longestPath)
    .toSorted((one, other) => other.timestamp - one.timestamp)
  const told = files.map((file, index): OpenFile => {
    if (index > 0 || file.isActive !== true) return without(file)
    const { cursor, selectedText = "" } = file
    return {
      ...without(file),
      isActive: true,
      ...(cursor === undefined ? {} : { cursor: { line: cursor.line, character: cursor.character } }),
      ...(selectedText === "" ? {} : { selectedText: cut(selectedText, limits.selection) })
    }
  })
  return { ...rest, openFiles: told.slice(0, Math.max(0, limits.openFiles)) }
}

/** What nobody sees or what turns a line round; the breaks of the written JSON are no part of a text in it. */
const hidden = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** JSON in which nothing passes for what it is not. What reads JSON reads the same texts as before. */
const fenced = (value: unknown): string =>
  `\`\`\`json\n${escapedBy(JSON.stringify(value, null, 2).replace(hidden, jsonEscaped), jsonEscaped)}\n\`\`\``

const activeOf = ({ openFiles }: IdeState): OpenFile | undefined => openFiles.find(({ isActive }) => isActive === true)

const detailsOf = ({ cursor, path, selectedText }: OpenFile) => ({
  path,
  ...(cursor === undefined ? {} : { cursor }),
  ...(selectedText === undefined ? {} : { selectedText })
})

/** All of a state in words; undefined where nothing is open. */
export const full = (state: IdeState): string | undefined => {
  if (state.openFiles.length === 0) return undefined
  const active = activeOf(state)
  const others = state.openFiles.filter((file) => file !== active).map(({ path }) => path)
  return `Open in the person's editor, as the editor reports it:\n${fenced({
    ...(active === undefined ? {} : { activeFile: detailsOf(active) }),
    ...(others.length === 0 ? {} : { otherOpenFiles: others })
  })}`
}

const isAt = (one: Cursor | undefined, other: Cursor | undefined): boolean =>
  one?.line === other?.line && one?.character === other?.character

/**
 * What changed from one state to the next, both normalised, in words; undefined where nothing did. The first state is told
 * whole.
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
    : `What changed in the person's editor since, as the editor reports it:\n${fenced({ changes })}`
}
