/**
 * Reads Claude Code transcripts: a tree of records, one a line. The conversation is the chain from the last message back to
 * its root.
 *
 * One file: turns, queued messages and compactions are laid out together.
 */

import type { Draft } from "../../conversation/Conversation.ts"
import type { Json } from "../../text/JsonObject.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { draftOf, isOpenAnswer, locate, under } from "../ExactParts.ts"
import { isProblem, type Problem } from "../Problem.ts"
import { isClosed, readMarks, Steps } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { type LineReader, recordReader, type Transcript } from "../Transcript.ts"
import {
  type Line,
  type Moment,
  byTime,
  isBefore,
  firstBy,
  isAttached,
  messageOf,
  answersIn,
  callsIn,
  sameContent,
  copiesOf,
  callsOf,
  type LineMessage,
  wordsIn,
  writtenBy,
  messageIn,
  userMessage,
  piecesOf
} from "./Line.ts"
import { beforeAll, type Queued, type Delivered, holdsLine, Queue } from "./Queue.ts"
import { decodeClaude, ignoredKinds, synthetic, type CopiesState, isCopied } from "./Record.ts"
import { Tree } from "./Tree.ts"

interface Turn {
  readonly _tag: "Model" | "Answers" | "Other"
  readonly lines: Array<Line>
}
type ChainSegment =
  | Turn
  | { readonly _tag: "Queued"; readonly by: Moment; readonly lines: ReadonlyArray<Line> }
  /** Its line is that of the summary, with this message. */
  | {
      readonly _tag: "Compaction"
      readonly lines: ReadonlyArray<Line>
      readonly boundary: Line | undefined
      readonly message: LineMessage
    }

type Compaction = Extract<ChainSegment, { readonly _tag: "Compaction" }>

/** Whether a line of the agent may join this turn. */
const isOpenTurn = (turn: ChainSegment | undefined): turn is Turn => {
  const marks = turn?._tag === "Answers" ? turn.lines[0]?.message?.marks : undefined
  return marks !== undefined && !isClosed(marks)
}

/** Splits the chain into turns. Lines of one API message form one turn, and so do consecutive tool results. */
const segmentsOf = (chain: ReadonlyArray<Line>, skipped: Skipped): Array<ChainSegment> => {
  const segments: Array<ChainSegment> = []
  let open = new Map<string, Turn>()
  let boundary: Line | undefined
  /** What was shown beside the last message. Results follow their calls at once, so it stands after them. */
  let attached: Array<Line> = []
  const dropBoundary = () => {
    if (boundary !== undefined) skipped.add("system: compact_boundary")
    boundary = undefined
  }
  const attach = () => {
    if (attached.length > 0) segments.push({ _tag: "Other", lines: attached })
    attached = []
  }
  for (const line of chain) {
    if (line.boundary !== undefined) {
      dropBoundary()
      boundary = line
      continue
    }
    const message = messageOf(line)
    if (message === undefined) continue
    if (message.kind === "attachment") {
      attached.push(line)
      continue
    }
    if (message.kind === "summary") {
      attach()
      segments.push({ _tag: "Compaction", lines: [line], boundary, message })
      boundary = undefined
      open = new Map()
      continue
    }
    dropBoundary()
    const answers = message.role === "user" && message.blocks.some(isOpenAnswer)
    const last = segments.at(-1)
    const isSeparate = message.marks.message === "new"
    const same = message.role === "model" ? open.get(message.messageId) : answers && isOpenTurn(last) ? last : undefined
    if (same !== undefined && !isSeparate) {
      same.lines.push(line)
      continue
    }
    if (!answers) attach()
    const turn: Turn = { _tag: message.role === "model" ? "Model" : answers ? "Answers" : "Other", lines: [line] }
    if (message.role === "model" && !isClosed(message.marks)) open.set(message.messageId, turn)
    segments.push(turn)
  }
  dropBoundary()
  attach()
  return segments
}

/**
 * Returns the chain with the lines beside it that belong to it, each behind the line that it belongs to. Parallel calls and their
 * results hang on different lines of one message, of which only one is on the chain. The others are lines with its message id, results of
 * its calls that no line on the chain holds, and what was shown with such a result, or with one whose next result is on the chain.
 */
