import { parsedOrUndefined } from "../../text/JsonText.ts"
import { addedCounts } from "../AddedCounts.ts"
import { isJson, type Json, jsonsAt, textAt } from "../MessageCodec.ts"
import type {
  AnswerDialect,
  AnswerStream,
  ReadAnswer,
  RecallCall,
  VisibleBlock,
  WholeAnswer
} from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { ChatMessage, firstChoice, functionOf } from "./Answer.ts"

/** Reads and writes answers of OpenAI's Chat Completions API and the many servers that implement it. */

const callOf = (call: Json): RecallCall => {
  const called = functionOf(call)
  return {
    id: textAt(call, "id"),
    name: textAt(called, "name"),
    args: parsedOrUndefined(textAt(called, "arguments")),
    json: JSON.stringify(call)
  }
}

/** Returns the answer that this message makes. */
const answerOf = (tool: string, message: Json, usage: unknown): ReadAnswer => {
  const calls = jsonsAt(message, "tool_calls")
  const own = calls.filter((call) => functionOf(call)["name"] === tool)
  const text = textAt(message, "content")
  const visible: ReadonlyArray<VisibleBlock> = text === "" ? [] : [{ kind: "text", text }]
  return {
    calls: own.map(callOf),
    hasOthers: calls.length > own.length,
    sent: [JSON.stringify({ ...message, role: "assistant", content: text === "" ? null : text })],
    visible,
    usage
  }
}

class Stream implements AnswerStream {
  private readonly tool: string
  private message = new ChatMessage()
  /** The indexes of the current answer's calls, as far as they have begun. */
  private seen = new Set<number>()
  /** The client's index of each call, by its index in the current answer. Calls of the gateway's tool have none. */
  private indexes = new Map<number, number>()
  private shown = 0
  private rounds = 1
  private first: Json | undefined
  private usage: unknown
  private earlier: unknown
  private held: Array<SseEvent> = []

  constructor(tool: string) {
    this.tool = tool
  }

  readonly push = (event: SseEvent): string => {
    if (event.data.trim() === "[DONE]") return this.hold(event)
    const data = parsedOrUndefined(event.data)
    if (!isJson(data)) return event.raw
    this.first ??= data
    if (isJson(data["usage"])) this.usage = data["usage"]
    const choice = firstChoice(data)
    if (choice === undefined) return "usage" in data ? this.hold(event) : event.raw
    const delta = isJson(choice["delta"]) ? choice["delta"] : {}
    const indexes = this.message.push(delta)
    const calls = jsonsAt(delta, "tool_calls")
    const shown = calls.flatMap((call, at) => this.shownCall(call, indexes[at] ?? 0))
    // The events that end an answer are held back, because the gateway may continue the answer.
    if (typeof choice["finish_reason"] === "string" && choice["finish_reason"] !== "") return this.hold(event)
    const isSame = shown.length === calls.length && shown.every((call, at) => call === calls[at])
    if (isSame && this.rounds === 1) return event.raw
    const { role, tool_calls: _calls, ...texts } = delta
    const rest: Json = this.rounds > 1 || role === undefined ? texts : { role, ...texts }
    if (shown.length === 0 && Object.values(rest).every((value) => value === null || value === "")) return ""
    const next = { ...choice, delta: shown.length === 0 ? rest : { ...rest, tool_calls: shown } }
    return sseText(event, { ...data, ...this.identity(), choices: [next] })
  }

  private hold(event: SseEvent): string {
    this.held.push(event)
    return ""
  }

  /** The fields that all events of an answer share. */
  private identity(): Json {
    const { created, id } = this.first ?? {}
    return { ...(id === undefined ? {} : { id }), ...(created === undefined ? {} : { created }) }
  }

  /** A piece of a call, as the client gets it. `index` is the call's. */
  private shownCall(piece: Json, index: number): ReadonlyArray<Json> {
    if (!this.seen.has(index)) {
      this.seen.add(index)
      if (functionOf(piece)["name"] !== this.tool) {
        this.indexes.set(index, this.shown)
        this.shown += 1
      }
    }
    const shown = this.indexes.get(index)
    return shown === undefined ? [] : [shown === index ? piece : { ...piece, index: shown }]
  }

  readonly read = (): ReadAnswer => answerOf(this.tool, this.message.whole, this.usage)

  readonly next = (note: string) => {
    const output = this.held.map((event) => this.contentOf(event)).join("")
    this.earlier = addedCounts(this.earlier, this.usage)
    this.usage = undefined
    this.message = new ChatMessage()
    this.seen = new Set()
    this.indexes = new Map()
    this.held = []
    this.rounds += 1
    if (note === "" || this.first === undefined) return output
    const choice = { index: 0, delta: { content: note }, finish_reason: null }
    const { usage: _usage, ...rest } = this.first
    return output + sseText({ name: "" }, { ...rest, choices: [choice] })
  }

