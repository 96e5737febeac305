/** The assembled agent in a folder, its errors and its notices. */
export {
  layer,
  make,
  Runtime,
  type AssembledAgent,
  type RuntimeHandlers,
  type RuntimeOptions
} from "../services/runtime/Runtime.ts"
export {
  SessionSelectionError,
  UnknownModelError,
  WorkspaceFolderError,
  type RuntimeError
} from "../services/runtime/RuntimeError.ts"
export { noticeText, type RuntimeNotice } from "../services/runtime/RuntimeNotice.ts"
export type { SectionKey } from "../domain/prompt/PromptInputs.ts"
export type { DotEnvProblem, VariableProblem } from "../domain/settings/DotEnv.ts"
export type { HiddenValue } from "../domain/text/ChildEnvironment.ts"
export type { EnvFiles, EnvNotice } from "../services/platform/EnvFiles.ts"
export type { Environment } from "../services/platform/Environment.ts"
export type { BuiltPrompt, PieceKey, PromptPiece, SystemPromptError } from "../services/prompt/SystemPrompt.ts"
export type { AgentContext, EditorUpdates } from "../services/runtime/AgentContext.ts"
export type {
  AgentHandlers,
  AgentHost,
  HostOptions,
  RuntimeServices,
  SendOptions
} from "../services/runtime/AgentHost.ts"
export type { FileRewind, RewindFile, RewoundFile } from "../services/runtime/FileRewind.ts"
export type { AgentNestingError, HostError, OpenError } from "../services/runtime/RuntimeError.ts"
export type { Notify } from "../services/runtime/RuntimeNotice.ts"
export type { MemoryPlaces, RuntimePlatform, WorkspaceFolders } from "../services/runtime/RuntimePlatform.ts"
export type {
  ChatServices,
  OpenHandlers,
  OpenSession,
  SessionChoice,
  SessionOptions
} from "../services/runtime/SessionOpening.ts"
export type { Closed as TerminalClosed } from "../services/terminal/ChatTerminal.ts"
