import { Deferred, Effect, Fiber, Stream } from "effect"
import type { ChatEvent } from "../../../../src/domain/chat/ChatEvent.ts"
import { adopt } from "../../../../src/domain/compression/Compression.ts"
import { pi } from "../../../../src/domain/compression/strategies/pi/Pi.ts"
import { noHistory } from "../../../../src/domain/compression/strategies/pi/Prompts.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { call, type Content, model, plainText, response, text, user } from "../../../../src/domain/content/Content.ts"
import {
  append,
  type Conversation,
  type Draft,
  entryId,
  view,
  viewTokens
} from "../../../../src/domain/conversation/Conversation.ts"
import { emptySession } from "../../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../../../src/services/chat/ChatSettings.ts"
import { compressWith } from "../../../../src/services/compression/CompressionWorkflow.ts"
import type { CompressRequest } from "../../../../src/services/compression/strategies/CompressRequest.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import type { AskRequest } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../../src/services/hooks/HookSystem.ts"
import { ContextLengthError, InvalidRequestError, ModelError } from "../../../../src/services/model/Model.ts"
import { makeEntry } from "../../../../src/services/session/EntryBuilder.ts"
import { type Answer, limited, scripted, servicesWith, turns } from "../../../support/compressing.ts"
import { subscribed } from "../../../support/hooks.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** The workflow of a compaction by pi, with a scripted model, and chats that compact themselves. */

/** Turns without tools. Their prompts are long, so that a cut falls between turns. */
const talk = (count: number): ReadonlyArray<Content> =>
  Array.from({ length: count }, (_, n) => [
    user(text(`question ${n} about the billing module, with what is known of it. `.repeat(40))),
    model(text(`answer ${n}`))
  ]).flat()

/** One prompt and a long tool loop: whatever is cut splits the turn. */
const oneTurn = (calls: number, lines: number): ReadonlyArray<Content> => [
  user(text("Do everything that is left.")),
  ...Array.from({ length: calls }, (_, n) => [
    model(call("edit", { path: `src/part${n}.ts` }, `t${n}`)),
    user(response("edit", { output: `part ${n} is done\n`.repeat(lines) }, `t${n}`))
  ]).flat()
]

const policy: Policy = {
  ...defaultPolicy,
  strategy: "pi",
  summarizer: "model",
  ladder: false,
  minGain: 0,
  limit: TokenCount.make(16_000)
}

const isDraft = (one: Content | Draft): one is Draft => "content" in one

const requestOf = (contents: ReadonlyArray<Content | Draft>, change: Partial<Policy> = {}) =>
  Effect.map(
    requestFor(
      contents.map((one) => (isDraft(one) ? one : { content: one })),
      { ...policy, ...change }
    ),
    (request): CompressRequest => ({ ...request, forced: true })
  )

/** Adds messages to the conversation of a request. */
const continued = Effect.fnUntraced(function* (
  request: CompressRequest,
  conversation: Conversation,
  contents: ReadonlyArray<Content>
) {
  let next = conversation
  for (const content of contents) {
    next = append(next, yield* makeEntry({ content }, entryId(next.next), request.held))
  }
  return { ...request, conversation: next }
})

const bodyOf = ({ contents: [body] }: AskRequest): string => plainText(body ?? user())
const shownIn = (conversation: Conversation) => view(conversation).map(({ entry }) => plainText(entry.content))

const played = (
  contents: ReadonlyArray<Content | Draft>,
  answer: (request: AskRequest) => Answer,
  change: Partial<Policy> = {}
) => {
  const { asked, summarizer } = scripted(answer)
  return Effect.gen(function* () {
    const request = yield* requestOf(contents, change)
    const { outcome } = yield* compressWith(runners.pi, request)
    const conversation = adopt(request.conversation, outcome)
    return { request, outcome, conversation, asked, shown: shownIn(conversation) }
  }).pipe(Effect.provide(servicesWith(summarizer)))
}

