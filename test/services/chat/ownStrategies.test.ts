import { Effect, Exit, Fiber, Layer, Ref, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { ContentTruncated } from "../../../src/domain/compression/Compression.ts"
import { OwnStrategyName } from "../../../src/domain/compression/strategies/Strategies.ts"
import type { Strategy } from "../../../src/domain/compression/Strategy.ts"
import { call, model, response, text, user, withOutput } from "../../../src/domain/content/Content.ts"
import { entries, entryId, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import type { StrategyRunner } from "../../../src/services/compression/strategies/StrategyRunner.ts"
import { OwnStrategies } from "../../../src/services/compression/strategies/StrategyRunners.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { illegal } from "../../support/legal.ts"
import { sizeOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Whole chats with a strategy that the program brought: `settings.policy.strategy` names it. */

const strategy: Strategy = {
  name: "mine",
  description: "by this program",
  defaults: { minGain: 0, outputForm: "last-lines" },
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => window / 2,
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: false
}

/** Keeps the last two messages. */
const compress: StrategyRunner["compress"] = ({ conversation }) =>
  Effect.sync(() => {
    const items = view(conversation)
    const [first, last] = [items[0]?.entry.id ?? entryId(1), items.at(-3)?.entry.id ?? entryId(1)]
    const before = TokenCount.make(viewTokens(conversation))
    const plan = { version: conversation.version, strategy: "mine", rung: 0, steps: [], before, after: before }
    const insert = [
      { id: entryId(1), content: user(text("They told stories.")), author: "summary" as const, tokens: [], handles: [] }
    ]
    const patch = { drop: { from: first, to: last }, insert, shorten: [] }
    return {
      outcome: ContentTruncated.make({ before, after: before, plan, patch, degraded: null, calls: [] }),
      dropped: undefined
    }
  })

const runnerWith = (parts: Partial<StrategyRunner>): StrategyRunner => ({
  strategy,
  decide: () => Effect.succeed({ _tag: "Skip", reason: "nothing to compress", before: 0 }),
  compress,
  apply: compress,
  ...parts
})

const story = "a story of a river and a bridge, told at length. ".repeat(60)

const services = (runner: StrategyRunner) =>
  Offline.layerWithModel(ScriptedModel.layer(() => story)).pipe(Layer.provide(Layer.succeed(OwnStrategies, [runner])))

const settings = {
  model: "gemini-2.5-flash",
  window: 4_000,
  policy: { strategy: OwnStrategyName.make("mine"), summarizer: "extractive" as const }
}
const begun = Chat.make({ log: { append: () => Effect.void }, session: emptySession, settings })

/** Sends some messages; time limits pass meanwhile. */
const told = Effect.fnUntraced(function* (chat: Chat["Service"], count: number) {
  const events: Array<ChatEvent> = []
  for (let n = 0; n < count; n += 1) {
    const turn = yield* Effect.forkChild(Stream.runCollect(chat.send(`chapter ${n}`)), { startImmediately: true })
    for (let tick = 0; tick < 20 && turn.pollUnsafe() === undefined; tick += 1) yield* TestClock.adjust("30 seconds")
    const made = yield* Fiber.join(turn)
    assert.strictEqual(made.at(-1)?._tag, "Finished", JSON.stringify(made.at(-1)))
    events.push(...made)
  }
  return events
})

const compressions = (events: ReadonlyArray<ChatEvent>) => events.filter((event) => event._tag === "ChatCompressed")

const checkKept = Effect.fnUntraced(function* (chat: Chat["Service"], count: number) {
  const conversation = yield* chat.conversation
  const words = entries(conversation).flatMap(({ content }) => content.parts.map((part) => part.text ?? ""))
  for (let n = 0; n < count; n += 1) assert.include(words, `chapter ${n}`)
  assert.isUndefined(illegal(projectMessages(conversation).map(({ content }) => content)))
})

describe("a chat with a strategy of the program", () => {
  it.effect("compresses with it, at its trigger", services(runnerWith({})), function* () {
    const chat = yield* begun
    const found = compressions(yield* told(chat, 6))
    assert.isAbove(found.length, 0)
    assert.deepStrictEqual(
      [...new Set(found.map(({ message, status }) => [status, message].join()))],
      ["CONTENT_TRUNCATED,"]
    )
    assert.isTrue(
      view(yield* chat.conversation).some(({ entry }) => entry.content.parts[0]?.text === "They told stories.")
    )
    assert.isAbove((yield* chat.usage).threshold, 0.49)
    yield* checkKept(chat, 6)
  })

  const bad: ReadonlyArray<readonly [what: string, parts: Partial<StrategyRunner>, told: string | undefined]> = [
    ["dies", { compress: () => Effect.die("out of luck") }, "it failed: out of luck"],
    ["cannot be opened", { open: () => Effect.die("closed") }, undefined],
    ["dies before requests", { open: () => Effect.succeed({ assemble: () => Effect.die("no") }) }, undefined],
    ["dies after turns", { open: () => Effect.succeed({ afterTurn: () => Effect.die("no") }) }, undefined],
    [
      "shows 10 MB before requests",
      {
        open: () =>
          Effect.succeed({
            assemble: ({ conversation }) =>
              Effect.succeed({
                shorten: view(conversation).flatMap(({ entry }) =>
                  entry.content.parts.flatMap((part, index) =>
                    part.functionResponse === undefined
                      ? []
                      : [
                          {
                            entry: entry.id,
                            part: index,
                            replacement: withOutput(part, "x".repeat(sizeOf(10_000_000, 100_000)))
                          }
                        ]
                  )
                )
              })
          })
      },
      undefined
    ]
  ]

  it.effect.each(bad)("that %s goes on", ([, parts, why]) =>
    Effect.gen(function* () {
      const chat = yield* begun
      yield* chat.append([
        { content: user(text("Read it.")) },
        { content: model(call("read_file", { path: "a" }, "c1")) },
        { content: user(response("read_file", { output: "the file" }, "c1")) },
        { content: model(text("I have.")) }
      ])
      const found = compressions(yield* told(chat, 6))
      assert.isAbove(found.length, 0)
      if (why !== undefined) {
        assert.deepStrictEqual(
          [...new Set(found.map(({ message }) => message))],
          [`the strategy mine was not used: ${why}`]
        )
      }
      yield* checkKept(chat, 6)
    }).pipe(Effect.provide(services(runnerWith(parts))))
  )
})

it.effect("a strategy may let the oldest messages leave before a request", () => {
  const long = (n: number) => response("read_file", { output: `${n} ${"word ".repeat(200)}` }, `c${n}`)
  const shorten = [3, 5].map((n) => ({ entry: entryId(n), part: 0, replacement: response("read_file", {}, `c${n}`) }))
  const runner = runnerWith({
    open: () => Effect.succeed({ assemble: () => Effect.succeed({ shorten, dropThrough: entryId(3) }) })
  })
  return Effect.gen(function* () {
    const events: Array<SessionEvent> = []
    const log = { append: (event: SessionEvent) => Effect.sync(() => void events.push(event)) }
    const chat = yield* Chat.make({ log, session: emptySession, settings: { ...settings, window: 40_000 } })
    yield* chat.append([{ content: user(text("Here.")), author: "environment" }, { content: user(text("Read.")) }])
    for (const n of [3, 5])
      yield* chat.append([{ content: user(long(n)) }, { content: model(call("read_file", {}, `c${n + 2}`)) }])
    const sizes = new Map(entries(yield* chat.conversation).map(({ id, tokens }) => [id, tokens[0] ?? 0]))
    const of = (...numbers: ReadonlyArray<number>) => numbers.reduce((sum, n) => sum + (sizes.get(entryId(n)) ?? 0), 0)
    const told = yield* Stream.runCollect(chat.send("go on"))
    assert.deepStrictEqual(
      told.flatMap((event) => (event._tag === "ToolOutputMasked" ? [event.parts] : [])),
      [2]
    )
    const [made = assert.fail("nothing left")] = events.filter((event) => event._tag === "Compressed")
    const { after, before, dropped, patch, status, strategy: by, trigger } = made
    assert.deepStrictEqual([status, by, trigger, before], ["LIMITED", "mine", "auto", of(2, 3, 4, 5, 6)])
    assert.deepStrictEqual(patch.drop, { from: entryId(2), to: entryId(3) })
    assert.deepStrictEqual(
      patch.shorten.map(({ entry }) => entry),
      [entryId(5)]
    )
    const [note] = patch.insert
    assert.deepStrictEqual([note?.author, note?.content.role], ["summary", "user"])
    assert.match(note?.content.parts[0]?.text ?? "", /\b2 older messages/)
    assert.strictEqual(after, of(4, 5, 6) + (note?.tokens[0] ?? 0))
    if (dropped === undefined) return assert.fail("no handle")
    assert.include((yield* chat.recall(dropped)).text, "Read.")
  }).pipe(Effect.provide(services(runner)))
})

it.effect(
  "nothing is told of shortened results where there are none",
  services(
    runnerWith({
      open: () => Effect.succeed({ assemble: () => Effect.succeed({ shorten: [], dropThrough: entryId(2) }) })
    })
  ),
  function* () {
    const stored: Array<string> = []
    const log = { append: ({ _tag }: SessionEvent) => Effect.sync(() => void stored.push(_tag)) }
    const chat = yield* Chat.make({ log, session: emptySession, settings })
    yield* chat.append([{ content: user(text("Read.")) }, { content: model(text("I have.")) }])
    const told = yield* Stream.runCollect(chat.send("go on"))
    assert.include(stored, "Compressed")
    assert.notInclude(
      told.map(({ _tag }) => _tag),
      "ToolOutputMasked"
    )
  }
)

describe("the session of a strategy in a chat", () => {
  /** A strategy that records what happens to its sessions. */
  const recording = (record: Ref.Ref<ReadonlyArray<string>>, name = "mine") => {
    const note = (line: string) => Ref.update(record, (all) => [...all, `${name} ${line}`])
    return runnerWith({
      strategy: { ...strategy, name },
      open: (conversation) =>
        Effect.gen(function* () {
          yield* note(`opens with ${entries(conversation).length}`)
          yield* Effect.addFinalizer(() => note("closes"))
          return {
            assemble: ({ conversation: now, window }) =>
              Effect.as(note(`before a request with ${entries(now).length} in ${window}`), undefined),
            afterTurn: (now) => note(`after a turn with ${entries(now).length}`)
          }
        })
    })
  }
  const withBoth = <A, E, R>(
    use: (record: Ref.Ref<ReadonlyArray<string>>) => Effect.Effect<A, E, R | Layer.Success<ReturnType<typeof services>>>
  ) =>
    Effect.gen(function* () {
      const record = yield* Ref.make<ReadonlyArray<string>>([])
      const own = Layer.succeed(OwnStrategies, [recording(record), recording(record, "other")])
      const world = Offline.layerWithModel(ScriptedModel.layer(() => "well")).pipe(Layer.provide(own))
      return yield* Effect.provide(use(record), world)
    })

  it.effect("opens with the first turn, sees each request and turn, and closes with the chat's scope", () =>
    withBoth((record) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const chat = yield* Scope.provide(begun, scope)
        assert.deepStrictEqual(yield* Ref.get(record), [])
        yield* told(chat, 2)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* Ref.get(record), [
          "mine opens with 0",
          "mine before a request with 0 in 4000",
          "mine after a turn with 2",
          "mine before a request with 2 in 4000",
          "mine after a turn with 4",
          "mine closes"
        ])
      })
    )
  )

  it.effect("closes when `configure` names another strategy, and not when it names the same", () =>
    withBoth((record) =>
      Effect.gen(function* () {
        const chat = yield* begun
        yield* told(chat, 1)
        yield* chat.configure({ policy: { ...settings.policy, preserve: 0.2 } })
        assert.notInclude(yield* Ref.get(record), "mine closes")
        yield* chat.configure({ policy: { ...settings.policy, strategy: OwnStrategyName.make("other") } })
        assert.strictEqual((yield* Ref.get(record)).at(-1), "mine closes")
        yield* told(chat, 1)
        yield* chat.configure({ policy: settings.policy })
        yield* told(chat, 1)
        assert.deepStrictEqual(
          (yield* Ref.get(record)).filter((line) => /opens|closes/.test(line)),
          ["mine opens with 0", "mine closes", "other opens with 2", "other closes", "mine opens with 4"]
        )
      })
    )
  )

  it.live("is closed wherever a turn is interrupted", function* () {
    let open = 0
    const acquired = Effect.sync(() => {
      open += 1
      return {}
    })
    const runner = runnerWith({
      open: () => Effect.acquireRelease(acquired, () => Effect.sync(() => void (open -= 1)))
    })
    const program = () =>
      Effect.scoped(Effect.flatMap(begun, (chat) => Stream.runDrain(chat.send("hello")))).pipe(
        Effect.provide(services(runner))
      )
    const points = yield* interruptSweep(program, () => Effect.sync(() => assert.strictEqual(open, 0)))
    assert.isAbove(points, 20)
  })
})