const withAside = (chain: ReadonlyArray<Line>, aside: ReadonlyArray<Line>): ReadonlyArray<Line> => {
  const linesAfter = new Map<Line, Array<Line>>()
  const lines = (line: Line): ReadonlyArray<Line> => [line, ...(linesAfter.get(line) ?? []).flatMap(lines)]
  const add = (line: Line, before: Line | undefined): boolean => {
    if (before === undefined) return false
    const others = linesAfter.get(before)
    if (others === undefined) linesAfter.set(before, [line])
    else others.push(line)
    return true
  }
  const byMessage = new Map<string, Line>()
  for (const line of chain) {
    const message = messageOf(line)
    if (message?.role === "model" && !byMessage.has(message.messageId)) byMessage.set(message.messageId, line)
  }
  for (const line of aside) {
    const message = messageOf(line)
    if (message?.role === "model") add(line, byMessage.get(message.messageId))
  }
  const messages = chain.flatMap(lines).filter((line) => line.message?.kind !== "summary")
  const callers = new Map(messages.flatMap((line) => callsIn(line).map((call) => [call, line] as const)))
  const answered = new Set(messages.flatMap(answersIn))
  for (const line of aside) {
    const ids = answersIn(line)
    const caller = ids.flatMap((id) => callers.get(id) ?? [])[0]
    if (!ids.some((id) => answered.has(id)) && add(line, caller)) for (const id of ids) answered.add(id)
  }
  const results = chain.flatMap(lines).filter((line) => answersIn(line).length > 0)
  const holders = new Map(results.map((line) => [line.uuid, line]))
  for (const line of aside.filter(isAttached).sort(byTime)) {
    const result = holders.get(line.parent ?? "")
    if (result !== undefined && add(line, result)) holders.set(line.uuid, result)
  }
  return chain.flatMap(lines)
}

/** Returns the text of a slash command, which has its own form. */
const commandOf = (words: string): string | undefined => {
  const [name] = words.startsWith("/") ? words.split(/\s/, 1) : []
  return name === undefined ? undefined : `<command-name>${name}</command-name>`
}

/** A message line of the user, and its text. */
interface UserLine {
  readonly line: Line
  readonly words: string
}

const userLine = (line: Line): ReadonlyArray<UserLine> => {
  const message = messageOf(line)
  if (message?.role !== "user" || message.kind === "summary" || message.kind === "attachment") return []
  const words = wordsIn(message.blocks)
  return words === "" ? [] : [{ line, words }]
}

/** Makes the line of a queued message that none in the file holds. */
const deliveredLine = ({ blocks, by, number: since }: Delivered, after: Line | undefined): Line => {
  const number = since === beforeAll.number ? by.number : since
  const uuid = `line ${number}`
  return {
    number,
    uuid,
    hasId: false,
    parent: undefined,
    logicalParent: undefined,
    sidechain: after?.sidechain ?? false,
    at: by.at,
    session: undefined,
    message: userMessage(blocks, uuid, writtenBy(blocks)),
    boundary: undefined,
    previous: after
  }
}

/** Returns the line that holds a queued message, so that it needs no place of its own. */
const lineOf = (
  { by, isTurn, words, ...queued }: Delivered,
  userLines: ReadonlyArray<UserLine>,
  segments: ReadonlyArray<ChainSegment>,
  next: number
): UserLine | undefined => {
  const since = userLines.filter(({ line }) => !isBefore(line, queued))
  // One that began the next turn is the next message with its words, or with its words among others.
  const arrival = isTurn ? since.find(({ line }) => !isBefore(line, by))?.line : undefined
  // Text that the user types after the agent's answer is a new message, even with the same words. A command stands where it
  // ran, which may be at the end of the turn.
  const answer = isTurn
    ? undefined
    : momentOf(segments.find((one) => one._tag === "Model" && !isBefore(momentOf(one), by)))
  const command = commandOf(words)
  const end = isTurn ? (arrival ?? never) : momentOf(segments[next])
  return (
    since.find(
      (one) =>
        (one.words === words && (answer === undefined || !isBefore(answer, one.line))) ||
        (command !== undefined && one.words.includes(command))
    ) ??
    since.find(
      ({ line, words: text }) => (isTurn || !isBefore(line, by)) && !isBefore(end, line) && holdsLine(text, words)
    )
  )
}

