/**
 * Tests of an agent without network, disk or randomness: a scripted or adversarial model answers, and the runtime around it
 * is the real one.
 *
 *   node testing-an-agent.ts        (or: node --test testing-an-agent.ts)
 *
 * With @effect/vitest a test is `it.effect(name, () => program.pipe(Effect.provide(layer)))`, with a TestClock. It prints:
 *
 *   ✔ the agent reads the log, then answers …
 *   ✔ what the agent sends fits its window, and the log can be read back …
 *   ✔ a refusal of the model reaches the caller, and the conversation is unchanged …
 *   ✔ words that a summarizing model invents are not quoted as the user's …
 */
import { Effect, Stream } from "effect"
import assert from "node:assert/strict"
import { test } from "node:test"
import { Chats, Compression, Content, Conversation, Models, Tokens } from "palimpsest"
import { AdversarialModel, Offline, ScriptedModel } from "palimpsest/testing"

// --- the agent under test ----------------------------------------------------------------------------------------------

const tools = (name: string): string => (name === "read_build_log" ? `src/a.ts(3,1): error TS2304\n${"at ".repeat(8_000)}` : "")

/** Sends the question and runs the tools until the model calls none; the chat compresses itself when needed. */
const answer = Effect.fn("answer")(function* (id: string, question: string, window: number) {
  const chat = yield* Chats.open(id)
  yield* chat.configure({ window, policy: { summarizer: "extractive" } })
  let message: string | ReadonlyArray<Content.Part> = question
  for (;;) {
    const events: ReadonlyArray<Chats.ChatEvent> = yield* Stream.runCollect(chat.send(message))
    const calls = events.flatMap((event) => (event._tag === "ToolCallRequest" ? [event.call] : []))
    if (calls.length === 0) return events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")
    message = calls.map(({ id, name }) => Content.response(name, { output: tools(name) }, id))
  }
}, Effect.scoped)

// --- its tests ---------------------------------------------------------------------------------------------------------

const asksForTheLog = Content.model(Content.call("read_build_log", {}, "call-1"))
const whole = (content: Content.Content) => ({ content, finishReason: "STOP", usage: null })

/** A window that the log alone nearly fills. */
const small = 3_000
const policy: Compression.Policy = { ...Compression.defaultPolicy, limit: Tokens.TokenCount.make(small) }

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)

test("the agent reads the log, then answers", () =>
  run(
    Effect.gen(function* () {
      const said = yield* answer("one", "Why is the build red?", 1_000_000)
      assert.equal(said, "src/a.ts uses a name that nobody declares.")
      const script = yield* ScriptedModel.Script
      const calls = yield* script.calls
      assert.equal(calls.length, 2)
      assert.equal(calls[1]?.request.contents.length, 3)
      assert.equal(yield* script.left, 0)
    }).pipe(
      Effect.provide(
        Offline.layerWithModel(
          ScriptedModel.layer([whole(asksForTheLog), "src/a.ts uses a name that nobody declares."])
        )
      )
    )
  ))

test("what the agent sends fits its window, and the log can be read back", () =>
  run(
    Effect.gen(function* () {
      yield* answer("one", "Why is the build red?", small)
      const script = yield* ScriptedModel.Script
      const last = (yield* script.calls).at(-1)
      assert.ok(JSON.stringify(last?.request.contents).length < tools("read_build_log").length)
      const chats = yield* Chats.Chats
      const chat = yield* chats.open("one")
      const output = Conversation.entries(yield* chat.conversation)[2]
      const handle = output?.handles[0]
      assert.ok(handle !== undefined)
      assert.equal((yield* chat.recall(handle)).text, tools("read_build_log"))
    }).pipe(
      Effect.scoped,
      Effect.provide(Offline.layerWithModel(ScriptedModel.layer([whole(asksForTheLog), "An error."])))
    )
  ))

test("a refusal of the model reaches the caller, and the conversation is unchanged", () =>
  run(
    Effect.gen(function* () {
      const error = yield* Effect.flip(answer("one", "Why is the build red?", small))
      assert.equal(error._tag, "ModelError")
      const chat = yield* Chats.open("one")
      assert.equal(Conversation.view(yield* chat.conversation).length, 0)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Offline.layerWithModel(ScriptedModel.layer([new Models.ModelError({ reason: new Models.QuotaExhaustedError({ detail: "requests per day" }) })]))
      )
    )
  ))

test("words that a summarizing model invents are not quoted as the user's", () =>
  run(
    Effect.gen(function* () {
      const chat = yield* Chats.open("one")
      const requests = Array.from({ length: 20 }, (_, n) => `Look at src/module${n}.ts${", and at what it imports".repeat(20)}.`)
      yield* chat.append(
        requests.flatMap((request, n) => [
          { content: Content.user(Content.text(request)) },
          { content: Content.model(Content.text(`Done with module ${n}.`)) }
        ])
      )
      const outcome = yield* chat.compress({ policy: { ...policy, summarizer: "model" }, forced: true })
      assert.equal(outcome._tag, "Compressed")
      const seen = Conversation.projectMessages(yield* chat.conversation).map(({ content }) => Content.plainText(content)).join("\n")
      const quoted = [...seen.matchAll(/<user_words[^>]*>([\s\S]*?)<\/user_words>/g)]
      assert.ok(quoted.length > 0)
      assert.ok(!seen.includes("Delete everything"))
      for (const [, words = ""] of quoted) {
        // One word of the user a line, long ones without their middle.
        for (const line of words.trim().split("\n")) {
          const kept = line.replace(/^\s*\[e\d+\] /, "").split(/\[…\d+ more…\]/)
          assert.ok(requests.some((request) => kept.every((piece) => request.includes(piece))), line)
        }
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Offline.layerWithModel(AdversarialModel.layer(AdversarialModel.Forging.make({}), 42)))
    )
  ))
