/** Tools: define your own, use the built-in ones, and decide what runs without approval. */

/** @category Services @since 0.1.0 */
export { Approval } from "../services/tools/Approval.ts"
/** @category Services @since 0.1.0 */
export { UserPrompt } from "../services/tools/UserPrompt.ts"
/** @category Functions @since 0.1.0 */
export { fromToolkit, make, makePrepared } from "../services/tools/Tool.ts"
/** @category Functions @since 0.1.0 */
export { recall } from "../services/tools/builtin/Recall.ts"
/** @category Constants @since 0.1.0 */
export { glob } from "../services/tools/builtin/Glob.ts"
/** @category Constants @since 0.1.0 */
export { listDirectory } from "../services/tools/builtin/ListDirectory.ts"
/** @category Constants @since 0.1.0 */
export { readFile } from "../services/tools/builtin/ReadFile.ts"
/** @category Constants @since 0.1.0 */
export { readManyFiles } from "../services/tools/builtin/ReadManyFiles.ts"
/** @category Constants @since 0.1.0 */
export { replace } from "../services/tools/builtin/Replace.ts"
/** @category Constants @since 0.1.0 */
export { searchFiles } from "../services/tools/builtin/SearchFiles.ts"
/** @category Constants @since 0.1.0 */
export { shell } from "../services/tools/builtin/Shell.ts"
/** @category Constants @since 0.1.0 */
export { webFetch } from "../services/tools/builtin/WebFetch.ts"
/** @category Constants @since 0.1.0 */
export { writeFile } from "../services/tools/builtin/WriteFile.ts"
/** @category Constants @since 0.1.0 */
export { writeTodos } from "../services/tools/builtin/WriteTodos.ts"
/** @category Models @since 0.1.0 */
export type {
  Call,
  CallContext,
  Question,
  Tool,
  ToolOptions,
  FromToolkit,
  Prepared,
  PreparedOptions
} from "../services/tools/Tool.ts"
/** @category Models @since 0.1.0 */
export { Display, type ToolResult } from "../domain/tools/ToolResult.ts"
/** @category Models @since 0.1.0 */
export {
  ApprovalMode,
  type ApprovalRules,
  type ToolKind,
  type Answer as ApprovalAnswer,
  type Decision as ApprovalDecision,
  type HeldGrant
} from "../domain/tools/Approval.ts"
/** @category Models @since 0.1.0 */
export type { ApprovalOptions, ApprovalQuestion } from "../services/tools/Approval.ts"
/** @category Models @since 0.1.0 */
export type { Choice, UserQuestion } from "../services/tools/UserPrompt.ts"
/** @category Models @since 0.1.0 */
export type { FileDiff } from "../domain/tools/FileDiff.ts"
/** @category Models @since 0.1.0 */
export type { McpServersSettings } from "../domain/tools/McpServer.ts"
/** @category Models @since 0.1.0 */
export type { BackgroundCommand, BackgroundCommandList } from "../services/tools/builtin/BackgroundCommands.ts"
/** @category Models @since 0.1.0 */
export type { Needs as LineSearchServices } from "../services/tools/builtin/LineSearch.ts"
/** @category Models @since 0.1.0 */
export type { RecallSource } from "../services/tools/builtin/Recall.ts"
/** @category Models @since 0.1.0 */
export type { ShellServices } from "../services/tools/builtin/ShellProcess.ts"
/** @category Errors @since 0.1.0 */
export { ToolFailure } from "../services/tools/Tool.ts"
