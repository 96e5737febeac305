/** Hooks: observe, change and stop what happens, in the protocol of Gemini CLI. */
export { type Hook, type HookPlace, HookSystem, type Subscriber } from "../services/hooks/HookSystem.ts"
export {
  HookEvent,
  type HookEventName,
  type HookFailure,
  type HookNotice,
  type HookOutcome,
  emptyOutcome,
  HookOutput,
  HookRequest
} from "../domain/hooks/Hook.ts"
export type { HookAnswer } from "../domain/hooks/HookAnswer.ts"
export type { CommandHook, HookFault, HookProblem, HookSource } from "../domain/hooks/HookSettings.ts"
