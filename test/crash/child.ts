import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, References, Stream } from "effect"
import { writeSync } from "node:fs"
import { emptySnapshot, statement, renderSnapshot } from "../../src/domain/compression/Snapshot.ts"
import { call, model, type Part, plainText, response, text, user } from "../../src/domain/content/Content.ts"
import { sequenceOf, view } from "../../src/domain/conversation/Conversation.ts"
import * as FileSessionStore from "../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import * as MemoryCalibrations from "../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../src/layers/testing/MemoryTempStore.ts"
import * as ScriptedModel from "../../src/layers/testing/ScriptedModel.ts"
import type { Chat } from "../../src/services/chat/Chat.ts"
import { Chats } from "../../src/services/chat/Chats.ts"
import { ChatDefaults } from "../../src/services/chat/ChatSettings.ts"
import { Compression } from "../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../src/services/compression/summary/ModelSummarizer.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import type { ModelRequest } from "../../src/services/model/Model.ts"
import { type SessionLog, SessionStore } from "../../src/services/session/SessionStore.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import * as FaultyFileSystem from "../support/FaultyFileSystem.ts"
import { chance, type Errand, hashOf, isMessage, type Line, type Operation, seenOf, sessionId } from "./sight.ts"

/**
 * A conversation that goes on until its process is killed, to be run as `child.ts <errand as JSON>`: real files, a model
 * that answers by the message. Says on stdout what it begins and what is done, each line before anything else happens.
 */

const errand: Errand = JSON.parse(process.argv[2] ?? "")
const { death } = errand

const die = () => process.kill(process.pid, "SIGKILL")

let left = death?._tag === "line" ? death.number : 0
const say = (line: Line): void => {
  writeSync(1, `${JSON.stringify(line)}\n`)
  if (death?._tag !== "line" || death.kind !== line._tag) return
  left -= 1
  if (left === 0) die()
}

// --- the model -------------------------------------------------------------------------------------------------------

let calls = 0

/** Large enough to be stored apart from the line. */
const long = (words: string) => `${words}\n`.repeat(Math.ceil(9_000 / (words.length + 1)))

const snapshot = renderSnapshot({ ...emptySnapshot, overall_goal: [statement("goal", "Make the build green.")] })

const answers = ({ contents, systemInstruction }: ModelRequest) => {
  // A conversation has no system instruction here; what asks for a snapshot has.
  if (systemInstruction !== undefined) {
    calls += 1
    say({ _tag: "call" })
    return snapshot
  }
  const last = contents.at(-1)
  const asked = last === undefined ? "" : plainText(last)
  const stop = { finishReason: "STOP", usage: null }
  if (asked.includes("with the tool")) {
    return { ...stop, content: model(text("Looking."), call("read_file", { path: asked.slice(-40) }, "c1")) }
  }
  return asked.includes("at length") ? long(`About that: ${asked.slice(0, 40)}`) : "It is done.\nAll of it."
}

// --- the runtime -----------------------------------------------------------------------------------------------------

/** A log that writes an event when its process has long been killed. */
const hasty = (log: SessionLog): SessionLog => ({
  ...log,
  append: (event) => Effect.asVoid(Effect.forkDetach(Effect.delay(log.append(event), "10 minutes")))
})

const hastyStore = Layer.effect(
  SessionStore,
  SessionStore.use((store) =>
    Effect.succeed({
      ...store,
      create: (started) => Effect.map(store.create(started), hasty),
      open: (id) => Effect.map(store.open(id), (opened) => ({ ...opened, log: hasty(opened.log) }))
    })
  )
)

let isHalf = false
const files = Layer.unwrap(
  Effect.map(
    FaultyFileSystem.make(({ number, write }) => {
      if (death?._tag !== "call" || number < death.number) return "pass"
      if (death.half && !isHalf) {
        isHalf = write !== undefined
        return isHalf ? "half" : "pass"
      }
      die()
      return "pass"
    }),
    ({ layer }) => layer
  )
)

const stores = FileSessionStore.layer(errand.folder).pipe(Layer.provide(FileTempStore.folders), Layer.provide(files))

