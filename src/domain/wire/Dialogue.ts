/**
 * A conversation in the form that the dialects of Anthropic and OpenAI share: turns alternate, the first and the last are the user's, every call
 * has an id and one result in the turn after it. Contents of the Gemini API may break each of these rules. A conversation that goes on keeps the
 * turns it had, so that a provider's cache finds them.
 */

import { Schema } from "effect"
import {
  type Content,
  isCall,
  isErrorResponse,
  isMedia,
  isResponse,
  isThought,
  outputText,
  type Part,
  type Role,
  withoutSignatures
} from "../content/Content.ts"
import { mediaText, responseContent } from "../content/MediaBlocks.ts"
import type { Json } from "../text/JsonObject.ts"
import { objectArguments } from "./AnswerForm.ts"
import type { Dialect } from "./Dialect.ts"
import { isCompaction, stateFor, type Target } from "./ModelState.ts"
import type { ToolDeclaration } from "./ToolDeclarations.ts"

/** Generation parameters. What is absent is the provider's choice; none is ever derived from token counts. */
export const Generation = Schema.Struct({
  temperature: Schema.optionalKey(Schema.Finite),
  topP: Schema.optionalKey(Schema.Finite),
  topK: Schema.optionalKey(Schema.Finite),
  maxOutputTokens: Schema.optionalKey(Schema.Natural),
  thinkingBudget: Schema.optionalKey(Schema.Int),
  /** The JSON schema that the text of the answer has to fit. A model whose API takes none is told it in words. */
  responseSchema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
})
export type Generation = typeof Generation.Type

/** The input of a request in one of these dialects. */
export interface DialogueRequest extends Readonly<{ [K in keyof Generation]?: Generation[K] | undefined }> {
  readonly model: string
  /** The host of the server. */
  readonly server: string
  readonly contents: ReadonlyArray<Content>
  readonly systemInstruction?: string | undefined
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly mustCall?: boolean | undefined
}

/** The result of a call. */
export interface ToolResult {
  /** The id of its call. */
  readonly id: string
  readonly text: string
  readonly isError: boolean
  /** Images and files that came with it. */
  readonly media: ReadonlyArray<Part>
}

/** A part of the model's turn. */
export type ModelBlock =
  | { readonly _tag: "Text"; readonly text: string }
  | {
      readonly _tag: "Call"
      readonly id: string
      readonly name: string
      readonly args: Json
      /** Fields that the server of Chat Completions added to the call. */
      readonly state: unknown
    }
  /** A state of the model that reads this, such as its thinking. */
  | { readonly _tag: "State"; readonly state: unknown }

/** A turn of the user: the results of the calls before it, in their order, then texts and media. */
export interface UserTurn {
  readonly role: "user"
  readonly results: ReadonlyArray<ToolResult>
  readonly parts: ReadonlyArray<Part>
}

/** A turn of the model. It has a text, a call, or what a server compacted. */
export interface ModelTurn {
  readonly role: "model"
  readonly blocks: ReadonlyArray<ModelBlock>
}

/** A turn of the dialogue. */
export type DialogueTurn = UserTurn | ModelTurn

/** Texts where a dialect requires text and the conversation has none. */
export const noWords = {
  opening: "(the conversation goes on)",
  user: "Continue.",
  model: "(no answer)",
  result: "(no result)",
  output: "(no output)",
  thought: "(no reasoning)"
}

const isBlank = (text: string): boolean => text.trim() === ""

/** The text of a part that is no media. */
const textOf = (part: Part): string => outputText(part) ?? part.text ?? JSON.stringify(part)

/** A call without a result. */
interface OpenCall {
  readonly id: string
  /** Its id in the conversation. */
  readonly own: string | undefined
  readonly name: string
}

/** The ids of calls that a dialect accepts. */
const validIds: Readonly<Record<Dialect, RegExp>> = {
  anthropic: /^[A-Za-z0-9_-]{1,64}$/,
  responses: /^[A-Za-z0-9_-]{1,64}$/,
  // Servers expect theirs back, whatever they look like: LiteLLM's hold a signature of thousands of characters.
  chat: /^\S+$/,
  gemini: /\S/
}

/** The same for servers of Chat Completions that accept short ones alone: OpenAI's and Azure's, and relays before them. */
const shortIds = /^\S{1,40}$/
const takesShortIds = /(?:^|\.)(?:openai|azure)\.com$/
const isOfOpenAi = /(?:^|[/.])(?:gpt-[345]|o\d|codex-)/
/** Relays before Claude pass ids on as they are: OpenRouter, Copilot and LiteLLM. */
const isClaude = /(?:^|[/.])claude-/

/** Whether a model of Mistral reads a request of Chat Completions. It takes ids of nine characters, and no user's message after results. */
export const isMistral = ({ dialect, model, server }: Target): boolean =>
  dialect === "chat" && (/mistral\.ai(?::\d+)?$/.test(server) || /\b\w*[sx]tral\b/i.test(model))

const idsFor = ({ dialect, model, server }: Target): RegExp => {
  if (dialect !== "chat") return validIds[dialect]
  if (isClaude.test(model)) return validIds.anthropic
  return takesShortIds.test(server) || isOfOpenAi.test(model) ? shortIds : validIds.chat
}

/** Gives calls ids that are valid and unique. An id depends only on the calls before it. Mutable: one for each dialogue. */
class CallIds {
  private readonly isMistral: boolean
  private readonly valid: RegExp
  private readonly used = new Set<string>()
  private count = 0

