/** Counts prompts of `effect/ai`, and compresses those that may not fit the window of their model. */

import { Effect, Option, Predicate, type Schema } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { ModelName } from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { InvalidOption, optionCheck } from "../../domain/compression/InvalidOption.ts"
import {
  defaultPolicy,
  type Policy,
  policyProblem,
  thresholdProblem,
  tokensProblem
} from "../../domain/compression/strategies/Policy.ts"
import { triggerTokens } from "../../domain/compression/strategies/Threshold.ts"
import { type Part, text } from "../../domain/content/Content.ts"
import { countedParts } from "../../domain/effect-ai/PromptContent.ts"
import { defaultReserve, modelLimits, assumedWindow } from "../../domain/model/ModelLimits.ts"
import { cutPromptText } from "../../domain/tokens/CutPrompts.ts"
import * as WindowGuard from "../chat/WindowGuard.ts"
import { Compression } from "../compression/Compression.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"

/** How much of a model's window prompts may take, and how they are compressed. */
export interface WindowOptions {
  /**
   * The window in tokens. Default: looked up by `model`, or by the name that the model's layer provides. For a model that is not in
   * the table (`domain/model/ModelLimits`) 32,768 tokens are assumed, with a warning.
   */
  readonly window?: number | undefined
  /** The model's name, for its window and its calibration. */
  readonly model?: string | undefined
  /** The share of the window that triggers a compression. Default: that of the strategy, which is 0.5 for `palimpsest`. */
  readonly threshold?: number | undefined
  /**
   * Tokens of the window that are reserved for the answer. Default: 0 for models with a separate limit for answers,
   * else 16,384, but at most a quarter of the window.
   */
  readonly reserve?: number | undefined
  /**
   * The compression policy. A model writes the snapshot if `ModelSummarizer.layer` is provided to `Compression`.
   * Otherwise, and with `summarizer: "extractive"`, code writes it.
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

/** The name for the calibration of a model without a name. */
const unnamedModel = "effect/ai"

/** An error of this package as an `AiError`. */
export const aiError = (method: string, error: { readonly message: string }): AiError.AiError =>
  AiError.make({ module: "palimpsest", method, reason: new AiError.UnknownError({ description: error.message }) })

const jsonOf = (value: () => object): string => {
  try {
    return JSON.stringify(value())
  } catch {
    // The provider's own layer rejects what has no schema, with its own message.
    return ""
  }
}

/** The failure of a call whose input, or whose options, cannot be. */
export const invalidInput = (method: string, description: string): AiError.AiError =>
  AiError.make({
    module: "palimpsest",
    method,
    reason: new AiError.InvalidUserInputError({ description })
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

/** The parts of a message or declaration, and their estimated tokens. */
interface Counted {
  readonly parts: ReadonlyArray<Part>
  readonly tokens: number
}

/** The window of one language model. It counts prompts, and shrinks those that may not fit. */
export interface PromptWindow {
  /** The model's name, if it is known. */
  readonly name: string | undefined
  readonly guard: WindowGuard.WindowGuard
  readonly counter: TokenCounter["Service"]
  /** Messages and declarations that were counted before. */
  readonly counted: WeakMap<object, Counted>
}

/** Makes the window of the language model that these options describe. Fails with an option out of its range. */
export const make = Effect.fnUntraced(function* (options: WindowOptions) {
  const problem =
    optionCheck(Predicate.isString, "the name of a model")("model", options.model) ??
    tokensProblem("window", options.window, 1) ??
    tokensProblem("reserve", options.reserve) ??
    thresholdProblem(options.threshold) ??
    policyProblem(options.policy ?? {})
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
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
  const { runner } = yield* Compression
  const { strategy } = yield* runner(options.policy?.strategy ?? defaultPolicy.strategy)
  const guard = yield* WindowGuard.make({
    model,
    window: size,
    reserve: options.reserve ?? (limits?.sharesWindow === false ? 0 : defaultReserve(size)),
    trigger: triggerTokens(strategy, size, options.threshold),
    policy: { ...strategy.defaults, ...options.policy }
  })
  return { name, guard, counter: yield* TokenCounter, counted: new WeakMap() } satisfies PromptWindow
})

const countOnce = Effect.fnUntraced(
  function* ({ counted, counter }: PromptWindow, key: object, parts: () => ReadonlyArray<Part>) {
    const before = counted.get(key)
    if (before !== undefined) return before
    const made = parts()
    const tokens = (yield* counter.count(made)).reduce((sum, each) => sum + each, 0)
    const entry: Counted = { parts: made, tokens }
    counted.set(key, entry)
    return entry
  },
  Effect.mapError((error) => aiError("count", error))
)

/** The estimated tokens of a message, counted once. */
export const countMessage = (window: PromptWindow, message: Prompt.Message): Effect.Effect<number, AiError.AiError> => {
  const before = window.counted.get(message)
  return before === undefined
    ? Effect.map(
        countOnce(window, message, () => countedParts(message)),
        ({ tokens }) => tokens
      )
    : Effect.succeed(before.tokens)
}

/**
 * The declarations of a call. A toolkit that must be built is built here, once; any other is passed to the inner model
 * unchanged.
 */
export const declarationsOf = Effect.fnUntraced(function* (
  window: PromptWindow,
  { schema, toolkit: given }: CallOptions
) {
  if (schema === undefined && given === undefined) return noDeclarations
  const toolkit = isUnbuiltToolkit(given) ? yield* given : undefined
  const tools = toolkit ?? given
  const entries: Array<Counted> = []
  if (hasTools(tools)) {
    for (const tool of Object.values(tools.tools)) {
      entries.push(yield* countOnce(window, tool, () => [declaration(tool)]))
    }
  }
  if (schema !== undefined) entries.push(yield* countOnce(window, schema, () => [answerSchema(schema)]))
  return {
    parts: entries.flatMap(({ parts }) => parts),
    tokens: entries.reduce((sum, { tokens }) => sum + tokens, 0),
    toolkit
  }
})

/** A request with its parts, the same objects every time, and its estimated tokens. */
const weighed = Effect.fnUntraced(function* (
  window: PromptWindow,
  messages: ReadonlyArray<Prompt.Message>,
  declared: Declarations
) {
  const parts: Array<Part> = [...declared.parts]
  let { tokens } = declared
  for (const message of messages) {
    const entry = window.counted.get(message) ?? (yield* countOnce(window, message, () => countedParts(message)))
    for (const each of entry.parts) parts.push(each)
    tokens += entry.tokens
  }
  return { messages, tokens, parts: () => parts }
})

/**
 * Compresses a request if that is due, and returns the request to send. Fails before anything is sent if it cannot
 * fit. `waiting`: below this number of tokens, only a forced compression is tried.
 */
export const fit = Effect.fnUntraced(function* <E, R>(
  window: PromptWindow,
  method: string,
  subject: WindowGuard.Shrinkable<PromptRequest, E, R>,
  declared: Declarations,
  waiting: number
) {
  const { messages } = yield* subject.request
  const fixed = messages.filter((message) => message.role === "system")
  const standing = yield* weighed(window, fixed, declared)
  const fitting = yield* window.guard
    .fit(
      {
        request: Effect.flatMap(subject.request, (now) =>
          Effect.map(weighed(window, now.messages, declared), (request) => ({ ...request, tokens: now.tokens }))
        ),
        compress: subject.compress
      },
      { ...standing, what: "system messages and tools alone do not fit" },
      waiting
    )
    .pipe(
      Effect.mapError((error) =>
        error instanceof WindowGuard.WindowOverflow ? invalidInput(method, error.message) : error
      )
    )
  return { messages: fitting.request.messages, measured: fitting.measured }
})

/** Learns from the provider's count of a request, where there is one. */
export const learn = (
  window: PromptWindow,
  messages: ReadonlyArray<Prompt.Message>,
  declared: Declarations,
  { inputTokens: { total = 0 } }: Response.Usage
) =>
  total <= 0
    ? Effect.void
    : Effect.gen(function* () {
        const cut = yield* window.guard.learn(yield* weighed(window, messages, declared), total)
        if (cut?.isNew === true) yield* Effect.logWarning(`${cut.model}: ${cutPromptText(cut)}`)
      })

/** Learns that a request did not fit. From now on every request is measured. */
export const learnTooLong = (
  window: PromptWindow,
  messages: ReadonlyArray<Prompt.Message>,
  declared: Declarations,
  stated: WindowGuard.StatedSize
) => Effect.flatMap(weighed(window, messages, declared), (request) => window.guard.learnTooLong(request, stated))
