/** Hooks: observe, change and stop what happens, in the protocol of Gemini CLI. */

/** @category Services @since 0.1.0 */
export { HookSystem } from "../services/hooks/HookSystem.ts"
/** @category Constants @since 0.1.0 */
export { emptyOutcome } from "../domain/hooks/Hook.ts"
/** @category Models @since 0.1.0 */
export type { Hook, HookPlace, Subscriber } from "../services/hooks/HookSystem.ts"
/** @category Models @since 0.1.0 */
export {
  HookEvent,
  type HookEventName,
  type HookFailure,
  type HookNotice,
  type HookOutcome,
  HookOutput,
  HookRequest
} from "../domain/hooks/Hook.ts"
/** @category Models @since 0.1.0 */
export type { HookAnswer } from "../domain/hooks/HookAnswer.ts"
/** @category Models @since 0.1.0 */
export type { CommandHook, HookProblem, HookSource } from "../domain/hooks/HookSettings.ts"
