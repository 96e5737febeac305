import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Layer, Path, Stream } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { call, model, plainText, response, text, user } from "../../../src/domain/content/Content.ts"
import { type Draft, entries, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { emptySession, applyEvent } from "../../../src/domain/session/Session.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { ChatDefaults } from "../../../src/services/chat/ChatSettings.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../../src/services/compression/summary/ModelSummarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { ModelError, QuotaExhaustedError } from "../../../src/services/model/Model.ts"
import { enforce } from "../../../src/services/session/SessionRetention.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { estimateContents } from "../../../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { illegal } from "../../support/legal.ts"
import { sizeOf } from "../../support/runs.ts"
import { begin, brief, bytes, endingOf, held, taken } from "../../support/sending.ts"

/** What people complained of in long conversations, each as a conversation with a model that goes well here. */

const goal = "Make the build green. Never touch src/legacy."

/** One prompt and many calls, each with a result of some 400 tokens. */
const work = (count: number, from = 0): ReadonlyArray<Draft> =>
  Array.from({ length: count }, (_, n) => from + n).flatMap((n) => [
    { content: model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)) },
    {
      content: user(
        response("read_file", { output: `export const value${n} = ${n} // of the file\n`.repeat(30) }, `c${n}`)
      )
    }
  ])
const longRun = (count: number): ReadonlyArray<Draft> => [{ content: user(text(goal)) }, ...work(count)]

const exhausted = new ModelError({ reason: new QuotaExhaustedError({ detail: "today" }) })
const runtime = (answers: Scripted.Answers = () => "fine") =>
  Layer.fresh(Offline.layerWithModel(Scripted.layer(answers)))
const streams = Effect.flatMap(Scripted.Script, ({ calls }) =>
  Effect.map(calls, (all) => all.filter(({ method }) => method === "stream").map(({ request }) => request))
)
const compressions = (events: ReadonlyArray<ChatEvent>): number =>
  events.filter(({ _tag }) => _tag === "ChatCompressed").length

