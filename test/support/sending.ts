import { ConfigProvider, Context, Effect, Exit, Layer, Stream } from "effect"
import type { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import type { Content } from "../../src/domain/content/Content.ts"
import { emptySession, type Session, type SessionEvent } from "../../src/domain/session/Session.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as GoogleModel from "../../src/layers/model/GoogleModel.ts"
import * as Fake from "../../src/layers/testing/FakeGemini.ts"
import { Chat } from "../../src/services/chat/Chat.ts"
import type { ChatSettings, TurnRetries } from "../../src/services/chat/ChatSettings.ts"
import type { ChatOptions } from "../../src/services/chat/ChatState.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"

/** Conversations with a model, and their events: for the tests of `Chat.send`. */

/** The default number of attempts, with pauses of a millisecond. */
export const quick: TurnRetries = {
  call: { attempts: 10, initialDelayMillis: 1, maxDelayMillis: 1, maxServerDelayMillis: 100 },
  answer: { attempts: 4, initialDelayMillis: 1, maxDelayMillis: 1 }
}

/** Snapshots by code, so that every request is one of the conversation. */
export const held: ChatSettings = {
  model: "gemini-2.5-flash",
  retries: quick,
  policy: { summarizer: "extractive" }
}

/** A conversation in memory, and its log. */
export const begin = Effect.fnUntraced(function* (
  settings: Partial<ChatSettings> = {},
  options: { readonly session?: Session; readonly log?: (log: ChatOptions["log"]) => ChatOptions["log"] } = {}
) {
  const events: Array<SessionEvent> = []
  const log: ChatOptions["log"] = { append: (event) => Effect.sync(() => void events.push(event)) }
  const chat = yield* Chat.make({
    session: options.session ?? emptySession,
    log: options.log?.(log) ?? log,
    settings: { ...held, ...settings }
  })
  return { chat, events }
})

/** The runtime in memory, with the real adapter for this address. */
export const google = (url: string) =>
  Offline.layerWithModel(GoogleModel.layerConfig).pipe(
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromUnknown({ GEMINI_API_KEY: "not-a-real-key", GOOGLE_GEMINI_BASE_URL: url })
      )
    )
  )

/** A conversation with a scripted server. */
export const against = Effect.fnUntraced(function* (script: Fake.Script, settings: Partial<ChatSettings> = {}) {
  const fake = yield* Fake.make(script)
  const services = yield* Layer.build(google(fake.url))
  return { fake, hooks: Context.get(services, HookSystem), ...(yield* Effect.provide(begin(settings), services)) }
})

/** An answer of one text that ends well. */
export const said = (words: string): Fake.Answer => Fake.sse(Fake.response([{ text: words }]))

/** The events of a turn, and how its stream ends. */
export const taken = <E>(stream: Stream.Stream<ChatEvent, E>) =>
  Effect.gen(function* () {
    const events: Array<ChatEvent> = []
    const exit = yield* Effect.exit(Stream.runForEach(stream, (event) => Effect.sync(() => void events.push(event))))
    const error = Exit.isSuccess(exit) ? undefined : yield* Effect.flip(exit)
    return { events, error }
  })

const endings: ReadonlySet<string> = new Set([
  "Finished",
  "UserCancelled",
  "InvalidStream",
  "ContextWindowWillOverflow",
  "Error"
])

/** The last event, if it ends the turn. */
export const endingOf = (events: ReadonlyArray<ChatEvent>): ChatEvent | undefined => {
  const last = events[events.length - 1]
  return last !== undefined && events.filter(({ _tag }) => endings.has(_tag)).length === 1 && endings.has(last._tag)
    ? last
    : undefined
}

/** An event in short form. */
export const brief = (event: ChatEvent): string => {
  switch (event._tag) {
    case "Content":
      return event.text.length > 80 ? `Content of ${event.text.length}` : `Content ${event.text}`
    case "Thought":
      return `Thought ${event.subject}: ${event.description}`
    case "ToolCallRequest":
      return `ToolCallRequest ${event.call.name}`
    case "Retry":
      return `Retry ${event.attempt} ${event.reason}`
    case "ChatCompressed":
      return `ChatCompressed ${event.status}`
    case "Citation":
      return `Citation ${event.text}`
    case "Finished":
      return `Finished ${event.reason}`
    case "InvalidStream":
      return `InvalidStream ${event.fault}`
    case "Error":
      return `Error ${event.reason}`
    default:
      return event._tag
  }
}

/** The text that is left when every `Retry` discards what came before it. */
export const textOf = (events: ReadonlyArray<ChatEvent>): string =>
  events.reduce(
    (text, event) => (event._tag === "Retry" ? "" : event._tag === "Content" ? text + event.text : text),
    ""
  )

/** The contents of a request to the server, as JSON; undefined for any other request. */
export const contentsOf = ({ body }: Fake.FakeRequest): ReadonlyArray<unknown> =>
  typeof body === "object" && body !== null && "contents" in body && Array.isArray(body.contents) ? body.contents : []

/** Contents as the server receives them. */
export const bytes = (contents: ReadonlyArray<Content | unknown>): string => JSON.stringify(contents)
