import { Effect, Option, Predicate, type Schema, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { ModelName } from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import { type Part, text } from "../../domain/content/Content.ts"
import { countedParts } from "../../domain/effect-ai/PromptContent.ts"
import { defaultReserve, modelLimits, assumedWindow } from "../../domain/tokens/ModelLimits.ts"
import * as WindowGuard from "../chat/WindowGuard.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { toModelError } from "./LanguageModelBridge.ts"

/** How much of a model's window prompts may take, and how they are compressed. */
export interface WindowOptions {
  /**
   * The window in tokens. Default: looked up by `model`, or by the name that the model's layer provides. For a model that is not in
   * the table (`domain/tokens/ModelLimits`) 32,768 tokens are assumed, with a warning.
   */
  readonly window?: number | undefined
  /** The model's name, for its window and its calibration. */
  readonly model?: string | undefined
  /** The share of the window that triggers a compression (default 0.5). */
  readonly threshold?: number | undefined
  /**
   * Tokens of the window that are kept for the answer. Default: 0 for models whose answer has a limit of its own, else 16,384, at
   * most a quarter of the window.
   */
  readonly reserve?: number | undefined
  /**
   * The compression policy. A model writes the snapshot where `ModelSummarizer.layer` is provided to `Compression`; code writes it
   * otherwise, and always with `summarizer: "extractive"`.
   */
  readonly policy?: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens">> | undefined
}

/** The options of a call of a language model that matter here. */
export type CallOptions = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>> & {
  readonly schema?: Schema.Top | undefined
}

/** What is sent in addition to the messages. */
export interface Declarations {
  /** Tool declarations and the schema of the answer, as far as they are known here. */
  readonly parts: ReadonlyArray<Part>
  readonly tokens: number
  /** The toolkit, where it had to be built to know its tools. */
  readonly toolkit: Toolkit.WithHandler<Record<string, Tool.Any>> | undefined
}

/** For a request without tools and schema. */
export const noDeclarations: Declarations = { parts: [], tokens: 0, toolkit: undefined }

/** A prompt as it would be sent now, and its estimated tokens, declarations included. */
export interface PromptRequest {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly tokens: number
}

/** A request that surely fits. */
export interface Fitting {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly measured: WindowGuard.MeasuredRequest
}

/** The name for the calibration of a model without a name. */
const unnamedModel = "effect/ai"

/** An error of this package as an `AiError`. */
export const aiError = (method: string, error: { readonly message: string }): AiError.AiError =>
  AiError.make({ module: "palimpsest", method, reason: new AiError.UnknownError({ description: error.message }) })

/** Whether the provider said that the prompt was too long. */
export const isTooLong = (error: unknown): boolean =>
  AiError.isAiError(error) && toModelError(error).reason._tag === "ContextLengthError"

const jsonOf = (value: () => unknown): string => {
  try {
    return JSON.stringify(value()) ?? ""
  } catch {
    // The provider's own layer rejects what has no schema, with its own message.
    return ""
  }
}

const refusal = (method: string, overflow: WindowGuard.WindowOverflow): AiError.AiError =>
  AiError.make({
    module: "palimpsest",
    method,
    reason: new AiError.InvalidUserInputError({ description: overflow.message })
  })

const declaration = (tool: Tool.Any): Part =>
  text(
    Tool.isProviderDefined(tool)
      ? jsonOf(() => ({ name: tool.name, args: tool.args }))
      : jsonOf(() => ({
          name: tool.name,
          description: Tool.getDescription(tool),
          parameters: Tool.getJsonSchema(tool)
        }))
  )

const answerSchema = (schema: Schema.Top): Part =>
  text(jsonOf(() => LanguageModel.defaultCodecTransformer(schema).jsonSchema))

const hasTools = (toolkit: unknown): toolkit is { readonly tools: Readonly<Record<string, Tool.Any>> } =>
  Predicate.hasProperty(toolkit, "tools") && Predicate.isObject(toolkit.tools)

/** A toolkit that must be built before its tools are known. Its errors and requirements are the caller's. */
const isUnbuiltToolkit = (toolkit: unknown): toolkit is Effect.Effect<Toolkit.WithHandler<Record<string, Tool.Any>>> =>
  Effect.isEffect(toolkit) && !hasTools(toolkit)

/** Guards the window of one language model: it counts prompts, and makes those fit that do not surely fit. */
export const make = Effect.fnUntraced(function* (options: WindowOptions) {
  const counter = yield* TokenCounter
  const providedName = Option.getOrUndefined(yield* Effect.serviceOption(ModelName))
  const name = options.model ?? providedName
  const model = name ?? unnamedModel
  const limits = modelLimits(model)
  const size = options.window ?? limits?.window ?? assumedWindow
  if (options.window === undefined && limits === undefined) {
    yield* Effect.logWarning(
      `the window of ${name ?? "a model without a name"} is not known: ${size} tokens are assumed; set the option window`
    )
  }
  const window = yield* WindowGuard.make({
    model,
    window: size,
    reserve: options.reserve ?? (limits?.sharesWindow === false ? 0 : defaultReserve(size)),
    threshold: options.threshold ?? defaultPolicy.threshold,
    policy: options.policy
  })
  const counted = new WeakMap<object, { readonly parts: ReadonlyArray<Part>; readonly tokens: number }>()

  const countOnce = Effect.fnUntraced(
    function* (key: object, parts: () => ReadonlyArray<Part>) {
      const before = counted.get(key)
      if (before !== undefined) return before
      const made = parts()
      const tokens = (yield* counter.count(made)).reduce((sum, each) => sum + each, 0)
      const entry = { parts: made, tokens }
      counted.set(key, entry)
      return entry
    },
    Effect.mapError((error) => aiError("count", error))
  )

  /** The estimated tokens of a message, counted once. */
  const count = (message: Prompt.Message): Effect.Effect<number, AiError.AiError> => {
    const before = counted.get(message)
    return before === undefined
      ? Effect.map(
          countOnce(message, () => countedParts(message)),
          ({ tokens }) => tokens
        )
      : Effect.succeed(before.tokens)
  }

  /**
   * The declarations of a call. A toolkit that must be built is built here, once; any other is passed to the inner model
   * unchanged.
   */
  const declared = Effect.fnUntraced(function* ({
    schema,
    toolkit: given
  }: CallOptions): Effect.fn.Return<Declarations, AiError.AiError> {
    if (schema === undefined && given === undefined) return noDeclarations
    const toolkit = isUnbuiltToolkit(given) ? yield* given : undefined
    const tools = toolkit ?? given
    const parts: Array<Part> = []
    let tokens = 0
    const add = Effect.fnUntraced(function* (key: object, part: () => Part) {
      const entry = yield* countOnce(key, () => [part()])
      parts.push(...entry.parts)
      tokens += entry.tokens
    })
    if (hasTools(tools)) {
      for (const tool of Object.values(tools.tools)) yield* add(tool, () => declaration(tool))
    }
    if (schema !== undefined) yield* add(schema, () => answerSchema(schema))
    return { parts, tokens, toolkit }
  })

  /** The parts of a request, the same objects every time, and its estimated tokens. */
  const contentsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<Prompt.Message>, beside: Declarations) {
    const parts: Array<Part> = [...beside.parts]
    let { tokens } = beside
    for (const message of messages) {
      const entry = counted.get(message) ?? (yield* countOnce(message, () => countedParts(message)))
      parts.push(...entry.parts)
      tokens += entry.tokens
    }
    return { parts, tokens }
  })

  const weighed = Effect.fnUntraced(function* (messages: ReadonlyArray<Prompt.Message>, beside: Declarations) {
    const { parts, tokens } = yield* contentsOf(messages, beside)
    return { messages, tokens, parts: () => parts }
  })

  /**
   * Compresses a request where that is due, and returns what may be sent. Fails before anything is sent when it cannot fit.
   * `waiting`: below so many tokens no compression is tried that nothing forces.
   */
  const fit = Effect.fnUntraced(function* <E, R>(
    method: string,
    subject: WindowGuard.Shrinkable<PromptRequest, E, R>,
    beside: Declarations,
    waiting: number
  ): Effect.fn.Return<Fitting, E | AiError.AiError, R> {
    const { messages } = yield* subject.request
    const fixed = messages.filter((message) => message.role === "system")
    const standing = yield* weighed(fixed, beside)
    const fitting = yield* window
      .fit(
        {
          request: Effect.flatMap(subject.request, (now) =>
            Effect.map(weighed(now.messages, beside), (request) => ({ ...request, tokens: now.tokens }))
          ),
          compress: subject.compress
        },
        { ...standing, what: "system messages and tools alone do not fit" },
        waiting
      )
      .pipe(Effect.mapError((error) => (error instanceof WindowGuard.WindowOverflow ? refusal(method, error) : error)))
    return { messages: fitting.request.messages, measured: fitting.measured }
  })

  /** Learns from the provider's count of a request, where there is one. */
  const learn = (messages: ReadonlyArray<Prompt.Message>, beside: Declarations, { inputTokens }: Response.Usage) =>
    inputTokens.total === undefined || inputTokens.total <= 0
      ? Effect.void
      : Effect.flatMap(weighed(messages, beside), (request) => window.learn(request, inputTokens.total ?? 0))

  /** Learns that a request did not fit. From now on every request is measured. */
  const learnTooLong = (messages: ReadonlyArray<Prompt.Message>, beside: Declarations) =>
    Effect.flatMap(weighed(messages, beside), (request) => window.learnTooLong(request))

  return { name, guard: window, count, declared, fit, learn, learnTooLong }
})

