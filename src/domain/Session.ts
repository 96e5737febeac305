import { Schema } from "effect"
import * as Chain from "./Chain.ts"
import { waitsForGrowth } from "./Compression.ts"
import { Entry, EntryId, Patch } from "./Conversation.ts"
import * as Conversation from "./Conversation.ts"
import { afterUndo, type FailureMemory, freshMemory, remember } from "./FailureMemory.ts"
import { Handle, Hash } from "./Handle.ts"
import { droppedEntries, type DroppedRange, recallable, type Recallable } from "./Recall.ts"
import { TokenCount, Usage } from "./Tokens.ts"

/** What can happen to a conversation, as events, and the fold that makes a conversation of them. */

/** The version of the log format that this program writes. Older ones are brought up to date while they are read. */
export const logVersion = 1

/** Milliseconds since 1970. */
const at = Schema.Finite

/** The first line of a log. */
export const Started = Schema.TaggedStruct("Started", {
  version: Schema.Natural,
  /** A UUIDv7. */
  session: Schema.String,
  at,
  /** Who counted the tokens that stand beside each entry. */
  estimator: Schema.String,
  /** The model and folder the conversation was held with, where known. */
  model: Schema.optionalKey(Schema.String),
  cwd: Schema.optionalKey(Schema.String),
  /** The session of the agent that started the one whose work this is. */
  parent: Schema.optionalKey(Schema.String),
  /** The format and session it was taken over from. */
  importedFrom: Schema.optionalKey(Schema.Struct({ format: Schema.String, session: Schema.optionalKey(Schema.String) }))
})
export type Started = typeof Started.Type

/** A message was added at the end. */
export const Appended = Schema.TaggedStruct("Appended", { entry: Entry })

/** A message was added together with what came with it and with its answer: none is in the log without the others. */
export const Answered = Schema.TaggedStruct("Answered", {
  message: Entry,
  /** What a program put behind the message: files that it names, words of a hook. */
  attached: Schema.optionalKey(Schema.Array(Entry)),
  answer: Entry
})

/** From now on another model is asked. */
export const ModelSwitched = Schema.TaggedStruct("ModelSwitched", { at, model: Schema.String })

/** Characters of the user's own text that every snapshot has to show word for word. */
export const Pin = Schema.Struct({
  entry: EntryId,
  part: Schema.Natural,
  start: Schema.Natural,
  end: Schema.Natural
})
export type Pin = typeof Pin.Type

/** The person wants these words kept word for word. */
export const Pinned = Schema.TaggedStruct("Pinned", { at, pin: Pin })

/** What one model call of a compression cost. `usage` is null where the provider did not count. */
export const PaidCall = Schema.Struct({ model: Schema.String, usage: Schema.NullOr(Usage) })
export type PaidCall = typeof PaidCall.Type

/** A compression was laid over the conversation. */
export const Compressed = Schema.TaggedStruct("Compressed", {
  at,
  /** The seeds' status. */
  status: Schema.String,
  strategy: Schema.String,
  trigger: Schema.Literals(["manual", "auto"]),
  before: TokenCount,
  after: TokenCount,
  patch: Patch,
  /** The one handle under which everything that was dropped can be recalled, as JSON Lines. */
  dropped: Schema.optionalKey(Handle),
  /** The model calls it took; absent: code did the work. */
  calls: Schema.optionalKey(Schema.Array(PaidCall))
})

/** Old results of tools are shown shorter from now on (spec 5.4). No compression, so there is nothing to undo. */
export const Masked = Schema.TaggedStruct("Masked", { at, shorten: Patch.fields.shorten })

/** The last compression was taken away, or laid again. */
export const Undone = Schema.TaggedStruct("Undone", { at })
/** The compression that was undone last was laid over the conversation again. */
export const Redone = Schema.TaggedStruct("Redone", { at })

