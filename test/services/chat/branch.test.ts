import { Deferred, Effect, Fiber, Layer } from "effect"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, model, plainText, response, text, user } from "../../../src/domain/content/Content.ts"
import { type Draft, entries, entryId, view } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { ChatDefaults } from "../../../src/services/chat/ChatSettings.ts"
import { AuthenticationError, ModelError } from "../../../src/services/model/Model.ts"
import { illegal } from "../../support/legal.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const talk: ReadonlyArray<Draft> = [
  { content: user(text("Fix the parser.")) },
  { content: model(call("read_file", { path: "src/Parse.ts" }, "c1")) },
  { content: user(response("read_file", { output: "export const parse = 1" }, "c1")) },
  { content: model(text("The parser is fixed.")) },
  { content: user(text("Now write the docs\nin docs/parser.md.")) },
  { content: model(text("The docs are written.")) }
]

/** A conversation of six messages in memory, and the events that are written after them. */
const talked = Effect.gen(function* () {
  const events: Array<SessionEvent> = []
  const log = { append: (event: SessionEvent) => Effect.sync(() => void events.push(event)) }
  const chat = yield* Chat.make({ log, session: { ...emptySession, model: "gemini-2.5-flash" } })
  yield* chat.append(talk)
  events.length = 0
  return { chat, events }
})

const shown = (chat: Chat["Service"]) =>
  Effect.map(chat.conversation, (conversation) => view(conversation).map(({ entry }): string => entry.id))

/** A runtime in which a model with these answers writes summaries. */
const withModel = (answers: ScriptedModel.Answers) =>
  Layer.merge(
    Offline.layerWithModel(ScriptedModel.layer(answers)),
    Layer.succeed(ChatDefaults, { model: "gemini-2.5-flash", policy: { summarizer: "model" } })
  )
const summary = "## Goal\nWrite docs/parser.md.\n\n## Next Steps\n1. Nothing."

describe("going back", () => {
  it.effect(
    "pi: going to a message of the user goes to just before it, and its text is for the editor (Pi 0.73)",
    Offline.layer,
    function* () {
      const { chat } = yield* talked
      const outcome = yield* chat.branch({ to: entryId(5) })
      assert.deepStrictEqual(outcome, {
        _tag: "Branched",
        text: "Now write the docs\nin docs/parser.md.",
        summary: undefined
      })
      assert.deepStrictEqual(yield* shown(chat), ["e1", "e2", "e3", "e4"])
    }
  )

  it.effect("pi: going to any other message continues after it (Pi 0.73)", Offline.layer, function* () {
    const { chat } = yield* talked
    yield* chat.branch({ to: entryId(4) })
    const [next] = yield* chat.append([{ content: user(text("Now write tests.")) }])
    assert.strictEqual(next?.id, "e7")
    assert.deepStrictEqual(yield* shown(chat), ["e1", "e2", "e3", "e4", "e7"])
    assert.deepStrictEqual((yield* chat.tree).nodes.get(entryId(4))?.children, [entryId(5), entryId(7)])
  })

  it.effect("pi: going to where the conversation stands changes nothing (Pi 0.73)", Offline.layer, function* () {
    const { chat, events } = yield* talked
    assert.strictEqual((yield* chat.branch({ to: entryId(6), summary: true }))._tag, "Stayed")
    yield* chat.branch({ to: entryId(5) })
    assert.deepStrictEqual(yield* chat.branch({ to: entryId(5) }), {
      _tag: "Stayed",
      text: "Now write the docs\nin docs/parser.md."
    })
    assert.lengthOf(events, 1)
  })

  it.effect(
    "to the first message empties the window, and a call without its response is still sent legally",
    Offline.layer,
    function* () {
      const { chat } = yield* talked
      yield* chat.branch({ to: entryId(1) })
      assert.deepStrictEqual(yield* shown(chat), [])
      yield* chat.branch({ to: entryId(2), summary: true })
      yield* chat.append([{ content: user(text("Stop reading.")) }])
      const sent = projectMessages(yield* chat.conversation).map(({ content }) => content)
      assert.isUndefined(illegal(sent))
      assert.lengthOf(sent, 3)
    }
  )

  it.effect("keeps everything that was left recallable and searchable", Offline.layer, function* () {
    const { chat } = yield* talked
    const handles = entries(yield* chat.conversation).map((entry) => entry.handles[0])
    yield* chat.branch({ to: entryId(1) })
    for (const handle of handles) {
      assert.isDefined(handle)
      if (handle !== undefined) assert.isNotEmpty((yield* chat.recall(handle)).text)
    }
    const found = yield* chat.search({ pattern: "docs/parser.md", maxTokens: 2_000, isRedacted: true })
    assert.strictEqual(found.matched, 1)
  })

  it.effect("refuses a message that is not in the session", Offline.layer, function* () {
    const { chat, events } = yield* talked
    for (const change of [chat.branch({ to: entryId(7) }), chat.label(entryId(7), "x")]) {
      assert.strictEqual((yield* Effect.flip(Effect.asVoid(change)))._tag, "UnknownEntry")
    }
    assert.lengthOf(events, 0)
  })
})

