/** Sessions: the append-only log of a conversation, its blobs, and the stores that keep them. */
export { BadPattern } from "../services/platform/Patterns.ts"
export { type Session, SessionEvent } from "../domain/session/Session.ts"
export type { CallEnded, QuestionEvent } from "../domain/session/CallQuestions.ts"
export { type NodeKind, type SessionTree, sessionTree, type TreeNode } from "../domain/session/SessionTree.ts"
export {
  type BackedLine,
  type BackedRow,
  SessionBacking,
  type SessionOwner
} from "../services/session/SessionBacking.ts"
export {
  type OpenSession,
  SessionChanged,
  SessionCorrupt,
  SessionExists,
  SessionInTransaction,
  SessionLocked,
  type SessionLog,
  SessionNotFound,
  SessionStore,
  SessionStoreError,
  type SessionSummary,
  SessionTaken,
  SessionTooNew,
  SessionUnavailable
} from "../services/session/SessionStore.ts"
export { hash } from "../services/session/Sha256.ts"
export {
  BlobDamaged,
  BlobMissing,
  type Blobs,
  BlobUnavailable,
  ConversationNotNamed,
  HandleAmbiguous,
  HandleNotHeld,
  TempStore,
  TempStoreError
} from "../services/session/TempStore.ts"
export type {
  ChangedFile,
  FileChanged,
  FileState,
  FileVersion,
  RecordedChange,
  RewindTarget
} from "../domain/session/ChangedFiles.ts"
export type { Labelled, Started } from "../domain/session/Session.ts"
export type { IncomingMessage } from "../services/session/EntryBuilder.ts"
export type { SessionFiles } from "../services/session/SessionFiles.ts"
export type { StoredBlob } from "../services/session/SessionStore.ts"
export type { StoreOpener } from "../services/session/SessionStore.ts"
export type { BlobFolder } from "../services/session/TempStore.ts"
