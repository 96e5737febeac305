/** The folders an agent works in, and which of them the user trusts. */
export { Workspace, WorkspaceError } from "../services/workspace/Workspace.ts"
export { type TrustState, Trust, TrustError } from "../services/workspace/Trust.ts"
