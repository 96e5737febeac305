/**
 * Makes calls of a language model with prompts that fit, and learns from the provider's counts. A request that the
 * provider still rejects as too long is shrunk once more, except when tools ran before the model was asked, or after
 * the first part of a stream.
 */

import { Effect, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type { StatedSize } from "../chat/WindowGuard.ts"
import { toModelError } from "./LanguageModelBridge.ts"
import { type CallOptions, type Declarations, learn, learnTooLong, type PromptWindow } from "./PromptWindow.ts"

/** A call that is ready to be made. */
export interface ReadyCall {
  /** The caller's options, with the toolkit built. */
  readonly callOptions: CallOptions
  readonly options: CallOptions
  /** Everything that is sent except the declarations. */
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly declared: Declarations
}

/** The part of an answer that matters here. */
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

/** What the provider said of a prompt that was too long. Undefined: it failed for another reason. */
const tooLongIn = (error: unknown): StatedSize | undefined => {
  const reason = AiError.isAiError(error) ? toModelError(error).reason : undefined
  return reason?._tag === "ContextLengthError" ? reason : undefined
}

/** How calls of one language model are made to fit. */
export interface GuardedCalls<A extends ReadyCall> {
  readonly window: PromptWindow
  /** Makes the prompt of a call fit. */
  readonly prepare: (method: string, options: CallOptions) => Effect.Effect<A, AiError.AiError>
  /** Reverts the changes of a failed call. */
  readonly restore: (ready: A) => Effect.Effect<void>
}

/**
 * Returns a smaller request in place of a failed one. Fails with the same error if it failed for another reason, or
 * if it cannot be shrunk.
 */
const smaller = Effect.fnUntraced(function* <A extends ReadyCall>(
  { prepare, restore, window }: GuardedCalls<A>,
  method: string,
  ready: A,
  error: unknown
) {
  const stated = tooLongIn(error)
  if (stated === undefined || ready.messages.some(hasApprovalDecision)) return yield* Effect.fail(error)
  yield* restore(ready)
  yield* learnTooLong(window, ready.messages, ready.declared, stated)
  const again = yield* prepare(method, ready.callOptions)
  // The last message always stays, so a smaller request differs before its end.
  const isSame = again.messages.every((message, index) => message === ready.messages[index])
  return isSame ? yield* Effect.fail(error) : again
})

/** Guards a method that returns a whole answer. */
const guardCall =
  <A extends ReadyCall, R>(calls: GuardedCalls<A>, method: string, ask: Call<R>): Call<R> =>
  (options) => {
    const attempt = ({ declared, messages, options: given }: A) =>
      Effect.tap(ask(given), ({ usage }) => learn(calls.window, messages, declared, usage))
    return Effect.flatMap(calls.prepare(method, options), (ready) =>
      Effect.catch(attempt(ready), (error) => Effect.flatMap(smaller(calls, method, ready, error), attempt))
    )
  }

/** The stream of one call. `begins` runs with each part of the answer. */
const streamOnce = <R>(
  window: PromptWindow,
  ask: StreamCall<R>,
  { declared, messages, options }: ReadyCall,
  begins: () => void
): Stream.Stream<Response.AnyPart, unknown, R> => {
  let usage: Response.Usage | undefined
  return ask(options).pipe(
    Stream.mapArray((parts) => {
      for (const part of parts) {
        if (part.type !== "response-metadata") begins()
        if (part.type === "finish") usage = part.usage
      }
      return parts
    }),
    Stream.onEnd(Effect.suspend(() => (usage === undefined ? Effect.void : learn(window, messages, declared, usage))))
  )
}

/** Guards a method that streams. */
const guardStream =
  <A extends ReadyCall, R>(calls: GuardedCalls<A>, method: string, ask: StreamCall<R>): StreamCall<R> =>
  (options) =>
    Stream.unwrap(
      Effect.map(calls.prepare(method, options), (ready) => {
        let hasBegun = false
        const begins = () => {
          hasBegun = true
        }
        return streamOnce(calls.window, ask, ready, begins).pipe(
          Stream.catch((error) =>
            hasBegun
              ? Stream.fail(error)
              : Stream.unwrap(
                  Effect.map(smaller(calls, method, ready, error), (again) =>
                    streamOnce(calls.window, ask, again, begins)
                  )
                )
          )
        )
      })
    )

/** The methods of a language model, or of a chat over one. */
type Methods = Readonly<Record<"generateObject" | "generateText" | "streamText", unknown>>

/** What each guarded method is wrapped in. */
interface Wrapping<R> {
  readonly call: (ask: Call<R>) => Call<R>
  readonly stream: (ask: StreamCall<R>) => StreamCall<R>
}

/**
 * Guards the methods of a language model, or of a chat over one. They are generic in what the model resolves, toolkits and schemas, which are passed
 * through unchanged.
 */
export const guardMethods = <A extends ReadyCall, R, M extends Methods>(
  calls: GuardedCalls<A>,
  methods: M,
  { call, stream }: Wrapping<R>
): M => {
  const asked = (method: "generateObject" | "generateText") =>
    call(guardCall(calls, method, methods[method] as Call<R>))
  return {
    ...methods,
    generateText: asked("generateText"),
    generateObject: asked("generateObject"),
    streamText: stream(guardStream(calls, "streamText", methods.streamText as StreamCall<R>))
  }
}
