import { isCall } from "../content/Content.ts"
import { type Conversation, type Draft, itemParts, pairing, placeKey, view } from "../conversation/Conversation.ts"

/** Copies a conversation for an agent that starts with it. */

/**
 * The messages of the view, as the model sees them, ready to be appended to another conversation. Calls without a response, such as
 * the one that starts the agent, are left out; so is the environment message, because the agent has its own.
 */
export const forkedMessages = (conversation: Conversation): ReadonlyArray<Draft> => {
  const items = view(conversation)
    .filter(({ entry }) => entry.author !== "environment")
    .map((item) => ({ entry: item.entry, role: item.entry.content.role, parts: itemParts(item) }))
  const { responseOf } = pairing(items)
  return items.flatMap(({ entry: { at, author }, parts, role }, item) => {
    const kept = parts.filter((part, index) => !isCall(part) || responseOf.has(placeKey({ item, part: index })))
    if (kept.length === 0) return []
    return [
      {
        content: { role, parts: kept },
        ...(at === undefined ? {} : { at }),
        ...(author === undefined ? {} : { author })
      }
    ]
  })
}
