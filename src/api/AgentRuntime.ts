/** The assembled agent in a folder, its errors and its notices. */

/** @category Services @since 0.1.0 */
export { Runtime } from "../services/runtime/Runtime.ts"
/** @category Services @since 0.1.0 */
export type { EnvFiles } from "../services/platform/Environment.ts"
/** @category Services @since 0.1.0 */
export type { Environment } from "../services/platform/Environment.ts"
/** @category Services @since 0.1.0 */
export type { RuntimePlatform } from "../services/runtime/RuntimePlatform.ts"
/** @category Functions @since 0.1.0 */
export { make } from "../services/runtime/Runtime.ts"
/** @category Functions @since 0.1.0 */
export { noticeText } from "../services/runtime/RuntimeNotice.ts"
/** @category Layers @since 0.1.0 */
export { layer } from "../services/runtime/Runtime.ts"
/** @category Models @since 0.1.0 */
export type { AssembledAgent, RuntimeHandlers, RuntimeOptions } from "../services/runtime/Runtime.ts"
/** @category Models @since 0.1.0 */
export type { RuntimeError, HostError, OpenError } from "../services/runtime/RuntimeError.ts"
/** @category Models @since 0.1.0 */
export type { RuntimeNotice, Notify } from "../services/runtime/RuntimeNotice.ts"
/** @category Models @since 0.1.0 */
export type { SectionKey } from "../domain/prompt/PromptInputs.ts"
/** @category Models @since 0.1.0 */
export type { HiddenValue } from "../domain/text/ChildEnvironment.ts"
/** @category Models @since 0.1.0 */
export type { BuiltPrompt, PieceKey, PromptPiece } from "../services/prompt/SystemPrompt.ts"
/** @category Models @since 0.1.0 */
export type { AgentContext, EditorUpdates } from "../services/runtime/AgentContext.ts"
/** @category Models @since 0.1.0 */
export type { AgentHandlers, HostOptions } from "../services/runtime/AgentParts.ts"
/** @category Models @since 0.1.0 */
export type { AgentHost, RuntimeServices, SendOptions } from "../services/runtime/AgentHost.ts"
/** @category Models @since 0.1.0 */
export type { FileRewind, RewindFile, RewoundFile } from "../services/runtime/FileRewind.ts"
/** @category Models @since 0.1.0 */
export type { MemoryPlaces, WorkspaceFolders } from "../services/runtime/RuntimePlatform.ts"
/** @category Models @since 0.1.0 */
export type {
  ChatServices,
  OpenHandlers,
  OpenSession,
  SessionChoice,
  SessionOptions
} from "../services/runtime/SessionOpening.ts"
/** @category Errors @since 0.1.0 */
export {
  SessionSelectionError,
  UnknownModelError,
  WorkspaceFolderError,
  type AgentNestingError
} from "../services/runtime/RuntimeError.ts"
/** @category Errors @since 0.1.0 */
export type { SystemPromptError } from "../services/prompt/SystemPrompt.ts"
/** @category Errors @since 0.1.0 */
export type { Closed as TerminalClosed } from "../services/terminal/ChatTerminal.ts"
