import { Effect } from "effect"
import { plainText } from "../../domain/content/Content.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import type { Hooked } from "../hooks/Hooked.ts"

/** Runs the hooks around a whole agent run: BeforeAgent for its message, AfterAgent for its end. */

/** What happens to the user's message. */
type PromptDecision =
  | { readonly _tag: "Goes"; readonly attached: ReadonlyArray<Attachment> }
  /** No work is done for it, but it stays in the conversation. */
  | { readonly _tag: "Stopped"; readonly why: string }
  /** The message is treated as if it had never been sent. */
  | { readonly _tag: "Refused"; readonly why: string }

/** Runs the BeforeAgent hooks of a message and attaches what they add to it. */
export const beforeAgent = Effect.fn("AgentHooks.beforeAgent")(function* (
  hooked: Hooked,
  prompt: string
): Effect.fn.Return<PromptDecision> {
  const { blocked, context, stopped } = yield* hooked.fire({ _tag: "BeforeAgent", prompt })
  if (stopped !== undefined) return { _tag: "Stopped", why: stopped }
  if (blocked !== undefined) return { _tag: "Refused", why: blocked }
  return { _tag: "Goes", attached: context === undefined ? [] : [{ parts: [{ text: hookMessage(context) }] }] }
})

/** What the AfterAgent hooks decided about a run whose model is done. */
interface EndDecision {
  /** Why the run stops for good. Undefined: it does not. */
  readonly stopped: string | undefined
  /** The prompt with which the run continues. Undefined: it does not. */
  readonly goesOn: string | undefined
  /** Whether the conversation is emptied. */
  readonly clears: boolean
}

const done: EndDecision = { stopped: undefined, goesOn: undefined, clears: false }

/** Runs the AfterAgent hooks. `isAgain`: hooks already continued this run before. */
export const afterAgent = Effect.fn("AgentHooks.afterAgent")(function* (
  hooked: Hooked,
  chat: Chat["Service"],
  prompt: string,
  isAgain: boolean
): Effect.fn.Return<EndDecision> {
  if (!hooked.has("AfterAgent")) return done
  const { view } = yield* chat.conversation
  const last = view?.value.entry.content
  const answer = last === undefined || last.role !== "model" ? "" : plainText(last)
  const { blocked, clears, stopped } = yield* hooked.fire({ _tag: "AfterAgent", prompt, answer, isAgain })
  return { stopped, goesOn: stopped === undefined ? blocked : undefined, clears }
})