/** Guards the window of one language model. */
export type PromptWindow = Effect.Success<ReturnType<typeof make>>

/** A call that is ready to be made. */
export interface ReadyCall {
  /** The caller's options, with the toolkit built. */
  readonly asked: CallOptions
  readonly options: CallOptions
  /** Everything that is sent but the declarations. */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly declared: Declarations
}

interface Answer {
  readonly usage: Response.Usage
}

/** A method that returns a whole answer, without the types of toolkits and schemas. */
export type Call<R = never> = (options: CallOptions) => Effect.Effect<Answer, unknown, R>
/** A method that streams, without the types of toolkits and schemas. */
export type StreamCall<R = never> = (options: CallOptions) => Stream.Stream<Response.AnyPart, unknown, R>

/** Whether a message approves or denies a tool call: `effect/ai` then runs the call before it asks the model. */
const hasApprovalDecision = (message: Prompt.Message): boolean =>
  message.role === "tool" && message.content.some((part) => part.type === "tool-approval-response")

const hasSameMessages = (one: ReadonlyArray<Prompt.Message>, other: ReadonlyArray<Prompt.Message>): boolean =>
  one.length === other.length && one.every((message, index) => message === other[index])

/**
 * Makes calls that `prepare` has made fit, and learns from the provider's counts. A request that the provider still finds too long
 * is shrunk once more, but not where tools ran before the model was asked, nor after the first part of a stream. `restore` takes
 * back what a failed call left behind.
 */
