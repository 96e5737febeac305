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
  thinking: optional(Schema.Struct({ type: Schema.Literal("enabled"), budget_tokens: Schema.Natural })),
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
        tool_calls: optional(
          Schema.Array(
            Schema.Struct({
              id: Id,
              type: Schema.Literal("function"),
              function: Schema.Struct({ name: Id, arguments: Schema.String })
            })
          )
        )
      }),
      Schema.Struct({ role: Schema.Literal("tool"), tool_call_id: Id, content: Schema.String })
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

const closed = (schema: Schema.Codec<unknown, unknown>) => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (body: unknown): string | undefined => {
    const result = decode(body)
    return Result.isFailure(result) ? String(result.failure) : undefined
  }
}

/** What a request breaks of the rules of each dialect. */
export const strict = {
  Messages: closed(AnthropicRequest),
  Responses: closed(ResponsesRequest),
  "Chat Completions": closed(ChatRequest),
  Gemini: closed(GeminiRequest)
} as const
