/**
 * Parts in the wire form of the Gemini API, which readers build from records of other agents. Each keeps its exact JSON text
 * when writing the part again would give another text.
 */

import { type Content, needsSource, type Part, payload } from "../content/Content.ts"
import type { Author, Draft } from "../conversation/Conversation.ts"
import { isJson } from "../text/JsonObject.ts"
import { arraySlices, sliceAt, type SourceText } from "../text/JsonSource.ts"
import type { Usage } from "../tokens/Tokens.ts"

/** A part, and the JSON text it was read from when that has to be kept. */
export interface Piece {
  readonly part: Part
  readonly source: SourceText | undefined
}

/** Finds the exact JSON text of a value in a record; undefined when writing the value again gives the same text. */
export type Exact = () => SourceText | undefined

/** Whether every value in the text is spelled as we would write it (escaped surrogates differ from raw bytes). */
export const isCanonical = (value: unknown, text: string): boolean =>
  !text.includes("\\ud") && !text.includes("\\uD") && JSON.stringify(value) === text

/** Locates the exact text of the value at a path in a record, or in a part of it. */
export type Locate = (path: ReadonlyArray<string | number>) => Exact

/** Locates exact texts in a value. Nothing is compared or searched before it is requested, and a list is split once. */
export const locate = (value: unknown, text: string): Locate => {
  let canonical: boolean | undefined
  const lists = new Map<string, ReadonlyArray<SourceText>>()
  const elementsOf = (list: ReadonlyArray<string | number>): ReadonlyArray<SourceText> => {
    const key = JSON.stringify(list)
    const elements = lists.get(key) ?? arraySlices(sourceAt(list) ?? "")
    lists.set(key, elements)
    return elements
  }
  const sourceAt = (path: ReadonlyArray<string | number>): SourceText | undefined => {
    const last = path.findLastIndex((step) => typeof step === "number")
    if (last < 0) return sliceAt(text, path)
    const element = elementsOf(path.slice(0, last))[Number(path[last])]
    return element === undefined ? undefined : sliceAt(element, path.slice(last + 1))
  }
  return (path) => () => {
    canonical ??= isCanonical(value, text)
    return canonical ? undefined : sourceAt(path)
  }
}

/** Locates texts in the part of a record that stands at a path. */
export const under =
  (at: Locate, ...root: ReadonlyArray<string | number>): Locate =>
  (path) =>
    at([...root, ...path])

/** For a value that no file holds. */
export const nowhere: Locate = () => () => undefined

/** Makes a piece of a part in wire shape, with its exact text. */
export const wirePiece = (part: Part, slice: SourceText | undefined): Piece => ({
  part,
  source: slice !== undefined && needsSource(part, slice) ? slice : undefined
})

/** Stands in a part for a value whose JSON text is put there. */
const hole = "\u0001exact\u0001"

/** Makes the piece of a part that holds a value, with the exact text of that value. */
const piece = <Value>(value: Value, exact: Exact, partOf: (value: Value | string) => Part): Piece => {
  const inner = exact()
  return inner === undefined
    ? { part: partOf(value), source: undefined }
    : wirePiece(
        partOf(value),
        JSON.stringify(partOf(hole)).replace(JSON.stringify(hole), () => inner)
      )
}

const withId = (id: string | undefined) => (id === undefined ? {} : { id })

const signed = (thoughtSignature: string | undefined) => (thoughtSignature === undefined ? {} : { thoughtSignature })

const noText: Exact = () => undefined

/** Makes a text part. Its exact spelling is kept when it is not well-formed. */
export const textPiece = (words: string, exact: Exact): Piece =>
  piece(words, words.isWellFormed() ? noText : exact, (text) => ({ text }))

/** Makes a thought, with the signature that its provider expects back. */
export const thoughtPiece = (words: string, signature: string | undefined, exact: Exact): Piece =>
  piece(words, words.isWellFormed() ? noText : exact, (text) => ({ text, thought: true, ...signed(signature) }))

/** Makes a call. The exact JSON of its arguments is kept when writing them again would give another text. */
export const callPiece = (
  call: {
    readonly id: string | undefined
    readonly name: string
    readonly args: unknown
    readonly signature?: string | undefined
  },
  exact: Exact
): Piece =>
  piece(call.args, call.args === undefined ? noText : exact, (args) => ({
    functionCall: { ...withId(call.id), name: call.name, ...(args === undefined ? {} : { args }) },
    ...signed(call.signature)
  }))

/** A tool result in the other agent's form: a text, or a list of blocks. */
export interface Answer {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly failed: boolean
  readonly content: unknown
}

