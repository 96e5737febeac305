/** Passes on answers of OpenAI's Chat Completions API and the many servers that implement it. */

import { isJson, type Json, jsonAt, textOrEmpty } from "../../text/JsonObject.ts"
import type { Growth } from "../AnswerForm.ts"
import { type AnswerRelay, type Ending, RelayedStream } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { answerForm, callsIn, choiceOf, messageOf, textBlock, withCalls, withFields } from "./Answer.ts"

class ChatStream extends RelayedStream {
  protected override pass(event: SseEvent, data: Json, growth: Growth): string {
    const choice = choiceOf(data)
    if (choice === undefined) return event.raw
    const delta = jsonAt(choice, "delta")
    const calls = callsIn(delta)
    const shown = this.shownIn(calls, growth)
    const isSame = shown.length === calls.length && shown.every((call, at) => call === calls[at])
    if (isSame && this.rounds === 1) return event.raw
    const rest = this.besideCalls(delta)
    if (shown.length === 0 && isBlank(rest)) return ""
    return this.withDelta(event, data, { ...choice, delta: withCalls(rest, shown) })
  }

  /** What a delta has besides calls. A role begins the client's answer, once. */
  private besideCalls({ function_call: _called, role, tool_calls: _calls, ...rest }: Json): Json {
    return this.rounds > 1 || role === undefined ? rest : { role, ...rest }
  }

  /** The pieces of calls in an event that the client gets, with its indexes. */
  private shownIn(calls: ReadonlyArray<Json>, { pieces = [] }: Growth): ReadonlyArray<Json> {
    return pieces.flatMap(({ at }, number) => {
      const call = calls[number] ?? {}
      const shown = this.indexOf(at)
      if (shown === undefined) return []
      const { index = at } = call
      return [shown === index ? call : { ...call, index: shown }]
    })
  }

  /** An event with another choice, and the fields that all events of an answer share. */
  private withDelta(event: SseEvent, data: Json, choice?: Json): string {
    const { created, id } = this.first ?? {}
    const shared = { ...(id === undefined ? {} : { id }), ...(created === undefined ? {} : { created }) }
    return sseText(event, { ...data, ...shared, ...(choice === undefined ? {} : { choices: [choice] }) })
  }

  /** The texts in an event that also ends the answer. Some servers send both in one event. */
  protected override opened(event: SseEvent, data: Json): string {
    const choice = choiceOf(data) ?? {}
    const delta = this.besideCalls(jsonAt(choice, "delta"))
    if (isBlank(delta)) return ""
    const { usage: _usage, ...rest } = data
    return this.withDelta(event, rest, { ...choice, delta, finish_reason: null })
  }

  protected closed(event: SseEvent, data: Json, ending: Ending, counts: unknown, growth: Growth): string {
    const choice = choiceOf(data)
    const delta = jsonAt(choice ?? {}, "delta")
    const calls = callsIn(delta)
    // Some servers send calls in the event that ends the answer.
    const shown = this.shownIn(calls, growth)
    if (this.rounds === 1 && ending === "as sent" && shown.length === calls.length) return event.raw
    const whole = isJson(data["usage"]) ? { ...data, usage: counts } : data
    if (choice === undefined) return this.withDelta(event, whole)
    const stop = ending === "stopped" ? { finish_reason: "stop" } : {}
    return this.withDelta(event, whole, { ...choice, delta: withCalls(this.besideCalls(delta), shown), ...stop })
  }

  protected noted(content: string): string {
    const { usage: _usage, ...rest } = this.first ?? {}
    const choice = { index: 0, delta: { content }, finish_reason: null }
    return sseText({ name: "" }, { ...rest, choices: [choice] })
  }
}

const isBlank = (delta: Json): boolean => Object.values(delta).every((value) => value === null || value === "")

/** Passes on answers of OpenAI's Chat Completions. */
export const chatRelay: AnswerRelay = {
  ...answerForm,
  note: textBlock,
  withBlocks: (answer, blocks, ending) => {
    const { function_call: _called, tool_calls: _calls, ...message } = messageOf(answer)
    const content = blocks.map((block) => textOrEmpty(block, "text")).join("")
    const calls = blocks.filter((block) => "function" in block)
    const added = blocks.filter((block) => !("function" in block) && block["type"] !== "text")
    const next = {
      ...choiceOf(answer),
      message: withCalls(
        { ...message, ...added.reduce(withFields, {}), content: content === "" ? null : content },
        calls
      ),
      ...(ending === "stopped" ? { finish_reason: "stop" } : {})
    }
    return { ...answer, choices: [next] }
  },
  // The result of a tool is a text in this dialect.
  results: (calls, recalled) =>
    calls.map(({ id }, at) => ({ role: "tool", tool_call_id: id, content: recalled[at]?.text ?? "" })),
  stream: (tool) => new ChatStream(chatRelay, tool)
}
