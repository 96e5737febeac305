/**
 * Calls of the gateway's tool, which the client never sees. Each exchange belongs to one answer. It is put back in
 * the same place in every later request, so that the provider's cache finds the same prefix.
 */

import { Schema } from "effect"
import { isJson, type Json, textOrEmpty } from "../text/JsonObject.ts"
import { objectSpans } from "../text/JsonSource.ts"
import { fromJson, parsedOrUndefined } from "../text/JsonText.ts"
import { VisibleBlock } from "./AnswerForm.ts"
import type { TurnForm, WireDialect } from "./Dialect.ts"

const Texts = Schema.Array(Schema.String)

const HiddenRound = Schema.Struct({
  /** The messages as they were sent: the answer, then the results. */
  sent: Texts,
  /** The visible part of the answer. The client's message begins with the same blocks. */
  visible: Schema.Array(VisibleBlock)
})
/** An answer that called only the gateway's tool, and the results it got. */
export type HiddenRound = typeof HiddenRound.Type

const HiddenExchange = Schema.Struct({
  rounds: Schema.Array(HiddenRound),
  /** Calls of the gateway's tool in the client's last answer, beside its own calls, and the messages with their results. */
  beside: Schema.optionalKey(Schema.Struct({ calls: Texts, results: Texts }))
})
/** Everything in one answer that is hidden from the client. */
export type HiddenExchange = typeof HiddenExchange.Type

/** The stored form of a hidden exchange. */
export const HiddenExchangeJson = fromJson(HiddenExchange)

/** The messages to send in place of some of the client's. */
export interface Woven {
  readonly sent: ReadonlyArray<string>
  /** How many of the client's messages they replace. */
  readonly consumed: number
}

/** A message whose first blocks can be removed. */
interface Blocks {
  readonly blocks: ReadonlyArray<Json>
  readonly write: (blocks: ReadonlyArray<Json>) => Json
}

/** How a turn of a model is laid out, and how its blocks are seen. */
type Seen<Tag extends TurnForm["_tag"]> = Extract<TurnForm, { readonly _tag: Tag }> &
  Pick<WireDialect["answers"], "visible">
type MessageForm = Seen<"Message">
type ItemsForm = Seen<"Items">

const blocksOf = ({ blocksKey: key }: MessageForm, message: Json): Blocks => {
  const content = message[key]
  if (typeof content === "string") {
    return {
      blocks: [{ type: "text", text: content }],
      write: ([first]) => ({ ...message, [key]: first === undefined ? null : textOrEmpty(first, "text") })
    }
  }
  return {
    blocks: Array.isArray(content) ? content.filter(isJson) : [],
    write: (blocks) => ({ ...message, [key]: blocks })
  }
}

/**
 * Removes the visible blocks from the beginning of a list. Returns undefined when the list does not begin with them.
 */
const stripped = <A>(
  list: ReadonlyArray<A>,
  visible: ReadonlyArray<VisibleBlock>,
  look: (one: A) => VisibleBlock,
  shorter: (one: A, text: string) => A | undefined
): { readonly rest: ReadonlyArray<A>; readonly consumed: number } | undefined => {
  let text = visible.map((block) => (block.kind === "text" ? block.text : "")).join("")
  let thoughts = visible.filter(({ kind }) => kind === "thought").length
  let others = visible.filter(({ kind }) => kind === "other").length
  for (let at = 0; ; at += 1) {
    const isDone = text.trim() === "" && others === 0
    const one = list[at]
    const block = one === undefined ? undefined : look(one)
    if (block?.kind === "thought" && thoughts > 0) thoughts -= 1
    else if (isDone) return { rest: list.slice(at), consumed: at }
    else if (one === undefined || block === undefined) return undefined
    else if (block.kind === "text" && text.startsWith(block.text)) text = text.slice(block.text.length)
    else if (block.kind === "text" && block.text.startsWith(text)) {
      const rest = shorter(one, block.text.slice(text.length))
      return rest === undefined ? undefined : { rest: [rest, ...list.slice(at + 1)], consumed: at }
    } else if (block.kind === "other" && others > 0) others -= 1
    else return undefined
  }
}

/** Returns the answer of a round without the text that the client's own message still contains. */
const withoutWords = (form: MessageForm, { sent: [answer = "", ...results] }: HiddenRound): ReadonlyArray<string> => {
  const message = parsedOrUndefined(answer)
  if (!isJson(message)) return [answer, ...results]
  const { blocks, write } = blocksOf(form, message)
  return [JSON.stringify(write(blocks.filter((block) => form.visible(block).kind !== "text"))), ...results]
}

/**
 * Adds elements to an array in the JSON of a message, before or behind its own elements. Returns undefined when the
 * message has no such array.
 */