const runtime = Chats.layer.pipe(
  Layer.provideMerge(Compression.layer),
  Layer.provideMerge(ModelSummarizer.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      TokenCounter.layerEstimate,
      HookSystem.layer,
      MemoryTempStore.layer,
      MemoryCalibrations.layer,
      ScriptedModel.layer(answers),
      errand.isHasty === true ? Layer.provide(hastyStore, stores) : stores
    )
  ),
  Layer.provide(
    Layer.succeed(ChatDefaults, {
      model: "gemini-2.5-flash",
      window: 24_000,
      // Below a third of the window a request is sent without a closer look: less than the threshold is never compressed.
      threshold: 0.3,
      policy: { summarizer: "model" }
    })
  ),
  Layer.provide(NodeServices.layer),
  // What stdout says is acknowledged.
  Layer.provideMerge(Layer.succeed(References.LogToStderr, true))
)

// --- what is done ----------------------------------------------------------------------------------------------------

const roll = chance(errand.seed)
let beat = 0
let next = 0
let doing: Operation = "open"

const begin = (operation: Operation) =>
  Effect.sync(() => {
    doing = operation
    calls = 0
    say({ _tag: "begin", operation })
  })

const acknowledge = Effect.fnUntraced(function* (chat: Chat["Service"], operation: Operation) {
  const session = yield* chat.session
  const { limit, threshold, tokens } = yield* chat.usage
  const entries = view(session.conversation)
    .map(({ entry }) => entry)
    .filter((entry) => isMessage(entry) && sequenceOf(entry.id) >= next)
    .map((entry): [string, string] => [entry.id, hashOf(entry)])
  next = session.conversation.next
  say({
    _tag: "ack",
    operation,
    seen: seenOf(session),
    entries,
    calls,
    isBelow: tokens + 300 < threshold * limit
  })
})

const send = (chat: Chat["Service"], message: string | ReadonlyArray<Part>) => Stream.runDrain(chat.send(message))

const operations: Readonly<
  Record<Exclude<Operation, "open" | "close">, (chat: Chat["Service"]) => Effect.Effect<unknown, { message: string }>>
> = {
  send: (chat) => {
    const wish = ["", " at length", " with the tool", ` ${long("because of src/legacy")}`][roll(4)] ?? ""
    return send(chat, `Step ${errand.seed}-${beat}: make the build green${wish}`)
  },
  respond: (chat) => send(chat, [response("read_file", { output: long(`line ${errand.seed}-${beat}`) }, "c1")]),
  append: (chat) =>
    chat.append([
      { content: user(text(`Noted ${errand.seed}-${beat}.`)) },
      { content: model(text(roll(2) === 0 ? "Well." : long(`Read ${beat}.`))) }
    ]),
  compress: (chat) => chat.compress(),
  undo: (chat) => chat.undo,
  redo: (chat) => chat.redo,
  pin: (chat) => chat.pin(),
  switch: (chat) => chat.configure({ model: roll(2) === 0 ? "gemini-2.5-pro" : "gemini-2.5-flash" })
}

/** One for each share that it has of what happens. */
const shares = ["send", "send", "send", "append", "compress", "compress", "undo", "redo", "pin", "switch"] as const

const act = Effect.fnUntraced(function* (chat: Chat["Service"], operation: keyof typeof operations) {
  beat += 1
  yield* begin(operation)
  yield* operations[operation](chat)
  yield* acknowledge(chat, operation)
})

/** From opening the session to closing it. */
const sitting = Effect.gen(function* () {
  yield* begin("open")
  const chat = yield* Chats.use((chats) => chats.open(sessionId))
  next = (yield* chat.conversation).next
  yield* acknowledge(chat, "open")
  // A short message first: what was compressed already is not compressed again for it.
  yield* begin("send")
  yield* send(chat, "Go on.")
  yield* acknowledge(chat, "send")
  for (let more = 3 + roll(8); more > 0; more -= 1) {
    const last = view(yield* chat.conversation).at(-1)
    const isAsked = last?.entry.content.parts.some((part) => part.functionCall !== undefined) === true
    const isUndone = doing === "undo" && roll(2) === 0
    yield* act(chat, isAsked ? "respond" : isUndone ? "redo" : (shares[roll(shares.length)] ?? "send"))
  }
  yield* begin("close")
}).pipe(Effect.scoped)

const life = sitting.pipe(
  Effect.repeat({ times: 60 }),
  Effect.tapError(({ message }) => Effect.sync(() => say({ _tag: "failed", operation: doing, message }))),
  Effect.provide(runtime)
)

Effect.runPromise(life).then(
  () => process.exit(0),
  (defect) => {
    say({ _tag: "failed", operation: doing, message: String(defect) })
    process.exit(1)
  }
)
