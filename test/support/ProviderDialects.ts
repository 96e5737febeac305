import type { Layer } from "effect"
import type { Usage } from "../../src/domain/tokens/Tokens.ts"
import * as AnthropicModel from "../../src/layers/model/AnthropicModel.ts"
import * as OpenAiModel from "../../src/layers/model/OpenAiModel.ts"
import type { Model } from "../../src/services/model/Model.ts"
import { events, type NamedEvent, namedEvents, type ProviderAnswer } from "./ProviderServer.ts"

/** The three dialects, with answers in the shapes that their documentation shows. */

/** A part of a scripted answer. */
export type Said =
  | { readonly text: string }
  | { readonly thought: string }
  | { readonly call: string; readonly args: unknown; readonly id: string }

export interface Dialect {
  readonly name: "Chat Completions" | "Messages" | "Responses"
  readonly model: string
  readonly layer: (url: string, key: string) => Layer.Layer<Model>
  /** A whole streamed answer. */
  readonly answer: (said: ReadonlyArray<Said>, finish?: "filtered" | "length" | "stop") => ProviderAnswer
  /** The beginning of an answer that does not end, or that ends with these writes. */
  readonly unfinished: (...after: ReadonlyArray<"drop" | "stall">) => ProviderAnswer
  /** The usage that `answer` reports. */
  readonly usage: Usage
  /** The body of an error. */
  readonly error: (type: string, message: string) => unknown
  /** A long answer: events without end. */
  readonly endless: (text: string) => ProviderAnswer
}

const halves = (text: string): readonly [string, string] => [
  text.slice(0, Math.ceil(text.length / 2)),
  text.slice(Math.ceil(text.length / 2))
]

const anthropicBlock = (said: Said, index: number) => {
  const start = (content_block: object) => ({ type: "content_block_start", index, content_block })
  const delta = (delta: object) => ({ type: "content_block_delta", index, delta })
  const stop = { type: "content_block_stop", index }
  if ("text" in said) {
    return [
      start({ type: "text", text: "" }),
      { type: "ping" },
      ...halves(said.text).map((text) => delta({ type: "text_delta", text })),
      stop
    ]
  }
  if ("thought" in said) {
    return [
      start({ type: "thinking", thinking: "", signature: "" }),
      ...halves(said.thought).map((thinking) => delta({ type: "thinking_delta", thinking })),
      delta({ type: "signature_delta", signature: `signed ${said.thought}` }),
      stop
    ]
  }
  return [
    start({ type: "tool_use", id: said.id, name: said.call, input: {} }),
    delta({ type: "input_json_delta", partial_json: "" }),
    ...halves(typeof said.args === "string" ? said.args : JSON.stringify(said.args)).map((partial_json) =>
      delta({ type: "input_json_delta", partial_json })
    ),
    stop
  ]
}

const messageStart = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5-20250929",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 60,
      output_tokens: 1,
      service_tier: "standard"
    }
  }
}

function* forever(text: string) {
  for (;;) yield text
}

export const anthropic: Dialect = {
  name: "Messages",
  model: "claude-sonnet-4-5",
  layer: (url, key) => AnthropicModel.layer({ apiKey: key, baseUrl: url }),
  answer: (said, finish = "stop") =>
    namedEvents(
      messageStart,
      ...said.flatMap(anthropicBlock),
      {
        type: "message_delta",
        delta: {
          stop_reason:
            finish === "length"
              ? "max_tokens"
              : finish === "filtered"
                ? "refusal"
                : said.some((each) => "call" in each)
                  ? "tool_use"
                  : "end_turn",
          stop_sequence: null
        },
        usage: { output_tokens: 15 }
      },
      { type: "message_stop" }
    ),
  unfinished: (...after) => namedEvents(messageStart, ...anthropicBlock({ text: "Hello" }, 0), ...after),
  usage: { prompt: 100, answer: 15, thoughts: 0, cached: 60, cacheWrite: 30 },
  error: (type, message) => ({ type: "error", error: { type, message }, request_id: "req_1" }),
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(
      `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}\n\n`
    )
  })
}

