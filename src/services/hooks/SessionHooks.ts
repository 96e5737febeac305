import { Effect } from "effect"
import type { HookEvent } from "../../domain/hooks/Hook.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import type { Hooked } from "./Hooked.ts"

/** Fires the hooks for the start and end of a session. */

type Source = Extract<HookEvent, { readonly _tag: "SessionStart" }>["source"]
type Reason = Extract<HookEvent, { readonly _tag: "SessionEnd" }>["reason"]

/**
 * Fires SessionStart. Returns the hooks' context as a message to add to the conversation, undefined when there is none.
 */
export const start = Effect.fn("SessionHooks.start")(function* (hooked: Hooked, source: Source) {
  const { context } = yield* hooked.fire({ _tag: "SessionStart", source })
  return context === undefined ? undefined : hookMessage(context)
})

/** Fires SessionEnd. Answers have no effect. */
export const end = Effect.fn("SessionHooks.end")(function* (hooked: Hooked, reason: Reason): Effect.fn.Return<void> {
  yield* hooked.fire({ _tag: "SessionEnd", reason })
})