/** Returns the only text of a result: the result itself, its single text block, or an empty text. */
const answerText = (content: unknown): string | undefined => {
  if (content === undefined || content === null) return ""
  if (typeof content === "string") return content
  if (!Array.isArray(content) || content.length > 1) return undefined
  const only: unknown = content[0]
  if (only === undefined) return ""
  return isJson(only) && only.type === "text" && typeof only.text === "string" ? only.text : undefined
}

/** Whether writing an answer again might give another text than the one it was read from. */
export const needsExact = (content: unknown): boolean => answerText(content)?.isWellFormed() !== true

/**
 * Makes the part of a tool result. One text becomes `{output}`, or `{error}` when the tool failed. Several blocks (or media)
 * become `{content}` or `{error}` with the blocks unchanged, because joining them would lose their boundaries.
 */
export const answerPiece = ({ content, failed, id, name }: Answer, exact: Exact): Piece => {
  const text = answerText(content)
  const key = failed ? "error" : text === undefined ? "content" : "output"
  const valueText = () => {
    const inner = exact()
    // The exact text is that of the list of blocks, even when the text of its only block represents it.
    return inner === undefined || text === undefined || typeof content === "string"
      ? inner
      : sliceAt(inner, [0, "text"])
  }
  return piece(text ?? content, needsExact(content) ? valueText : noText, (value) => ({
    functionResponse: { ...withId(id), ...(name === undefined ? {} : { name }), response: { [key]: value } }
  }))
}

/** A result that waits for the name of its call. */
export interface OpenAnswer {
  readonly answer: Answer
  readonly exact: Exact
  /** Whether a result of a tool of this name failed, where the record does not say. */
  readonly failsAs?: (name: string | undefined) => boolean
}

/** Whether a part of a message is a result that waits for the name of its call. */
export const isOpenAnswer = (part: Piece | OpenAnswer): part is OpenAnswer => "answer" in part

/** Returns parts of a message with each result named after its call. */
export const namedPieces = (
  parts: ReadonlyArray<Piece | OpenAnswer>,
  nameOf: (call: string, part: OpenAnswer) => string | undefined
): ReadonlyArray<Piece> =>
  parts.map((part) => {
    if (!isOpenAnswer(part)) return part
    const { answer, exact, failsAs } = part
    const name = nameOf(answer.id ?? "", part)
    return answerPiece({ ...answer, name, failed: answer.failed || failsAs?.(name) === true }, exact)
  })

/** Makes a message from these pieces and the data of its record. */
export const draftOf = (
  role: Content["role"],
  pieces: ReadonlyArray<Piece>,
  about: {
    readonly at: number | undefined
    readonly author: Author | undefined
    readonly line: number
    readonly ids: ReadonlyArray<string>
    readonly model?: string | undefined
    readonly usage?: Usage | undefined
  }
): Draft => {
  const source = sourcesOf(pieces.map((one) => one.source))
  return {
    content: { role, parts: pieces.map((one) => one.part) },
    ...(about.at === undefined ? {} : { at: about.at }),
    ...(about.author === undefined ? {} : { author: about.author }),
    ...(source === undefined ? {} : { source }),
    ...(about.model === undefined ? {} : { model: about.model }),
    ...(about.usage === undefined ? {} : { usage: about.usage }),
    origin: { line: about.line, ids: about.ids }
  }
}

/** Returns exact texts by the number of their part; undefined when there is none. */
export const sourcesOf = (sources: ReadonlyArray<SourceText | undefined>): Record<string, string> | undefined => {
  const kept = sources.flatMap((source, index) => (source === undefined ? [] : [[String(index), source] as const]))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** Returns the pieces of a message: the inverse of `draftOf`. */
export const piecesOf = ({ content, source }: Draft): ReadonlyArray<Piece> =>
  content.parts.map((part, index) => ({ part, source: source?.[String(index)] }))

/** Whether two lists of pieces are the same parts with the same bytes under their handles. */
export const samePieces = (left: ReadonlyArray<Piece>, right: ReadonlyArray<Piece>): boolean =>
  left.length === right.length &&
  left.every((one, index) => {
    const other = right[index]
    return (
      other !== undefined &&
      JSON.stringify(one.part) === JSON.stringify(other.part) &&
      payload(one.part, one.source).text === payload(other.part, other.source).text
    )
  })

/** The number of the line on which each slice begins, in order. */
export const lineNumbers = (text: string, slices: ReadonlyArray<SourceText>): ReadonlyArray<number> => {
  let line = 1
  let counted = 0
  let from = 0
  return slices.map((slice) => {
    const start = text.indexOf(slice, from)
    for (let at = text.indexOf("\n", counted); at >= 0 && at < start; at = text.indexOf("\n", counted)) {
      line += 1
      counted = at + 1
    }
    from = start + slice.length
    return line
  })
}