const responseItem = (said: Said, output_index: number): ReadonlyArray<NamedEvent> => {
  const done = (item: object) => ({ type: "response.output_item.done", output_index, item })
  if ("text" in said) {
    return [
      ...halves(said.text).map((delta) => ({
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index,
        content_index: 0,
        delta,
        logprobs: []
      })),
      { type: "response.output_text.done" },
      done({ id: "msg_1", type: "message", status: "completed", role: "assistant", content: [] })
    ]
  }
  if ("thought" in said) {
    return [
      { type: "response.output_item.added" },
      ...halves(said.thought).map((delta) => ({
        type: "response.reasoning_summary_text.delta",
        item_id: "rs_1",
        summary_index: 0,
        delta
      })),
      done({
        id: "rs_1",
        type: "reasoning",
        status: "completed",
        summary: [{ type: "summary_text", text: said.thought }],
        encrypted_content: `signed ${said.thought}`
      })
    ]
  }
  const args = typeof said.args === "string" ? said.args : JSON.stringify(said.args)
  return [
    ...halves(args).map((delta) => ({ type: "response.function_call_arguments.delta", output_index, delta })),
    done({
      id: "fc_1",
      type: "function_call",
      status: "completed",
      call_id: said.id,
      name: said.call,
      arguments: args
    })
  ]
}

const created = {
  type: "response.created",
  response: { id: "resp_1", status: "in_progress", error: null, usage: null }
}

export const responses: Dialect = {
  name: "Responses",
  model: "gpt-5",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1`, api: "responses" }),
  answer: (said, finish = "stop") =>
    namedEvents(created, ...said.flatMap(responseItem), {
      type: finish === "stop" ? "response.completed" : "response.incomplete",
      response: {
        id: "resp_1",
        status: finish === "stop" ? "completed" : "incomplete",
        error: null,
        incomplete_details:
          finish === "stop" ? null : { reason: finish === "length" ? "max_output_tokens" : "content_filter" },
        usage: {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 60 },
          output_tokens: 15,
          output_tokens_details: { reasoning_tokens: 5 },
          total_tokens: 115
        }
      }
    }),
  unfinished: (...after) => namedEvents(created, ...responseItem({ text: "Hello" }, 0), ...after),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: (type, message) => ({ error: { message, type, param: null, code: type } }),
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify({ type: "response.output_text.delta", delta: text })}\n\n`)
  })
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "llama3.1",
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  usage: null
})

const chatChunks = (said: ReadonlyArray<Said>) => {
  let calls = 0
  return said.flatMap((each) => {
    if ("text" in each) return halves(each.text).map((content) => chunk({ content }))
    if ("thought" in each) return halves(each.thought).map((reasoning_content) => chunk({ reasoning_content }))
    const index = calls
    calls += 1
    const [first, second] = halves(typeof each.args === "string" ? each.args : JSON.stringify(each.args))
    return [
      chunk({ tool_calls: [{ index, id: each.id, type: "function", function: { name: each.call, arguments: "" } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: first } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: second } }] })
    ]
  })
}

export const chat: Dialect = {
  name: "Chat Completions",
  model: "llama3.1",
  layer: (url, key) => OpenAiModel.layer({ apiKey: key, baseUrl: `${url}/v1` }),
  answer: (said, finish = "stop") =>
    events(
      chunk({ role: "assistant", content: "" }),
      ...chatChunks(said),
      chunk(
        {},
        finish === "length"
          ? "length"
          : finish === "filtered"
            ? "content_filter"
            : said.some((each) => "call" in each)
              ? "tool_calls"
              : "stop"
      ),
      {
        id: "chatcmpl-1",
        choices: [],
        usage: {
          prompt_tokens: 100,
          completion_tokens: 15,
          total_tokens: 115,
          prompt_tokens_details: { cached_tokens: 60 },
          completion_tokens_details: { reasoning_tokens: 5 }
        }
      },
      "[DONE]"
    ),
  unfinished: (...after) => events(...chatChunks([{ text: "Hello" }]), ...after),
  usage: { prompt: 100, answer: 10, thoughts: 5, cached: 60 },
  error: (type, message) => ({ error: { message, type, param: null, code: type } }),
  endless: (text) => ({
    headers: { "content-type": "text/event-stream" },
    writes: forever(`data: ${JSON.stringify(chunk({ content: text }))}\n\n`)
  })
}

export const dialects: ReadonlyArray<Dialect> = [anthropic, responses, chat]
