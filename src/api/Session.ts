/** Sessions: the append-only log of a conversation, its blobs, and the stores that keep them. */

/** @category Services @since 0.1.0 */
export { SessionBacking } from "../services/session/SessionBacking.ts"
/** @category Services @since 0.1.0 */
export { SessionStore, type StoreOpener } from "../services/session/SessionStore.ts"
/** @category Services @since 0.1.0 */
export { TempStore, type BlobFolder } from "../services/session/TempStore.ts"
/** @category Services @since 0.1.0 */
export type { SessionFiles } from "../services/session/SessionFiles.ts"
/** @category Functions @since 0.1.0 */
export { sessionTree } from "../domain/session/SessionTree.ts"
/** @category Functions @since 0.1.0 */
export { hash } from "../services/session/Sha256.ts"
/** @category Models @since 0.1.0 */
export { type Session, SessionEvent, type Labelled, type Started } from "../domain/session/Session.ts"
/** @category Models @since 0.1.0 */
export type { CallEnded, QuestionEvent } from "../domain/session/CallQuestions.ts"
/** @category Models @since 0.1.0 */
export type { NodeKind, SessionTree, TreeNode } from "../domain/session/SessionTree.ts"
/** @category Models @since 0.1.0 */
export type { BackedLine, BackedRow, SessionOwner } from "../services/session/SessionBacking.ts"
/** @category Models @since 0.1.0 */
export type { OpenSession, SessionLog, SessionSummary, StoredBlob } from "../services/session/SessionStore.ts"
/** @category Models @since 0.1.0 */
export type { Blobs } from "../services/session/TempStore.ts"
/** @category Models @since 0.1.0 */
export type {
  ChangedFile,
  FileChanged,
  FileState,
  FileVersion,
  RecordedChange,
  RewindTarget
} from "../domain/session/ChangedFiles.ts"
/** @category Models @since 0.1.0 */
export type { IncomingMessage } from "../services/session/EntryBuilder.ts"
/** @category Errors @since 0.1.0 */
export { BadPattern } from "../services/platform/Patterns.ts"
/** @category Errors @since 0.1.0 */
export {
  SessionChanged,
  SessionCorrupt,
  SessionExists,
  SessionInTransaction,
  SessionLocked,
  SessionNotFound,
  SessionStoreError,
  SessionTaken,
  SessionTooNew,
  SessionUnavailable
} from "../services/session/SessionStore.ts"
/** @category Errors @since 0.1.0 */
export {
  BlobDamaged,
  BlobMissing,
  BlobUnavailable,
  ConversationNotNamed,
  HandleAmbiguous,
  HandleNotHeld,
  TempStoreError
} from "../services/session/TempStore.ts"