  /** Returns the text in an event that ends an answer, without its ending. Some servers send both in one event. */
  private contentOf(event: SseEvent): string {
    const data = parsedOrUndefined(event.data)
    const choice = isJson(data) ? firstChoice(data) : undefined
    if (!isJson(data) || choice === undefined || !isJson(choice["delta"])) return ""
    const content = textAt(choice["delta"], "content")
    if (content === "") return ""
    const { usage: _usage, ...rest } = data
    const next = { ...choice, delta: { content }, finish_reason: null }
    return sseText(event, { ...rest, ...this.identity(), choices: [next] })
  }

  readonly finish: AnswerStream["finish"] = (ending) =>
    this.held
      .map((event) => {
        const data = parsedOrUndefined(event.data)
        if (!isJson(data) || (this.rounds === 1 && ending === "as sent" && !this.carriesOwn(data))) return event.raw
        const choice = firstChoice(data)
        const usage = isJson(data["usage"]) ? { usage: addedCounts(this.earlier, this.usage) } : {}
        if (choice === undefined) return sseText(event, { ...data, ...this.identity(), ...usage })
        const delta: Json = isJson(choice["delta"]) ? choice["delta"] : {}
        const { role: _role, tool_calls: _calls, ...rest } = delta
        const shown = jsonsAt(delta, "tool_calls").flatMap((call) => {
          const index = typeof call["index"] === "number" ? this.indexes.get(call["index"]) : undefined
          return index === undefined ? [] : [{ ...call, index }]
        })
        const next = {
          ...choice,
          delta: shown.length === 0 ? rest : { ...rest, tool_calls: shown },
          ...(ending === "stopped" ? { finish_reason: "stop" } : {})
        }
        return sseText(event, { ...data, ...this.identity(), ...usage, choices: [next] })
      })
      .join("")

  /** Whether the last event of an answer contains a call of the gateway's tool. Some servers send both in one event. */
  private carriesOwn(data: Json): boolean {
    const delta = firstChoice(data)?.["delta"]
    return isJson(delta) && jsonsAt(delta, "tool_calls").some((call) => functionOf(call)["name"] === this.tool)
  }

  readonly failure: AnswerStream["failure"] = (status, body) => {
    const parsed = parsedOrUndefined(body)
    const error = isJson(parsed) ? parsed["error"] : undefined
    return sseText({ name: "" }, { error: error ?? { message: `the provider answered ${status}`, code: status } })
  }
}

class Whole implements WholeAnswer {
  private readonly tool: string
  private text = ""
  private calls: ReadonlyArray<Json> = []
  private usage: unknown
  private last: Json = {}
  private bodies: Array<string> = []
  private hasOwn = false

  constructor(tool: string) {
    this.tool = tool
  }

  readonly push: WholeAnswer["push"] = (body) => {
    const answer = parsedOrUndefined(body)
    const message = isJson(answer) ? firstChoice(answer)?.["message"] : undefined
    if (!isJson(answer) || !isJson(message)) return undefined
    const calls = jsonsAt(message, "tool_calls")
    this.bodies.push(body)
    this.last = answer
    this.usage = addedCounts(this.usage, answer["usage"])
    this.text += textAt(message, "content")
    this.calls = calls.filter((call) => functionOf(call)["name"] !== this.tool)
    this.hasOwn = calls.length > this.calls.length
    return answerOf(this.tool, message, answer["usage"])
  }

  readonly next: WholeAnswer["next"] = (note) => {
    this.text += note
  }

  readonly finish: WholeAnswer["finish"] = (ending) => {
    const [body = "", ...more] = this.bodies
    if (more.length === 0 && !this.hasOwn && ending === "as sent") return body
    const choice = firstChoice(this.last) ?? {}
    const { tool_calls: _calls, ...message } = isJson(choice["message"]) ? choice["message"] : {}
    const next = {
      ...choice,
      message: {
        ...message,
        content: this.text === "" ? null : this.text,
        ...(this.calls.length === 0 ? {} : { tool_calls: this.calls })
      },
      ...(ending === "stopped" ? { finish_reason: "stop" } : {})
    }
    return JSON.stringify({ ...this.last, choices: [next], usage: this.usage })
  }
}

/** Answers of OpenAI's Chat Completions. */
export const chatAnswers: AnswerDialect = {
  stream: (tool) => new Stream(tool),
  whole: (tool) => new Whole(tool),
  visible: (block) =>
    block["type"] === "text" ? { kind: "text", text: textAt(block, "text") } : { kind: "other", text: "" },
  // The result of a tool is a text in this dialect.
  results: (calls, recalled) =>
    calls.map(({ id }, at) => JSON.stringify({ role: "tool", tool_call_id: id, content: recalled[at]?.text ?? "" }))
}
