import { arraySlices, sliceAt } from "../../src/domain/text/JsonSource.ts"
import type { Dialect } from "../../src/domain/wire/Dialect.ts"

/**
 * One file: the four dialects as clients and strict providers speak them, written apart from the program's own code. A client
 * keeps its history as real ones do, and a provider refuses what the real one refuses.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of other programs, which these functions look into
export type Json = Record<string, any>

/** A part of an answer. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thought"; readonly text: string; readonly signature: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly args: unknown }

/** Counts of an answer. `cached`, `cacheWrite` and `thoughts` stand in it as the dialect counts them: apart, or among the others. */
export interface Counts {
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly cacheWrite?: number
  readonly thoughts?: number
}

export interface Answer {
  /** Programs take answers with the same id for one. */
  readonly number?: number
  readonly blocks: ReadonlyArray<Block>
  readonly counts: Counts
  /** Why it ends. Absent: with what it has. */
  readonly end?: "filtered" | "length"
}

export interface Result {
  readonly id: string
  readonly name: string
  readonly text: string
}

export interface DialectCodec {
  readonly path: (isStream: boolean) => string
  readonly user: (text: string) => ReadonlyArray<Json>
  readonly assistant: (blocks: ReadonlyArray<Block>) => ReadonlyArray<Json>
  readonly results: (results: ReadonlyArray<Result>) => ReadonlyArray<Json>
  readonly body: (messages: ReadonlyArray<Json>, isStream: boolean, more?: Json) => Json
  /** The messages of a body, exactly as they stand there. */
  readonly messages: (text: string) => ReadonlyArray<string>
  readonly json: (answer: Answer) => string
  readonly events: (answer: Answer) => ReadonlyArray<string>
  readonly readJson: (text: string) => Answer
  readonly readEvents: (text: string) => Answer
  /** What the real provider would refuse. */
  readonly problems: (body: Json) => ReadonlyArray<string>
}

const tool = "read_file"
const schema = { type: "object", properties: { path: { type: "string" } } }
const system = "You are a careful agent in a test. ".repeat(20)

const named = (data: Json): string => `event: ${data["type"]}\ndata: ${JSON.stringify(data)}\n\n`
const unnamed = (data: Json): string => `data: ${JSON.stringify(data)}\n\n`

const eventsIn = (text: string): ReadonlyArray<Json> =>
  text
    .split(/\r?\n\r?\n/)
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data))

/** A text as it is streamed: in pieces of seven characters, or in a thousand of them. */
export const pieces = (text: string): ReadonlyArray<string> =>
  text.match(new RegExp(`.{1,${Math.max(7, Math.ceil(text.length / 1_000))}}`, "gsu")) ?? []

/** Arguments as they are sent. A text stands for itself: it need not be JSON. */
const jsonOf = (args: unknown): string => (typeof args === "string" ? args : JSON.stringify(args))

/** A signature as the providers of these tests make it: whole, and no other. */
const signatureForm = /^signed:.+:end$/s

/** The signature that a provider of these tests makes. */
export const signatureOf = (text: string): string => `signed:${text}:end`

const slices = (key: string) => (text: string) => arraySlices(sliceAt(text, [key]) ?? "[]")

/** Checks that each call has its answer right after it. */
const pairProblems = (
  groups: ReadonlyArray<{ readonly calls: ReadonlyArray<string>; readonly results: ReadonlyArray<string> }>
) => {
  const problems: Array<string> = []
  for (const [at, { calls }] of groups.entries()) {
    const next = groups[at + 1]
    if (
      calls.length > 0 &&
      next !== undefined &&
      calls.join() !== [...next.results].sort((a, b) => calls.indexOf(a) - calls.indexOf(b)).join()
    )
      problems.push(`calls ${calls.join()} are answered by ${next.results.join()}`)
    if (calls.length > 0 && next === undefined) problems.push("a call at the end")
    const before = groups[at - 1]
    if (groups[at]?.results.length && (before === undefined || before.calls.length === 0))
      problems.push("a result without its call")
  }
  return problems
}

