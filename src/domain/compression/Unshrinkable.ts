import { hasResponses } from "../content/Content.ts"
import { type Conversation, itemTokens, view, type ViewItem } from "../conversation/Conversation.ts"
import { TokenCount } from "../tokens/Tokens.ts"

/** Returns the five largest kept messages that no plan can make smaller, largest first: user text, pending messages, media. */
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
