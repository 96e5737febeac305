/**
 * What the answers of a dialect are: lists of blocks (content blocks, items, parts), in one body or as they grow from events. The readers of the
 * provider layers and the relay of the gateway fold this, and decode nothing themselves.
 */

import { Schema } from "effect"
import type { Part } from "../content/Content.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { afterSpace, valueEnd } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import type { Usage } from "../tokens/Tokens.ts"

/** A call of a tool. */
export interface WireCall {
  /** Empty where the provider gives none. */
  readonly id: string
  readonly name: string
  /** Undefined if they are not JSON, as where the answer broke off. */
  readonly args: unknown
}

/** The one object in a text of objects in a row, beside empty ones. Relays begin with an empty object, or repeat the whole at the end. */
const repeated = (text: string): unknown => {
  const values = new Set<string>()
  for (let at = afterSpace(text, 0); at < text.length;) {
    const end = valueEnd(text, at)
    if (end < 0) return undefined
    values.add(text.slice(at, end))
    at = afterSpace(text, end)
  }
  values.delete("{}")
  const [only = "{}", ...others] = values
  return others.length === 0 ? parsedOrUndefined(only) : undefined
}

/** Longer arguments are taken as they are: V8 searches a text of nothing but escapes with its stack. */
const maxMendedChars = 1_000_000

/** JSON with the control characters in its strings written as JSON has them: models write line breaks as they are. */
const withEscapes = (text: string): string =>
  text.length > maxMendedChars
    ? text
    : text.replace(/"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)/gs, (string) =>
        string.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1))
      )

/** The arguments of a call: JSON as a text, which some servers write as a string of JSON again, or a value. */
export const callArguments = (given: unknown = ""): unknown => {
  if (typeof given !== "string") return given ?? {}
  const parsed =
    given.trim() === "" ? {} : (parsedOrUndefined(given) ?? repeated(given) ?? parsedOrUndefined(withEscapes(given)))
  const inner = typeof parsed === "string" ? parsedOrUndefined(parsed) : undefined
  return isJson(inner) || parsed === null ? (inner ?? {}) : parsed
}

/** The arguments of a call as an object, which every dialect requires in a request. */
export const objectArguments = (args: unknown): Json => {
  const read = callArguments(args)
  return isJson(read) ? read : { value: args }
}

/** A part of an answer that the client saw. */
export const VisibleBlock = Schema.Struct({
  kind: Schema.Literals(["text", "thought", "other"]),
  /** The text of a text or a thought. */
  text: Schema.String
})
export type VisibleBlock = typeof VisibleBlock.Type

/** A piece of a block in an event. */
export interface BlockPiece {
  /** The index of its block in the answer. */
  readonly at: number
  /** The block as far as it is known, in an event that can begin it. */
  readonly begun?: Json | undefined
}

/** What an event adds to an answer. */
export interface Growth {
  /** Whether the event begins the answer, or belongs to its end: what goes on with another answer leaves it out. */
  readonly border?: "beginning" | "end" | undefined
  /** The pieces of blocks in it, where the dialect gives blocks an index. */
  readonly pieces?: ReadonlyArray<BlockPiece> | undefined
  /** Texts and thoughts, piece by piece. */
  readonly shown?: ReadonlyArray<Part>
  /** The blocks that are complete now. */
  readonly blocks?: ReadonlyArray<Json>
  /** Why the answer ends, in the provider's own word. */
  readonly end?: string
  /** The provider's counts, in its own form. */
  readonly counts?: unknown
  /** A value with the error that the server reports. */
  readonly fault?: unknown
}

/** An answer that arrives in events. Mutable. */
export interface GrowingAnswer {
  /** Reads an event. Returns undefined for one of an unknown form. */
  readonly push: (event: Json) => Growth | undefined
  /** Returns what the end of the stream adds. `isMarked`: the server said that it is the end. */
  readonly end: (isMarked: boolean) => Growth
  /** The answer so far, as the provider sends it whole. */
  readonly whole: Json
}

/** The facts of a dialect about its answers. */
export interface AnswerForm {
  /** Begins an answer that arrives in events. */
  readonly begin: () => GrowingAnswer
  /** The blocks of a whole answer. Undefined for a body of another form. */
  readonly blocksOf: (answer: Json) => ReadonlyArray<Json> | undefined
  /** The key of the counts in a whole answer. */
  readonly usageKey: string
  /** Reads the counts of an answer. */
  readonly usage: (counts: Json) => Usage
  /** The call that a block is, if it is one that the client answers. */
  readonly callOf: (block: Json) => WireCall | undefined
  /** How the client sees a block. */
  readonly visible: (block: Json) => VisibleBlock
  /** The body of an error, as clients expect it. `status` is that of HTTP. */
  readonly failure: (status: number, message: string) => Json
  /** The messages that stand for an answer of these blocks in the next request. */
  readonly sent: (blocks: ReadonlyArray<Json>, answer: Json) => ReadonlyArray<Json>
}

/** The facts of a dialect whose blocks are read as parts of a conversation. */
export interface ReadableForm extends AnswerForm {
  /** The state that a block carries for the model that wrote it. */
  readonly stateOf: (block: Json) => unknown
  /** Why an answer ended, as the Gemini API names it; undefined if the model refused to answer. */
  readonly finishReason: (end: string) => string | undefined
}