/**
 * Inserts queued messages where they were delivered: after the results sent with them, before the agent's next text.
 * Messages that are in the file a second time are left out. Returns the number of records that told of messages of the
 * conversation.
 */
function* deliver(
  segments: Array<ChainSegment>,
  queue: Queue,
  messages: ReadonlyArray<Line>,
  taken: ReadonlySet<Line>,
  copies: ReadonlyMap<Line, Line>
): SlicedWork<number> {
  const { delivered, waiting } = queue.settle(messages)
  if (delivered.length + waiting.length === 0) return 0
  const userLines = messages
    .flatMap((line) => (copies.has(line) ? [] : userLine(line)))
    .sort((one, other) => byTime(one.line, other.line))
  const used = new Set<UserLine>()
  let records = 0
  for (const one of delivered) {
    const after = one.after === undefined ? undefined : (copies.get(one.after) ?? one.after)
    if (after !== undefined && !taken.has(after)) continue
    records += one.records
    yield
    const from = segments.findIndex(({ lines }) => after !== undefined && lines.includes(after))
    const next = segments.findIndex(
      (segment, index) => index > from && segment._tag !== "Answers" && !isBefore(momentOf(segment), one.by)
    )
    const held = lineOf(
      one,
      userLines.filter((known) => !used.has(known)),
      segments,
      next
    )
    if (held !== undefined) {
      if (held.words === one.words) used.add(held)
      continue
    }
    const queued: ChainSegment = { _tag: "Queued", by: one.by, lines: [deliveredLine(one, after)] }
    segments.splice(next < 0 ? segments.length : next, 0, queued)
  }
  // Older versions wrote no second record for a message that began the next turn.
  const isInLine = (queued: Queued) =>
    queued.words !== "" &&
    userLines.some(({ line, words }) => !isBefore(line, queued) && taken.has(line) && words === queued.words)
  for (const queued of waiting) {
    yield
    if (isInLine(queued)) records += 1
  }
  return records
}

const never: Moment = { at: undefined, number: Infinity }

/** Returns when a segment began. */
const momentOf = (segment: ChainSegment | undefined): Moment => {
  if (segment === undefined) return never
  return segment._tag === "Queued" ? segment.by : (firstBy(segment.lines, byTime) ?? never)
}

const isSynthetic = (model: string | undefined): boolean => model === undefined || model === synthetic

const draft = (lines: ReadonlyArray<Line>, names: ReadonlyMap<string, string>): Draft => {
  const inOrder = [...lines].sort(byTime)
  const first = inOrder[0]
  const own = inOrder.filter(
    (line, index) =>
      line.message?.role !== "model" || !inOrder.slice(0, index).some((earlier) => sameContent(earlier, line))
  )
  const author = first?.message?.author
  return draftOf(
    first?.message?.role ?? "user",
    own.flatMap((line) => piecesOf(line.message, names)),
    {
      at: first?.at,
      author: lines.every((line) => line.message?.author === author) ? author : undefined,
      line: first?.number ?? 0,
      ids: inOrder.flatMap((line) => (line.hasId ? line.uuid : [])),
      model: inOrder.findLast((line) => !isSynthetic(line.message?.model))?.message?.model,
      usage: inOrder.findLast((line) => line.message?.usage !== undefined)?.message?.usage
    }
  )
}

/**
 * Splits a turn of the model in which the provider ran tools: their results, which stand in the model's own message, are a message
 * after their calls, and what the model says then is another one.
 */
const splitAtResults = ({ _tag, lines }: Exclude<ChainSegment, Compaction>): ReadonlyArray<ReadonlyArray<Line>> => {
  const isSplit =
    _tag === "Model" && lines.some(({ message }) => message?.exact === undefined && message?.blocks.some(isOpenAnswer))
  if (!isSplit) return [lines]
  const inOrder = [...lines].sort(byTime)
  const usage = inOrder.findLast(({ message }) => message?.usage !== undefined)?.message?.usage
  const runs: Array<Array<Line>> = []
  for (const line of inOrder) {
    const { message } = line
    for (const block of message?.blocks ?? []) {
      const role = isOpenAnswer(block) ? "user" : "model"
      if (runs.at(-1)?.[0]?.message?.role !== role) runs.push([])
      const isFirst = runs.slice(0, -1).every(([first]) => first?.message?.role === "user")
      const own = role === "user" ? { model: undefined, usage: undefined } : { usage: isFirst ? usage : undefined }
      runs.at(-1)?.push({ ...line, message: message && { ...message, role, blocks: [block], ...own } })
    }
  }
  return runs
}

