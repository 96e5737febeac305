/** A conversation with a model: send, stream, cancel, compress, undo, recall. */
import type { Effect, Scope } from "effect"
import type { Chat } from "../services/chat/Chat.ts"
import { Chats } from "../services/chat/Chats.ts"
import type { SessionStoreError } from "../services/session/SessionStore.ts"

export { Chat, type ChatUsage } from "../services/chat/Chat.ts"
export type { Attachment } from "../services/chat/AppendMessages.ts"
export { type BranchOptions, type BranchOutcome, UnknownEntry } from "../services/chat/Branch.ts"
export type { ChatOptions } from "../services/chat/ChatState.ts"
export { ContextOverflow } from "../services/chat/FitRequest.ts"
export { InvalidAnswer } from "../services/chat/AskModel.ts"
export { ChatBusy } from "../services/chat/Commit.ts"
export type { CompressOptions } from "../services/chat/Compress.ts"
export { NothingToAsk, type SendOptions, type TurnError } from "../services/chat/Turn.ts"
export { Chats } from "../services/chat/Chats.ts"
export { ChatDefaults, type ChatSettings, type ModelSettings, type TurnRetries } from "../services/chat/ChatSettings.ts"
export { Activity, CallStatus, ChatEvent } from "../domain/chat/ChatEvent.ts"

/** Opens the conversation of this key, which may be any text, until the scope closes. An unknown key begins a new one. */
export const open = (key: string): Effect.Effect<Chat["Service"], SessionStoreError, Chats | Scope.Scope> =>
  Chats.use((chats) => chats.open(key))
export type { LimitName, LoopKind } from "../domain/chat/ChatEvent.ts"
export type { StoppedByHook } from "../services/chat/AskModel.ts"
export type { ChatServices } from "../services/chat/Chat.ts"
export type { ChatLog, Emit } from "../services/chat/ChatState.ts"
export type { FileChange } from "../services/chat/FileRecords.ts"
