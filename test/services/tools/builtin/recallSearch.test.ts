import { Context, Effect, Layer, Stream } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { mentions } from "../../../../src/domain/content/Handle.ts"
import * as Offline from "../../../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../../../src/layers/testing/MemoryCalibrations.ts"
import * as ScriptedLanguageModel from "../../../../src/layers/testing/ScriptedLanguageModel.ts"
import { CompressedChat } from "../../../../src/services/effect-ai/CompressedChat.ts"
import * as CompressedLanguageModel from "../../../../src/services/effect-ai/CompressedLanguageModel.ts"
import { layerRecallToolWith, Recall, recallToolkit } from "../../../../src/services/effect-ai/RecallTool.ts"
import { recall } from "../../../../src/services/tools/builtin/Recall.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { answers, calls, result, results, says } from "../../../support/prompts.ts"
import { begin } from "../../../support/sending.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** The rules of a search without a handle, for each surface on which a model recalls. */

const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
const order = "Tackle the new beads before the lock."
const output = `first\nthe lock of a session\ntoken: ${token}\n`
const filler = (n: number) => `${n}: ${"a page about another matter. ".repeat(40)}`
const late = "And now the heron."

/** Calls the tool. A failure is text, as the model gets it. */
type Ask = (params: { readonly handle?: string; readonly grep?: string }) => Effect.Effect<string>

/** The tool `recall` of a chat whose older messages left the window. */
const chatTool = (redactSecrets: boolean) =>
  Effect.gen(function* () {
    const { chat } = yield* begin({ policy: { summarizer: "extractive", redactSecrets } })
    yield* chat.append([
      { content: user(text(order)) },
      { content: model(call("read", { path: "src/lock.ts" }, "c")) },
      { content: user(response("read", { output }, "c")) },
      { content: model(text("I have read the lock.")) },
      ...Array.from({ length: 12 }, (_, n) => [
        { content: user(text(filler(n))) },
        { content: model(text("ok")) }
      ]).flat()
    ])
    for (let n = 0; n < 3; n += 1) {
      yield* chat.compress()
      yield* chat.append([{ content: user(text(filler(n + 20))) }, { content: model(text("ok")) }])
    }
    yield* chat.append([{ content: user(text(late)) }])
    const tool = recall(chat)
    const ask: Ask = (params) =>
      Effect.flatMap(Effect.orDie(failureOf(tool, params)), (failed) =>
        failed === undefined
          ? Effect.orDie(Effect.map(callTool(tool, params), ({ result: { value } }) => String(value)))
          : Effect.succeed(failed)
      )
    return ask
  }).pipe(Effect.provide(Layer.fresh(Offline.layer)))

const messages: ReadonlyArray<Prompt.Message> = [
  says(order),
  calls("c"),
  results(result("c", output)),
  answers("I have read the lock."),
  ...Array.from({ length: 30 }, (_, n) => [says(filler(n)), answers("ok")]).flat(),
  answers("Well."),
  says(late)
]

const toolOver = (redactSecrets: boolean) =>
  Effect.gen(function* () {
    const service = Context.get(yield* Effect.context<Recall>(), Recall)
    const toolkit = yield* recallToolkit.pipe(
      Effect.provide(Layer.provide(layerRecallToolWith({ redactSecrets }), Layer.succeed(Recall, service)))
    )
    const ask: Ask = (params) =>
      Effect.orDie(
        toolkit.handle("recall", params).pipe(
          Stream.unwrap,
          Stream.runCollect,
          Effect.map((all) => String(all.at(-1)?.result))
        )
      )
    return ask
  })

const offline = Layer.mergeAll(
  ScriptedLanguageModel.layer(() => "ok"),
  Offline.layer,
  MemoryCalibrations.layer
)
const small = { window: 4_000, reserve: 500 }

const languageModelTool = (redactSecrets: boolean) =>
  Effect.gen(function* () {
    yield* LanguageModel.generateText({ prompt: Prompt.fromMessages(messages) })
    return yield* toolOver(redactSecrets)
  }).pipe(Effect.provide(Layer.fresh(CompressedLanguageModel.layer(small).pipe(Layer.provide(offline)))))

const compressedChatTool = (redactSecrets: boolean) =>
  Effect.gen(function* () {
    const chat = yield* CompressedChat
    yield* chat.generateText({ prompt: "Go on." })
    return yield* toolOver(redactSecrets)
  }).pipe(
    Effect.provide(
      Layer.fresh(
        CompressedChat.layer({ session: "s", ...small, prompt: Prompt.fromMessages(messages) }).pipe(
          Layer.provideMerge(offline)
        )
      )
    )
  )

describe.each([
  ["the tool of a chat", chatTool],
  ["the tool over a language model", languageModelTool],
  ["the tool over a chat of effect/ai", compressedChatTool]
] as const)("%s, without a handle", (_, make) => {
  it.effect("finds what left the window, words of the user first, with handles that recall it", function* () {
    const ask = yield* make(true)
    const found = yield* ask({ grep: "the lock|new beads" })
    const [first = "", ...rest] = mentions(found)
    assert.match(found, /^h_\w+ {2}\S[^\n]*user\n {2}1: Tackle the new beads before the lock\./)
    assert.match(found, /output of read\n {2}1- first\n {2}2: the lock of a session/)
    assert.isAtLeast(rest.length, 2)
    assert.strictEqual(yield* ask({ handle: first }), order)
  })

  it.effect("finds nothing that is still shown", function* () {
    const ask = yield* make(true)
    assert.match(yield* ask({ grep: "heron" }), /^No match in the \d+ parts that left the window\.$/)
  })

  it.effect("leaves secrets out unless the policy shows them", function* () {
    const redacted = yield* make(true)
    const found = yield* redacted({ grep: "^token:" })
    assert.notInclude(found, token)
    assert.match(found, /\[redacted: [^]*\(secrets [^)]*\)$/)
    assert.match(yield* redacted({ grep: token.slice(0, 12) }), /^No match/)
    const exact = yield* make(false)
    assert.include(yield* exact({ grep: "^token:" }), token)
  })

  it.effect("treats an invalid pattern as text, and refuses a blank or missing one", function* () {
    const ask = yield* make(true)
    assert.match(yield* ask({ grep: "beads (" }), /^\(Searched as plain text: /)
    assert.match(yield* ask({ grep: "(?=a)b" }), /look-ahead/)
    assert.match(yield* ask({ grep: " " }), /blank/)
    assert.match(yield* ask({}), /handle, or grep/)
  })
})
