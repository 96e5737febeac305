/**
 * A bot behind an HttpApi of your own: every answer is a stream of typed server-sent events, and the client follows from the API.
 * A chat opens with the request and closes with its stream; two requests of one user share it. The model is scripted, so this needs no key.
 *
 *   npm install @effect/platform-node
 *   node http-api.ts
 *
 * It prints:
 *
 *   ana: you said 1 thing, first "hello"
 *   ben: you said 1 thing, first "good morning"
 *   ana: you said 2 things, first "hello"
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiClient, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Chats, Content, Palimpsest } from "palimpsest"
import { ScriptedModel } from "palimpsest/testing"

class Failed extends Schema.TaggedError<Failed>()("Failed", { message: Schema.String }) {}

const Send = HttpApiEndpoint.post("send", "/chats/:user", {
  params: { user: Schema.NonEmptyString },
  payload: Schema.Struct({ text: Schema.NonEmptyString }),
  success: HttpApiSchema.StreamSse({ data: Chats.ChatEvent, error: Failed })
})
const Api = HttpApi.make("bot").add(HttpApiGroup.make("chats").add(Send))

const Handlers = HttpApiBuilder.group(
  Api,
  "chats",
  Effect.fn(function* (handlers) {
    const chats = yield* Chats.Chats
    return handlers.handle("send", ({ params, payload }) =>
      chats.open(params.user).pipe(
        Effect.map((chat) => chat.send(payload.text)),
        Stream.unwrap,
        Stream.mapError(({ message }) => new Failed({ message })),
        Effect.succeed
      )
    )
  })
)

/** Says how many messages of the user it sees. */
const Model = ScriptedModel.layer(({ contents }) => {
  const said = contents.filter(({ role }) => role === "user").map(Content.plainText)
  return `you said ${said.length} thing${said.length === 1 ? "" : "s"}, first "${said[0]}"`
})

const Server = HttpRouter.serve(HttpApiBuilder.layer(Api).pipe(Layer.provide(Handlers)), { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provide(Palimpsest.layer({ model: Model })),
  Layer.provideMerge(NodeHttpServer.layerTest)
)

const program = Effect.gen(function* () {
  const client = yield* HttpApiClient.make(Api)
  const ask = Effect.fn("ask")(function* (user: string, text: string) {
    const events = yield* client.chats.send({ params: { user }, payload: { text } })
    const words = yield* Stream.runCollect(Stream.filter(events, Chats.ChatEvent.guards.Content))
    yield* Console.log(`${user}: ${words.map((event) => event.text).join("")}`)
  })
  yield* ask("ana", "hello")
  yield* ask("ben", "good morning")
  yield* ask("ana", "and now?")
})

await Effect.runPromise(program.pipe(Effect.provide(Server)))