/** A compression that changed nothing but what is remembered about failures. */
export const CompressionFailed = Schema.TaggedStruct("CompressionFailed", {
  at,
  status: Schema.String,
  forced: Schema.Boolean,
  tokens: TokenCount,
  /** Absent in logs from before: the default one. */
  strategy: Schema.optionalKey(Schema.String),
  /** What a model was paid for in vain. */
  tried: Schema.optionalKey(Schema.Struct({ from: EntryId, to: EntryId })),
  /** The model calls that were paid for all the same. */
  calls: Schema.optionalKey(Schema.Array(PaidCall))
})

/** Everything that can happen to a conversation. The log is a list of these, and the conversation is their fold. */
export const SessionEvent = Schema.Union([
  Started,
  Appended,
  Answered,
  ModelSwitched,
  Pinned,
  Compressed,
  CompressionFailed,
  Masked,
  Undone,
  Redone
])
export type SessionEvent = typeof SessionEvent.Type

/** What a log says. */
export interface Session {
  readonly started: Started | undefined
  /** The model that is asked: the one it was begun with, or was switched to last. */
  readonly model: string | undefined
  /** What the person pinned, oldest first. */
  readonly pins: Chain.Chain<Pin>
  readonly conversation: Conversation.Conversation
  readonly memory: FailureMemory
  /** What each compression dropped, oldest first, undone ones too: their handles stay good. */
  readonly ranges: Chain.Chain<DroppedRange>
}

/** Before the first line of a log. */
export const emptySession: Session = {
  started: undefined,
  model: undefined,
  pins: undefined,
  conversation: Conversation.empty,
  memory: freshMemory,
  ranges: undefined
}

/** Everything of a session that a handle can name. */
export const recallableOf = (session: Session): Recallable =>
  recallable(session.conversation, Chain.toArray(session.ranges))

const dropped = (session: Session, handle: Handle | undefined, { drop }: Patch): Session["ranges"] =>
  handle === undefined || drop === undefined
    ? session.ranges
    : Chain.append(
        session.ranges,
        { handle, entries: droppedEntries(Conversation.view(session.conversation), drop) },
        0
      )

/** The conversation after one more event. */
export const step = (session: Session, event: SessionEvent): Session => {
  const { conversation } = session
  switch (event._tag) {
    case "Started":
      return { ...session, started: event, model: event.model }
    case "Appended":
      return { ...session, conversation: Conversation.append(conversation, event.entry) }
    case "Answered": {
      const asked = [event.message, ...(event.attached ?? [])].reduce(Conversation.append, conversation)
      return { ...session, conversation: Conversation.append(asked, event.answer) }
    }
    case "ModelSwitched":
      return { ...session, model: event.model }
    case "Pinned":
      return { ...session, pins: Chain.append(session.pins, event.pin, 0) }
    case "Compressed": {
      const next = Conversation.compressed(conversation, event.patch)
      return {
        ...session,
        conversation: next,
        ranges: dropped(session, event.dropped, event.patch),
        memory: remember(session.memory, {
          status: event.status,
          forced: event.trigger === "manual",
          before: Conversation.viewTokens(conversation),
          tokens: Conversation.viewTokens(next)
        })
      }
    }
    case "CompressionFailed":
      return {
        ...session,
        memory: remember(session.memory, {
          ...event,
          tokens: Conversation.viewTokens(conversation),
          waits: event.strategy === undefined || waitsForGrowth(event.strategy)
        })
      }
    case "Masked":
      return { ...session, conversation: Conversation.masked(conversation, event.shorten) }
    case "Undone": {
      const restored = Conversation.undone(conversation)
      return {
        ...session,
        conversation: restored,
        memory: afterUndo(session.memory, Conversation.viewTokens(restored), conversation.undoable?.value.patch.drop)
      }
    }
    case "Redone":
      return { ...session, conversation: Conversation.redone(conversation) }
  }
}

/** Where the bytes of a part lie when they are not in its line. */
export const Spilled = Schema.Struct({
  hash: Hash,
  /** Bytes. */
  size: Schema.Natural,
  form: Schema.Literals(["text", "json"])
})
export type Spilled = typeof Spilled.Type

/** Parts of this size and more (bytes of their payload) go to the blob store when they are appended. */
export const spillBytes = 8 * 1024
