/** What lists and accounts need of a session, gathered record by record. */

import type { Part } from "../../content/Content.ts"
import { blockMedia } from "../../content/MediaBlocks.ts"
import { titleOf } from "../../session/SessionHead.ts"
import { isJson } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { textAt } from "../JsonRecord.ts"
import { isBareCommand, snapshotTitle, typedTitle } from "../PromptTitle.ts"
import { isClosed, markedAuthor, type Marks, splitAuthorNote } from "../RecordMarks.ts"
import { isPrompt } from "../voice/Voice.ts"

/** Something that happened between two requests and can change what a prompt cache knows. */
export type CacheChange =
  | "compaction"
  | "rewind"
  | "folder"
  | "version"
  | "tools"
  | "thinking"
  | "instructions"
  | "settings"
  | "restart"

/** One request to a model, as the agent recorded it. */
export interface RecordedRequest {
  /** The provider's or the agent's name of the answer. Files that repeat an answer repeat this. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly at: number
  readonly model: string
  readonly usage: Usage
  /** The conversation within the file: absent for the main one. */
  readonly thread?: string
  /** Whether the file repeats it of the session that it comes from, where it was paid. */
  readonly isCopied?: true
  /** What happened since the request before it in the same conversation. */
  readonly changes?: ReadonlyArray<CacheChange>
}

/** What a list says about a session. */
export interface SessionFacts {
  readonly session?: string | undefined
  /** The session whose agent started this one. */
  readonly parent?: string | undefined
  readonly folder?: string | undefined
  readonly title?: string | undefined
  readonly model?: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt?: number | undefined
  readonly updatedAt?: number | undefined
  /** Prompts of the user, those that were taken back included. */
  readonly prompts: number
}

/** The state of a scan. It is plain data, so that a scan can continue when the file has grown. */
export interface ScanState {
  readonly facts: { -readonly [Key in keyof SessionFacts]: SessionFacts[Key] }
  readonly requests: Array<{ -readonly [Key in keyof RecordedRequest]: RecordedRequest[Key] }>
  /** Changes since the last request of each conversation. */
  readonly changes: Record<string, Array<CacheChange>>
  /** Whatever one agent's records need. */
  readonly last: Record<string, string>
}

/** The state before the first record. */
export const newScan = (): ScanState => ({ facts: { prompts: 0 }, requests: [], changes: {}, last: {} })

/** Returns the texts and media of a content that is a text, a part or a list of parts. */
export const partsOf = (content: unknown): ReadonlyArray<Part> => {
  if (typeof content === "string") return [{ text: content }]
  if (!Array.isArray(content)) return isJson(content) ? partsOf(content.parts ?? [content]) : []
  return content.flatMap((part: unknown): Part | ReadonlyArray<Part> => {
    if (typeof part === "string") return [{ text: part }]
    const text = isJson(part) ? textAt(part, "text") : undefined
    return text === undefined ? (blockMedia(part) ?? []) : [{ text }]
  })
}

/** The usage of a request whose counts are invalid. */
const noUsage: Usage = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }

/** What a record says of its session, whose id it names. */
type Described = Pick<SessionFacts, "folder" | "parent" | "title"> & { readonly id?: string | undefined }

/** Notes what a record says of its session: the first id and folder count, the last title, and any parent. */
export const describe = ({ facts }: ScanState, { folder, id, parent, title = "" }: Described): void => {
  facts.session ??= id
  facts.folder ??= folder
  facts.parent = parent ?? facts.parent
  facts.title = titleOf(title) || facts.title
}

/** Notes that something happened at a time. */
export const noteTime = ({ facts }: ScanState, at: number | undefined): void => {
  if (at === undefined) return
  facts.startedAt = Math.min(facts.startedAt ?? at, at)
  facts.updatedAt = Math.max(facts.updatedAt ?? at, at)
}

/** Notes the title that texts of a message give, unless the session has one that says as much. */
const noteTitle = ({ facts }: ScanState, parts: ReadonlyArray<Part>, titleIn: (text: string) => string): void => {
  const title = parts.map(({ text = "" }) => titleIn(text)).find((one) => one !== "")
  if (title !== undefined && (facts.title === undefined || isBareCommand(facts.title))) facts.title = title
}

/** Notes a message that a program wrote: a snapshot has the words with which the user began. */
export const addProgramText = (state: ScanState, content: unknown): void =>
  noteTitle(state, partsOf(content), snapshotTitle)

/** Notes a message in the user's role, by the marks of its record. Returns whether it is a prompt. */
export const addPrompt = (state: ScanState, content: unknown, marks: Marks = {}): boolean => {
  // It was counted where it stood first.
  if (isClosed(marks)) return false
  const parts = partsOf(content)
  // A message that this program wrote can name another author in a note before it.
  const split = splitAuthorNote(parts.map((part) => ({ part, source: undefined })))
  const author = markedAuthor(marks, split.author)
  if (!isPrompt({ content: { role: "user", parts }, ...(author === undefined ? {} : { author }) })) {
    addProgramText(state, content)
    return false
  }
  state.facts.prompts += 1
  noteTitle(state, parts, typedTitle)
  return true
}

const mainThread = ""

/** Notes a change since the last request of a conversation. */
export const addChange = (state: ScanState, change: CacheChange, thread = mainThread): void => {
  const changes = (state.changes[thread] ??= [])
  if (!changes.includes(change)) changes.push(change)
}

/** Notes a value that the prompt depends on; a different one than before is a change. */
export const noteValue = (state: ScanState, key: string, value: unknown, change: CacheChange): void => {
  const text = typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)
  const before = state.last[key]
  if (text === "" || text === before) return
  if (before !== undefined) addChange(state, change)
  state.last[key] = text
}

/** Returns the tokens of an answer, thoughts included. */
export const tokensAnswered = ({ answer, thoughts }: Usage): number => answer + thoughts

/** A request as a record has it. */
type ReadRequest = { readonly [Key in Exclude<keyof RecordedRequest, "changes">]?: RecordedRequest[Key] | undefined }

/** Adds a request, or completes the one with the same id: an agent can record an answer in several records. */
export const addRequest = (
  state: ScanState,
  { at, id = "", model = "unknown", thread, usage = noUsage }: ReadRequest
): void => {
  if (usage.prompt + tokensAnswered(usage) === 0 && (usage.cost ?? 0) === 0) return
  state.facts.model = thread === undefined ? model : (state.facts.model ?? model)
  const request: RecordedRequest = {
    id,
    at: at ?? state.facts.updatedAt ?? 0,
    model,
    usage,
    ...(thread === undefined ? {} : { thread })
  }
  for (let place = state.requests.length - 1; place >= 0 && place > state.requests.length - 200; place -= 1) {
    const known = state.requests[place]
    if (known?.id !== id) continue
    // The first record of an answer is written while it streams.
    if (tokensAnswered(known.usage) <= tokensAnswered(usage)) known.usage = usage
    return
  }
  const changes = state.changes[thread ?? mainThread]
  state.requests.push(changes === undefined || changes.length === 0 ? request : { ...request, changes })
  delete state.changes[thread ?? mainThread]
}