describe("solved complaints about coding agents", () => {
  it.effect("a session over its limit continues, even when no model can summarise it", () =>
    Effect.gen(function* () {
      const small = { window: 8_000, policy: { summarizer: "model" } } as const
      const { chat } = yield* begin(small)
      yield* chat.append(longRun(60))
      yield* chat.append([
        { content: model(call("grep", { pattern: "x" }, "big")) },
        { content: user(response("grep", { output: "one line of hits, ".repeat(60_000) }, "big")) }
      ])
      assert.isAbove(viewTokens(yield* chat.conversation), 3 * small.window)
      const { events } = yield* taken(chat.send("go on"))
      assert.strictEqual(endingOf(events)?._tag, "Finished", events.map(brief).join(", "))
      for (const request of yield* streams) assert.isBelow(yield* estimateContents(request), 8_000)
    }).pipe(
      Effect.provide(runtime(({ contents }) => (plainText(contents.at(-1) ?? user()) === "go on" ? "fine" : exhausted)))
    )
  )

  it.effect("does not compress again what it just compressed, and never makes it larger", () =>
    Effect.gen(function* () {
      const { chat } = yield* begin({ window: 8_000 })
      yield* chat.append(longRun(20))
      const told: Array<number> = []
      let before = viewTokens(yield* chat.conversation)
      for (let turn = 0; turn < 12; turn += 1) {
        const { events } = yield* taken(chat.send(`question ${turn}`))
        assert.strictEqual(endingOf(events)?._tag, "Finished")
        told.push(compressions(events))
        const after = viewTokens(yield* chat.conversation)
        if (compressions(events) > 0) assert.isBelow(after, before)
        before = after
      }
      assert.deepStrictEqual(told, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      yield* chat.compress()
      yield* chat.compress()
      const least = viewTokens(yield* chat.conversation)
      yield* chat.compress()
      assert.isAtMost(viewTokens(yield* chat.conversation), least)
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("does not retry on every turn what cannot become smaller", () =>
    Effect.gen(function* () {
      const { chat } = yield* begin({ window: 20_000 })
      // One message of the user's own words: nothing may be taken from it.
      yield* chat.append([{ content: user(text("My own words, kept to the letter. ".repeat(1_500))) }])
      let tried = 0
      for (let turn = 0; turn < 10; turn += 1) tried += compressions((yield* taken(chat.send("and?"))).events)
      assert.isAtMost(tried, 1)
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("compresses between the calls of a single prompt, with results at hand", () =>
    Effect.gen(function* () {
      const { chat } = yield* begin({ window: 8_000 })
      yield* taken(chat.send(goal))
      let told = 0
      for (let n = 0; n < 40; n += 1) {
        const { events } = yield* taken(
          chat.send([response("read_file", { output: `line ${n} of the file\n`.repeat(80) }, `c${n}`)])
        )
        assert.strictEqual(endingOf(events)?._tag, "Finished", events.map(brief).join(", "))
        told += compressions(events)
      }
      assert.isAbove(told, 1)
      for (const request of yield* streams) {
        assert.isBelow(yield* estimateContents(request), 8_000)
        assert.isUndefined(illegal(request.contents))
      }
    }).pipe(
      Effect.provide(
        runtime((_, index) => ({
          content: model(call("read_file", { path: `src/file${index}.ts` }, `c${index}`)),
          finishReason: "STOP",
          usage: null
        }))
      )
    )
  )

  it.effect("resumes a session as compressed as it was left, without loss", () =>
    Effect.gen(function* () {
      const { chat, events } = yield* begin({ window: 8_000 })
      yield* chat.append(longRun(20))
      yield* taken(chat.send("question"))
      const left = yield* chat.contents
      const again = yield* begin({ window: 8_000 }, { session: events.reduce(applyEvent, emptySession) })
      assert.deepStrictEqual(yield* again.chat.contents, left)
      const [there, here] = [yield* again.chat.usage, yield* chat.usage]
      // One was reported of this very conversation, the other learned of the model's counting.
      assert.closeTo(there.tokens, here.tokens, here.tokens * 0.01)
      assert.strictEqual(compressions((yield* taken(again.chat.send("and now?"))).events), 0)
      assert.lengthOf(entries(yield* again.chat.conversation), 41 + 4)
      assert.isTrue(yield* again.chat.undo)
      assert.isAbove(viewTokens(yield* again.chat.conversation), 7_000)
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("a session survives a turn, a crash within one, a resume and an exit; nothing is deleted", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = path.join(yield* fs.makeTempDirectoryScoped(), "sessions")
      const program = (answers: Scripted.Answers) =>
        Chats.layer.pipe(
          Layer.provideMerge(Compression.layer),
          Layer.provideMerge(ModelSummarizer.layer),
          Layer.provideMerge(
            Layer.mergeAll(
              TokenCounter.layerEstimate,
              HookSystem.layer,
              MemoryCalibrations.layer,
              MemoryTempStore.layer,
              Scripted.layer(answers),
              FileSessionStore.layer(folder).pipe(Layer.provide(FileTempStore.folders))
            )
          ),
          Layer.provide(Layer.succeed(ChatDefaults, held)),
          Layer.fresh
        )
      const opened = Chats.use((chats) => chats.open("mine"))
      // A process that is gone in the middle of its second turn.
      yield* Effect.gen(function* () {
        const chat = yield* opened
        yield* taken(chat.send("first"))
        const asked = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(chat.send("second"), () => Deferred.succeed(asked, undefined))
        )
        yield* Deferred.await(asked)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.scoped, Effect.provide(program((_, index) => (index === 0 ? "fine" : Scripted.hang))))
      // One that only looks, and one that lets the settings decide what may go.
      yield* Effect.scoped(opened).pipe(Effect.provide(program(() => "fine")))
      const { deleted } = yield* enforce({}).pipe(Effect.provide(program(() => "fine")))
      assert.isEmpty(deleted)
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* (yield* SessionStore).list, ["mine"])
        const chat = yield* opened
        assert.deepStrictEqual(
          view(yield* chat.conversation).map(({ entry }) => plainText(entry.content)),
          ["first", "fine"]
        )
        assert.strictEqual(endingOf((yield* taken(chat.send("third"))).events)?._tag, "Finished")
      }).pipe(Effect.scoped, Effect.provide(program(() => "fine")))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("the goal and the prohibitions are in every request, verbatim, after any number of compressions", () =>
    Effect.gen(function* () {
      const { chat } = yield* begin({ window: 8_000 })
      yield* taken(chat.send(goal))
      let told = 0
      for (let turn = 0; turn < 8; turn += 1) {
        yield* chat.append(work(12, turn * 12))
        told += compressions((yield* taken(chat.send(`Go on with step ${turn}.`))).events)
      }
      assert.isAbove(told, 3)
      for (const { contents } of yield* streams) assert.include(bytes(contents), "Never touch src/legacy.")
      assert.include(bytes(yield* chat.contents), "Make the build green.")
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("calls and results stay paired after a cancel, a failure, a compression, an undo and a resume", () =>
    Effect.gen(function* () {
      const { chat, events } = yield* begin({ window: 8_000 })
      yield* taken(chat.send("read two files"))
      // Only one of two results, then a change of mind, then a turn that is given up.
      yield* taken(chat.send([response("read_file", { output: "a" }, "a1")], { cancel: Effect.void }))
      yield* taken(chat.send("never mind"))
      yield* taken(chat.send([response("read_file", { output: "late" }, "nobody asked")]))
      yield* chat.append(work(20))
      yield* taken(chat.send("go on"))
      yield* chat.undo
      yield* chat.compress()
      const again = yield* begin({ window: 8_000 }, { session: events.reduce(applyEvent, emptySession) })
      yield* taken(again.chat.send([response("read_file", { output: "b" }, "b1")]))
      yield* taken(again.chat.send("and now?"))
      const sent = yield* streams
      assert.isAtLeast(sent.length, 5)
      for (const { contents } of sent) assert.isUndefined(illegal(contents), bytes(contents))
    }).pipe(
      Effect.provide(
        runtime(() => ({
          content: model(call("read_file", { path: "a" }, "a1"), call("read_file", { path: "b" }, "b1")),
          finishReason: "STOP",
          usage: null
        }))
      )
    )
  )

  it.effect("a cancel works while a model thinks, and the cancelled task is not resumed", () =>
    Effect.gen(function* () {
      const { chat } = yield* begin()
      const cancel = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(taken(chat.send("delete everything", { cancel: Deferred.await(cancel) })))
      while ((yield* streams).length === 0) yield* Effect.yieldNow
      yield* Deferred.succeed(cancel, undefined)
      const { error, events } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(events.map(brief), ["ModelInfo", "UserCancelled"])
      assert.isUndefined(error)
      assert.strictEqual(yield* (yield* Scripted.Script).interrupted, 1)
      yield* taken(chat.send("hello"))
      assert.deepStrictEqual((yield* streams).at(-1)?.contents, [user(text("hello"))])
    }).pipe(Effect.provide(runtime((_, index) => (index === 0 ? Scripted.hang : "fine"))))
  )

  it.effect("the count equals what is sent, before and after a compression and a resume, and is never negative", () =>
    Effect.gen(function* () {
      const tools = [{ functionDeclarations: [{ name: "read_file" }] }]
      const settings = { window: 8_000, systemInstruction: "You fix builds.", tools }
      const { chat, events } = yield* begin(settings)
      const beside = estimateText("You fix builds.") + estimateText(JSON.stringify(tools[0]))
      const sent = Effect.flatMap(chat.contents, (contents) => estimateContents({ model: "", contents }))
      yield* chat.append(longRun(15))
      assert.strictEqual((yield* chat.usage).tokens, beside + (yield* sent))
      const { events: told } = yield* taken(chat.send("question"))
      const compressed = told.find(({ _tag }) => _tag === "ChatCompressed")
      const last = endingOf(told)
      if (compressed?._tag !== "ChatCompressed" || last?._tag !== "Finished") return assert.fail("it is not compressed")
      assert.isBelow(compressed.after, compressed.before)
      assert.isAbove(compressed.after, 0)
      assert.strictEqual(last.tokens, (yield* chat.usage).tokens)
      const next = beside + (yield* sent)
      assert.closeTo(last.tokens, next, next * 0.01)
      const again = yield* begin(settings, { session: events.reduce(applyEvent, emptySession) })
      assert.closeTo((yield* again.chat.usage).tokens, next, next * 0.01)
      const { error } = yield* taken(chat.send("My own words. ".repeat(10_000)))
      assert.isTrue(error?._tag === "ContextOverflow" && error.remaining >= 0 && error.estimated > 8_000)
    }).pipe(Effect.provide(runtime()))
  )

  /** Characters of all different strings that can be reached from a value. */
  const retained = (root: unknown): number => {
    const seen = new Set<unknown>()
    const open: Array<unknown> = [root]
    let characters = 0
    while (open.length > 0) {
      const value = open.pop()
      if (seen.has(value)) continue
      if (typeof value === "string") {
        seen.add(value)
        characters += value.length
      } else if (typeof value === "object" && value !== null) {
        seen.add(value)
        if (value instanceof Map) open.push(...value.keys(), ...value.values())
        else for (const each of Object.values(value)) open.push(each)
      }
    }
    return characters
  }

  it.effect("a long conversation stores each text once, and its requests do not grow", () =>
    Effect.gen(function* () {
      const { chat, events } = yield* begin({ window: 8_000 })
      let said = 0
      let told = 0
      for (let turn = 0; turn < sizeOf(150, 50); turn += 1) {
        const words = `Turn ${turn}. ${`Look at part ${turn} of it with care. `.repeat(40)}`
        said += words.length
        events.length = 0
        told += compressions((yield* taken(chat.send(words))).events)
      }
      assert.isAbove(told, 5)
      assert.isBelow(viewTokens(yield* chat.conversation), 8_000)
      assert.isBelow(bytes(yield* chat.contents).length, 60_000)
      assert.isBelow(retained(yield* chat.session), 2.5 * said)
      const sizes = (yield* streams).map(({ contents }) => bytes(contents).length)
      assert.isBelow(Math.max(...sizes), 60_000)
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("the user can choose what to keep, preview, see the result, and undo it", () =>
    Effect.gen(function* () {
      const settings = { window: 8_000, policy: { summarizer: "model" } } as const
      const { chat, events } = yield* begin(settings)
      yield* chat.append(longRun(12))
      yield* chat.append([{ content: user(text("The ticket is BUILD-4711, with care.")) }, ...work(4, 50)])
      const before = yield* chat.contents
      const planned = yield* chat.plan({ focus: "keep the SQL" })
      assert.isTrue(planned._tag === "Go" && planned.plan.after < planned.plan.before && planned.plan.steps.length > 0)
      assert.deepStrictEqual(yield* chat.contents, before, "a plan changes nothing")
      yield* chat.pin("BUILD-4711")
      const outcome = yield* chat.compress({ focus: "keep the SQL" })
      assert.strictEqual(outcome._tag, "Compressed")
      const asked = (yield* (yield* Scripted.Script).calls).filter(({ method }) => method === "generate")
      assert.isAbove(asked.length, 0)
      assert.include(bytes(asked[0]?.request.contents ?? []), "keep the SQL")
      assert.include(bytes(yield* chat.contents), "BUILD-4711")
      const compressed = events.find(({ _tag }) => _tag === "Compressed")
      if (compressed?._tag !== "Compressed" || compressed.dropped === undefined)
        return assert.fail("nothing was dropped")
      assert.include((yield* chat.recall(compressed.dropped)).text, "src/file3.ts")
      assert.isTrue(yield* chat.undo)
      assert.deepStrictEqual(yield* chat.contents, before)
    }).pipe(
      Effect.provide(runtime(() => "<state_snapshot><overall_goal>Make it green.</overall_goal></state_snapshot>"))
    )
  )
})
