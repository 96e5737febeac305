import { isJson, type Json, textAt } from "../model/MessageForm.ts"
import { objectSpans } from "../text/JsonSpans.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import type { VisibleBlock } from "./Answer.ts"
import type { Dialect } from "./Dialect.ts"
import { visibleItem } from "./ResponsesAnswers.ts"

/**
 * Calls of our tool that the client never saw. They belong to one answer, and come back at their place in every later request, so
 * that the provider sees the same beginning each time.
 */

/** An answer that called our tool only, and what it was told. */
export interface HiddenRound {
  /** The messages as they were sent: the answer, then the results. */
  readonly sent: ReadonlyArray<string>
  /** What the client saw of the answer: the same stands at the beginning of its own message. */
  readonly visible: ReadonlyArray<VisibleBlock>
}

/** Everything of one answer that the client did not see. */
export interface HiddenExchange {
  readonly rounds: ReadonlyArray<HiddenRound>
  /** Calls of ours beside calls of the client in its last answer, and the messages that answer them. */
  readonly beside?: { readonly calls: ReadonlyArray<string>; readonly results: ReadonlyArray<string> }
}

/** The messages that are sent in place of some of the client's. */
export interface Woven {
  readonly sent: ReadonlyArray<string>
  /** The number of messages of the client that they stand for. */
  readonly consumed: number
}

/** A message whose blocks can be taken away from its beginning. */
interface Blocks {
  readonly blocks: ReadonlyArray<Json>
  readonly write: (blocks: ReadonlyArray<Json>) => Json
}

const contentKey = (dialect: Dialect): string => (dialect === "gemini" ? "parts" : "content")

const blocksOf = (dialect: Dialect, message: Json): Blocks => {
  const key = contentKey(dialect)
  const content = message[key]
  if (typeof content === "string") {
    return {
      blocks: [{ type: "text", text: content }],
      write: ([first]) => ({ ...message, [key]: first === undefined ? null : textAt(first, "text") })
    }
  }
  return {
    blocks: Array.isArray(content) ? content.filter(isJson) : [],
    write: (blocks) => ({ ...message, [key]: blocks })
  }
}

const visibleBlock = (block: Json): VisibleBlock => {
  if (block["thought"] === true || block["type"] === "thinking" || block["type"] === "redacted_thinking") {
    return { kind: "thought", text: "" }
  }
  return typeof block["text"] === "string" ? { kind: "text", text: block["text"] } : { kind: "other", text: "" }
}

/** Takes what was visible away from the beginning of a list. Undefined: the list does not begin with it. */
const stripped = <A>(
  list: ReadonlyArray<A>,
  visible: ReadonlyArray<VisibleBlock>,
  look: (one: A) => VisibleBlock,
  shorter: (one: A, text: string) => A | undefined
): { readonly rest: ReadonlyArray<A>; readonly taken: number } | undefined => {
  let text = visible.map((block) => (block.kind === "text" ? block.text : "")).join("")
  let thoughts = visible.filter(({ kind }) => kind === "thought").length
  let others = visible.filter(({ kind }) => kind === "other").length
  for (let at = 0; ; at += 1) {
    const isDone = text.trim() === "" && others === 0
    const one = list[at]
    const seen = one === undefined ? undefined : look(one)
    if (seen?.kind === "thought" && thoughts > 0) thoughts -= 1
    else if (isDone) return { rest: list.slice(at), taken: at }
    else if (one === undefined || seen === undefined) return undefined
    else if (seen.kind === "text" && text.startsWith(seen.text)) text = text.slice(seen.text.length)
    else if (seen.kind === "text" && seen.text.startsWith(text)) {
      const rest = shorter(one, seen.text.slice(text.length))
      return rest === undefined ? undefined : { rest: [rest, ...list.slice(at + 1)], taken: at }
    } else if (seen.kind === "other" && others > 0) others -= 1
    else return undefined
  }
}

