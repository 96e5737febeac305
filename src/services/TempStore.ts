import { Context, Effect, type Layer, Schema } from "effect"
import { type Excerpt, excerpt, parsePattern, type Selection } from "../domain/Excerpt.ts"
import type { Handle, Hash } from "../domain/Handle.ts"

/** Nothing is stored under this name. */
export class BlobMissing extends Schema.TaggedError<BlobMissing>()("BlobMissing", { name: Schema.String }) {
  override get message() {
    return `nothing is stored under ${this.name}`
  }
}

/** What is stored under this name is not what was put there. */
export class BlobDamaged extends Schema.TaggedError<BlobDamaged>()("BlobDamaged", { name: Schema.String }) {
  override get message() {
    return `what is stored under ${this.name} is not what was put there`
  }
}

/** The store could not be read or written: no space, no permission, a broken disk. */
export class BlobUnavailable extends Schema.TaggedError<BlobUnavailable>()("BlobUnavailable", {
  operation: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Two or more blobs begin with this handle. */
export class HandleAmbiguous extends Schema.TaggedError<HandleAmbiguous>()("HandleAmbiguous", { name: Schema.String }) {
  override get message() {
    return `${this.name} names more than one stored text; give more of its characters`
  }
}

/** A conversation holds nothing under this handle, whatever the store has. */
export class HandleNotHeld extends Schema.TaggedError<HandleNotHeld>()("HandleNotHeld", {
  name: Schema.String,
  /** What can be done about it. */
  advice: Schema.String
}) {
  override get message() {
    return `this conversation holds nothing under ${this.name}: ${this.advice}`
  }
}

/** A handle was asked for where several conversations are held, and not which is meant. */
export class ConversationNotNamed extends Schema.TaggedError<ConversationNotNamed>()("ConversationNotNamed", {
  name: Schema.String
}) {
  override get message() {
    return `${this.name} belongs to one of several conversations: recall it in a tool that runs for a call, or say which conversation with Recall.within(prompt)`
  }
}

/** A selection whose pattern is no regular expression. */
export class BadPattern extends Schema.TaggedError<BadPattern>()("BadPattern", { message: Schema.String }) {}

/** Bytes could not be stored or read back. */
export class TempStoreError extends Schema.TaggedError<TempStoreError>()("TempStoreError", {
  reason: Schema.Union([
    BlobMissing,
    BlobDamaged,
    BlobUnavailable,
    HandleAmbiguous,
    HandleNotHeld,
    ConversationNotNamed
  ])
}) {
  override get message() {
    return this.reason.message
  }
}

/**
 * Bytes under the name of their content. What was put stays readable until somebody deletes the store; putting the same
 * bytes again writes nothing. A blob is there whole or not at all.
 */
export class TempStore extends Context.Service<
  TempStore,
  {
    /** The name of some bytes, or of a text's (see Bytes.ts), without storing them. */
    readonly hash: (bytes: Uint8Array | string) => Effect.Effect<Hash>
    /** Stores bytes; durable when it returns (file layers sync before they rename). */
    readonly put: (bytes: Uint8Array) => Effect.Effect<Hash, TempStoreError>
    /** The bytes stored under a name, checked against it. */
    readonly get: (hash: Hash) => Effect.Effect<Uint8Array, TempStoreError>
    /**
     * The one stored hash that a handle names. The store may be shared: that it has the bytes does not mean that a
     * conversation holds them. To recall within one, use `Chat.recall` or `Recall`.
     */
    readonly resolve: (handle: Handle) => Effect.Effect<Hash, TempStoreError>
  }
>()("palimpsest/services/TempStore") {}

/** The stores of the blobs that travel beside files: `<file>.blobs`. */
export class BlobFolder extends Context.Service<
  BlobFolder,
  {
    /** The store in this folder; an empty one where there is no such folder. Reading creates nothing. */
    readonly at: (folder: string) => Layer.Layer<TempStore>
  }
>()("palimpsest/services/BlobFolder") {}

/** Where the blobs of a file lie. */
export const blobFolderOf = (file: string): string => `${file}.blobs`

/** The wanted part of a text (see `Selection`). */
export const select = Effect.fnUntraced(function* (
  text: string,
  selection: Selection
): Effect.fn.Return<Excerpt, BadPattern> {
  const pattern = selection.grep === undefined ? undefined : parsePattern(selection.grep)
  if (typeof pattern === "string") return yield* new BadPattern({ message: pattern })
  return excerpt(text, selection, pattern)
})
