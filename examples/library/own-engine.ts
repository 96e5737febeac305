/**
 * Your own strategy in a chat, not built on another one: it keeps the newest turns, leaves a list of the requests that left,
 * and shows only the first line of older tool results. A chat uses it when its policy names it.
 *
 *   node own-engine.ts
 *
 * It prints:
 *
 *   turn 1: 2 messages in the window
 *   turn 2: 4 messages in the window
 *   turn 3: 6 messages in the window
 *   turn 4: 8 messages in the window
 *   turn 5: 10 messages in the window
 *   turn 6: compressed, 9 messages in the window
 *   closed after 6 turns
 */
import { Console, Effect, Layer, Ref, Stream } from "effect"
import { Chats, Compression, Content, Conversation, Tokens } from "palimpsest"
import { Offline, ScriptedModel } from "palimpsest/testing"

/** How many of the newest messages stay, at least. */
const keep = 6

const beginsTurn = ({ entry: { author, content } }: Conversation.ViewItem) =>
  content.role === "user" && author === undefined && !Content.hasResponses(content)

/** A turn begins after all results of the turns before it, so a cut there separates no call from its result. */
const planOf = ({ conversation, forced, policy }: Compression.CompressRequest) => {
  const items = Conversation.view(conversation)
  const before = policy.overhead + Conversation.viewTokens(conversation)
  const cut = items.findLastIndex((item, at) => at <= items.length - keep && beginsTurn(item))
  const gone = items.slice(0, Math.max(0, cut))
  const [first, last] = [gone[0]?.entry, gone.at(-1)?.entry]
  if (!forced && before < policy.threshold * policy.limit) return { _tag: "Skip", reason: "below threshold", before } as const
  if (first === undefined || last === undefined) return { _tag: "Skip", reason: "nothing to compress", before } as const
  const { version } = conversation
  const tokens = Tokens.TokenCount.make(Math.round(before))
  const plan = { version, strategy: "diary", rung: 0, steps: [], before: tokens, after: tokens }
  const asked = gone.filter(beginsTurn).map(({ entry }) => `- ${Content.plainText(entry.content).slice(0, 80)}`)
  const content = Content.user(Content.text(`The user asked before:\n${asked.join("\n")}`))
  const insert = [{ id: first.id, content, author: "summary" as const, tokens: [], handles: [] }]
  // Ids, token counts and handles are made when the patch is checked.
  return { _tag: "Go", plan, patch: { drop: { from: first.id, to: last.id }, insert, shorten: [] } } as const
}

const compress = (request: Compression.CompressRequest) =>
  Effect.sync((): Compression.CompressionResult => {
    const made = planOf(request)
    const { ContentTruncated, Noop } = Compression.Outcome.cases
    if (made._tag === "Skip") {
      const before = Tokens.TokenCount.make(Math.round(made.before))
      return { outcome: Noop.make({ reason: made.reason, before }), dropped: undefined }
    }
    const { patch, plan } = made
    const { after, before } = plan
    return { outcome: ContentTruncated.make({ before, after, plan, patch, degraded: null, calls: [] }), dropped: undefined }
  })

/** Shows the first line of results that are older than the newest messages. */
const assemble = ({ conversation }: Compression.AssembleRequest) =>
  Effect.sync((): Compression.Assembled => ({
    shorten: Conversation.view(conversation).slice(0, -keep).flatMap(({ entry }) =>
      entry.content.parts.flatMap((part, at) => {
        if (!Content.isResponse(part)) return []
        const { id, name = "" } = part.functionResponse
        const output = `${(Content.outputText(part) ?? "").split("\n")[0]} (all of it: recall ${entry.handles[at]})`
        return [{ entry: entry.id, part: at, replacement: Content.response(name, { output }, id) }]
      })
    )
  }))

const diary: Compression.StrategyRunner = {
  strategy: {
    ...Compression.runners.pi.strategy,
    name: "diary",
    description: "to a list of what was asked",
    trigger: (window) => window * 0.6
  },
  decide: (request) => Effect.sync(() => planOf(request)),
  compress,
  apply: compress,
  open: () =>
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      yield* Effect.addFinalizer(() => Effect.flatMap(Ref.get(turns), (n) => Console.log(`closed after ${n} turns`)))
      return { assemble, afterTurn: () => Ref.update(turns, (n) => n + 1) }
    })
}

const program = Effect.gen(function* () {
  const chat = yield* Chats.Chats.use((chats) => chats.open("example"))
  yield* chat.configure({ window: 2_000, policy: { strategy: "diary" } })
  for (const n of [1, 2, 3, 4, 5, 6]) {
    const events = yield* Stream.runCollect(chat.send(`Tell me about part ${n}. ${"Be thorough. ".repeat(10)}`))
    const compressed = events.some(({ _tag }) => _tag === "ChatCompressed") ? "compressed, " : ""
    const { length } = Conversation.view(yield* chat.conversation)
    yield* Console.log(`turn ${n}: ${compressed}${length} messages in the window`)
  }
})

const model = ScriptedModel.layer(() => "This part does what its name says, at some length. ".repeat(20))
const Services = Offline.layerWithModel(model).pipe(Layer.provide(Layer.succeed(Compression.OwnStrategies, [diary])))

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Services)))
