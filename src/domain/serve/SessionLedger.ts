/** The ledger of a session: the tokens of each message, the cost, and the compressions. */

import { Schema, Struct } from "effect"
import { payload, plainText } from "../content/Content.ts"
import { Handle } from "../content/Handle.ts"
import { allEntries } from "../conversation/Branches.ts"
import {
  type Conversation,
  entries,
  type Entry,
  EntryId,
  entryTokens,
  itemTokens,
  sequenceOf,
  sourceOf,
  view,
  viewTokens
} from "../conversation/Conversation.ts"
import { viewSizes } from "../evaluation/Compactions.ts"
import { answersIn, recordedCost, summaryRequests, usageOf } from "../evaluation/RecordedUse.ts"
import { tokenLimit } from "../model/ModelLimits.ts"
import { isEnvironmentChange } from "../prompt/EnvironmentChange.ts"
import type { Session, SessionEvent } from "../session/Session.ts"
import { firstUnits } from "../text/Bytes.ts"
import { Cost, type ModelPrice, pricesWith } from "../tokens/Prices.ts"
import { Usage } from "../tokens/Tokens.ts"

/** What every answer of the server says of a message. */
const messageFields = {
  id: EntryId,
  role: Schema.Literals(["user", "model"]),
  author: Schema.NullOr(Schema.String),
  at: Schema.NullOr(Schema.Finite)
}

const messageOf = ({ at, author, content: { role }, id }: Entry) => ({
  id,
  role,
  author: author ?? null,
  at: at ?? null
})

/** The tokens of one message. */
export const LedgerEntry = Schema.Struct({
  ...messageFields,
  /**
   * Tokens of the message as it was written, and as the model sees it now. The latter is 0 when the message left the
   * window.
   */
  tokens: Schema.Natural,
  shown: Schema.Natural,
  /** The handle of each part, for `recall`. */
  handles: Schema.Array(Handle)
})
export type LedgerEntry = typeof LedgerEntry.Type

/** A compression. All compressions are listed in order, including those that were undone. */
export const LedgerCompression = Schema.Struct({
  at: Schema.Finite,
  status: Schema.String,
  strategy: Schema.String,
  trigger: Schema.Literals(["manual", "auto"]),
  before: Schema.Finite,
  after: Schema.Finite,
  /** The handle of everything that was dropped. */
  dropped: Schema.NullOr(Handle)
})

/** The totals of a session. */
export const LedgerTotals = Schema.Struct({
  messages: Schema.Natural,
  /** Tokens of all messages, of the messages that the model sees, and of the model's window. */
  tokens: Schema.Natural,
  shown: Schema.Natural,
  window: Schema.Natural,
  compressions: Schema.Natural,
  /** The provider's counts. Null when the provider reported none. */
  usage: Schema.NullOr(Usage),
  cost: Cost
})
export type LedgerTotals = typeof LedgerTotals.Type

/** The ledger. */
export const SessionLedger = Schema.Struct({
  totals: LedgerTotals,
  entries: Schema.Array(LedgerEntry),
  compressions: Schema.Array(LedgerCompression)
})
export type SessionLedger = typeof SessionLedger.Type

const ceil = (tokens: number): number => Math.max(0, Math.ceil(tokens))

/** The user's own windows and prices. */
export interface LedgerSettings {
  /** The window of every model that `models` does not name, in tokens. */
  readonly window?: number | undefined
  readonly models?:
    | Readonly<Record<string, { readonly window?: number | undefined; readonly price?: ModelPrice | undefined }>>
    | undefined
}

/** Returns the totals of a session from its events and the resulting state. */
export const ledgerTotals = (
  session: Session,
  events: ReadonlyArray<SessionEvent>,
  { models = {}, window }: LedgerSettings = {}
): LedgerTotals => {
  const { conversation, model } = session
  const log = entries(conversation)
  const answers = answersIn(log, viewSizes(conversation))
  const usage = usageOf(answers)
  return {
    messages: log.length,
    tokens: ceil(log.reduce((sum, entry) => sum + entryTokens(entry), 0)),
    shown: ceil(viewTokens(conversation)),
    window:
      (Object.hasOwn(models, model ?? "") ? models[model ?? ""]?.window : undefined) ??
      window ??
      tokenLimit(model ?? "unknown"),
    compressions: events.filter(({ _tag }) => _tag === "Compressed").length,
    usage: usage?.recorded ?? null,
    cost: recordedCost(answers, usage === null, summaryRequests(events), { model, prices: pricesWith(models) })
  }
}

