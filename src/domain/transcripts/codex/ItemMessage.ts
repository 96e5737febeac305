import type { Content } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import { type Exact, locate, type OpenAnswer, type Piece } from "../ExactParts.ts"
import { isJson, type Json } from "../JsonRecord.ts"

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

/** The source of an item: in its own line (`root` is the path to it), or in a list. */
export interface ItemSource {
  readonly value: unknown
  readonly text: string
  readonly root: ReadonlyArray<string>
  /** The name of the source in problems. */
  readonly name: string
  /** Names the item in its file. */
  readonly id?: string
}

/** Returns the spelling of the value under a key of an item. */
export const exactAt = ({ root, text, value }: ItemSource, key: string): Exact =>
  locate(value, text, []).at([...root, key])
/** Locates the elements of a list under a key of an item. */
export const listAt = ({ root, text, value }: ItemSource, key: string) => locate(value, text, [...root, key])

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
