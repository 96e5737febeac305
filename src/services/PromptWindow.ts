import { Effect, Option, Predicate, type Schema, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { ModelName } from "effect/ai/Model"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { defaultPolicy, type Outcome, type Policy } from "../domain/Compression.ts"
import { type Part, text } from "../domain/Content.ts"
import { defaultReserve, knownModel, unknownWindow } from "../domain/Models.ts"
import { countedParts } from "../domain/PromptContent.ts"
import { toModelError } from "./LanguageModelBridge.ts"
import { TokenCounter } from "./TokenCounter.ts"
import * as Window from "./Window.ts"

/** How much of a model's window prompts may take, and how they are made to. */
export interface WindowOptions {
  /**
   * The window in tokens. Absent: by `model`, or by the model's name where its layer says it. Of a model that is not in the
   * table (`domain/Models`) 32,768 tokens are assumed, and a warning says so.
   */
  readonly window?: number | undefined
  /** The model's name: its window, and what has been learned of its counting, go by it. */
  readonly model?: string | undefined
  /** Share of the window that triggers a compression (default 0.5). */
  readonly threshold?: number | undefined
  /**
   * Tokens of the window that are left for the answer. Absent: 0 for models whose answer has a limit of its own, else 16,384,
   * at most a quarter of the window.
   */
  readonly reserve?: number | undefined
  /**
   * How is compressed. A model writes the snapshot where `ModelSummarizer.layer` stands behind `Compression`, else code does;
   * `summarizer: "extractive"` leaves it to code in any case.
   */
  readonly policy?: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens">> | undefined
}

/** What a call of a language model is given, as far as it matters here. */
export type AskOptions = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>> & {
  readonly schema?: Schema.Top | undefined
}

/** What is sent beside the messages. */
export interface Declared {
  /** Tool declarations and the schema of the answer, as far as they can be told from here. */
  readonly parts: ReadonlyArray<Part>
  readonly tokens: number
  /** Absent: nothing had to be looked at more closely. */
  readonly toolkit: Toolkit.WithHandler<Record<string, Tool.Any>> | undefined
}

/** Of a request without tools and schema. */
export const nothingDeclared: Declared = { parts: [], tokens: 0, toolkit: undefined }

/** A prompt that may have to become smaller, and the way to do it. */
export interface Shrinkable<E, R> {
  /** What would be sent now, and its estimated tokens, declarations included. */
  readonly request: Effect.Effect<{ readonly messages: ReadonlyArray<Prompt.Message>; readonly tokens: number }, E, R>
  /** Makes it smaller, once. */
  readonly compress: (policy: Policy, forced: boolean) => Effect.Effect<Outcome, E, R>
}

/** A request that surely fits. */
export interface Fitting {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly measured: Window.Measured
}

/** The name under which is learned what nobody named. */
const unnamed = "effect/ai"

/** A failure of ours where `effect/ai` wants one of its own. */
export const failed = (method: string, error: { readonly message: string }): AiError.AiError =>
  AiError.make({ module: "palimpsest", method, reason: new AiError.UnknownError({ description: error.message }) })

/** Whether the provider said that the prompt was too long. */
export const isTooLong = (error: unknown): boolean =>
  AiError.isAiError(error) && toModelError(error).reason._tag === "ContextLengthError"

const jsonOf = (value: () => unknown): string => {
  try {
    return JSON.stringify(value()) ?? ""
  } catch {
    // What cannot be written as a schema is refused by the provider's own layer, with its own words.
    return ""
  }
}

const refusal = (method: string, overflow: Window.WindowOverflow): AiError.AiError =>
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

/** A toolkit that says nothing of its tools yet. What it fails with and needs is the caller's. */
const isToBeBuilt = (toolkit: unknown): toolkit is Effect.Effect<Toolkit.WithHandler<Record<string, Tool.Any>>> =>
  Effect.isEffect(toolkit) && !hasTools(toolkit)

/**
 * The window of one language model: counts what would be sent, and sees to it that nothing is sent that does not surely
 * fit (law 3).
 */
export const make = Effect.fnUntraced(function* (options: WindowOptions) {
  const counter = yield* TokenCounter
  const known = Option.getOrUndefined(yield* Effect.serviceOption(ModelName))
  const name = options.model ?? known
  const model = name ?? unnamed
  const limits = knownModel(model)
  const size = options.window ?? limits?.window ?? unknownWindow
  if (options.window === undefined && limits === undefined) {
    yield* Effect.logWarning(
      `the window of ${name ?? "a model without a name"} is not known: ${size} tokens are assumed; set the option window`
    )
  }
  const window = yield* Window.make({
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
    Effect.mapError((error) => failed("count", error))
  )

  /** A message's tokens; counted once. */
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
   * What a call declares. A toolkit that is to be built first is built here, once; one that says its tools is left to the
   * inner model as it is.
   */
  const declared = Effect.fnUntraced(function* ({
    schema,
    toolkit: given
  }: AskOptions): Effect.fn.Return<Declared, AiError.AiError> {
    if (schema === undefined && given === undefined) return nothingDeclared
    const toolkit = isToBeBuilt(given) ? yield* given : undefined
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

  /** All that a request holds, the same parts every time, and its estimated tokens. */
  const contentsOf = Effect.fnUntraced(function* (messages: ReadonlyArray<Prompt.Message>, beside: Declared) {
    const parts: Array<Part> = [...beside.parts]
    let { tokens } = beside
    for (const message of messages) {
      const entry = counted.get(message) ?? (yield* countOnce(message, () => countedParts(message)))
      parts.push(...entry.parts)
      tokens += entry.tokens
    }
    return { parts, tokens }
  })

  const weighed = Effect.fnUntraced(function* (messages: ReadonlyArray<Prompt.Message>, beside: Declared) {
    const { parts, tokens } = yield* contentsOf(messages, beside)
    return { messages, tokens, parts: () => parts }
  })

  /**
   * Makes a request small enough, if it is due, and answers what may be sent; fails before anything is sent when it surely
   * fits in no way. `waiting`: below so many tokens a compression is not tried that nothing forces.
   */
  const fit = Effect.fnUntraced(function* <E, R>(
    method: string,
    subject: Shrinkable<E, R>,
    beside: Declared,
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
      .pipe(Effect.mapError((error) => (error instanceof Window.WindowOverflow ? refusal(method, error) : error)))
    return { messages: fitting.request.messages, measured: fitting.measured }
  })

  /** Learns from what the provider counted for a request; nothing where it counted nothing. */
  const learn = (messages: ReadonlyArray<Prompt.Message>, beside: Declared, { inputTokens }: Response.Usage) =>
    inputTokens.total === undefined || inputTokens.total <= 0
      ? Effect.void
      : Effect.flatMap(weighed(messages, beside), (request) => window.learn(request, inputTokens.total ?? 0))

  /** Learns that a request did not fit: it has more tokens than the window. From now on every request is looked at. */
  const learnTooLong = (messages: ReadonlyArray<Prompt.Message>, beside: Declared) =>
    Effect.flatMap(weighed(messages, beside), window.learnTooLong)

  const { isSmall, policy, room } = window
  return { name, room, policy, count, declared, isSmall, fit, learn, learnTooLong }
})

/** What keeps the prompts of one model within its window. */
export type PromptWindow = Effect.Success<ReturnType<typeof make>>

/** A call that is ready to be made. */
export interface Ready {
  /** As it was asked for, its toolkit built. */
  readonly asked: AskOptions
  readonly options: AskOptions
  /** All that is sent, save what is declared. */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly declared: Declared
}

interface Answer {
  readonly usage: Response.Usage
}

/** A method that answers at once, without the types of toolkits and schemas. */
export type Ask<R = never> = (options: AskOptions) => Effect.Effect<Answer, unknown, R>
/** A method that streams, without the types of toolkits and schemas. */
export type AskStream<R = never> = (options: AskOptions) => Stream.Stream<Response.AnyPart, unknown, R>

/** Whether somebody decides here on a call, which `effect/ai` then runs before it asks the model. */
const decides = (message: Prompt.Message): boolean =>
  message.role === "tool" && message.content.some((part) => part.type === "tool-approval-response")

const isAlike = (one: ReadonlyArray<Prompt.Message>, other: ReadonlyArray<Prompt.Message>): boolean =>
  one.length === other.length && one.every((message, index) => message === other[index])

/**
 * Makes calls that `prepare` has made fit, learns from what the provider counts, and when it says that a request was too
 * long all the same, shrinks it once more (law 3). Not where tools were run before the model was asked, nor after the
 * first part of a stream. `restore` takes back what a failed call left behind.
 */
export const calling = <A extends Ready>(
  window: PromptWindow,
  prepare: (method: string, options: AskOptions) => Effect.Effect<A, AiError.AiError>,
  restore: (ready: A) => Effect.Effect<void>
) => {
  const smaller = Effect.fnUntraced(function* (method: string, ready: A, error: unknown) {
    if (!isTooLong(error) || ready.messages.some(decides)) return yield* Effect.fail(error)
    yield* restore(ready)
    yield* window.learnTooLong(ready.messages, ready.declared)
    const again = yield* prepare(method, ready.asked)
    return isAlike(again.messages, ready.messages) ? yield* Effect.fail(error) : again
  })

  const generate =
    <R>(method: string, ask: Ask<R>): Ask<R> =>
    (options) => {
      const attempt = (ready: A) =>
        Effect.tap(ask(ready.options), ({ usage }) => window.learn(ready.messages, ready.declared, usage))
      return Effect.flatMap(prepare(method, options), (ready) =>
        Effect.catch(attempt(ready), (error) => Effect.flatMap(smaller(method, ready, error), attempt))
      )
    }

  const stream =
    <R>(method: string, ask: AskStream<R>): AskStream<R> =>
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
