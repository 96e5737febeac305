/**
 * A digest of messages for a model that summarises them: what the user and the agent said whole, each call on one line with
 * the ends of its result, failures whole. Only the head of a record stands at the margin, so that no text in it can pass for
 * another record.
 */

import { actionsOf } from "../../actions/Actions.ts"
import { answerText, printedText } from "../../actions/ToolResults.ts"
import { isCall, isText, isThought, outputText, type Part } from "../../content/Content.ts"
import type { Entry } from "../../conversation/Conversation.ts"
import { redactedEntries } from "../../conversation/RedactedEntries.ts"
import { visibleBlock, visibleLine } from "../../text/InvisibleCharacters.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { Secret } from "../../text/Redaction.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { protect } from "../../text/UntrustedText.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import { toolTexts } from "../Anchors.ts"
import { partnersIn } from "../AnsweredCalls.ts"
import { isFailure, subjectOf } from "../evidence/ToolFailures.ts"
import { requestSpans } from "../evidence/UserRequests.ts"
import { isSnapshot, parseSnapshot, renderSnapshot } from "../Snapshot.ts"
import { byEnds, endsOf, largestScale, newestFirst, shortener } from "./Budget.ts"
import { isIndex } from "./NameIndex.ts"

/** The kinds of records, the first to be left out first. */
const kinds = ["call", "program", "report", "agent", "failure", "earlier", "user"] as const
type Kind = (typeof kinds)[number]

interface DigestRecord {
  readonly kind: Kind
  /** Who and what, on one line. */
  readonly head: string
  readonly body: string
}

/** Characters of a record's body at scale 1. All grow and shrink together until the digest fits its budget. */
const charsAtScale: Readonly<Record<Kind, number>> = {
  user: 4_000,
  earlier: 4_000,
  agent: 1_000,
  failure: 1_000,
  report: 600,
  program: 160,
  call: 160
}
/** Upper limits at any scale, in characters: of a successful call, the ends of the result are enough. */
const maxChars: Readonly<Partial<Record<Kind, number>>> = { call: 240, program: 240, report: 900 }
const maxSubjectChars = 240

const scales = { least: 0.04, largest: 64 }

const limitOf = (kind: Kind, scale: number): number =>
  Math.min(maxChars[kind] ?? Number.POSITIVE_INFINITY, Math.floor(charsAtScale[kind] * scale))

/** What an earlier snapshot says besides the user's words and the index, which come from the log. */
const earlierText = (text: string): string => {
  const snapshot = parseSnapshot(text)
  if (!isSnapshot(snapshot)) return text
  return renderSnapshot({
    ...snapshot,
    overall_goal: snapshot.overall_goal.filter(({ text }) => !text.includes("<user_words")),
    active_constraints: [],
    artifact_trail: [],
    file_system_state: [],
    recent_actions: [],
    key_knowledge: snapshot.key_knowledge.filter((item) => !isIndex(item))
  })
}

/** Calls whose result is the content of a file, or says no more than that a change was made. */
const fileActions: ReadonlySet<string> = new Set(["Read", "Write", "Edit"])

/** Returns what a tool answered, without its labels and the syntax around several texts. */
const resultText = (answer: Part): string => {
  if (outputText(answer) !== undefined) return printedText(answerText(answer)).trim()
  const texts: Array<string> = []
  toolTexts(answer, (text) => texts.push(text))
  return texts.join("\n").trim()
}

const callRecord = (id: string, call: Part, answer: Part | undefined): DigestRecord => {
  const actions = actionsOf(call, answer)
  const tool = call.functionCall?.name ?? ""
  const subject = shortLine(subjectOf(call, actions), maxSubjectChars)
  const what = `${subject.startsWith(tool) ? "" : `${tool} `}${subject}`
  if (answer === undefined) return { kind: "call", head: `[${id}] call: ${what} → no result`, body: "" }
  const result = resultText(answer)
  if (isFailure(actions, answer)) return { kind: "failure", head: `[${id}] failed call: ${what}`, body: result }
  const isFileAction = actions.length > 0 && actions.every(({ _tag }) => fileActions.has(_tag))
  // A tool without a known action may be another agent, whose answer is worth reading.
  const kind = actions.every(({ _tag }) => _tag === "Other") ? "report" : "call"
  return { kind, head: `[${id}] call: ${what}`, body: isFileAction ? "" : result }
}

