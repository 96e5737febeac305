/** Tools: define your own, use the built-in ones, and decide what runs without approval. */
export {
  type Call,
  type CallContext,
  type Question,
  type Tool,
  ToolFailure,
  type ToolOptions,
  fromToolkit,
  make,
  makePrepared
} from "../services/tools/Tool.ts"
export { Display, type ToolResult } from "../domain/tools/ToolResult.ts"
export { ApprovalMode, type ApprovalRules, type ToolKind } from "../domain/tools/Approval.ts"
export { Approval, type ApprovalOptions } from "../services/tools/Approval.ts"
export { type Choice, UserPrompt, type UserQuestion } from "../services/tools/UserPrompt.ts"
export { glob } from "../services/tools/builtin/Glob.ts"
export { listDirectory } from "../services/tools/builtin/ListDirectory.ts"
export { readFile } from "../services/tools/builtin/ReadFile.ts"
export { readManyFiles } from "../services/tools/builtin/ReadManyFiles.ts"
export { recall } from "../services/tools/builtin/Recall.ts"
export { replace } from "../services/tools/builtin/Replace.ts"
export { searchFiles } from "../services/tools/builtin/SearchFiles.ts"
export { shell } from "../services/tools/builtin/Shell.ts"
export { webFetch } from "../services/tools/builtin/WebFetch.ts"
export { writeFile } from "../services/tools/builtin/WriteFile.ts"
export { writeTodos } from "../services/tools/builtin/WriteTodos.ts"
export type { Answer as ApprovalAnswer, Decision as ApprovalDecision, HeldGrant } from "../domain/tools/Approval.ts"
export type { FileDiff } from "../domain/tools/FileDiff.ts"
export type { McpServersSettings } from "../domain/tools/McpServer.ts"
export type { ApprovalQuestion } from "../services/tools/Approval.ts"
export type { FromToolkit, Prepared, PreparedOptions } from "../services/tools/Tool.ts"
export type { BackgroundCommand, BackgroundCommandList } from "../services/tools/builtin/BackgroundCommands.ts"
export type { Needs as LineSearchServices } from "../services/tools/builtin/LineSearch.ts"
export type { RecallSource } from "../services/tools/builtin/Recall.ts"
export type { ShellServices } from "../services/tools/builtin/ShellProcess.ts"