const addNames = (lines: ReadonlyArray<Line>, names: Map<string, string>): void => {
  for (const { message } of lines) for (const [id, name] of callsOf(message?.blocks ?? [])) names.set(id, name)
}

/**
 * Adds a compaction. The messages that it kept stay where they are when they were the last ones, and else are inserted with the
 * summary.
 */
const compact = (
  steps: Steps,
  { boundary, lines, message }: Compaction,
  before: ReadonlyArray<ChainSegment>,
  kept: ReadonlySet<string>,
  names: ReadonlyMap<string, string>
): void => {
  const turns = before.filter(({ _tag }) => _tag !== "Compaction")
  const isKept = ({ lines }: ChainSegment) => lines.some(({ uuid }) => kept.has(uuid))
  const from = kept.size === 0 ? -1 : turns.findIndex(isKept)
  const stands = boundary?.boundary?.kept?.anchor
  const isBehind = stands !== undefined && stands === boundary?.uuid
  const stays = from >= 0 && !isBehind && turns.slice(from).every((turn) => turn._tag === "Queued" || isKept(turn))
  const again = stays ? [] : turns.filter(isKept).map(({ lines }) => draft(lines, names))
  // A summary of ours without parts only says that nothing replaced the dropped messages.
  const inserted = message.exact?.length === 0 ? [] : [draft(lines, names)]
  steps.compact(
    {
      insert: isBehind ? [...again, ...inserted] : [...inserted, ...again],
      trigger: boundary?.boundary?.trigger ?? "auto",
      tokensBefore: boundary?.boundary?.tokens
    },
    message.marks,
    stays ? turns[from]?.lines[0]?.uuid : undefined
  )
}

const nothing: ReadonlySet<string> = new Set()

/** Counts the messages outside the conversation as skipped. */
const countRest = (
  tree: Tree,
  side: boolean,
  taken: ReadonlySet<Line>,
  copies: ReadonlyMap<Line, Line>,
  skipped: Skipped
): void => {
  const sessions = new Set(Array.from(taken, ({ session }) => session))
  for (const line of tree.messages) {
    if (line.message?.kind === "api error") skipped.add("api error")
    else if (copies.has(line)) skipped.add("repeated line")
    else if (!taken.has(line)) {
      const branch = sessions.has(line.session) ? "dead branch" : "another session"
      skipped.add(line.sidechain === side ? branch : "sidechain")
    }
  }
}

