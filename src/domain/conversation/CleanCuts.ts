import { isCall, isResponse } from "../content/Content.ts"
import { itemParts, pairing, placeKey, type ViewItem } from "./Conversation.ts"

/** Returns for each index up to the length whether a cut before it keeps every call with its response. */
export const cleanCuts = (items: ReadonlyArray<ViewItem>): ReadonlyArray<boolean> => {
  const contents = items.map((item) => ({ role: item.entry.content.role, parts: itemParts(item) }))
  const { responseOf } = pairing(contents)
  const clean: Array<boolean> = []
  let openUntil = -1
  for (let index = 0; index <= items.length; index += 1) {
    const content = items[index]?.entry.content
    // Consecutive responses belong together, and with the calls before them.
    clean.push(index > openUntil && !(content?.role === "user" && content.parts.some(isResponse)))
    contents[index]?.parts.forEach((part, at) => {
      if (!isCall(part)) return
      const response = responseOf.get(placeKey({ item: index, part: at }))
      if (response !== undefined) openUntil = Math.max(openUntil, response.item)
    })
  }
  return clean
}
