/** The contract of blob stores, and reading from them: selections, queries and searches. */

import { Context, Effect, type Layer, Schema } from "effect"
import { type Handle, Hash, isHandle, matches } from "../../domain/content/Handle.ts"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import { excerpt, type Selection } from "../../domain/conversation/Excerpt.ts"
import { readQuery } from "../../domain/conversation/RecallQuery.ts"
import {
  type FoundParts,
  type HiddenPart,
  hiddenParts,
  type RecallSearch,
  searching
} from "../../domain/conversation/RecallSearch.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { BadPattern } from "../platform/Patterns.ts"
import * as Patterns from "../platform/Patterns.ts"
import { hash } from "./Sha256.ts"

/** Nothing is stored under this name. */
export class BlobMissing extends Schema.TaggedError<BlobMissing>()("BlobMissing", { name: Schema.String }) {
  override get message() {
    return `nothing is stored under ${this.name}`
  }
}

/** The stored bytes do not match their name. */
export class BlobDamaged extends Schema.TaggedError<BlobDamaged>()("BlobDamaged", { name: Schema.String }) {
  override get message() {
    return `what is stored under ${this.name} was changed or damaged`
  }
}

/** The store could not be read or written: no space, no permission, a failing disk. */
export class BlobUnavailable extends Schema.TaggedError<BlobUnavailable>()("BlobUnavailable", {
  operation: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Two or more blobs match this handle. */
export class HandleAmbiguous extends Schema.TaggedError<HandleAmbiguous>()("HandleAmbiguous", { name: Schema.String }) {
  override get message() {
    return `${this.name} names more than one stored text; give more of its characters`
  }
}

/** The conversation does not contain this handle, even if the store does. */
export class HandleNotHeld extends Schema.TaggedError<HandleNotHeld>()("HandleNotHeld", {
  name: Schema.String,
  /** Advice for the user. */
  advice: Schema.String
}) {
  override get message() {
    return `this conversation holds nothing under ${this.name}: ${this.advice}`
  }
}

/** A handle was used while several conversations are open, without naming one. */
export class ConversationNotNamed extends Schema.TaggedError<ConversationNotNamed>()("ConversationNotNamed", {
  name: Schema.String
}) {
  override get message() {
    return `${this.name} belongs to one of several conversations: recall it in a tool that runs for a call, or say which conversation with Recall.within(prompt)`
  }
}

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

/** Somewhere that keeps bytes by name, such as a table or a bucket, for `TempStore.fromBlobs`. What it fails with becomes a `BlobUnavailable`. */
export interface Blobs {
  /** Keeps bytes, durably when it returns, and whole or not at all. Bytes that are there already may be written again. */
  readonly put: (hash: Hash, bytes: Uint8Array) => Effect.Effect<unknown, unknown>
  /** The bytes with this name; undefined when there are none. */
  readonly get: (hash: Hash) => Effect.Effect<Uint8Array | undefined, unknown>
  /** The names that begin with this text, of which two are enough. */
  readonly find: (prefix: string) => Effect.Effect<ReadonlyArray<string>, unknown>
}

const isHash = Schema.is(Hash)

/** The error of a blob that is not there. */
export const blobMissing = (name: string) => new TempStoreError({ reason: new BlobMissing({ name }) })

const blobUnavailable = (operation: string) => (cause: unknown) =>
  new TempStoreError({ reason: new BlobUnavailable({ operation, message: errorText(cause), cause }) })

/**
 * Stores bytes under the hash of their content. They stay readable until the store is deleted. Putting the same bytes again
 * writes nothing. A blob is stored whole or not at all.
 */
export class TempStore extends Context.Service<
  TempStore,
  {
    /** The hash of bytes or of a text (in UTF-8), without storing them. */
    readonly hash: (bytes: Uint8Array | string) => Effect.Effect<Hash>
    /** Stores bytes, and returns their hash. They are durable when this returns. */
    readonly put: (bytes: Uint8Array) => Effect.Effect<Hash, TempStoreError>
    /** Reads the bytes with this hash, and checks them against it. */
    readonly get: (hash: Hash) => Effect.Effect<Uint8Array, TempStoreError>
    /**
     * Finds the one stored hash that a handle names. Conversations may share a store, so a hit does not mean that a conversation
     * holds the bytes: to recall within one, use `Chat.recall` or `Recall`.
     */
    readonly resolve: (handle: Handle) => Effect.Effect<Hash, TempStoreError>
  }
>()("palimpsest/services/session/TempStore") {
  /**
   * Makes a store of somewhere that keeps bytes by name. Hashes, checks and the search by handle are here, and bytes are copied in and out.
   *
   * **Example** (Keeping blobs in a Map)
   *
   * ```ts
   * import { Effect, Layer } from "effect"
   * import { Session } from "palimpsest"
   *
   * const blobs = new Map<string, Uint8Array>()
   * const Store = Layer.succeed(
   *   Session.TempStore,
   *   Session.TempStore.fromBlobs({
   *     put: (hash, bytes) => Effect.sync(() => blobs.set(hash, bytes)),
   *     get: (hash) => Effect.sync(() => blobs.get(hash)),
   *     find: (prefix) => Effect.sync(() => [...blobs.keys()].filter((hash) => hash.startsWith(prefix)))
   *   })
   * )
   * const stored = Session.TempStore.use((store) => store.put(new TextEncoder().encode("a long output")))
   * await Effect.runPromise(Effect.provide(stored, Store))
   * console.log(blobs.size) // => 1
   * ```
   */
  static readonly fromBlobs = (blobs: Blobs): TempStore["Service"] => ({
    hash,
    put: Effect.fn("TempStore.put")(function* (bytes) {
      // Copied before it is hashed: the caller may change it meanwhile.
      const copy = Uint8Array.from(bytes)
      const name = yield* hash(copy)
      yield* Effect.mapError(blobs.put(name, copy), blobUnavailable("put"))
      return name
    }),
    get: Effect.fn("TempStore.get")(function* (name) {
      const bytes = yield* Effect.mapError(blobs.get(name), blobUnavailable("get"))
      if (bytes === undefined) return yield* blobMissing(name)
      const copy = Uint8Array.from(bytes)
      if ((yield* hash(copy)) !== name) return yield* new TempStoreError({ reason: new BlobDamaged({ name }) })
      return copy
    }),
    resolve: Effect.fn("TempStore.resolve")(function* (handle) {
      if (!isHandle(handle)) return yield* blobMissing(String(handle))
      const names = yield* Effect.mapError(blobs.find(handle.slice("h_".length)), blobUnavailable("resolve"))
      const [found, another] = names.filter((name): name is Hash => isHash(name) && matches(handle, name))
      if (found === undefined) return yield* blobMissing(handle)
      if (another !== undefined) return yield* new TempStoreError({ reason: new HandleAmbiguous({ name: handle }) })
      return found
    })
  })
}

/** Opens the blob stores beside files: `<file>.blobs`. */
export class BlobFolder extends Context.Service<
  BlobFolder,
  {
    /** The store in this folder, which is empty when there is no such folder. Reading creates nothing. */
    readonly at: (folder: string) => Layer.Layer<TempStore>
  }
>()("palimpsest/services/BlobFolder") {}

/** The folder of the blobs of a file. */
export const blobFolderOf = (file: string): string => `${file}.blobs`

/** The selected part of a text (see `Selection`), in slices. */
export const select = Effect.fnUntraced(function* (text: string, selection: Selection) {
  const { grep } = selection
  const pattern = grep === undefined ? undefined : yield* Patterns.compile(grep, { ignoresCase: false })
  return yield* Patterns.run(excerpt(text, selection, pattern))
})

/** Compiles a query: as a regular expression, or else as plain text, with the reason. */
export const compileQuery = Effect.fnUntraced(function* (query: string) {
  const written = readQuery(query)
  if (written === undefined) return yield* new BadPattern({ message: "it is blank" })
  const { ignoresCase, pattern, plain, words } = written
  return yield* Patterns.compile(pattern, { ignoresCase }).pipe(
    Effect.map((compiled) => ({ pattern: compiled, words, problem: undefined })),
    Effect.catch((refused) =>
      Patterns.compile(plain, { ignoresCase }).pipe(
        Effect.map((compiled) => ({ pattern: compiled, words, problem: refused.message })),
        Effect.mapError(() => refused)
      )
    )
  )
})

/** Searches parts for a pattern (see `RecallSearch`), in slices. */
export const search = Effect.fnUntraced(function* (parts: ReadonlyArray<HiddenPart>, request: RecallSearch) {
  return yield* Patterns.run(searching(parts, yield* compileQuery(request.pattern), request))
})

/** Searches what left the view of a conversation. */
export const searchHidden = (
  conversation: Conversation,
  request: RecallSearch
): Effect.Effect<FoundParts, BadPattern> =>
  Effect.flatMap(Work.run(hiddenParts(conversation)), (parts) => search(parts, request))
