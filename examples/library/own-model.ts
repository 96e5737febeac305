/**
 * Your own model provider: `Model` is three functions. This one calls a service that takes and returns plain text. A chat
 * over it streams, compresses, cancels and retries as with any other provider.
 *
 *   node own-model.ts
 *
 * It needs no key and no network: `complete` stands for the request to the service. It prints:
 *
 *   the answer arrives: You said: hello
 *   a failure is typed: RateLimitError
 */
import { Effect, Layer, Stream } from "effect"
import { Chats, Content, Models, Tokens } from "palimpsest"
import { Offline } from "palimpsest/testing"

/** The service: your `fetch`, with a signal that aborts it when a turn is cancelled. */
const complete = async (prompt: string, signal: AbortSignal): Promise<string> => {
  signal.throwIfAborted()
  if (prompt.includes("again")) throw new Error("429")
  return `You said: ${prompt}`
}

/** Maps errors of the service to reasons. `RateLimitError`, `NetworkError` and `InternalProviderError` are retried. */
const failure = (error: unknown) =>
  new Models.ModelError({
    reason:
      error instanceof Error && error.message === "429"
        ? new Models.RateLimitError({})
        : new Models.NetworkError({ detail: String(error) })
  })

const generate = Effect.fn("OwnModel.generate")(function* (request: Models.ModelRequest) {
  const last = request.contents.at(-1)
  const prompt = last === undefined ? "" : Content.plainText(last)
  const answer = yield* Effect.tryPromise({ try: (signal) => complete(prompt, signal), catch: failure })
  return { content: Content.model(Content.text(answer)), finishReason: "STOP", usage: null }
})

/** A service that does not stream returns its answer as one piece; one that cannot count leaves counting to the estimate. */
const OwnModel = Layer.succeed(Models.Model, {
  generate,
  stream: (request) =>
    Stream.fromEffect(
      Effect.map(generate(request), ({ content, finishReason }) => ({ parts: content.parts, finishReason }))
    ),
  countTokens: (request) => Tokens.estimateContents(request)
})

const program = Effect.gen(function* () {
  const chat = yield* Chats.open("own-model")
  yield* chat.send("hello").pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => event._tag === "Content" && console.log(`the answer arrives: ${event.text}`))
    )
  )
  const model = yield* Models.Model
  const error = yield* Effect.flip(model.generate({ model: "own", contents: [Content.user(Content.text("again"))] }))
  console.log(`a failure is typed: ${error.reason._tag}`)
})

await Effect.runPromise(
  program.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Offline.layerWithModel(OwnModel), OwnModel)))
)