const earlier: Draft = {
  content: user(text("<summary>\n## Goal\nThe migration.\n\n<read-files>\nsrc/old.ts\n</read-files>\n</summary>")),
  author: "summary"
}

describe("a compaction by pi", () => {
  it.effect(
    "pi: one call summarises what leaves, in at most 13,107 tokens, by the first prompt (Pi 0.73)",
    function* () {
      const { asked, outcome } = yield* played(talk(30), () => "## Goal\nBilling.")
      assert.strictEqual(outcome._tag, "Compressed")
      assert.deepStrictEqual(
        asked.map(({ maxOutputTokens, purpose }) => [purpose, maxOutputTokens]),
        [["generate", 13_107]]
      )
      const [body = ""] = asked.map(bodyOf)
      assert.match(body, /^<conversation>\n\[User\]: question 0 [^]*<\/conversation>\n\nSummarise/)
      assert.notInclude(body, "<previous-summary>")
    }
  )

  it.effect(
    "pi: the summary stands in the user's role, without an acknowledgement (Pi 0.73; ours: marked as written by the runtime)",
    function* () {
      const { conversation, shown } = yield* played(turns(20, 150), () => "## Goal\nBilling.")
      const [summary, next] = view(conversation).map(({ entry }) => entry)
      assert.deepInclude(summary, { author: "summary" })
      assert.strictEqual(summary?.content.role, "user")
      assert.match(shown[0] ?? "", /left the window[^]*<summary>\n## Goal\nBilling\.[^]*<\/summary>$/)
      assert.isUndefined(next?.author)
    }
  )

  it.effect("pi: where an earlier summary leaves, the update prompt renews it (Pi 0.73)", function* () {
    const { asked } = yield* played([earlier, ...turns(20, 150)], () => "## Goal\nNext.")
    const [body = ""] = asked.map(bodyOf)
    assert.include(body, "<previous-summary>\n## Goal\nThe migration.\n</previous-summary>")
    assert.include(body, "Write the summary that replaces it")
    assert.notInclude(body.slice(0, body.indexOf("</conversation>")), "The migration.")
  })

  it.effect(
    "pi: a turn that is split gets a summary of its beginning, in at most 8,192 tokens, at the same time (Pi 0.73)",
    () => {
      const both = Deferred.makeUnsafe<void>()
      let inFlight = 0
      const together = (answer: string) =>
        Effect.gen(function* () {
          inFlight += 1
          if (inFlight === 2) yield* Deferred.succeed(both, undefined)
          // Neither call ends before the other has begun.
          yield* Deferred.await(both)
          return answer
        })
      return Effect.gen(function* () {
        const { asked, shown } = yield* played([...turns(8, 150), ...oneTurn(20, 120)], ({ purpose }) =>
          together(purpose === "prefix" ? "The beginning." : "The history.")
        )
        assert.deepStrictEqual(
          asked.map(({ maxOutputTokens, purpose }) => [purpose, maxOutputTokens]),
          [
            ["generate", 13_107],
            ["prefix", 8_192]
          ]
        )
        const [history = "", prefix = ""] = asked.map(bodyOf)
        assert.notInclude(history, "Do everything that is left.")
        assert.match(prefix, /^<conversation>\n\[User\]: Do everything that is left\.[^]*## Original Request/)
        assert.match(shown[0] ?? "", /The history\.\n\n---\n\n\*\*.+\*\*\n\nThe beginning\./)
      })
    }
  )

  it.effect("pi: an interruption ends both calls, and nothing changes (Pi 0.73)", () => {
    let inFlight = 0
    const both = Deferred.makeUnsafe<void>()
    const hanging = Effect.acquireUseRelease(
      Effect.sync(() => (inFlight += 1)),
      (count) => Effect.andThen(count === 2 ? Deferred.succeed(both, undefined) : Effect.void, Effect.never),
      () => Effect.sync(() => void (inFlight -= 1))
    )
    return Effect.gen(function* () {
      const running = yield* Effect.forkChild(played([...turns(8, 150), ...oneTurn(20, 120)], () => hanging))
      yield* Deferred.await(both)
      assert.strictEqual(inFlight, 2)
      yield* Fiber.interrupt(running)
      assert.strictEqual(inFlight, 0)
    })
  })

  it.effect("pi: when a call fails nothing changes (Pi 0.73; ours: the other one is ended)", function* () {
    let ended = false
    const { conversation, outcome, request } = yield* played([...turns(8, 150), ...oneTurn(20, 120)], ({ purpose }) =>
      purpose === "prefix" ? limited : Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (ended = true)))
    )
    assert.deepInclude(outcome, { _tag: "FailedSummarizer", message: "slow down" })
    assert.strictEqual(conversation, request.conversation)
    assert.isTrue(ended)
  })

  it.effect("pi: without whole turns before a split one, no history is summarised (Pi 0.73)", function* () {
    const { asked, shown } = yield* played(oneTurn(30, 150), () => "The beginning.")
    assert.deepStrictEqual(
      asked.map(({ purpose }) => purpose),
      ["prefix"]
    )
    assert.include(shown[0] ?? "", `<summary>\n${noHistory}\n\n---`)
  })

  it.effect(
    "pi: an earlier summary is lost when only a turn's beginning leaves (Pi 0.73; ours: it is kept)",
    function* () {
      const { asked, shown } = yield* played([earlier, ...oneTurn(30, 150)], () => "The beginning.")
      assert.strictEqual(asked.length, 1)
      assert.match(shown[0] ?? "", /<summary>\n## Goal\nThe migration\.\n\n---[^]*The beginning\./)
      assert.include(shown[0] ?? "", "<read-files>\nsrc/old.ts\n</read-files>")
      assert.notInclude(shown[0] ?? "", noHistory)
    }
  )

  it.effect("pi: an empty answer is accepted (Pi 0.73; ours: a failure, and nothing changes)", function* () {
    const { conversation, outcome, request } = yield* played(turns(20, 150), () => "  \n")
    assert.strictEqual(outcome._tag, "FailedEmptySummary")
    assert.strictEqual(conversation, request.conversation)
    const half = yield* played([...turns(8, 150), ...oneTurn(20, 120)], ({ purpose }) =>
      purpose === "prefix" ? "" : "The history."
    )
    assert.strictEqual(half.outcome._tag, "FailedEmptySummary")
  })

  it.effect(
    "pi: the user's focus applies to the summary of the history, not to that of a turn's beginning (Pi 0.73)",
    function* () {
      const { asked } = yield* played([...turns(8, 150), ...oneTurn(20, 120)], () => "Fine.", {
        focus: "the invoices"
      })
      assert.deepStrictEqual(
        asked.map((request) => [request.purpose, bodyOf(request).includes("Additional focus: the invoices")]),
        [
          ["generate", true],
          ["prefix", false]
        ]
      )
    }
  )

  it.effect("pi: the files that were read and modified are carried from compaction to compaction (Pi 0.73)", () => {
    const { asked, summarizer } = scripted(() => "## Goal\nBilling.")
    return Effect.gen(function* () {
      const request = yield* requestOf([...oneTurn(3, 10), model(text("done")), ...turns(20, 150)])
      const first = adopt(request.conversation, (yield* compressWith(runners.pi, request)).outcome)
      const next = yield* continued(request, first, turns(20, 150, 20))
      const second = adopt(next.conversation, (yield* compressWith(runners.pi, next)).outcome)
      const [summary = ""] = shownIn(second)
      assert.match(summary, /<read-files>\nsrc\/file0\.ts\n[^]*src\/file20\.ts\n[^]*<\/read-files>/)
      assert.include(summary, "<modified-files>\nsrc/part0.ts\nsrc/part1.ts\nsrc/part2.ts\n</modified-files>")
      assert.strictEqual(summary.match(/<modified-files>/g)?.length, 1)
      assert.notInclude(bodyOf(asked[1] ?? assert.fail("no second call")), "<modified-files>")
    }).pipe(Effect.provide(servicesWith(summarizer)))
  })

  it.effect("pi: right after a compaction there is nothing to compress, and no call (Pi 0.73)", () => {
    const { asked, summarizer } = scripted(() => "## Goal\nBilling.")
    return Effect.gen(function* () {
      const request = yield* requestOf(talk(30))
      const conversation = adopt(request.conversation, (yield* compressWith(runners.pi, request)).outcome)
      const { outcome } = yield* compressWith(runners.pi, { ...request, conversation })
      assert.deepInclude(outcome, { _tag: "Noop", reason: "nothing to compress" })
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide(servicesWith(summarizer)))
  })

  it.effect(
    "pi: session_before_compact may cancel: a PreCompress hook that blocks (Pi 0.73; ours: not where the request would not fit)",
    () => {
      const { asked, summarizer } = scripted(() => "Fine.")
      return Effect.gen(function* () {
        yield* subscribed(yield* HookSystem, { PreCompress: { decision: "block", reason: "not now" } })
        const request = yield* requestOf(turns(20, 150))
        const { outcome } = yield* compressWith(runners.pi, request)
        assert.deepInclude(outcome, { _tag: "Noop", reason: "vetoed by a hook", detail: "not now" })
        assert.strictEqual(asked.length, 0)
        const forced = yield* compressWith(runners.pi, { ...request, mustFit: true })
        assert.strictEqual(forced.outcome._tag, "Compressed")
      }).pipe(Effect.scoped, Effect.provide(servicesWith(summarizer)))
    }
  )

  it.effect(
    "pi: session_before_compact may supply the summary: a PreCompress hook's snapshot (Pi 0.73; ours: checked against the conversation)",
    () => {
      const { asked, summarizer } = scripted(() => "Fine.")
      return Effect.gen(function* () {
        const snapshot = "<state_snapshot><overall_goal>Written by a hook.</overall_goal></state_snapshot>"
        yield* subscribed(yield* HookSystem, { PreCompress: { hookSpecificOutput: { snapshot } } })
        const { outcome } = yield* compressWith(runners.pi, yield* requestOf(turns(20, 150)))
        assert.isTrue(outcome._tag === "Compressed" && outcome.by === "hook")
        assert.include(outcome._tag === "Compressed" ? outcome.snapshot : "", "Written by a hook.")
        assert.strictEqual(asked.length, 0)
      }).pipe(Effect.scoped, Effect.provide(servicesWith(summarizer)))
    }
  )
})

const tooLong = new ModelError({ reason: new ContextLengthError({}) })
const noCount = new ModelError({ reason: new InvalidRequestError({ detail: "no count" }) })

const settings: ChatSettings = {
  model: "gemini-2.5-flash",
  window: 100_000,
  policy: { strategy: "pi", summarizer: "extractive" }
}

const begun = (change: Partial<ChatSettings> = {}) =>
  Chat.make({ log: { append: () => Effect.void }, session: emptySession, settings: { ...settings, ...change } })

const sent = (chat: Chat["Service"], message: Parameters<Chat["Service"]["send"]>[0]) => {
  const events: Array<ChatEvent> = []
  return Stream.runForEach(chat.send(message), (event) => Effect.sync(() => void events.push(event))).pipe(
    Effect.ignore,
    Effect.as(events)
  )
}

const compactions = (events: ReadonlyArray<ChatEvent>) => events.filter(({ _tag }) => _tag === "ChatCompressed").length

const drafts = (contents: ReadonlyArray<Content>): ReadonlyArray<Draft> => contents.map((content) => ({ content }))

/** An answer with the tokens that the provider counted. */
const counted = (prompt: number, words = "fine") => ({
  content: model(text(words)),
  finishReason: "STOP",
  usage: { prompt, answer: 5, thoughts: 0, cached: 0 }
})

describe("a chat under pi", () => {
  it.effect(
    "pi: a chat compacts above its window less 16,384 tokens, and not at that (Pi 0.73)",
    Offline.layer,
    function* () {
      const messages = drafts(turns(110, 130))
      const size = yield* Effect.gen(function* () {
        const chat = yield* begun()
        yield* chat.append(messages)
        return viewTokens(yield* chat.conversation)
      })
      assert.isAbove(size, 49_152)
      for (const [window, tag] of [
        [size + 16_384, "Noop"],
        [size + 16_383, "Compressed"]
      ] as const) {
        const chat = yield* begun({ window })
        yield* chat.append(messages)
        assert.strictEqual((yield* chat.compress({ forced: false }))._tag, tag, `in a window of ${window}`)
      }
    }
  )

  it.effect(
    "pi: after an overflow one compaction and one retry, and no third request (Pi 0.73)",
    Offline.layerWithModel(
      ScriptedModel.layer(
        () => tooLong,
        () => noCount
      )
    ),
    function* () {
      const chat = yield* begun()
      yield* chat.append(drafts(turns(38, 130)))
      const events = yield* sent(chat, "and now?")
      assert.strictEqual(compactions(events), 1)
      assert.deepInclude(events.at(-1), { _tag: "Error", reason: "ContextLengthError" })
      const calls = (yield* (yield* ScriptedModel.Script).calls).filter(({ method }) => method === "stream")
      assert.strictEqual(calls.length, 2)
      const [first = 0, second = 0] = calls.map(({ request }) => JSON.stringify(request.contents).length)
      assert.isBelow(second, first)
    }
  )

  it.effect(
    "pi: after the retry of an overflow the turn goes on (Pi 0.73)",
    Offline.layerWithModel(ScriptedModel.layer([tooLong, "fine"], () => noCount)),
    function* () {
      const chat = yield* begun()
      yield* chat.append(drafts(turns(38, 130)))
      const events = yield* sent(chat, "and now?")
      assert.strictEqual(compactions(events), 1)
      assert.strictEqual(events.at(-1)?._tag, "Finished")
      // The message is in the conversation once.
      const said = shownIn(yield* chat.conversation).filter((words) => words === "and now?")
      assert.strictEqual(said.length, 1)
    }
  )

  it.effect(
    "pi: usage from before a compaction does not cause another one (Pi 0.73)",
    Offline.layerWithModel(
      ScriptedModel.layer(
        ({ contents }) => counted(Math.round(JSON.stringify(contents).length * 0.8)),
        () => noCount
      )
    ),
    function* () {
      const chat = yield* begun()
      yield* chat.append(drafts(turns(38, 130)))
      // The provider counts more than the estimate, above the trigger.
      const end = (yield* sent(chat, "first")).at(-1)
      assert.isAbove(end?._tag === "Finished" ? end.tokens : 0, pi.trigger(100_000))
      assert.strictEqual(compactions(yield* sent(chat, "second")), 1)
      assert.strictEqual(compactions(yield* sent(chat, "third")), 0)
    }
  )

  it.effect(
    "pi: the trigger is checked after the tool loop and before a prompt (Pi 0.73; ours: before every request, also within a long loop)",
    Offline.layerWithModel(
      ScriptedModel.layer((_request, index) => ({
        content: model(call("edit", { path: `src/part${index}.ts` }, `t${index}`)),
        finishReason: "STOP",
        usage: null
      }))
    ),
    function* () {
      const chat = yield* begun({ window: 40_000 })
      let compacted = 0
      yield* sent(chat, "Do everything that is left.")
      for (let n = 0; n < 30; n += 1) {
        const output = `part ${n} is done\n`.repeat(400)
        const events = yield* sent(chat, [response("edit", { output }, `t${n}`)])
        assert.strictEqual(events.at(-1)?._tag, "Finished")
        compacted += compactions(events)
      }
      assert.isAbove(compacted, 0)
      assert.isBelow(viewTokens(yield* chat.conversation), 30_001)
    }
  )
})
