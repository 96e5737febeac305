import { Result, Schema } from "effect"

/**
 * Requests as the providers' references write them, closed: a field that is not in them is refused, as the providers themselves refuse it. Each check
 * returns what is wrong, or undefined.
 */

const Text = Schema.String.check(Schema.isPattern(/\S/))
const Id = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/))
const Base64 = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9+/]+=*$/))
const Json = Schema.Record(Schema.String, Schema.Unknown)
const optional = Schema.optionalKey
const ImageType = Schema.Literals(["image/jpeg", "image/png", "image/gif", "image/webp"])

const mark = { cache_control: optional(Schema.Struct({ type: Schema.Literal("ephemeral") })) }
const textBlock = Schema.Struct({ type: Schema.Literal("text"), text: Text, ...mark })
const imageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: Schema.Struct({ type: Schema.Literal("base64"), media_type: ImageType, data: Base64 }),
  ...mark
})
const AnthropicRequest = Schema.Struct({
  model: Text,
  max_tokens: Schema.Natural,
  system: optional(Schema.Array(textBlock)),
  tools: optional(
    Schema.Array(Schema.Struct({ name: Id, description: optional(Schema.String), input_schema: Json, ...mark }))
  ),
  tool_choice: optional(Schema.Struct({ type: Schema.Literals(["any", "auto"]) })),
  thinking: optional(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("enabled"), budget_tokens: Schema.Natural }),
      Schema.Struct({
        type: Schema.Literal("adaptive"),
        block_binding: optional(Schema.Struct({ prefix_mismatch_behavior: Schema.Literal("drop_block") }))
      })
    ])
  ),
  temperature: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  top_p: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  top_k: optional(Schema.Natural),
  stream: Schema.Boolean,
  messages: Schema.Array(
    Schema.Union([
      Schema.Struct({
        role: Schema.Literal("user"),
        content: Schema.Array(
          Schema.Union([
            textBlock,
            imageBlock,
            Schema.Struct({
              type: Schema.Literal("tool_result"),
              tool_use_id: Id,
              content: Schema.Union([Schema.String, Schema.Array(Schema.Union([textBlock, imageBlock]))]),
              is_error: optional(Schema.Boolean),
              ...mark
            })
          ])
        )
      }),
      Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.Array(
          Schema.Union([
            textBlock,
            Schema.Struct({ type: Schema.Literal("tool_use"), id: Id, name: Id, input: Json }),
            Schema.Struct({ type: Schema.Literal("thinking"), thinking: Schema.String, signature: Text })
          ])
        )
      })
    ])
  )
})

const inputPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("input_text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("input_image"),
    detail: Schema.Literal("auto"),
    image_url: Schema.String.check(Schema.isPattern(/^data:image\/\w+;base64,/))
  })
])
const ResponsesRequest = Schema.Struct({
  model: Text,
  instructions: optional(Text),
  tools: optional(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        name: Id,
        description: optional(Schema.String),
        parameters: Json,
        strict: Schema.Boolean
      })
    )
  ),
  tool_choice: optional(Schema.Literal("required")),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite),
  reasoning: optional(Json),
  store: Schema.Boolean,
  stream: Schema.Boolean,
  include: optional(Schema.Array(Schema.Literal("reasoning.encrypted_content"))),
  max_output_tokens: optional(Schema.Natural),
  input: Schema.Array(
    Schema.Union([
      Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(inputPart) }),
      Schema.Struct({ role: Schema.Literal("assistant"), content: Text }),
      Schema.Struct({ type: Schema.Literal("function_call"), call_id: Id, name: Id, arguments: Schema.String }),
      Schema.Struct({
        type: Schema.Literal("function_call_output"),
        call_id: Id,
        output: Schema.Union([Schema.String, Schema.Array(inputPart)])
      }),
      Schema.Struct({
        type: Schema.Literal("reasoning"),
        id: Id,
        status: optional(Schema.String),
        summary: Schema.Array(Json),
        encrypted_content: Text
      })
    ])
  )
})

/** Servers of Chat Completions take back what they added to a message with calls, and ids in their own form. */
const ChatId = Schema.String.check(Schema.isPattern(/^\S{1,40}$/))

