/** The events of a session, and the fold that makes a session of them. */

import { Schema } from "effect"
import { waitsForGrowth } from "../compression/strategies/Strategies.ts"
import { Handle, Hash } from "../content/Handle.ts"
import { branched } from "../conversation/Branches.ts"
import { Entry, EntryId, Patch, Pin } from "../conversation/Conversation.ts"
import * as Conversation from "../conversation/Conversation.ts"
import {
  afterBranch,
  afterModelSwitch,
  afterUndo,
  defaultModelName,
  type FailureMemory,
  freshMemory,
  remember,
  withUnusable
} from "../conversation/FailureMemory.ts"
import { droppedEntries, type DroppedRange, recallable, type Recallable } from "../conversation/Recall.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { estimatorVersion, TokenCount, Usage } from "../tokens/Tokens.ts"
import { CallBegan, CallEnded, QuestionAnswered, QuestionAsked, type QuestionEvent } from "./CallQuestions.ts"
import { FileChanged, type RecordedChange } from "./ChangedFiles.ts"

/** The version of the log format that this program writes. Older versions are converted while they are read. */
export const logVersion = 1

/** Milliseconds since 1970. */
const at = Schema.Finite

/** The first line of a log. */
export const Started = Schema.TaggedStruct("Started", {
  version: Schema.Natural,
  /** A UUIDv7. */
  session: Schema.String,
  at,
  /** The estimator that counted the tokens of each entry. */
  estimator: Schema.String,
  /** The model and the working folder at the start. */
  model: Schema.optionalKey(Schema.String),
  cwd: Schema.optionalKey(Schema.String),
  /** The session whose agent started this one. */
  parent: Schema.optionalKey(Schema.String),
  /** The format and session that it was imported from. */
  importedFrom: Schema.optionalKey(Schema.Struct({ format: Schema.String, session: Schema.optionalKey(Schema.String) }))
})
export type Started = typeof Started.Type

/** Returns the first event of a session. */
export const startedWith = (
  { cwd, model }: { readonly cwd?: string | undefined; readonly model?: string | undefined },
  session: string,
  at: number
): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at,
  estimator: estimatorVersion,
  ...(model === undefined ? {} : { model }),
  ...(cwd === undefined ? {} : { cwd })
})

/** A message was added at the end. */
const Appended = Schema.TaggedStruct("Appended", { entry: Entry })

/** A message was added with its attachments and its answer. None of them is in the log without the others. */
const Answered = Schema.TaggedStruct("Answered", {
  message: Entry,
  /** Messages that a program added after the message: files that it names, texts of hooks. */
  attached: Schema.optionalKey(Schema.Array(Entry)),
  answer: Entry
})

/** Another model answers from here on. */
const ModelSwitched = Schema.TaggedStruct("ModelSwitched", { at, model: Schema.String })

/**
 * The environment message of this conversation, as it is known to the model. `opens`: requests begin with it from here on. Else requests begin as
 * before, and what changed since was told in a message.
 */
const EnvironmentSent = Schema.TaggedStruct("EnvironmentSent", {
  at,
  text: Schema.String,
  opens: Schema.Boolean
})
type EnvironmentSent = typeof EnvironmentSent.Type

/** The user pinned these words: they are kept verbatim. */
const Pinned = Schema.TaggedStruct("Pinned", { at, pin: Pin })

/** What one model call of a compression cost. `usage` is null when the provider reported none. */
const PaidCall = Schema.Struct({ model: Schema.String, usage: Schema.NullOr(Usage) })
type PaidCall = typeof PaidCall.Type

/** A compression was applied to the conversation. */
const Compressed = Schema.TaggedStruct("Compressed", {
  at,
  /** The status name that Gemini CLI uses. */
  status: Schema.String,
  strategy: Schema.String,
  trigger: Schema.Literals(["manual", "auto"]),
  before: TokenCount,
  after: TokenCount,
  patch: Patch,
  /** The handle under which everything that was dropped can be recalled, as JSON Lines. */
  dropped: Schema.optionalKey(Handle),
  /** The model calls it took; absent when it took none, or when it was prepared before (`Prepared`). */
  calls: Schema.optionalKey(Schema.Array(PaidCall)),
  /** The summarizing models that gave nothing usable. */
  unusable: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The request of a server's client that asked for it. A server that is asked again, after a crash, does not compress again. */
  request: Schema.optionalKey(Schema.String)
})

/** Old tool results are shown shorter from here on. This is not a compression and cannot be undone. */
const Masked = Schema.TaggedStruct("Masked", { at, shorten: Patch.fields.shorten })

/** The last compression was undone. */
const Undone = Schema.TaggedStruct("Undone", { at })
/** The compression that was undone last was applied again. */
const Redone = Schema.TaggedStruct("Redone", { at })