/** The ledger of a session. */
export const ledgerOf = (
  session: Session,
  events: ReadonlyArray<SessionEvent>,
  settings?: LedgerSettings
): SessionLedger => {
  const shown = new Map(view(session.conversation).map((item) => [item.entry.id, itemTokens(item)]))
  return {
    totals: ledgerTotals(session, events, settings),
    entries: inOrder(session.conversation).map((entry) => ({
      ...messageOf(entry),
      tokens: ceil(entryTokens(entry)),
      shown: ceil(shown.get(entry.id) ?? 0),
      handles: entry.handles
    })),
    compressions: events.flatMap((event) =>
      event._tag === "Compressed"
        ? [
            {
              ...Struct.pick(event, ["at", "status", "strategy", "trigger", "before", "after"]),
              dropped: event.dropped ?? null
            }
          ]
        : []
    )
  }
}

const inOrder = (conversation: Conversation): ReadonlyArray<Entry> =>
  allEntries(conversation).toSorted((one, other) => sequenceOf(one.id) - sequenceOf(other.id))

/** A part of a message as a client shows it. */
export const ShownPart = Schema.Struct({
  kind: Schema.Literals(["text", "thought", "call", "output", "media", "other"]),
  /** The tool that a call or a result belongs to. */
  tool: Schema.NullOr(Schema.String),
  /** The text, or its beginning. */
  text: Schema.String,
  isWhole: Schema.Boolean,
  tokens: Schema.Natural,
  /** The handle that recalls the whole part. */
  handle: Schema.NullOr(Handle)
})
type ShownPart = typeof ShownPart.Type

/** A message as a client shows it. */
export const ShownMessage = Schema.Struct({
  ...messageFields,
  messageId: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  tokens: Schema.Natural,
  /** Whether the model sees it, whole or shortened. */
  isShown: Schema.Boolean,
  parts: Schema.Array(ShownPart)
})
export type ShownMessage = typeof ShownMessage.Type

const kindOf = (part: Entry["content"]["parts"][number]): ShownPart["kind"] => {
  if (part.functionCall !== undefined) return "call"
  if (part.functionResponse !== undefined) return "output"
  if (part.inlineData !== undefined || part.fileData !== undefined) return "media"
  if (part.thought === true) return "thought"
  return part.text === undefined ? "other" : "text"
}

/** Whether a message tells the model of its environment, with folders of this machine. */
const isEnvironment = ({ author, content }: Entry): boolean =>
  author === "environment" || (author === "program" && isEnvironmentChange(plainText(content)))

/** The last messages of a session, at most `maxMessages`, each part cut to `chars` characters. What tells of the environment is left out. */
export const shownMessages = (
  { conversation }: Session,
  maxMessages: number,
  chars: number
): ReadonlyArray<ShownMessage> => {
  const visible = new Set(view(conversation).map(({ entry }) => entry.id))
  const all = inOrder(conversation).filter((entry) => !isEnvironment(entry))
  return all.slice(Math.max(0, all.length - maxMessages)).map((entry) => ({
    ...messageOf(entry),
    messageId: entry.messageId ?? null,
    model: entry.model ?? null,
    tokens: ceil(entryTokens(entry)),
    isShown: visible.has(entry.id),
    parts: entry.content.parts.map((part, index): ShownPart => {
      const kind = kindOf(part)
      const text =
        kind === "media" ? "" : kind === "text" ? (part.text ?? "") : payload(part, sourceOf(entry, index)).text
      return {
        kind,
        tool: part.functionCall?.name ?? part.functionResponse?.name ?? null,
        text: firstUnits(text, chars),
        isWhole: kind !== "media" && text.length <= chars,
        tokens: ceil(entry.tokens[index] ?? 0),
        handle: entry.handles[index] ?? null
      }
    })
  }))
}

/** Returns the session's answer to the message with this id. Undefined when there is none. */
export const answerTo = (
  { conversation }: Session,
  messageId: string
):
  | {
      readonly message: Entry
      readonly text: string
      /** The texts of the answers of the model, in order: an agent has one for each round of tool calls. */
      readonly texts: ReadonlyArray<string>
      readonly isComplete: boolean
    }
  | undefined => {
  const log = entries(conversation)
  const start = log.findIndex((entry) => entry.messageId === messageId)
  const message = log[start]
  if (message === undefined) return undefined
  const next = log.findIndex(
    (entry, index) =>
      index > start &&
      entry.content.role === "user" &&
      entry.author === undefined &&
      entry.content.parts.every(({ functionResponse }) => functionResponse === undefined)
  )
  const turn = log.slice(start + 1, next < 0 ? undefined : next)
  const last = turn.at(-1)
  const isComplete =
    next >= 0 ||
    (last?.content.role === "model" && last.content.parts.every(({ functionCall }) => functionCall === undefined))
  const texts = turn.flatMap(({ author, content }) =>
    content.role === "model" && author === undefined ? [plainText(content)] : []
  )
  return { message, text: texts.join("\n"), texts, isComplete }
}

/** Whether a stored message has these words. Hooks may have added lines and parts to it. */
export const hasWords = ({ content }: Entry, words: string): boolean =>
  content.parts.some(({ text }) => text === words || text?.startsWith(`${words}\n`) === true)
