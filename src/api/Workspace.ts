/** The folders an agent works in, and which of them the user trusts. */
export { Workspace, WorkspaceError } from "../services/workspace/Workspace.ts"
export { type TrustState, Trust, TrustError } from "../services/workspace/Trust.ts"
export type { IdeState } from "../domain/workspace/IdeContext.ts"
export type { IdeContext } from "../services/workspace/IdeContext.ts"
export type { TrustAnswer, TrustEntry } from "../services/workspace/Trust.ts"
