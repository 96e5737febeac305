/** Records changes of files in the session of a chat. */

import { Clock, Effect, Ref } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import { type FileChanged, isVersionKept } from "../../domain/session/ChangedFiles.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import { TempStore } from "../session/TempStore.ts"
import type { ChatState } from "./ChatState.ts"
import { commit } from "./Commit.ts"

/** A change of a file that a session records, so that a rewind can undo it. */
export interface FileChange {
  /** Absolute, links followed. */
  readonly path: string
  /** The content before the change. Undefined when the file did not exist. */
  readonly before: { readonly bytes: Uint8Array; readonly mode: number } | undefined
  /** The content after the change. Undefined when the file is removed. */
  readonly after: Uint8Array | undefined
  readonly by: FileChanged["by"]
}

/**
 * Stores the content of a file before a change, and returns the effect that records the change. A version that is too
 * large or cannot be stored is recorded as lost.
 */
export const keepFile = Effect.fn("Chat.keepFile")(function* (
  chat: ChatState,
  { after, before, by, path }: FileChange
): Effect.fn.Return<Effect.Effect<void, SessionStoreError>, never, TempStore> {
  const store = yield* TempStore
  const keep = Effect.fnUntraced(function* ({ bytes, mode }: NonNullable<FileChange["before"]>) {
    const hash: Hash = yield* store.hash(bytes)
    const { changes } = yield* Ref.get(chat.session)
    const isKept = isVersionKept(PersistentList.toArray(changes), bytes.length)
      ? yield* Effect.match(store.put(bytes), { onSuccess: () => true, onFailure: () => false })
      : false
    return { hash, size: bytes.length, mode, ...(isKept ? {} : { lost: true as const }) }
  })
  const version = before === undefined ? null : yield* keep(before)
  const left = after === undefined ? null : yield* store.hash(after)
  return Effect.flatMap(Clock.currentTimeMillis, (at) =>
    commit(chat, { _tag: "FileChanged", at, path, before: version, after: left, by, ignorable: true })
  )
})