const withElements = (
  message: string,
  key: string,
  elements: ReadonlyArray<string>,
  side: "before" | "behind"
): string | undefined => {
  const array = objectSpans(message, 0, [key])?.get(key)?.array
  const [first] = array?.elements ?? []
  const last = array?.elements.at(-1)
  if (first === undefined || last === undefined) return undefined
  return side === "before"
    ? `${message.slice(0, first.start)}${elements.join()},${message.slice(first.start)}`
    : `${message.slice(0, last.end)},${elements.join()}${message.slice(last.end)}`
}

const elementsOf = (message: string, key: string): ReadonlyArray<string> => {
  const array = objectSpans(message, 0, [key])?.get(key)?.array
  return (array?.elements ?? []).map(({ end, start }) => message.slice(start, end))
}

/** Puts calls beside the client's calls, and their results beside the client's results. */
const besideClientCalls = (
  { blocksKey, callsKey, resultMark }: MessageForm,
  answer: string,
  next: string | undefined,
  { calls, results }: NonNullable<HiddenExchange["beside"]>
): Woven => {
  const untouched: Woven = { sent: [answer], consumed: 1 }
  if (callsKey !== undefined) {
    const withCalls = withElements(answer, callsKey, calls, "behind")
    return withCalls === undefined || next === undefined ? untouched : { sent: [withCalls, ...results], consumed: 1 }
  }
  const withCalls = withElements(answer, blocksKey, calls, "behind")
  const own = results.flatMap((result) => elementsOf(result, blocksKey))
  if (withCalls === undefined || next?.includes(resultMark) !== true) return untouched
  const withResults = withElements(next, blocksKey, own, "before")
  return withResults === undefined ? untouched : { sent: [withCalls, withResults], consumed: 2 }
}

/** Merges a hidden exchange into a message of the model. */
const wovenMessage = (
  form: MessageForm,
  { beside, rounds }: HiddenExchange,
  messages: ReadonlyArray<string>
): Woven | undefined => {
  const [raw = "", next] = messages
  const message = parsedOrUndefined(raw)
  if (!isJson(message) || message["role"] !== form.role) return undefined
  const { blocks, write } = blocksOf(form, message)
  const visible = rounds.flatMap((round) => round.visible)
  const left = stripped(blocks, visible, form.visible, (block, text) => ({ ...block, text }))
  const before = rounds.flatMap((round) => (left === undefined ? withoutWords(form, round) : round.sent))
  const isSame =
    left === undefined || (left.rest.length === blocks.length && left.rest.every((one, at) => one === blocks[at]))
  const hasCalls = form.callsKey !== undefined && Array.isArray(message[form.callsKey])
  if (!isSame && left.rest.length === 0 && !hasCalls) return { sent: before, consumed: 1 }
  const answer = isSame ? raw : JSON.stringify(write(left.rest))
  const last: Woven =
    beside === undefined ? { sent: [answer], consumed: 1 } : besideClientCalls(form, answer, next, beside)
  return { sent: [...before, ...last.sent], consumed: last.consumed }
}

const itemOf = (raw: string): Json => {
  const item = parsedOrUndefined(raw)
  return isJson(item) ? item : {}
}

/** Merges a hidden exchange into items in a row. */
const wovenItems = (
  { isQuestion, isResult, visible: visibleItem }: ItemsForm,
  { beside, rounds }: HiddenExchange,
  messages: ReadonlyArray<string>
): Woven => {
  const visible = rounds.flatMap((round) => round.visible)
  const left = stripped(
    messages,
    visible,
    (raw) => visibleItem(itemOf(raw)),
    () => undefined
  )
  const before = rounds.flatMap((round) =>
    left === undefined ? round.sent.filter((raw) => visibleItem(itemOf(raw)).kind !== "text") : round.sent
  )
  const consumed = left?.consumed ?? 0
  if (beside === undefined) return { sent: before, consumed }
  const answered = messages.findIndex((raw, at) => at >= consumed && isResult(itemOf(raw)))
  const nextQuestion = messages.findIndex((raw, at) => at >= consumed && isQuestion(itemOf(raw)))
  if (answered < 0 || (nextQuestion >= 0 && nextQuestion < answered)) return { sent: before, consumed }
  return {
    sent: [...before, ...messages.slice(consumed, answered), ...beside.calls, ...beside.results],
    consumed: answered
  }
}

/**
 * Puts a hidden exchange back. `messages` are the client's messages from the answer on. Returns undefined when there
 * is no answer of the model at this place.
 */
export const woven = (
  { answers, turn }: WireDialect,
  exchange: HiddenExchange,
  messages: ReadonlyArray<string>
): Woven | undefined => {
  return turn._tag === "Items"
    ? wovenItems({ ...turn, visible: answers.visible }, exchange, messages)
    : wovenMessage({ ...turn, visible: answers.visible }, exchange, messages)
}