  constructor(target: Target) {
    this.isMistral = isMistral(target)
    this.valid = this.isMistral ? /^[A-Za-z0-9]{9}$/ : idsFor(target)
  }

  private made(again: number): string {
    if (this.isMistral) return `call${String(this.count + 10_000 * again).padStart(5, "0")}`
    return `call_${this.count}${again === 0 ? "" : `_${again}`}`
  }

  next(own: string | undefined): string {
    this.count += 1
    let id = own !== undefined && this.valid.test(own) && !this.used.has(own) ? own : this.made(0)
    for (let again = 1; this.used.has(id); again += 1) id = this.made(again)
    this.used.add(id)
    return id
  }
}

const userTurn = (parts: ReadonlyArray<Part>, open: ReadonlyArray<OpenCall>): UserTurn => {
  const results = new Map<OpenCall, ToolResult>()
  const own: Array<Part> = []
  for (const part of parts) {
    if (isResponse(part)) {
      const { id, name } = part.functionResponse
      const waiting = open.filter((call) => !results.has(call))
      const call =
        waiting.find((call) => id !== undefined && (call.own ?? call.id) === id) ??
        waiting.find(
          (call) => (id === undefined || call.own === undefined) && (name === undefined || call.name === name)
        )
      const { media, text } = responseContent(part)
      // Bedrock and others refuse a result without anything.
      const said = isBlank(text) && media.length === 0 ? noWords.output : text
      if (call !== undefined) results.set(call, { id: call.id, text: said, isError: isErrorResponse(part), media })
      else own.push({ text: `[result of ${name ?? "a tool"}] ${text}` }, ...media)
    } else if (isMedia(part)) own.push(part)
    else if (!isThought(part) && !isBlank(textOf(part))) own.push({ text: textOf(part) })
  }
  return {
    role: "user",
    results: open.map((call) => results.get(call) ?? { id: call.id, text: noWords.result, isError: true, media: [] }),
    parts: open.length + own.length === 0 ? [{ text: noWords.user }] : own
  }
}

const isEmptyText = (block: ModelBlock): boolean => block._tag === "Text" && isBlank(block.text)

const modelTurn = (parts: ReadonlyArray<Part>, target: Target, ids: CallIds) => {
  const blocks: Array<ModelBlock> = []
  const open: Array<OpenCall> = []
  for (const part of parts) {
    const state = part.thoughtSignature === undefined ? undefined : stateFor(part.thoughtSignature, target)
    const isOfCall = isCall(part) && target.dialect === "chat"
    if (state !== undefined && !isOfCall) blocks.push({ _tag: "State", state })
    if (isThought(part)) continue
    if (isCall(part)) {
      const { args, id: own, name } = part.functionCall
      const id = ids.next(own)
      open.push({ id, own, name })
      blocks.push({ _tag: "Call", id, name, args: objectArguments(args), state: isOfCall ? state : undefined })
      continue
    }
    const text = isMedia(part) ? mediaText(part) : textOf(part)
    const last = blocks.at(-1)
    // The pieces of a streamed text.
    if (last?._tag === "Text") blocks[blocks.length - 1] = { _tag: "Text", text: last.text + text }
    else blocks.push({ _tag: "Text", text })
  }
  const filled = blocks.filter((block) => !isEmptyText(block))
  // Thinking is valid only before what it led to. What a server compacted stands for all before it.
  const end = filled.findLastIndex((block) => block._tag !== "State" || isCompaction(block.state)) + 1
  const turn: ModelTurn = {
    role: "model",
    blocks: end === 0 ? [{ _tag: "Text", text: noWords.model }] : filled.slice(0, end)
  }
  return { turn, open }
}

/** Contents whose calls are words: results without a call are words as well. */
export const toldCalls = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> =>
  contents.map((content) =>
    content.parts.some(isCall)
      ? {
          ...content,
          parts: withoutSignatures(content).parts.map((part) =>
            isCall(part)
              ? { text: `\n[call of ${part.functionCall.name}] ${JSON.stringify(part.functionCall.args ?? {})}\n` }
              : part
          )
        }
      : content
  )

/** Messages of one role in a row, as one. */
const runsOf = (
  contents: ReadonlyArray<Content>
): ReadonlyArray<{ readonly role: Role; readonly parts: Array<Part> }> => {
  const runs: Array<{ readonly role: Role; readonly parts: Array<Part> }> = []
  for (const { parts, role } of contents) {
    const last = runs.at(-1)
    if (last?.role === role) for (const each of parts) last.parts.push(each)
    else runs.push({ role, parts: [...parts] })
  }
  return runs
}

/** The turns of a conversation for a model, to which its own states go back. */
export const dialogueOf = (contents: ReadonlyArray<Content>, target: Target): ReadonlyArray<DialogueTurn> => {
  const ids = new CallIds(target)
  const turns: Array<DialogueTurn> = []
  let open: ReadonlyArray<OpenCall> = []
  for (const { parts, role } of runsOf(contents)) {
    if (role === "user") {
      turns.push(userTurn(parts, open))
    } else {
      if (turns.length === 0) turns.push({ role: "user", results: [], parts: [{ text: noWords.opening }] })
      const made = modelTurn(parts, target, ids)
      turns.push(made.turn)
      open = made.open
    }
  }
  if (turns.at(-1)?.role !== "user") turns.push(userTurn([], open))
  return turns
}
