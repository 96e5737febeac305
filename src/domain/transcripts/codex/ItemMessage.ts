import type { Content } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { OpenAnswer, Piece } from "../ExactParts.ts"

/** The message that a response item of Codex makes. */

/** The message of a response item. */
export interface ItemMessage {
  readonly role: Content["role"]
  readonly author: Author | undefined
  /** Consecutive items of the same kind form one message. */
  readonly joins: "model" | "answers" | undefined
  readonly parts: ReadonlyArray<Piece | OpenAnswer>
  /** The call that the item makes. */
  readonly call: { readonly id: string; readonly name: string } | undefined
  /** The result of that call, when the item has it too. */
  readonly result?: ItemMessage
}

/** Makes the message of an item. Those of the model join each other. */
export const messageOf = (role: Content["role"], list: ReadonlyArray<Piece>, author?: Author): ItemMessage => ({
  role,
  author,
  joins: role === "model" ? "model" : undefined,
  parts: list,
  call: undefined
})

/** Parses a text as a JSON object; undefined when it is not one. */
export const objectOf = (text: string): Json | undefined => {
  const value = parsedOrUndefined(text)
  return isJson(value) ? value : undefined
}

/** Whether an item joins the message before it: consecutive items of the model, and consecutive tool results. */
export const continuesMessage = (before: ItemMessage["joins"], next: ItemMessage["joins"]): boolean =>
  next !== undefined && before === next
