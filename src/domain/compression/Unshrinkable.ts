import { hasResponses } from "../content/Content.ts"
import { type Conversation, itemTokens, view, type ViewItem } from "../conversation/Conversation.ts"
import { TokenCount } from "../tokens/Tokens.ts"

/**
 * Returns the five largest of the kept messages, largest first, to explain why a conversation does not get smaller. `kept`:
 * the ids of the entries that the last plan keeps. `tokens`: the estimated size of the message as it is shown.
 */
export const unshrinkable = (
  conversation: Conversation,
  kept: ReadonlySet<string>
): ReadonlyArray<{ readonly entry: ViewItem["entry"]["id"]; readonly what: string; readonly tokens: TokenCount }> =>
  view(conversation)
    .filter((item) => kept.has(item.entry.id))
    .map((item) => ({
      entry: item.entry.id,
      what:
        item.entry.content.role === "user"
          ? hasResponses(item.entry.content)
            ? "tool output"
            : "user text"
          : "model message",
      tokens: TokenCount.make(Math.max(0, Math.round(itemTokens(item))))
    }))
    .sort((a, b) => b.tokens - a.tokens)
    .slice(0, 5)
