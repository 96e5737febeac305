/** The folders an agent works in, and which of them the user trusts. */

/** @category Services @since 0.1.0 */
export { Workspace } from "../services/workspace/Workspace.ts"
/** @category Services @since 0.1.0 */
export { Trust } from "../services/workspace/Trust.ts"
/** @category Services @since 0.1.0 */
export type { IdeContext } from "../services/workspace/IdeContext.ts"
/** @category Models @since 0.1.0 */
export type { TrustState, TrustAnswer, TrustEntry } from "../services/workspace/Trust.ts"
/** @category Models @since 0.1.0 */
export type { IdeState } from "../domain/workspace/IdeContext.ts"
/** @category Errors @since 0.1.0 */
export { WorkspaceError } from "../services/workspace/Workspace.ts"
/** @category Errors @since 0.1.0 */
export { TrustError } from "../services/workspace/Trust.ts"