/** The answer of a round without the words that the client's own message still has. */
const withoutWords = (dialect: Dialect, { sent: [answer = "", ...results] }: HiddenRound): ReadonlyArray<string> => {
  const message = parsedOrUndefined(answer)
  if (!isJson(message)) return [answer, ...results]
  const { blocks, write } = blocksOf(dialect, message)
  return [JSON.stringify(write(blocks.filter((block) => visibleBlock(block).kind !== "text"))), ...results]
}

/** Adds elements to an array within the JSON of a message, before or behind its own; undefined where it has none. */
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

const hasResult = (dialect: Dialect, message: string): boolean =>
  dialect === "gemini" ? message.includes('"functionResponse"') : message.includes('"tool_result"')

/** Puts calls beside those of the client, and their results beside its results. */
const besides = (
  dialect: Dialect,
  answer: string,
  next: string | undefined,
  { calls, results }: NonNullable<HiddenExchange["beside"]>
): Woven => {
  const untouched: Woven = { sent: [answer], consumed: 1 }
  if (dialect === "chat") {
    const asked = withElements(answer, "tool_calls", calls, "behind")
    return asked === undefined || next === undefined ? untouched : { sent: [asked, ...results], consumed: 1 }
  }
  const key = contentKey(dialect)
  const asked = withElements(answer, key, calls, "behind")
  const own = results.flatMap((result) => elementsOf(result, key))
  if (asked === undefined || next === undefined || !hasResult(dialect, next)) return untouched
  const told = withElements(next, key, own, "before")
  return told === undefined ? untouched : { sent: [asked, told], consumed: 2 }
}

/** Weaves into a message of the model. */
const wovenMessage = (
  dialect: Dialect,
  { beside, rounds }: HiddenExchange,
  messages: ReadonlyArray<string>
): Woven | undefined => {
  const [raw = "", next] = messages
  const message = parsedOrUndefined(raw)
  if (!isJson(message) || message["role"] !== (dialect === "gemini" ? "model" : "assistant")) return undefined
  const { blocks, write } = blocksOf(dialect, message)
  const visible = rounds.flatMap((round) => round.visible)
  const left = stripped(blocks, visible, visibleBlock, (block, text) => ({ ...block, text }))
  const before = rounds.flatMap((round) => (left === undefined ? withoutWords(dialect, round) : round.sent))
  const isSame =
    left === undefined || (left.rest.length === blocks.length && left.rest.every((one, at) => one === blocks[at]))
  const hasCalls = Array.isArray(message["tool_calls"])
  if (!isSame && left.rest.length === 0 && !hasCalls) return { sent: before, consumed: 1 }
  const answer = isSame ? raw : JSON.stringify(write(left.rest))
  const last: Woven = beside === undefined ? { sent: [answer], consumed: 1 } : besides(dialect, answer, next, beside)
  return { sent: [...before, ...last.sent], consumed: last.consumed }
}

const itemOf = (raw: string): Json => {
  const item = parsedOrUndefined(raw)
  return isJson(item) ? item : {}
}

/** Weaves between items of the Responses API. */
const wovenItems = ({ beside, rounds }: HiddenExchange, messages: ReadonlyArray<string>): Woven => {
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
  const taken = left?.taken ?? 0
  if (beside === undefined) return { sent: before, consumed: taken }
  const answered = messages.findIndex((raw, at) => at >= taken && textAt(itemOf(raw), "type").endsWith("_output"))
  const asked = messages.findIndex((raw, at) => at >= taken && itemOf(raw)["role"] === "user")
  if (answered < 0 || (asked >= 0 && asked < answered)) return { sent: before, consumed: taken }
  return {
    sent: [...before, ...messages.slice(taken, answered), ...beside.calls, ...beside.results],
    consumed: answered
  }
}

/**
 * Puts a hidden exchange back: `messages` are those of the client from the answer on. Undefined where there is no answer of the
 * model at this place.
 */
export const woven = (dialect: Dialect, exchange: HiddenExchange, messages: ReadonlyArray<string>): Woven | undefined =>
  dialect === "responses" ? wovenItems(exchange, messages) : wovenMessage(dialect, exchange, messages)