const ChatRequest = Schema.Struct({
  model: Text,
  stream: Schema.Boolean,
  stream_options: Schema.Struct({ include_usage: Schema.Boolean }),
  tools: optional(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        function: Schema.Struct({ name: Id, description: optional(Schema.String), parameters: Json })
      })
    )
  ),
  tool_choice: optional(Schema.Literal("required")),
  max_tokens: optional(Schema.Natural),
  max_completion_tokens: optional(Schema.Natural),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite),
  messages: Schema.Array(
    Schema.Union([
      Schema.Struct({ role: Schema.Literal("system"), content: Text }),
      Schema.Struct({
        role: Schema.Literal("user"),
        content: Schema.Union([
          Text,
          Schema.Array(
            Schema.Union([
              Schema.Struct({ type: Schema.Literal("text"), text: Text }),
              Schema.Struct({
                type: Schema.Literal("image_url"),
                image_url: Schema.Struct({ url: Schema.String.check(Schema.isPattern(/^data:image\/\w+;base64,/)) })
              })
            ])
          )
        ])
      }),
      Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.NullOr(Text),
        reasoning_content: optional(Text),
        tool_calls: optional(
          Schema.Array(
            Schema.Struct({
              id: ChatId,
              type: Schema.Literal("function"),
              function: Schema.Struct({ name: Id, arguments: Schema.String })
            })
          )
        )
      }),
      Schema.Struct({ role: Schema.Literal("tool"), tool_call_id: ChatId, content: Schema.String })
    ])
  )
})

const signature = {
  thoughtSignature: optional(
    Schema.Union([
      Schema.Literal("skip_thought_signature_validator"),
      Schema.String.check(Schema.isPattern(/^[\w+/]+=*$/))
    ])
  )
}
const inlineData = Schema.Struct({ mimeType: Text, data: Base64 })
const GeminiRequest = Schema.Struct({
  systemInstruction: optional(Schema.Struct({ parts: Schema.Array(Schema.Struct({ text: Text })) })),
  tools: optional(
    Schema.Array(
      Schema.Struct({
        functionDeclarations: Schema.Array(
          Schema.Struct({ name: Text, description: optional(Schema.String), parametersJsonSchema: Json })
        )
      })
    )
  ),
  toolConfig: optional(Schema.Struct({ functionCallingConfig: Schema.Struct({ mode: Schema.Literal("ANY") }) })),
  generationConfig: optional(Json),
  contents: Schema.Array(
    Schema.Struct({
      role: Schema.Literals(["user", "model"]),
      parts: Schema.Array(
        Schema.Union([
          Schema.Struct({ text: Text, thought: optional(Schema.Boolean), ...signature }),
          Schema.Struct({
            text: Schema.String,
            thoughtSignature: Schema.String.check(Schema.isPattern(/^[\w+/]+=*$/))
          }),
          Schema.Struct({ inlineData }),
          Schema.Struct({
            functionCall: Schema.Struct({ id: optional(Text), name: Text, args: optional(Json) }),
            ...signature
          }),
          Schema.Struct({
            functionResponse: Schema.Struct({
              id: optional(Text),
              name: Text,
              response: Json,
              parts: optional(Schema.Array(Schema.Struct({ inlineData })))
            })
          })
        ])
      ).check(Schema.isMinLength(1))
    })
  )
})

/** Checks that a request has the form of a schema, and then what the form does not say. */
const closed = <A>(schema: Schema.Codec<A, unknown>, refused: (body: A) => string | undefined = () => undefined) => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (body: unknown): string | undefined => {
    const result = decode(body)
    return Result.isFailure(result) ? String(result.failure) : refused(result.success)
  }
}

const anthropicRefusal = (request: typeof AnthropicRequest.Type): string | undefined => {
  const { max_tokens, messages, temperature, thinking, tool_choice, top_k, top_p } = request
  const isSampled = temperature !== undefined || top_p !== undefined || top_k !== undefined
  if (temperature !== undefined && top_p !== undefined) return "temperature and top_p cannot both be given"
  if (thinking !== undefined && isSampled) return "thinking takes no sampling parameters"
  if (thinking !== undefined && tool_choice?.type === "any") return "thinking may not be combined with a forced call"
  if (thinking?.type === "enabled" && thinking.budget_tokens >= max_tokens) return "max_tokens must exceed the budget"
  const roles = messages.map(({ role }) => role)
  if (roles[0] !== "user") return "the first message must be the user's"
  if (roles.some((role, at) => role === roles[at + 1])) return "roles must alternate"
  return undefined
}

/** Gemini 3 refuses a turn whose first call has no signature. */
const geminiRefusal = ({ contents }: Pick<typeof GeminiRequest.Type, "contents">): string | undefined => {
  for (const { parts, role } of contents) {
    const [first] = parts.filter((part) => "functionCall" in part)
    if (first !== undefined && role !== "model") return "a call in a turn of the user"
    if (first !== undefined && first.thoughtSignature === undefined) return "the first call of a turn has no signature"
  }
  return undefined
}

/** What a request breaks of the rules of each dialect. */
export const strict = {
  Messages: closed(AnthropicRequest, anthropicRefusal),
  Responses: closed(ResponsesRequest),
  "Chat Completions": closed(ChatRequest),
  Gemini: closed(GeminiRequest, geminiRefusal)
} as const