function* transcript(
  tree: Tree,
  queue: Queue,
  cwd: string | undefined,
  skipped: Skipped,
  isLenient: boolean
): SlicedWork<Transcript | Problem> {
  const leaf = tree.leaf()
  const chain = tree.chain(leaf, isLenient)
  if (isProblem(chain)) return chain
  // Where the chain runs through a copy of its own beginning, what the user said or a tool answered stands once, too.
  const [ofModel, ofUser] = (["model", "user"] as const).map((role) =>
    chain.filter((line) => messageOf(line)?.role === role)
  )
  const repeated = copiesOf(copiesOf(ofModel ?? [], chain).size === 0 ? [] : (ofUser ?? []), chain)
  const onChain = new Set(chain)
  const side = leaf?.sidechain ?? false
  const aside = tree.messages.filter((line) => !onChain.has(line) && line.sidechain === side)
  const lines = withAside(
    chain.filter((line) => !repeated.has(line)),
    aside
  )
  const segments = segmentsOf(lines, skipped)
  const taken = new Set(lines)
  const left = aside.filter((line) => !taken.has(line))
  const copies = left.length === 0 ? repeated : new Map([...repeated, ...copiesOf(left, taken)])
  const delivered = yield* deliver(segments, queue, tree.messages, taken, copies)
  skipped.add("queue-operation", queue.records - delivered)
  countRest(tree, side, taken, copies, skipped)
  for (const line of tree.lines.values()) {
    if (line.boundary !== undefined && !onChain.has(line)) skipped.add("system: compact_boundary")
  }
  // A result is named after the nearest earlier call with its id, else after any other call with it.
  const names = new Map<string, string>()
  addNames(tree.messages, names)
  yield
  const steps = new Steps()
  for (const [index, segment] of segments.entries()) {
    if (segment._tag === "Compaction") {
      const kept = segment.boundary === undefined ? nothing : tree.kept(segment.boundary)
      compact(steps, segment, segments.slice(0, index), kept, names)
    } else {
      addNames(segment.lines, names)
      const uuids = segment.lines.map((line) => line.uuid)
      for (const [at, lines] of splitAtResults(segment).entries())
        steps.message(draft(lines, names), at === 0 ? uuids : [], lines[0]?.message?.marks ?? {})
    }
    yield
  }
  return {
    format: "claude",
    session: leaf?.session,
    cwd,
    model: lines.findLast((line) => !isSynthetic(line.message?.model))?.message?.model,
    steps: steps.end(),
    skipped: skipped.counts
  }
}

/**
 * Reads a Claude Code transcript. The conversation is the chain from the last message back by `parentUuid`, over a compact
 * boundary by `logicalParentUuid`; one API message is one Content, and answers to its calls follow it as one Content. `isLenient`
 * reads a chain that leads back to itself.
 */
export const claudeReader = (isLenient = false): LineReader => {
  const tree = new Tree()
  const skipped = new Skipped(ignoredKinds)
  const queue = new Queue()
  const shown = new Map<string, string>()
  const copies: CopiesState = {}
  let cwd: string | undefined
  let version: string | undefined
  const read = (record: Json, text: string, number: number): Problem | undefined => {
    const decoded = decodeClaude(record)
    const { sentAs } = decoded
    const isCopy = isCopied(copies, decoded)
    const uuid = sentAs !== undefined && !tree.lines.has(sentAs) ? sentAs : (decoded.uuid ?? `line ${number}`)
    if (tree.lines.has(uuid)) {
      skipped.add("repeated line")
      return undefined
    }
    if (decoded._tag === "Queued") {
      queue.add(decoded, under(locate(record, text), "content"), number, skipped)
      return undefined
    }
    if (decoded._tag === "Pinned") {
      if (decoded.leaf !== undefined) tree.pin(decoded.leaf, decoded.isExplicit)
      skipped.add(decoded.recordKind)
      return undefined
    }
    if (decoded._tag === "Replaced") {
      for (const [call, text] of decoded.shown) shown.set(call, text)
      skipped.add(decoded.recordKind)
      if (decoded.uuid === undefined) return undefined
    }
    const isOwed = readMarks(record).owed === true
    const whole = isOwed ? undefined : messageIn(decoded, record, text, uuid, skipped)
    if (isProblem(whole)) return whole
    // What a copy cost was paid in the session that it comes from.
    const message = isCopy && whole !== undefined ? { ...whole, usage: undefined } : whole
    const boundary = decoded._tag === "Compacted" ? decoded.boundary : undefined
    version = decoded.version ?? version
    const isRead = isOwed || message !== undefined || boundary !== undefined || decoded._tag === "Replaced"
    if (!isRead) skipped.addRecord(decoded.recordKind)
    const { at, folder, isSidechain: sidechain, logicalParent, parent, session } = decoded
    cwd ??= folder
    if (message === undefined && decoded.uuid === undefined) return undefined
    const hasId = decoded.uuid !== undefined
    const previous = tree.previous(sidechain)
    tree.add({ number, uuid, hasId, parent, logicalParent, sidechain, at, session, message, boundary, previous })
    return undefined
  }
  return recordReader("expected a record: an object with a type", read, function* () {
    const whole = yield* transcript(tree, queue, cwd, skipped, isLenient)
    if (isProblem(whole)) return whole
    return { ...whole, ...(shown.size === 0 ? {} : { shown }), unknown: skipped.unknown("Claude Code", version) }
  })
}