export const guardedCalls = <A extends ReadyCall>(
  window: PromptWindow,
  prepare: (method: string, options: CallOptions) => Effect.Effect<A, AiError.AiError>,
  restore: (ready: A) => Effect.Effect<void>
) => {
  const smaller = Effect.fnUntraced(function* (method: string, ready: A, error: unknown) {
    if (!isTooLong(error) || ready.messages.some(hasApprovalDecision)) return yield* Effect.fail(error)
    yield* restore(ready)
    yield* window.learnTooLong(ready.messages, ready.declared)
    const again = yield* prepare(method, ready.asked)
    return hasSameMessages(again.messages, ready.messages) ? yield* Effect.fail(error) : again
  })

  const generate =
    <R>(method: string, ask: Call<R>): Call<R> =>
    (options) => {
      const attempt = (ready: A) =>
        Effect.tap(ask(ready.options), ({ usage }) => window.learn(ready.messages, ready.declared, usage))
      return Effect.flatMap(prepare(method, options), (ready) =>
        Effect.catch(attempt(ready), (error) => Effect.flatMap(smaller(method, ready, error), attempt))
      )
    }

  const stream =
    <R>(method: string, ask: StreamCall<R>): StreamCall<R> =>
    (options) => {
      const attempt = (ready: A, begins: () => void) => {
        let usage: Response.Usage | undefined
        return ask(ready.options).pipe(
          Stream.mapArray((parts) => {
            for (const part of parts) {
              if (part.type !== "response-metadata") begins()
              if (part.type === "finish") usage = part.usage
            }
            return parts
          }),
          Stream.onEnd(
            Effect.suspend(() =>
              usage === undefined ? Effect.void : window.learn(ready.messages, ready.declared, usage)
            )
          )
        )
      }
      return Stream.unwrap(
        Effect.map(prepare(method, options), (ready) => {
          let hasBegun = false
          const begins = () => {
            hasBegun = true
          }
          return attempt(ready, begins).pipe(
            Stream.catch((error) =>
              hasBegun
                ? Stream.fail(error)
                : Stream.unwrap(Effect.map(smaller(method, ready, error), (again) => attempt(again, begins)))
            )
          )
        })
      )
    }

  return { generate, stream }
}