/** Returns the records of the entries, oldest first. */
function* recordsOf(entries: ReadonlyArray<Entry>, short: (text: string) => string): SlicedWork<Array<DigestRecord>> {
  const partnerOf = partnersIn(entries)
  const records: Array<DigestRecord> = []
  for (const [item, entry] of entries.entries()) {
    const { author, content, id } = entry
    for (const { text } of requestSpans(entry)) records.push({ kind: "user", head: `[${id}] user:`, body: text })
    for (const [at, part] of content.parts.entries()) {
      yield
      if (isCall(part)) {
        const record = callRecord(id, part, partnerOf(item, at)?.part)
        records.push({ ...record, head: short(record.head), body: short(record.body) })
      } else if (!isText(part) || isThought(part) || part.text.trim() === "") continue
      else if (author === "summary") {
        if (content.role === "user")
          records.push({ kind: "earlier", head: `[${id}] earlier handover:`, body: earlierText(part.text) })
      } else if (content.role === "model") records.push({ kind: "agent", head: `[${id}] agent:`, body: part.text })
      else if (author === "program") records.push({ kind: "program", head: `[${id}] program:`, body: part.text })
    }
  }
  return records
}

const rendered = ({ body, head, kind }: DigestRecord, scale: number): string => {
  const limit = limitOf(kind, scale)
  const title = visibleLine(head)
  if (body === "" || limit < 8) return title
  if (maxChars[kind] !== undefined)
    return `${title}${kind === "program" ? " " : " → "}${visibleLine(byEnds(body, limit))}`
  const lines = visibleBlock(endsOf(body.trim(), limit)).split(/[\n\r\u2028\u2029]/)
  return lines.length === 1 ? `${title} ${lines[0]}` : [title, ...lines.map((line) => `  ${line}`)].join("\n")
}

/** Leaves out records until the rest fits so many characters: the calls go first, the user's messages last, of each kind the oldest. */
const withoutOldest = (records: ReadonlyArray<DigestRecord>, chars: number): ReadonlyArray<DigestRecord> => {
  const newest = newestFirst(records)
  const byWorth = newestFirst(kinds).flatMap((kind) => newest.filter((record) => record.kind === kind))
  let left = chars
  const kept = new Set(byWorth.filter((record) => (left -= rendered(record, scales.least).length + 1) >= 0))
  return records.filter((record) => kept.has(record))
}

/** A token has at least about this many characters in what agents write. */
const charsPerToken = 3

/** Options of a digest. */
export interface DigestOptions {
  /** Upper bound in estimated tokens. */
  readonly budget: number
  /** Paths below it are shown relative to it in calls. */
  readonly cwd?: string | undefined
  /** Secrets of the whole conversation. */
  readonly secrets?: ReadonlyArray<Secret> | undefined
}

/**
 * Writes the digest of some entries within a budget, always without secrets: no snapshot may show them, and the half of one
 * that a clipped text leaves could not be found in the model's answer.
 */
export function* digestOf(
  whole: ReadonlyArray<Entry>,
  { budget, cwd, secrets = [] }: DigestOptions
): SlicedWork<string> {
  const { entries } = yield* redactedEntries(whole, secrets)
  const all = yield* recordsOf(entries, shortener(cwd))
  // Heads are never shortened; the bodies share the remaining characters.
  const sizeAt = (records: ReadonlyArray<DigestRecord>, scale: number): number =>
    records.reduce(
      (sum, { body, head, kind }) => sum + head.length + 2 + Math.min(body.length * 1.03, limitOf(kind, scale)),
      0
    )
  let room = budget * charsPerToken * 1.2
  for (;;) {
    const records = withoutOldest(all, room)
    const scale = yield* largestScale(scales, (one) => sizeAt(records, one) <= room)
    const left = all.length - records.length
    const lines = records.map((record) => rendered(record, scale))
    const text = protect([...(left === 0 ? [] : [`… ${left} older records …`]), ...lines].join("\n"))
    yield
    if (estimateText(text) <= budget || records.length === 0) return text
    room *= 0.85
  }
}