/** The conversation went back: it continues after `from`, or with null from its beginning. What came after it stays in the log. */
const Branched = Schema.TaggedStruct("Branched", {
  at,
  from: Schema.NullOr(EntryId),
  /** What stands for the branch that was left, appended after `from`. */
  summary: Schema.optionalKey(Entry),
  /** The model calls that the summary took; absent when it took none. */
  calls: Schema.optionalKey(Schema.Array(PaidCall))
})
type Branched = typeof Branched.Type

/** The user gave an entry a label, or with null took it away. */
export const Labelled = Schema.TaggedStruct("Labelled", { at, entry: EntryId, label: Schema.NullOr(Schema.String) })
export type Labelled = typeof Labelled.Type

/** A compression failed: it changed nothing but the memory of failures. */
const CompressionFailed = Schema.TaggedStruct("CompressionFailed", {
  at,
  status: Schema.String,
  forced: Schema.Boolean,
  tokens: TokenCount,
  /** Absent in older logs, which had only the default strategy. */
  strategy: Schema.optionalKey(Schema.String),
  /** The entries for which a model was paid without a result. */
  tried: Schema.optionalKey(Schema.Struct({ from: EntryId, to: EntryId })),
  /** The summarizing models that gave nothing usable. */
  unusable: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The model calls that were paid for nevertheless. */
  calls: Schema.optionalKey(Schema.Array(PaidCall))
})

/**
 * A model was paid for a snapshot before the compression that may use it. A `Compressed` that does has no `calls`, as they are
 * here. It changes nothing.
 */
const Prepared = Schema.TaggedStruct("Prepared", {
  at,
  strategy: Schema.String,
  calls: Schema.Array(PaidCall)
})

/** Everything that can happen in a session. The log is a list of these, and the session is their fold. */
export const SessionEvent = Schema.Union([
  Started,
  Appended,
  Answered,
  EnvironmentSent,
  ModelSwitched,
  Pinned,
  Compressed,
  CompressionFailed,
  Prepared,
  Masked,
  Undone,
  Redone,
  Branched,
  Labelled,
  FileChanged,
  QuestionAsked,
  QuestionAnswered,
  CallBegan,
  CallEnded
])
export type SessionEvent = typeof SessionEvent.Type

/** The state of a session: the fold of its events. */
export interface Session {
  readonly started: Started | undefined
  /** The model that answers: the first one, or the one switched to last. */
  readonly model: string | undefined
  /** What the user pinned, oldest first. */
  readonly pins: PersistentList.PersistentList<Pin>
  /** The labels in the order in which they were given; the last one for an entry counts. */
  readonly labels: PersistentList.PersistentList<Pick<Labelled, "entry" | "label">>
  /** The environment message with which requests begin, and the one that the model knows by what was told since. */
  readonly environment: { readonly opening: string; readonly told: string } | undefined
  readonly conversation: Conversation.Conversation
  readonly memory: FailureMemory
  /** What each compression dropped, oldest first. Undone ones are included, as their handles stay valid. */
  readonly ranges: PersistentList.PersistentList<DroppedRange>
  /** What tools and rewinds changed in files, oldest first. */
  readonly changes: PersistentList.PersistentList<RecordedChange>
  /** What happened to questions that clients answer, oldest first. */
  readonly questions: PersistentList.PersistentList<QuestionEvent>
}

/** The state before the first event. */
export const emptySession: Session = {
  started: undefined,
  model: undefined,
  pins: undefined,
  labels: undefined,
  environment: undefined,
  conversation: Conversation.empty,
  memory: freshMemory,
  ranges: undefined,
  changes: undefined,
  questions: undefined
}

/** Everything in a session that a handle can name. */
export const recallableOf = (session: Session): Recallable =>
  recallable(session.conversation, PersistentList.toArray(session.ranges))

const dropped = (session: Session, handle: Handle | undefined, { drop }: Patch): Session["ranges"] =>
  handle === undefined || drop === undefined
    ? session.ranges
    : PersistentList.append(
        session.ranges,
        { handle, entries: droppedEntries(Conversation.view(session.conversation), drop) },
        0
      )

/** The environment after a change of the view, which may lack the messages that told of changes. */
const untold = ({ environment }: Session): Session["environment"] =>
  environment === undefined ? undefined : { ...environment, told: environment.opening }

/** Whether a model wrote the summary of a compression. */
const isWritten = ({ calls = [], unusable = [] }: typeof Compressed.Type): boolean =>
  calls.some(({ model }) => !unusable.includes(model) && !unusable.includes(defaultModelName))

