/**
 * Writes Gemini CLI sessions in Gemini CLI's own form. Each record is read back at once; when that does not give the same
 * parts, the exact parts are stored besides.
 *
 * One file: the ids, records and checkpoints of one format and direction.
 */

import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  isThought,
  type Part
} from "../../content/Content.ts"
import { type Author, type Draft, placeKey } from "../../conversation/Conversation.ts"
import { foreignNote, missingResponse } from "../../conversation/Projection.ts"
import type { Json } from "../../text/JsonObject.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { owedCalls } from "../CompactionLayout.ts"
import { draftOf, type Piece, piecesOf } from "../ExactParts.ts"
import { isProblem } from "../Problem.ts"
import { recordLine, type Marks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { VisibleMessages, visibleAtEnd, type Transcript, type Writer, draftsOf } from "../Transcript.ts"
import { geminiEnvironments } from "../voice/VoiceForms.ts"
import { clock, digitsOf, Ids, isoTime, uuidOf } from "../WrittenRecords.ts"
import { leadingJunkNote, readMessage } from "./GeminiMessage.ts"
import { Flow, sameMessage } from "./GeminiReader.ts"

// --- records ----------------------------------------------------------------------------------------------------------

/** A record, and the data it carries besides its own form. */
interface Attempt {
  readonly record: Json
  readonly exact: Readonly<Record<string, ReadonlyArray<Piece>>>
  readonly marks: Marks
}

/** A message that a reader has to return for a record. */
const expected = (role: Content["role"], author: Author | undefined, pieces: ReadonlyArray<Piece>): Draft =>
  draftOf(role, pieces, { at: undefined, author, line: 0, ids: [] })

const areSame = (drafts: ReadonlyArray<Draft>, others: ReadonlyArray<Draft>): boolean =>
  drafts.length === others.length &&
  drafts.every((draft, index) => {
    const other = others[index]
    return other !== undefined && sameMessage(draft, other)
  })

const partsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Part> => pieces.map(({ part }) => part)

/** Splits a thought as Gemini CLI does; it joins the pieces again as `**subject** description`. */
const thoughtOf = (text: string) => {
  const [, subject = "", description = ""] = /^\*\*([^*]+)\*\*(?: ([^]+))?$/.exec(text) ?? []
  return subject === "" ? { subject: "", description: text } : { subject, description }
}

/** What Gemini CLI's records have no place for. */
const modelMarks = ({ author, usage }: Draft): Marks => ({
  ...(author === undefined ? {} : { author }),
  ...(usage?.cacheWrite === undefined ? {} : { usage })
})

/** Content as the model gives it: a single text is written as such. */
const contentOf = (parts: ReadonlyArray<Part>): unknown => {
  const [only] = parts
  if (only === undefined) return ""
  const plain = parts.length === 1 && isText(only) && only.text !== "" && Object.keys(only).length === 1
  return plain ? only.text : parts
}

const tokensOf = (usage: Usage | undefined) =>
  usage === undefined
    ? null
    : {
        input: usage.prompt,
        output: usage.answer,
        cached: usage.cached,
        thoughts: usage.thoughts,
        tool: 0,
        total: usage.prompt + usage.answer + usage.thoughts
      }

interface Pair {
  readonly call: Part
  readonly answer: Part | undefined
  /** The response that the record holds for a call without one. A reader skips it. */
  readonly owed: Part | undefined
}

/** Pairs the calls of a message with the responses that open the next one, and counts these responses. */
const paired = (calls: ReadonlyArray<Part>, next: Draft | undefined) => {
  const answers = new Map<number, Part>()
  let count = 0
  if (next === undefined || next.content.role !== "user" || next.author !== undefined) return { answers, count }
  for (const part of next.content.parts) {
    if (!isResponse(part)) break
    const { id, name } = part.functionResponse
    const at = calls.findIndex(
      ({ functionCall: call }, index) =>
        !answers.has(index) && (id === undefined ? call?.id === undefined && call?.name === name : call?.id === id)
    )
    if (at < 0) break
    answers.set(at, part)
    count += 1
  }
  return { answers, count }
}

const toolCall = ({ answer, call, owed }: Pair, timestamp: string) => ({
  ...(call.functionCall?.id === undefined ? {} : { id: call.functionCall.id }),
  name: call.functionCall?.name,
  ...(call.functionCall?.args === undefined ? {} : { args: call.functionCall.args }),
  ...(answer === undefined ? {} : { result: [answer] }),
  ...(answer === undefined && owed !== undefined ? { result: [owed], palimpsest: { owed: true } } : {}),
  status: answer === undefined ? "cancelled" : isErrorResponse(answer) ? "error" : "success",
  timestamp
})

/** Whether the parts are thoughts, text and calls in this order, without additions such as a signature. */
const isInOrder = (parts: ReadonlyArray<Part>): boolean => {
  const ranks = parts.map((part) => (isThought(part) ? 0 : isCall(part) ? 2 : 1))
  return parts.every((part, index) => {
    const keys = Object.keys(part).length
    const plain = isThought(part) ? keys === 2 && part.text !== undefined : !isCall(part) || keys === 1
    return plain && (ranks[index] ?? 0) >= (ranks[index - 1] ?? 0)
  })
}

/** Keys by which Gemini CLI recognises a part with content. */
const knownKeys = ["text", "thought", "functionCall", "functionResponse", "inlineData", "fileData"]

/** Returns why Gemini CLI leaves out a message in the user's role when it loads the session; undefined when it does not. */
const leftOut = (parts: ReadonlyArray<Part>, author: Author | undefined): string | undefined => {
  if (author === "environment") return "environment message"
  const kind = leadingJunkNote(parts)
  if (kind !== undefined) return kind
  const first = parts[0]?.text?.trimStart() ?? ""
  if (first.startsWith("<session_context>") || first.startsWith("<hook_context>")) return "context"
  return parts.some((part) => knownKeys.some((key) => key in part)) ? undefined : "part of an unknown kind"
}

/** Wraps an environment message that does not begin like one of Gemini CLI. */
const asContext = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Part> => {
  const [first] = pieces
  const begins = geminiEnvironments.some((mark) => first?.part.text?.startsWith(mark) === true)
  return begins
    ? partsOf(pieces)
    : [{ text: `${geminiEnvironments[0]}\n` }, ...partsOf(pieces), { text: "\n</session_context>" }]
}

/** The records of a session while they are written. */
const sessionRecords = ({ cwd, model, session, steps }: Transcript) => {
  const unheld = new Skipped()
  const ids = new Ids((n) => `m${n + 1}`)
  const idOf = new Map<Draft, string>()
  /** The ids that this checkpoint uses already. */
  let live = new Set<string>()
  const seen = new Set<Draft>()
  const time = clock(steps)
  const startTime = isoTime(time.now)
  let environments: ReadonlyArray<Draft> = []
  /** The calls that a reader knows as owed at this point. */
  const owedIds = new Set<string>()
  let flow = new Flow([], owedIds)
  let opened: Array<Draft> = []
  const drafts = steps.flatMap(draftsOf)
  // The agent's own id, where no other message has it.
  for (const draft of drafts) {
    const own = draft.origin?.ids[0] ?? ""
    if (own !== "" && ids.claim(own)) idOf.set(draft, own)
  }
  // The others are not given to another message.
  for (const { origin } of drafts) for (const id of origin?.ids ?? []) ids.claim(id)

  /** Returns the id of a message, another one for a repetition within a checkpoint. */
  const idFor = (draft: Draft): string => {
    const known = idOf.get(draft)
    const id = known === undefined || live.has(known) ? ids.fresh() : known
    idOf.set(draft, id)
    live.add(id)
    return id
  }

  /** Begins a checkpoint: all messages follow again. */
  const checkpoint = (): void => {
    environments = [...environments, ...opened]
    opened = []
    flow = new Flow(environments, owedIds)
    live = new Set()
  }

  /**
   * Writes the records of consecutive messages. The first `staying` of them were there before and stay. `isEnd`: nothing
   * follows them.
   */
  function* records(drafts: ReadonlyArray<Draft>, isEnd: boolean, staying = 0): SlicedWork<Array<string>> {
    const lines: Array<string> = []
    const calls = yield* owedCalls(
      drafts.map(({ content }) => content),
      isEnd
    )
    const owed = new Set([...calls.values()].flatMap((places) => places.map(placeKey)))
    /** Number of parts of the next message that the previous record already holds. */
    let counted = 0
    for (const [index, draft] of drafts.entries()) {
      const from = counted
      counted = 0
      const { parts } = draft.content
      const stays = index < staying
      if (draft.author === "environment" && !stays) opened.push(draft)
      if (from > 0 && from === parts.length) continue
      if (draft.content.role === "user") lines.push(user(draft, from, stays))
      else {
        const next = stays ? undefined : drafts[index + 1]
        const { answers, count } = paired(parts.filter(isCall), next)
        counted = count
        const open = parts.flatMap((part, at) => (isCall(part) ? [owed.has(placeKey({ item: index, part: at }))] : []))
        lines.push(gemini(draft, next, answers, count, stays, open))
      }
      yield
    }
    return lines
  }

  const user = (draft: Draft, from: number, stays: boolean): string => {
    const pieces = piecesOf(draft).slice(from)
    const isEnvironment = draft.author === "environment"
    const note = foreignNote(draft)
    const native = isEnvironment
      ? asContext(pieces)
      : [...(note === undefined ? [] : [{ text: note }]), ...partsOf(pieces)]
    const record = { id: idFor(draft), timestamp: isoTime(time.at(draft)), type: "user", content: native }
    const messages = stays ? [] : [expected("user", draft.author, pieces)]
    const marks: Marks = stays ? { again: record.id } : {}
    const authored: Marks = { ...marks, author: draft.author ?? null }
    countUnseen(draft, leftOut(native, draft.author))
    return made(messages, [
      { record, exact: {}, marks },
      { record, exact: {}, marks: authored },
      { record, exact: { parts: pieces }, marks: authored }
    ])
  }

  const gemini = (
    draft: Draft,
    next: Draft | undefined,
    answers: ReadonlyMap<number, Part>,
    count: number,
    stays: boolean,
    open: ReadonlyArray<boolean>
  ): string => {
    const pieces = piecesOf(draft)
    const parts = partsOf(pieces)
    const calls = parts.filter(isCall)
    const timestamp = isoTime(time.at(draft))
    const answered = next === undefined || count === 0 ? [] : piecesOf(next).slice(0, count)
    const thoughts = parts.filter(isThought)
    const about = { tokens: tokensOf(draft.usage), model: draft.model ?? model }
    const later = isoTime(time.at(next, true))
    // Gemini CLI sends a call without a response unchanged, which the API refuses.
    const owed = (call: Part, index: number) =>
      open[index] === true && call.functionCall !== undefined ? missingResponse(call.functionCall) : undefined
    const called = calls.map((call, index) => ({ call, answer: answers.get(index), owed: owed(call, index) }))
    /** In the order of their responses; calls without one come last. */
    const order = [...answers.keys()].flatMap((index) => called[index] ?? [])
    const toolCalls = (pairs: ReadonlyArray<Pair>) =>
      pairs.length === 0 ? {} : { toolCalls: pairs.map((pair) => toolCall(pair, later)) }
    const opening = { id: idFor(draft), timestamp, type: "gemini" }
    const recorded = {
      ...opening,
      content: contentOf(parts.filter((part) => !isThought(part) && !isCall(part))),
      thoughts: thoughts.map((part) => ({ ...thoughtOf(part.text ?? ""), timestamp })),
      ...about,
      ...toolCalls(called)
    }
    // When that would lose the order or a signature, the content holds all parts, as Gemini CLI writes them in a checkpoint.
    const whole = {
      ...opening,
      content: parts,
      ...about,
      ...toolCalls([...order, ...called.filter(({ answer }) => answer === undefined)])
    }
    const marks: Marks = { ...(stays ? { again: opening.id } : {}), ...modelMarks(draft) }
    const messages = [
      ...(stays ? [] : [expected("model", draft.author, pieces)]),
      ...(answered.length === 0 ? [] : [expected("user", undefined, answered)])
    ]
    const inOrder = isInOrder(parts)
    const own = inOrder ? recorded : whole
    countUnseen(draft, parts.length === 0 ? "empty message" : undefined)
    if (next !== undefined && count === next.content.parts.length) seen.add(next)
    if (draft.usage?.cacheWrite !== undefined && draft.usage.cacheWrite > 0) unheld.add("tokens written to a cache")
    return made(messages, [
      ...(inOrder ? [{ record: recorded, exact: {}, marks }] : []),
      { record: whole, exact: {}, marks },
      { record: own, exact: { answers: answered }, marks },
      { record: own, exact: { parts: pieces }, marks },
      { record: own, exact: { parts: pieces, answers: answered }, marks }
    ])
  }

  /** Returns the first attempt that a reader reads as the wanted messages, else the last one. */
  const made = (messages: ReadonlyArray<Draft>, attempts: ReadonlyArray<Attempt>): string => {
    let line = ""
    for (const [index, { exact, marks, record }] of attempts.entries()) {
      line = recordLine(record, exact, marks)
      // Own JSON: the line was parsed before.
      const message = readMessage(JSON.parse(line), line, 0)
      if (isProblem(message)) continue
      const isOpen =
        message.gives._tag === "User" && (message.gives.whose === "bare" || message.gives.whose === "marked")
      // The author of a text that looks like a snapshot would depend on its neighbours, so a mark names the author.
      if ((isOpen || !areSame(flow.drafts(message), messages)) && index < attempts.length - 1) continue
      flow.take(message)
      break
    }
    return line
  }

  /** Counts, once, a message that Gemini CLI will not see. */
  const countUnseen = (draft: Draft, unseen: string | undefined): void => {
    if (!seen.has(draft) && unseen !== undefined) unheld.add(unseen)
    seen.add(draft)
  }

  /** The latest known time, as ISO text. */
  const now = (): string => isoTime(time.now)

  /** Returns the metadata besides the messages. */
  const metadata = (lines: ReadonlyArray<string>) => ({
    sessionId: session ?? uuidOf([lines.length, lines[0], lines.at(-1)].join("\n"))(0),
    // Gemini CLI has a SHA-256 of the folder here.
    projectHash: digitsOf(cwd ?? "", 64),
    startTime,
    lastUpdated: now(),
    kind: "main",
    ...(cwd === undefined ? {} : { cwd })
  })

  return { unheld, now, checkpoint, records, metadata }
}

/**
 * Writes records, one a line. A compaction becomes a checkpoint of the agent's whole view from then on. The hash of the
 * project is derived from the folder, but is not the one that Gemini CLI computes; Gemini CLI finds sessions by their own
 * folder.
 */
export const writeGemini: Writer = function* (transcript) {
  const writing = sessionRecords(transcript)
  const shown = new VisibleMessages()
  const lines: Array<string> = []
  let group: Array<Draft> = []
  for (const [index, step] of transcript.steps.entries()) {
    if (step._tag === "Message") {
      group.push(step.draft)
      shown.add(step)
      continue
    }
    for (const line of yield* writing.records(group, false)) lines.push(line)
    group = []
    const staying = shown.drafts.filter(({ author }) => author === "environment").length
    shown.add(step)
    writing.checkpoint()
    const messages = yield* writing.records(shown.drafts, index === transcript.steps.length - 1, staying)
    const marks = JSON.stringify({ trigger: step.trigger, tokensBefore: step.tokensBefore })
    const updated = JSON.stringify(writing.now())
    lines.push(`{"$set":{"messages":[${messages.join(",")}],"lastUpdated":${updated}},"palimpsest":${marks}}`)
  }
  for (const line of yield* writing.records(group, true)) lines.push(line)
  return {
    lines: [recordLine(writing.metadata(lines)), ...lines],
    unheld: writing.unheld.counts
  }
}

/** Writes one JSON document, the older form. It has no place for compactions, so it holds the agent's last view. */
export const writeGeminiDocument: Writer = function* (transcript) {
  const writing = sessionRecords(transcript)
  const shown = visibleAtEnd(transcript.steps)
  const lines = yield* writing.records(shown, true)
  writing.unheld.add("message before a compaction", transcript.steps.flatMap(draftsOf).length - shown.length)
  const { kind, ...metadata } = writing.metadata(lines)
  const head = recordLine(metadata).slice(0, -1)
  return {
    lines: [`${head},"messages":[${lines.join(",")}],"kind":${JSON.stringify(kind)}}`],
    unheld: writing.unheld.counts
  }
}
