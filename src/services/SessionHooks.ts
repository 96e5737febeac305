import { Effect } from "effect"
import type { HookEvent } from "../domain/Hook.ts"
import { hookMessage } from "../domain/HookContext.ts"
import type { Hooked } from "./Hooked.ts"

/** What hooks have to do with a session as a whole (spec 8). */

type Source = Extract<HookEvent, { readonly _tag: "SessionStart" }>["source"]
type Reason = Extract<HookEvent, { readonly _tag: "SessionEnd" }>["reason"]

/**
 * Tells hooks that a conversation begins, goes on, or begins anew. What they add is a text to be put into the conversation as
 * a program's message; undefined: nothing.
 */
export const start = Effect.fn("SessionHooks.start")(function* (
  hooked: Hooked,
  source: Source
): Effect.fn.Return<string | undefined> {
  const { context } = yield* hooked.fire({ _tag: "SessionStart", source })
  return context === undefined ? undefined : hookMessage(context)
})

/** Tells hooks that it ends. What they say to that changes nothing. */
export const end = Effect.fn("SessionHooks.end")(function* (hooked: Hooked, reason: Reason): Effect.fn.Return<void> {
  yield* hooked.fire({ _tag: "SessionEnd", reason })
})