const afterCompression = (session: Session, event: typeof Compressed.Type): Session => {
  const { conversation } = session
  const next = Conversation.compressed(conversation, event.patch)
  return {
    ...session,
    environment: untold(session),
    conversation: next,
    ranges: dropped(session, event.dropped, event.patch),
    memory: remember(withUnusable(session.memory, event.unusable, isWritten(event)), {
      status: event.status,
      forced: event.trigger === "manual",
      before: Conversation.viewTokens(conversation),
      tokens: Conversation.viewTokens(next)
    })
  }
}

const failureMemory = ({ conversation, memory }: Session, event: typeof CompressionFailed.Type): FailureMemory =>
  remember(withUnusable(memory, event.unusable, false), {
    ...event,
    tokens: Conversation.viewTokens(conversation),
    waits: event.strategy === undefined || waitsForGrowth(event.strategy)
  })

const afterUndone = (session: Session): Session => {
  const conversation = Conversation.undone(session.conversation)
  const undone = session.conversation.undoable?.value.patch.drop
  const memory = afterUndo(session.memory, Conversation.viewTokens(conversation), undone)
  return { ...session, environment: untold(session), conversation, memory }
}

/** The session after one more event. */
export const applyEvent = (session: Session, event: SessionEvent): Session => {
  const { conversation } = session
  switch (event._tag) {
    case "Started":
      return { ...session, started: event, model: event.model }
    case "Appended":
      return { ...session, conversation: Conversation.append(conversation, event.entry) }
    case "Answered": {
      const withQuestion = [event.message, ...(event.attached ?? [])].reduce(Conversation.append, conversation)
      return { ...session, conversation: Conversation.append(withQuestion, event.answer) }
    }
    case "EnvironmentSent": {
      const { opens, text } = event
      const opening = opens ? text : (session.environment?.opening ?? text)
      return { ...session, environment: { opening, told: text } }
    }
    case "ModelSwitched":
      return { ...session, model: event.model, memory: afterModelSwitch(session.memory) }
    case "Pinned":
      return { ...session, pins: PersistentList.append(session.pins, event.pin, 0) }
    case "Compressed":
      return afterCompression(session, event)
    case "CompressionFailed":
      return { ...session, memory: failureMemory(session, event) }
    case "Prepared":
      return { ...session, memory: withUnusable(session.memory, [], true) }
    case "Masked":
      return { ...session, conversation: Conversation.masked(conversation, event.shorten) }
    case "Undone":
      return afterUndone(session)
    case "Redone":
      return { ...session, environment: untold(session), conversation: Conversation.redone(conversation) }
    case "Branched": {
      const before = branched(conversation, event.from)
      return {
        ...session,
        environment: untold(session),
        conversation: event.summary === undefined ? before : Conversation.append(before, event.summary),
        memory: afterBranch(session.memory)
      }
    }
    case "Labelled": {
      const { entry, label } = event
      return { ...session, labels: PersistentList.append(session.labels, { entry, label }, 0) }
    }
    case "FileChanged": {
      const { after, before, by, path } = event
      const change = { after, before, by, path, position: conversation.next }
      return { ...session, changes: PersistentList.append(session.changes, change, 0) }
    }
    case "QuestionAsked":
    case "QuestionAnswered":
    case "CallBegan":
    case "CallEnded":
      return { ...session, questions: PersistentList.append(session.questions, event, 0) }
  }
}

/** The session after several more events. Messages in a row are added at once. */
export const applyEvents = (session: Session, events: ReadonlyArray<SessionEvent>): Session => {
  let after = session
  let added: Array<Entry> = []
  for (const event of events) {
    if (event._tag === "Appended" || event._tag === "Answered") {
      for (const each of entriesOf(event)) added.push(each)
      continue
    }
    after = applyEvent(withEntries(after, added), event)
    added = []
  }
  return withEntries(after, added)
}

const withEntries = (session: Session, added: ReadonlyArray<Entry>): Session =>
  added.length === 0 ? session : { ...session, conversation: Conversation.appendAll(session.conversation, added) }

/** Where the bytes of a part are when they are not in its line. */
export const Spilled = Schema.Struct({
  hash: Hash,
  /** Bytes. */
  size: Schema.Natural,
  form: Schema.Literals(["text", "json"])
})
export type Spilled = typeof Spilled.Type

/** Parts with a payload of at least this many bytes are stored as blobs when they are appended. */
export const minSpillBytes = 8 * 1024

/** The entries that an event adds. */
export const entriesOf = (event: SessionEvent): ReadonlyArray<Entry> => {
  switch (event._tag) {
    case "Appended":
      return [event.entry]
    case "Answered":
      return [event.message, ...(event.attached ?? []), event.answer]
    case "Compressed":
      return event.patch.insert
    case "Branched":
      return event.summary === undefined ? [] : [event.summary]
    default:
      return []
  }
}
