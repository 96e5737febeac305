import { Schema } from "effect"
import { ContentShape, type Part } from "../../content/Content.ts"
import type { MessageCodec, ReadPart } from "../MessageCodec.ts"
import { groupOf } from "../MessageCodec.ts"

/** Contents of the Gemini API. */

const isContent = Schema.is(ContentShape)

/** Contents as the Gemini API and its SDK have them. */
export const geminiCodec: MessageCodec = {
  read: (messages) =>
    messages.flatMap((message, at) => {
      if (!isContent(message)) return []
      const parts = message.parts.map((part, index): ReadPart => [
        part,
        { message: at, path: ["parts", index], write: (short: Part) => short }
      ])
      const group = groupOf(at, at + 1, message.role, parts)
      return [{ ...group, content: message }]
    }),
  write: (content) => content
}
