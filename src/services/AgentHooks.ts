import { Effect } from "effect"
import { plainText } from "../domain/Content.ts"
import { hookMessage } from "../domain/HookContext.ts"
import type { Attachment, Chat } from "./Chat.ts"
import type { Hooked } from "./Hooked.ts"

/** What hooks make of a whole run of an agent: of the message that it begins with, and of its end (spec 8). */

/** What becomes of a person's message. */
export type Admitted =
  | { readonly _tag: "Goes"; readonly attached: ReadonlyArray<Attachment> }
  /** Nothing is done about it, but it was said. */
  | { readonly _tag: "Stopped"; readonly why: string }
  /** As if it had not been said. */
  | { readonly _tag: "Refused"; readonly why: string }

/** Tells hooks of a message before it is worked on, and has what they add to it go with it. */
export const admitted = Effect.fn("AgentHooks.admitted")(function* (
  hooked: Hooked,
  prompt: string
): Effect.fn.Return<Admitted> {
  const { blocked, context, stopped } = yield* hooked.fire({ _tag: "BeforeAgent", prompt })
  if (stopped !== undefined) return { _tag: "Stopped", why: stopped }
  if (blocked !== undefined) return { _tag: "Refused", why: blocked }
  return { _tag: "Goes", attached: context === undefined ? [] : [{ parts: [{ text: hookMessage(context) }] }] }
})

/** What becomes of a run whose model is done. */
export interface Judged {
  /** It has to stop for good, and why. */
  readonly stopped: string | undefined
  /** It has to go on, and what its model is told. */
  readonly goesOn: string | undefined
  /** The conversation is to be emptied. */
  readonly clears: boolean
}

const done: Judged = { stopped: undefined, goesOn: undefined, clears: false }

/** Tells hooks that the model is done; `isAgain`: they had it go on before. */
export const judged = Effect.fn("AgentHooks.judged")(function* (
  hooked: Hooked,
  chat: Chat["Service"],
  prompt: string,
  isAgain: boolean
): Effect.fn.Return<Judged> {
  if (!hooked.has("AfterAgent")) return done
  const { view } = yield* chat.conversation
  const last = view?.value.entry.content
  const answer = last === undefined || last.role !== "model" ? "" : plainText(last)
  const { blocked, clears, stopped } = yield* hooked.fire({ _tag: "AfterAgent", prompt, answer, isAgain })
  return { stopped, goesOn: stopped === undefined ? blocked : undefined, clears }
})