describe("the summary of a branch", () => {
  it.effect(
    "pi: one call of at most 2,048 tokens, with the sections of a compaction except its critical context (Pi 0.73)",
    withModel([summary]),
    function* () {
      const { chat, events } = yield* talked
      const outcome = yield* chat.branch({ to: entryId(4), summary: { focus: "the file names" } })
      assert.strictEqual(outcome._tag === "Branched" && outcome.summary?.by, "model")
      const [asked, ...others] = yield* ScriptedModel.Script.use(({ calls }) => calls)
      assert.lengthOf(others, 0)
      assert.strictEqual(asked?.request.generation?.maxOutputTokens, 2_048)
      const prompt = (asked?.request.contents ?? []).map(plainText).join("\n")
      for (const heading of ["Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps"]) {
        assert.include(prompt, `## ${heading}`)
      }
      assert.include(prompt, "The user wants this kept above all: the file names")
      assert.deepStrictEqual(
        events.map((event) => event._tag === "Branched" && event.calls?.map((each) => each.model)),
        [["gemini-2.5-flash"]]
      )
    }
  )

  it.effect(
    "pi: it covers what lies behind the last shared entry, also behind a compaction (Pi 0.73)",
    withModel([summary]),
    function* () {
      const { chat } = yield* talked
      yield* chat.compress({ policy: { ...defaultPolicy, limit: TokenCount.make(200), preserve: 0 } })
      yield* chat.append([{ content: user(text("And the changelog.")) }])
      yield* chat.branch({ to: entryId(4), summary: true })
      const [asked] = yield* ScriptedModel.Script.use(({ calls }) => calls)
      const prompt = (asked?.request.contents ?? []).map(plainText).join("\n")
      assert.include(prompt, "in docs/parser.md")
      assert.include(prompt, "And the changelog.")
      assert.notInclude(prompt, "Fix the parser.\n")
      assert.notInclude(prompt, "src/Parse.ts")
    }
  )

  it.effect(
    "pi: it is the first message of the new branch, in the user's role (Pi 0.73; ours: marked as no words of the user)",
    withModel([summary]),
    function* () {
      const { chat } = yield* talked
      yield* chat.branch({ to: entryId(5), summary: true })
      assert.deepStrictEqual(yield* shown(chat), ["e1", "e2", "e3", "e4", "e7"])
      const [last] = projectMessages(yield* chat.conversation).slice(-1)
      assert.strictEqual(last?.content.role, "user")
      assert.isTrue(last?.content.parts[0]?.text?.startsWith(runtimeMark))
      assert.include(plainText(last?.content ?? user()), "Write docs/parser.md.")
      assert.strictEqual((yield* chat.tree).nodes.get(entryId(7))?.kind, "summary")
    }
  )

  it.effect("pi: no model is asked when nothing is left behind (Pi 0.73)", withModel([]), function* () {
    const { chat, events } = yield* talked
    yield* chat.branch({ to: entryId(2) })
    yield* chat.branch({ to: entryId(6), summary: true })
    assert.deepStrictEqual(
      events.map((event) => event._tag === "Branched" && event.summary),
      [undefined, undefined]
    )
  })

  const failure = new ModelError({ reason: new AuthenticationError({ kind: "MissingKey" }) })
  for (const [how, answer] of [
    ["fails", failure],
    ["answers nothing", " "]
  ] as const) {
    it.effect(
      `pi: a summary that ${how} (Pi 0.73; ours: excerpts chosen by code stand in for it)`,
      withModel([answer]),
      function* () {
        const { chat } = yield* talked
        const outcome = yield* chat.branch({ to: entryId(4), summary: true })
        assert.isTrue(outcome._tag === "Branched" && outcome.summary?.degraded !== null)
        const last = entries(yield* chat.conversation).at(-1)
        assert.include(plainText(last?.content ?? user()), "[e5] user:")
      }
    )
  }

  it.effect("without a model, code chooses excerpts: the same in, the same out", Offline.layer, function* () {
    const texts: Array<string> = []
    for (let time = 0; time < 2; time += 1) {
      const { chat } = yield* talked
      const outcome = yield* chat.branch({ to: entryId(4), summary: true })
      assert.isTrue(outcome._tag === "Branched" && outcome.summary?.by === "extractive")
      texts.push(plainText(entries(yield* chat.conversation).at(-1)?.content ?? user()))
    }
    assert.strictEqual(texts[0], texts[1])
  })

  it.effect(
    "pi: a cancel leaves the conversation where it is (Pi 0.73)",
    withModel([ScriptedModel.hang]),
    function* () {
      const { chat, events } = yield* talked
      const cancel = yield* Deferred.make<void>()
      const { conversation } = yield* chat.session
      const going = yield* Effect.forkChild(
        chat.branch({ to: entryId(4), summary: true, cancel: Deferred.await(cancel) }),
        { startImmediately: true }
      )
      while ((yield* ScriptedModel.Script.use(({ calls }) => calls)).length === 0) yield* Effect.yieldNow
      assert.strictEqual((yield* Effect.flip(chat.undo))._tag, "ChatBusy")
      yield* Deferred.succeed(cancel, undefined)
      assert.strictEqual((yield* Fiber.join(going))._tag, "Cancelled")
      assert.strictEqual((yield* chat.session).conversation, conversation)
      assert.lengthOf(events, 0)
      assert.strictEqual(yield* ScriptedModel.Script.use(({ interrupted }) => interrupted), 1)
    }
  )
})

it.effect("a label is one line, can be replaced, and is taken away by a blank one", Offline.layer, function* () {
  const { chat } = yield* talked
  const now = Effect.map(chat.tree, ({ nodes }) => nodes.get(entryId(2))?.label)
  yield* chat.label(entryId(2), "before\nthe rewrite")
  assert.strictEqual(yield* now, "before the rewrite")
  yield* chat.label(entryId(2), "start")
  assert.strictEqual(yield* now, "start")
  yield* chat.label(entryId(2), "  ")
  assert.isUndefined(yield* now)
})
