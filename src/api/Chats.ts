/** A conversation with a model: send, stream, cancel, compress, undo, recall. */

import type { Effect, Scope } from "effect"
import type { InvalidOption } from "../domain/compression/InvalidOption.ts"
import type { Chat } from "../services/chat/Chat.ts"
import { Chats } from "../services/chat/Chats.ts"
import type { SessionStoreError } from "../services/session/SessionStore.ts"

/** @category Services @since 0.1.0 */
export { Chat } from "../services/chat/Chat.ts"
/** @category Services @since 0.1.0 */
export { Chats } from "../services/chat/Chats.ts"
/** @category References @since 0.1.0 */
export { ChatDefaults } from "../services/chat/ChatSettings.ts"
/** @category Models @since 0.1.0 */
export type { ChatUsage, ChatServices } from "../services/chat/Chat.ts"
/** @category Models @since 0.1.0 */
export type { Attachment } from "../services/chat/AppendMessages.ts"
/** @category Models @since 0.1.0 */
export type { BranchOptions, BranchOutcome } from "../services/chat/Branch.ts"
/** @category Models @since 0.1.0 */
export type { ChatOptions, ChatLog, Emit } from "../services/chat/ChatState.ts"
/** @category Models @since 0.1.0 */
export type { CompressOptions } from "../services/chat/Compress.ts"
/** @category Models @since 0.1.0 */
export type { SendOptions, TurnError } from "../services/chat/Turn.ts"
/** @category Models @since 0.1.0 */
export type { ChatSettings, ModelSettings, TurnRetries } from "../services/chat/ChatSettings.ts"
/** @category Models @since 0.1.0 */
export { Activity, CallStatus, ChatEvent, type LimitName, type LoopKind } from "../domain/chat/ChatEvent.ts"
/** @category Models @since 0.1.0 */
export type { FileChange } from "../services/chat/FileRecords.ts"
/** @category Errors @since 0.1.0 */
export { UnknownEntry } from "../services/chat/Branch.ts"
/** @category Errors @since 0.1.0 */
export { ContextOverflow } from "../services/chat/FitRequest.ts"
/** @category Errors @since 0.1.0 */
export { InvalidAnswer, type StoppedByHook } from "../services/chat/AskModel.ts"
/** @category Errors @since 0.1.0 */
export { ChatBusy } from "../services/chat/Commit.ts"
/** @category Errors @since 0.1.0 */
export { NothingToAsk } from "../services/chat/Turn.ts"

/**
 * Opens the conversation of this key, which may be any text, until the scope closes. An unknown key begins a new one.
 *
 * **Example** (Holding a conversation)
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Chats, Palimpsest } from "palimpsest"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const program = Effect.gen(function* () {
 *   const chat = yield* Chats.open("tenant/42")
 *   const events = yield* Stream.runCollect(chat.send("When was the bridge built?"))
 *   return events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")
 * }).pipe(Effect.scoped)
 * const Runtime = Palimpsest.layer({ model: ScriptedModel.layer(["In 1743."]) })
 * console.log(await Effect.runPromise(Effect.provide(program, Runtime))) // => In 1743.
 * ```
 *
 * @category Functions
 * @since 0.1.0
 */
export const open = (
  key: string
): Effect.Effect<Chat["Service"], InvalidOption | SessionStoreError, Chats | Scope.Scope> =>
  Chats.use((chats) => chats.open(key))