/** Checks that no two calls have the same id. */
const repeatedProblems = (groups: ReadonlyArray<{ readonly calls: ReadonlyArray<string> }>) => {
  const ids = groups.flatMap(({ calls }) => calls)
  return ids.filter((id, at) => ids.indexOf(id) < at).map((id) => `two calls have the id ${id}`)
}

const declaredProblems = (declared: ReadonlyArray<string>, called: ReadonlyArray<string>) => [
  ...(new Set(declared).size < declared.length ? ["a tool is declared twice"] : []),
  ...called.filter((name) => !declared.includes(name)).map((name) => `${name} is not declared`)
]

const anthropicEnd = (blocks: ReadonlyArray<Block>, end: Answer["end"]): string => {
  if (end !== undefined) return end === "length" ? "max_tokens" : "refusal"
  return blocks.some(({ kind }) => kind === "call") ? "tool_use" : "end_turn"
}

const anthropic: DialectCodec = {
  path: () => "/v1/messages",
  user: (text) => [{ role: "user", content: [{ type: "text", text }] }],
  assistant: (blocks) => [
    {
      role: "assistant",
      content: blocks
        .filter((block) => block.kind !== "text" || block.text !== "")
        .map((block) =>
          block.kind === "text"
            ? { type: "text", text: block.text }
            : block.kind === "thought"
              ? { type: "thinking", thinking: block.text, signature: block.signature }
              : { type: "tool_use", id: block.id, name: block.name, input: block.args }
        )
    }
  ],
  results: (results) => [
    { role: "user", content: results.map(({ id, text }) => ({ type: "tool_result", tool_use_id: id, content: text })) }
  ],
  body: (messages, stream, more = {}) => ({
    model: "claude-sonnet-4-5",
    max_tokens: 4096,
    system: [{ type: "text", text: system, cache_control: { type: "ephemeral" } }],
    tools: [{ name: tool, description: "Reads a file", input_schema: schema }],
    ...more,
    messages,
    stream
  }),
  messages: slices("messages"),
  json: ({ blocks, counts, number = 1 }) =>
    JSON.stringify({
      id: `msg_${number}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      content: anthropic.assistant(blocks)[0]?.["content"],
      stop_reason: blocks.some(({ kind }) => kind === "call") ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: { input_tokens: counts.input, output_tokens: counts.output }
    }),
  events: ({ blocks, counts, end, number = 1 }) => [
    named({
      type: "message_start",
      message: {
        id: `msg_${number}`,
        type: "message",
        role: "assistant",
        content: [],
        usage: {
          input_tokens: counts.input,
          ...(counts.cacheWrite === undefined ? {} : { cache_creation_input_tokens: counts.cacheWrite }),
          ...(counts.cached === undefined ? {} : { cache_read_input_tokens: counts.cached }),
          output_tokens: 1
        }
      }
    }),
    named({ type: "ping" }),
    ...blocks.flatMap((block, index) => {
      const start =
        block.kind === "text"
          ? { type: "text", text: "" }
          : block.kind === "thought"
            ? { type: "thinking", thinking: "", signature: "" }
            : { type: "tool_use", id: block.id, name: block.name, input: {} }
      const deltas: ReadonlyArray<Json> =
        block.kind === "text"
          ? pieces(block.text).map((text) => ({ type: "text_delta", text }))
          : block.kind === "thought"
            ? [
                ...pieces(block.text).map((thinking) => ({ type: "thinking_delta", thinking })),
                // Clients take the last one for the whole signature.
                { type: "signature_delta", signature: block.signature }
              ]
            : pieces(jsonOf(block.args)).map((partial_json) => ({ type: "input_json_delta", partial_json }))
      return [
        named({ type: "content_block_start", index, content_block: start }),
        ...deltas.map((delta) => named({ type: "content_block_delta", index, delta })),
        named({ type: "content_block_stop", index })
      ]
    }),
    named({
      type: "message_delta",
      delta: { stop_reason: anthropicEnd(blocks, end), stop_sequence: null },
      usage: { output_tokens: counts.output }
    }),
    named({ type: "message_stop" })
  ],
  readJson: (text) => {
    const { content, usage } = JSON.parse(text)
    return { blocks: content.map(anthropicBlock), counts: { input: usage.input_tokens, output: usage.output_tokens } }
  },
  readEvents: (text) => {
    const content: Array<Json> = []
    let counts = { input: 0, output: 0 }
    let stops = 0
    for (const event of eventsIn(text)) {
      if (event["type"] === "message_start") counts = { ...counts, input: event["message"].usage.input_tokens }
      if (event["type"] === "content_block_start") {
        if (event["index"] !== content.length)
          throw new Error(`block ${event["index"]} follows ${content.length} blocks`)
        content.push({ ...event["content_block"], json: "" })
      }
      if (event["type"] === "content_block_delta") {
        const block = content[event["index"]] ?? {}
        const { delta } = event
        if (delta.type === "text_delta") block["text"] += delta.text
        if (delta.type === "thinking_delta") block["thinking"] += delta.thinking
        if (delta.type === "signature_delta") block["signature"] += delta.signature
        if (delta.type === "input_json_delta") block["json"] += delta.partial_json
      }
      if (event["type"] === "message_delta") {
        counts = { input: event["usage"].input_tokens ?? counts.input, output: event["usage"].output_tokens }
      }
      if (event["type"] === "message_stop") stops += 1
    }
    if (stops !== 1) throw new Error(`the message stops ${stops} times`)
    const blocks = content.map((block) =>
      anthropicBlock(block["type"] === "tool_use" ? { ...block, input: JSON.parse(block["json"] || "{}") } : block)
    )
    return { blocks, counts }
  },
  problems: ({ messages, tools }) => {
    const groups = messages.map(({ content, role }: Json) => {
      const blocks: ReadonlyArray<Json> = typeof content === "string" ? [] : content
      return {
        role,
        isEmpty: typeof content === "string" ? content === "" : content.length === 0,
        names: blocks.filter(({ type }) => type === "tool_use").map(({ name }) => name),
        calls: blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id),
        results: blocks.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id),
        marks: blocks.filter((block) => "cache_control" in block).length,
        blank: blocks.filter(({ text, type }) => type === "text" && text.trim() === "").length,
        endsThinking: blocks.at(-1)?.["type"] === "thinking",
        torn: blocks.filter(({ signature, type }) => type === "thinking" && !signatureForm.test(signature)).length
      }
    })
    return [
      ...(groups[0]?.role === "user" ? [] : ["the first message is not the user's"]),
      ...(groups.some(({ isEmpty }: Json) => isEmpty) ? ["an empty message"] : []),
      ...(groups.some(({ blank }: Json) => blank > 0) ? ["a text without words"] : []),
      ...(groups.some(({ torn }: Json) => torn > 0) ? ["thinking without its signature"] : []),
      ...(groups.some(({ endsThinking }: Json) => endsThinking) ? ["thinking at the end of a turn"] : []),
      ...(groups.reduce((sum: number, { marks }: Json) => sum + marks, 1) > 4 ? ["more than four cache marks"] : []),
      ...repeatedProblems(groups),
      ...pairProblems(groups),
      ...declaredProblems(
        (tools ?? []).map(({ name }: Json) => name),
        groups.flatMap(({ names }: Json) => names)
      )
    ]
  }
}

const anthropicBlock = (block: Json): Block =>
  block["type"] === "text"
    ? { kind: "text", text: block["text"] }
    : block["type"] === "thinking"
      ? { kind: "thought", text: block["thinking"], signature: block["signature"] }
      : { kind: "call", id: block["id"], name: block["name"], args: block["input"] }

const textOf = (blocks: ReadonlyArray<Block>): string =>
  blocks.map((block) => (block.kind === "text" ? block.text : "")).join("")

const chatCalls = (blocks: ReadonlyArray<Block>): ReadonlyArray<Json> =>
  blocks.flatMap((block) =>
    block.kind === "call"
      ? [{ id: block.id, type: "function", function: { name: block.name, arguments: jsonOf(block.args) } }]
      : []
  )

const chatMessage = (blocks: ReadonlyArray<Block>): Json => {
  const calls = chatCalls(blocks)
  const text = textOf(blocks)
  return { role: "assistant", content: text === "" ? null : text, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
}

const chatBlocks = ({ content, tool_calls: calls = [] }: Json): ReadonlyArray<Block> => [
  ...(typeof content === "string" && content !== "" ? [{ kind: "text" as const, text: content }] : []),
  ...calls.map((call: Json) => ({
    kind: "call" as const,
    id: call["id"],
    name: call["function"].name,
    args: JSON.parse(call["function"].arguments)
  }))
]

/** An event of Chat Completions. */
export const chatChunk = (delta: Json, finish: string | null = null, number = 1): string =>
  unnamed({
    id: `chatcmpl-${number}`,
    object: "chat.completion.chunk",
    created: number,
    model: "gpt-4o",
    choices: [{ index: 0, delta, finish_reason: finish }]
  })

const chat: DialectCodec = {
  path: () => "/v1/chat/completions",
  user: (content) => [{ role: "user", content }],
  assistant: (blocks) => [chatMessage(blocks)],
  results: (results) => results.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text })),
  body: (messages, stream, more = {}) => ({
    model: "gpt-4o",
    ...more,
    messages: [{ role: "system", content: system }, ...messages],
    tools: [{ type: "function", function: { name: tool, description: "Reads a file", parameters: schema } }],
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {})
  }),
  messages: slices("messages"),
  json: ({ blocks, counts, number = 1 }) =>
    JSON.stringify({
      id: `chatcmpl-${number}`,
      object: "chat.completion",
      created: number,
      model: "gpt-4o",
      choices: [
        { index: 0, message: chatMessage(blocks), finish_reason: chatCalls(blocks).length > 0 ? "tool_calls" : "stop" }
      ],
      usage: {
        prompt_tokens: counts.input,
        completion_tokens: counts.output,
        total_tokens: counts.input + counts.output
      }
    }),
  events: ({ blocks, counts, end, number = 1 }) => {
    const calls = chatCalls(blocks)
    const chunk = (delta: Json, finish: string | null = null) => chatChunk(delta, finish, number)
    return [
      chunk({ role: "assistant", content: "" }),
      ...pieces(textOf(blocks)).map((content) => chunk({ content })),
      ...calls.flatMap(({ function: { arguments: args, name }, id, type }, index) => [
        chunk({ tool_calls: [{ index, id, type, function: { name, arguments: "" } }] }),
        ...pieces(args).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
      ]),
      chunk({}, end === "filtered" ? "content_filter" : (end ?? (calls.length > 0 ? "tool_calls" : "stop"))),
      unnamed({
        id: `chatcmpl-${number}`,
        object: "chat.completion.chunk",
        created: number,
        choices: [],
        usage: {
          prompt_tokens: counts.input,
          completion_tokens: counts.output,
          total_tokens: counts.input + counts.output,
          ...(counts.cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: counts.cached } }),
          ...(counts.thoughts === undefined ? {} : { completion_tokens_details: { reasoning_tokens: counts.thoughts } })
        }
      }),
      "data: [DONE]\n\n"
    ]
  },
  readJson: (text) => {
    const { choices, usage } = JSON.parse(text)
    return {
      blocks: chatBlocks(choices[0].message),
      counts: { input: usage.prompt_tokens, output: usage.completion_tokens }
    }
  },
  readEvents: (text) => {
    let content = ""
    const calls: Array<Json> = []
    let counts = { input: 0, output: 0 }
    let ends = 0
    for (const { choices, usage } of eventsIn(text)) {
      if (usage) counts = { input: usage.prompt_tokens, output: usage.completion_tokens }
      for (const { delta, finish_reason } of choices) {
        content += delta.content ?? ""
        if (finish_reason) ends += 1
        for (const call of delta.tool_calls ?? []) {
          if (call.index > calls.length) throw new Error(`call ${call.index} follows ${calls.length} calls`)
          const known = calls[call.index]
          if (known === undefined) calls.push({ id: call.id, function: { ...call.function } })
          else known["function"].arguments += call.function.arguments
        }
      }
    }
    if (ends !== 1 || !text.endsWith("data: [DONE]\n\n")) throw new Error(`the answer ends ${ends} times`)
    return { blocks: chatBlocks({ content, tool_calls: calls }), counts }
  },
  problems: ({ messages, tools }) => {
    const groups: Array<{ calls: Array<string>; results: Array<string>; names: Array<string> }> = []
    for (const message of messages as ReadonlyArray<Json>) {
      const last = groups.at(-1)
      if (message["role"] === "tool" && last !== undefined && last.results.length > 0)
        last.results.push(message["tool_call_id"])
      else {
        const calls: ReadonlyArray<Json> = message["tool_calls"] ?? []
        groups.push({
          calls: calls.map(({ id }) => id),
          results: message["role"] === "tool" ? [message["tool_call_id"]] : [],
          names: calls.map(({ function: { name } }) => name)
        })
      }
    }
    return [
      ...(messages.some(
        ({ content, role, tool_calls }: Json) => role === "assistant" && content === null && tool_calls === undefined
      )
        ? ["an empty message"]
        : []),
      ...pairProblems(groups),
      ...declaredProblems(
        (tools ?? []).map((one: Json) => one["function"].name),
        groups.flatMap(({ names }) => names)
      )
    ]
  }
}

const responsesItems = (blocks: ReadonlyArray<Block>, number = 1): ReadonlyArray<Json> =>
  blocks.map((block, at) =>
    block.kind === "text"
      ? {
          type: "message",
          id: `msg_${number}_${at}`,
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: block.text, annotations: [] }]
        }
      : block.kind === "thought"
        ? {
            type: "reasoning",
            id: `rs_${block.signature.replaceAll(/\W/g, "_")}`,
            summary: block.text === "" ? [] : [{ type: "summary_text", text: block.text }],
            encrypted_content: block.signature
          }
        : {
            type: "function_call",
            id: `fc_${block.id}`,
            call_id: block.id,
            name: block.name,
            arguments: jsonOf(block.args),
            status: "completed"
          }
  )

const responsesBlocks = (items: ReadonlyArray<Json>): ReadonlyArray<Block> =>
  items.map((item) =>
    item["type"] === "message"
      ? { kind: "text", text: item["content"][0].text }
      : item["type"] === "reasoning"
        ? { kind: "thought", text: item["summary"][0]?.text ?? "", signature: item["encrypted_content"] }
        : { kind: "call", id: item["call_id"], name: item["name"], args: JSON.parse(item["arguments"]) }
  )

/** Whether an item refers to one that the provider stores. The type may be left out. */
export const isReference = ({ role, type }: Json): boolean =>
  type === "item_reference" || (type === undefined && role === undefined)

/** Whether the model said an item. */
const isModels = (item: Json | undefined): boolean =>
  item !== undefined &&
  (item["role"] === "assistant" || ["reasoning", "function_call"].includes(item["type"]) || isReference(item))

/** Counts as the Responses API gives them; Codex wants all of them. */
const responsesUsage = ({ cached = 0, input, output, thoughts = 0 }: Counts): Json => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: thoughts },
  total_tokens: input + output
})

const responses: DialectCodec = {
  path: () => "/v1/responses",
  user: (text) => [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
  // As Codex keeps them: without ids.
  assistant: (blocks) => responsesItems(blocks).map(({ id: _id, status: _status, ...item }) => item),
  results: (results) => results.map(({ id, text }) => ({ type: "function_call_output", call_id: id, output: text })),
  body: (messages, stream, more = {}) => ({
    model: "gpt-5",
    instructions: system,
    ...more,
    input: messages,
    tools: [{ type: "function", name: tool, description: "Reads a file", parameters: schema, strict: false }],
    store: false,
    stream
  }),
  messages: slices("input"),
  json: ({ blocks, counts, number = 1 }) =>
    JSON.stringify({
      id: `resp_${number}`,
      object: "response",
      status: "completed",
      output: responsesItems(blocks, number),
      usage: responsesUsage(counts)
    }),
  events: ({ blocks, counts, end, number = 1 }) => {
    let sequence_number = 0
    const event = (type: string, data: Json) => {
      const text = named({ type, sequence_number, ...data })
      sequence_number += 1
      return text
    }
    return [
      event("response.created", { response: { id: `resp_${number}`, status: "in_progress", output: [] } }),
      event("response.in_progress", { response: { id: `resp_${number}`, status: "in_progress", output: [] } }),
      ...responsesItems(blocks, number).flatMap((item, output_index) => [
        event("response.output_item.added", {
          output_index,
          item: {
            ...item,
            ...(item["type"] === "function_call" ? { arguments: "" } : {}),
            ...(item["type"] === "message" ? { content: [] } : {}),
            ...(item["type"] === "reasoning" ? { summary: [] } : {})
          }
        }),
        ...(item["type"] === "message"
          ? [
              event("response.content_part.added", {
                output_index,
                content_index: 0,
                item_id: item["id"],
                part: { ...item["content"][0], text: "" }
              })
            ]
          : []),
        ...(item["type"] === "message"
          ? pieces(item["content"][0].text).map((delta) =>
              event("response.output_text.delta", { output_index, content_index: 0, item_id: item["id"], delta })
            )
          : item["type"] === "function_call"
            ? pieces(item["arguments"]).map((delta) =>
                event("response.function_call_arguments.delta", { output_index, item_id: item["id"], delta })
              )
            : item["summary"].flatMap((part: Json, summary_index: number) => {
                const place = { output_index, summary_index, item_id: item["id"] }
                return [
                  event("response.reasoning_summary_part.added", { ...place, part: { ...part, text: "" } }),
                  ...pieces(part["text"]).map((delta) =>
                    event("response.reasoning_summary_text.delta", { ...place, delta })
                  )
                ]
              })),
        event("response.output_item.done", { output_index, item })
      ]),
      event(end === undefined ? "response.completed" : "response.incomplete", {
        response: {
          id: `resp_${number}`,
          status: end === undefined ? "completed" : "incomplete",
          ...(end === undefined
            ? {}
            : { incomplete_details: { reason: end === "length" ? "max_output_tokens" : "content_filter" } }),
          output: responsesItems(blocks, number),
          usage: responsesUsage(counts)
        }
      })
    ]
  },
  readJson: (text) => {
    const { output, usage } = JSON.parse(text)
    return { blocks: responsesBlocks(output), counts: { input: usage.input_tokens, output: usage.output_tokens } }
  },
  readEvents: (text) => {
    const items: Array<Json> = []
    let counts = { input: 0, output: 0 }
    let ends = 0
    let begins = 0
    const ids = new Set<unknown>()
    for (const [at, event] of eventsIn(text).entries()) {
      if (event["response"] !== undefined) ids.add(event["response"].id)
      if (event["sequence_number"] !== at) throw new Error(`event ${at} has the number ${event["sequence_number"]}`)
      if (event["type"] === "response.created") begins += 1
      if (event["type"] === "response.output_item.added" && event["output_index"] !== items.length)
        throw new Error(`item ${event["output_index"]} follows ${items.length} items`)
      if (event["type"] === "response.output_item.done") items.push(event["item"])
      if (event["type"] === "response.completed") {
        ends += 1
        const { output, usage } = event["response"]
        counts = { input: usage.input_tokens, output: usage.output_tokens }
        if (JSON.stringify(output) !== JSON.stringify(items)) throw new Error("the whole response is another one")
      }
    }
    if (ids.size !== 1) throw new Error(`the response has the ids ${[...ids].join()}`)
    if (ends !== 1 || begins !== 1) throw new Error(`the response begins ${begins} times and ends ${ends} times`)
    return { blocks: responsesBlocks(items), counts }
  },
  problems: ({ input, tools }) => {
    const items: ReadonlyArray<Json> = input
    const calls = items.filter(({ type }) => type === "function_call")
    const outputs = items.filter(({ type }) => type === "function_call_output").map(({ call_id }) => call_id)
    return [
      ...calls
        .filter(({ call_id }) => outputs.filter((id) => id === call_id).length !== 1)
        .map(({ call_id }) => `${call_id} is not answered once`),
      ...outputs.filter((id) => !calls.some(({ call_id }) => call_id === id)).map((id) => `${id} was not called`),
      ...items
        .filter(({ encrypted_content, type }) => type === "reasoning" && !signatureForm.test(encrypted_content))
        .map(({ id }) => `${id} is torn`),
      ...items
        .filter(({ type }, at) => type === "reasoning" && !isModels(items[at + 1]))
        .map(({ id }) => `${id} stands without what it led to`),
      ...items
        .filter(isReference)
        .map(({ id }) => id)
        .filter((id) => items.filter((item) => item["id"] === id).length > 1)
        .map((id) => `Duplicate item found with id ${id}`),
      // Schemas are strict unless the request says otherwise, and a strict one requires every property.
      ...(tools ?? [])
        .filter(({ strict, type }: Json) => type === "function" && strict !== false)
        .map(({ name }: Json) => `the schema of ${name} is not strict`),
      ...declaredProblems(
        (tools ?? []).map(({ name }: Json) => name),
        calls.map(({ name }) => name)
      )
    ]
  }
}

const geminiParts = (blocks: ReadonlyArray<Block>): ReadonlyArray<Json> =>
  blocks.map((block) =>
    block.kind === "text"
      ? { text: block.text }
      : block.kind === "thought"
        ? { text: block.text, thought: true }
        : {
            functionCall: { id: block.id, name: block.name, args: block.args },
            thoughtSignature: signatureOf(block.id)
          }
  )

const geminiBlocks = (parts: ReadonlyArray<Json>): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  for (const { functionCall: call, text, thought } of parts) {
    const last = blocks.at(-1)
    if (call !== undefined) blocks.push({ kind: "call", id: call.id, name: call.name, args: call.args })
    else if (thought === true) blocks.push({ kind: "thought", text, signature: "" })
    else if (last?.kind === "text") blocks[blocks.length - 1] = { kind: "text", text: last.text + text }
    else if (text !== "") blocks.push({ kind: "text", text })
  }
  return blocks
}

/** The parts of an answer or of an event, as strict clients read them. */
const geminiContent = ([candidate]: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const content = candidate?.["content"]
  if (content !== undefined && content.role !== "model") throw new Error(`a content has the role ${content.role}`)
  return content?.parts ?? []
}

const gemini: DialectCodec = {
  path: (isStream) =>
    `/v1beta/models/gemini-2.5-flash:${isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  user: (text) => [{ role: "user", parts: [{ text }] }],
  // As Gemini CLI keeps them: without thoughts.
  assistant: (blocks) => [{ role: "model", parts: geminiParts(blocks.filter(({ kind }) => kind !== "thought")) }],
  results: (results) => [
    {
      role: "user",
      parts: results.map(({ id, name, text }) => ({ functionResponse: { id, name, response: { output: text } } }))
    }
  ],
  body: (messages, _isStream, more = {}) => ({
    ...more,
    contents: messages,
    systemInstruction: { parts: [{ text: system }] },
    tools: [{ functionDeclarations: [{ name: tool, description: "Reads a file", parametersJsonSchema: schema }] }]
  }),
  messages: slices("contents"),
  json: ({ blocks, counts }) =>
    JSON.stringify({
      candidates: [{ content: { role: "model", parts: geminiParts(blocks) }, finishReason: "STOP", index: 0 }],
      usageMetadata: {
        promptTokenCount: counts.input,
        candidatesTokenCount: counts.output,
        totalTokenCount: counts.input + counts.output
      }
    }),
  events: ({ blocks, counts }) => {
    const parts = blocks.flatMap((block) =>
      block.kind === "text" ? pieces(block.text).map((text) => ({ text })) : geminiParts([block])
    )
    const event = (candidate: Json) =>
      unnamed({
        candidates: [{ ...candidate, index: 0 }],
        usageMetadata: {
          promptTokenCount: counts.input,
          candidatesTokenCount: counts.output,
          totalTokenCount: counts.input + counts.output
        }
      })
    // The end has a content without words: Google's SDK forgets a turn with an event without content.
    return [
      ...parts.map((part) => event({ content: { role: "model", parts: [part] } })),
      event({ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP" })
    ]
  },
  readJson: (text) => {
    const { candidates, usageMetadata } = JSON.parse(text)
    return {
      blocks: geminiBlocks(geminiContent(candidates)),
      counts: { input: usageMetadata.promptTokenCount, output: usageMetadata.candidatesTokenCount }
    }
  },
  readEvents: (text) => {
    const events = eventsIn(text)
    const ends = events.filter(({ candidates }) => candidates[0].finishReason !== undefined).length
    if (ends !== 1) throw new Error(`the answer ends ${ends} times`)
    const usage = events.at(-1)?.["usageMetadata"]
    return {
      blocks: geminiBlocks(events.flatMap(({ candidates }) => geminiContent(candidates))),
      counts: { input: usage.promptTokenCount, output: usage.candidatesTokenCount }
    }
  },
  problems: ({ contents, tools }) => {
    const groups = contents.map(({ parts, role }: Json) => ({
      role,
      isEmpty: parts.length === 0,
      // Gemini 3 refuses a turn whose first call has no signature.
      isUnsigned: parts
        .filter(({ functionCall }: Json) => functionCall)
        .slice(0, 1)
        .some(({ thoughtSignature = "" }: Json) => !signatureForm.test(thoughtSignature)),
      calls: parts.filter(({ functionCall }: Json) => functionCall).map(({ functionCall }: Json) => functionCall.id),
      names: parts.filter(({ functionCall }: Json) => functionCall).map(({ functionCall }: Json) => functionCall.name),
      results: parts
        .filter(({ functionResponse }: Json) => functionResponse)
        .map(({ functionResponse }: Json) => functionResponse.id)
    }))
    return [
      ...(groups.some(({ isUnsigned, role }: Json) => isUnsigned && role === "model")
        ? ["a first call without its signature"]
        : []),
      ...(groups.some(({ isEmpty }: Json) => isEmpty) ? ["an empty message"] : []),
      ...pairProblems(groups),
      ...declaredProblems(
        (tools ?? []).flatMap(({ functionDeclarations = [] }: Json) =>
          functionDeclarations.map(({ name }: Json) => name)
        ),
        groups.flatMap(({ names }: Json) => names)
      )
    ]
  }
}

/** The dialects. */
export const codecs: Readonly<Record<Dialect, DialectCodec>> = { anthropic, chat, responses, gemini }
