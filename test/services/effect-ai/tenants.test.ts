import { Effect, identity, Layer, Schema, type Scope } from "effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { type Handle, mentions } from "../../../src/domain/content/Handle.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as CompressedLanguageModel from "../../../src/services/effect-ai/CompressedLanguageModel.ts"
import { ConversationKey, withConversation } from "../../../src/services/effect-ai/ConversationKey.ts"
import { messageText } from "../../../src/services/effect-ai/PromptNames.ts"
import { Recall } from "../../../src/services/effect-ai/RecallTool.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { thousand } from "../../support/generate.ts"
import { answers, says } from "../../support/prompts.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Conversations with a key: stored, scoped, and the same after a restart. */

type Messages = ReadonlyArray<Prompt.Message>

const system = Prompt.systemMessage({ content: "Be brief." })
/** What a tenant says in a turn. Every other line is the same for all tenants. */
const page = (tenant: string, turn: number): string =>
  Array.from({ length: 12 }, (_, line) =>
    line % 2 === 0 ? `everybody ${turn}.${line} is red` : `${tenant} ${turn}.${line} src/module${turn}.ts`
  ).join("\n")

/** A handle that a request showed, and the text it had then. */
interface Shown {
  readonly tenant: string
  readonly handle: Handle
  readonly text: string
}

/** A language model that was started. */
interface Started {
  /** Without a tenant, the conversation has no key. */
  readonly ask: (tenant: string | undefined, content: Messages) => Effect.Effect<Messages, AiError.AiError>
  readonly recall: (tenant: string, handle: Handle) => ReturnType<Recall["Service"]["recall"]>
  readonly search: (tenant: string, pattern: string) => ReturnType<Recall["Service"]["search"]>
}

/** Language models over one store, started one after the other. Each handle that a request shows is recalled in that request. */
const world = Effect.fnUntraced(function* (options: CompressedLanguageModel.Options = {}) {
  const stores = yield* Layer.build(Layer.fresh(Offline.layer))
  const shown = new Map<string, Shown>()
  const problems: Array<string> = []
  let sent: Messages = []
  const started: Effect.Effect<Started, never, Scope.Scope> = Effect.gen(function* () {
    let recall: Recall["Service"]["recall"] = () => Effect.die("no layer yet")
    const generateText = ({ prompt }: LanguageModel.ProviderOptions) =>
      Effect.gen(function* () {
        sent = prompt.content
        const tenant = (yield* ConversationKey) ?? ""
        const snapshot = sent.filter((message) => JSON.stringify(message).includes("[palimpsest"))
        for (const handle of new Set(mentions(JSON.stringify(snapshot)))) {
          const found = yield* Effect.result(recall(handle))
          if (found._tag === "Failure") problems.push(`${handle} is dead for ${tenant}: ${found.failure.message}`)
          else shown.set(`${tenant} ${handle}`, { tenant, handle, text: found.success.text })
        }
        return [{ type: "text" as const, text: "ok" }]
      })
    const inner = Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({ generateText, streamText: () => Effect.die("unused") as never })
    )
    const context = yield* CompressedLanguageModel.layer({ window: 2_000, reserve: 200, ...options }).pipe(
      Layer.provide(inner),
      Layer.provide(Layer.succeedContext(stores)),
      Layer.fresh,
      Layer.build
    )
    const run = Effect.provideContext(context)
    recall = (yield* run(Recall)).recall
    return {
      ask: (tenant: string | undefined, content: Messages) =>
        run(LanguageModel.generateText({ prompt: Prompt.fromMessages(content) })).pipe(
          tenant === undefined ? identity : withConversation(tenant),
          Effect.map(() => sent)
        ),
      recall: (tenant: string, handle: Handle) => run(recall(handle)).pipe(withConversation(tenant)),
      search: (tenant: string, pattern: string) =>
        run(Recall.use((service) => service.search({ pattern, maxTokens: 1_000, isRedacted: false }))).pipe(
          withConversation(tenant)
        )
    }
  })
  return { started, shown, problems, stores }
})

/** Checks every handle that was shown: its tenant's text for its tenant, and for another tenant no text but its own. */
const violations = Effect.fnUntraced(function* (
  { recall }: Started,
  shown: Iterable<Shown>,
  tenants: ReadonlyArray<string>
) {
  const found: Array<string> = []
  for (const { handle, tenant, text } of shown) {
    const own = yield* Effect.result(recall(tenant, handle))
    if (own._tag === "Failure") found.push(`${handle} is dead for ${tenant}: ${own.failure.message}`)
    else if (own.success.text !== text) found.push(`${handle} has another text for ${tenant}`)
    const other = tenants[(tenants.indexOf(tenant) + 1) % tenants.length] ?? ""
    const foreign = yield* Effect.result(recall(other, handle))
    if (foreign._tag === "Success" && foreign.success.text.includes(tenant))
      found.push(`${handle} answers for ${other}`)
  }
  return found
})

const grown = (history: Messages, tenant: string, turn: number): Messages => [
  ...(history.length === 0 ? [system] : [...history, answers(`${tenant} answer ${turn}`)]),
  says(page(tenant, turn))
]

describe("conversations with a key", () => {
  it.effect(
    "show handles that answer for their tenant only, also after a restart and without the history",
    function* () {
      const { problems, shown, started } = yield* world()
      const first = yield* started
      const tenants = Array.from({ length: runsOf(30, 3) }, (_, n) => `tenant/${n}`)
      const histories = new Map<string, Messages>()
      for (let turn = 0; turn < 10; turn += 1) {
        for (const tenant of tenants) {
          const history = grown(histories.get(tenant) ?? [], tenant, turn)
          histories.set(tenant, history)
          yield* first.ask(tenant, history)
        }
      }
      assert.deepStrictEqual(problems, [])
      assert.isAtLeast(shown.size, tenants.length * 3)
      assert.deepStrictEqual(yield* violations(first, shown.values(), tenants), [])
      const second = yield* started
      assert.deepStrictEqual(yield* violations(second, shown.values(), tenants), [])
      const [tenant = ""] = tenants
      assert.include((yield* second.search(tenant, "module0")).text, `${tenant} 0.`)
      assert.notInclude((yield* second.search(tenant, "module0")).text, `${tenants[1]} 0.`)
    }
  )

  it.effect("are seen by no other tenant, with a key and without, however many they are", function* () {
    const { problems, started } = yield* world({ window: 1_200 })
    const { ask } = yield* started
    const histories = new Map<string, Messages>()
    const tenants = Array.from({ length: runsOf(60, 10) }, (_, n) => `tenant/${n}.`)
    let compressed = 0
    for (let turn = 0; turn < 6; turn += 1) {
      for (const [n, tenant] of tenants.entries()) {
        const history = grown(histories.get(tenant) ?? [], tenant, turn)
        histories.set(tenant, history)
        const sent = yield* ask(n % 2 === 0 ? tenant : undefined, history)
        compressed += JSON.stringify(sent).includes("[palimpsest") ? 1 : 0
        const named = new Set(JSON.stringify(sent).match(/tenant\/\d+\./g))
        assert.deepStrictEqual([...named], [tenant])
      }
    }
    assert.isAtLeast(compressed, tenants.length)
    assert.deepStrictEqual(problems, [])
  })

  it.effect(
    "continue after a restart with the bytes that were sent before, from a history that was read anew",
    function* () {
      const { started } = yield* world()
      const first = yield* started
      let history: Messages = []
      let before: Messages = []
      for (let turn = 0; turn < 10; turn += 1) {
        history = grown(history, "a", turn)
        before = yield* first.ask("a", history)
      }
      assert.isBelow(before.length, history.length)
      const second = yield* started
      const read = yield* Schema.decodeEffect(Schema.fromJsonString(Prompt.Prompt))(
        JSON.stringify({ content: history })
      )
      const after = yield* second.ask("a", read.content)
      assert.deepStrictEqual(after.map(messageText), before.map(messageText))
    }
  )

  it.effect("are two for two tenants who say the same", function* () {
    const { problems, shown, started, stores } = yield* world()
    const model = yield* started
    let history: Messages = []
    for (let turn = 0; turn < 10; turn += 1) {
      history = grown(history, "both", turn)
      const [one, other] = [yield* model.ask("a", history), yield* model.ask("b", history)]
      assert.deepStrictEqual(one.map(messageText), other.map(messageText))
    }
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(new Set([...shown.values()].map(({ tenant }) => tenant)), new Set(["a", "b"]))
    for (const { handle, tenant, text } of shown.values()) {
      assert.strictEqual((yield* model.recall(tenant, handle)).text, text)
    }
    const ids = yield* Effect.provideContext(
      SessionStore.use(({ list }) => list),
      stores
    )
    assert.lengthOf(ids, 2)
  })

  it.effect("continue in a process what another one compressed meanwhile, and each message once", function* () {
    const { problems, shown, started, stores } = yield* world({ window: 1_200 })
    const processes = [yield* started, yield* started]
    let history: Messages = []
    for (let turn = 0; turn < 16; turn += 1) {
      history = grown(history, "a", turn)
      yield* processes[Math.floor(turn / 3) % 2]?.ask("a", history) ?? Effect.void
    }
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(yield* violations(yield* started, shown.values(), ["a", "b"]), [])
    const lines = yield* Effect.gen(function* () {
      const store = yield* SessionStore
      const [id = ""] = yield* store.list
      const { log } = yield* store.open(id)
      return entries((yield* log.whole).conversation).map(({ origin }) => origin?.line)
    }).pipe(Effect.provideContext(stores), Effect.scoped)
    assert.isAbove(lines.length, 10)
    assert.strictEqual(new Set(lines).size, lines.length)
  })

  it.effect("show nothing of another history under the same key, also after a restart", function* () {
    const { started } = yield* world()
    const first = yield* started
    let history: Messages = []
    for (let turn = 0; turn < 10; turn += 1) yield* first.ask("a", (history = grown(history, "a", turn)))
    let other: Messages = []
    for (let turn = 20; turn < 30; turn += 1) other = grown(other, "a", turn)
    const sent = yield* (yield* started).ask("a", other)
    assert.notMatch(JSON.stringify(sent), /a \d\.\d/)
  })

  it.effect("lose no message that stands where a system message stood, also after a restart", function* () {
    const { started } = yield* world()
    const first = yield* started
    let history: Messages = []
    for (let turn = 0; turn < 10; turn += 1) yield* first.ask("a", (history = grown(history, "a", turn)))
    const second = yield* started
    yield* second.ask("a", [says("walnut"), ...history.slice(1)])
    assert.strictEqual((yield* second.search("a", "walnut")).matched, 1)
  })

  it.effect("lose nothing when they are dropped from memory", function* () {
    const { problems, shown, started } = yield* world({ remembered: 1 })
    const model = yield* started
    const histories = new Map<string, Messages>()
    const views = new Map<string, string>()
    const tenants = ["a", "b", "c"]
    for (let turn = 0; turn < 10; turn += 1) {
      for (const tenant of tenants) {
        const history = grown(histories.get(tenant) ?? [], tenant, turn)
        histories.set(tenant, history)
        yield* model.ask(tenant, history)
        // Asked again, it sends the same.
        views.set(tenant, JSON.stringify(yield* model.ask(tenant, history)))
      }
    }
    for (const tenant of tenants) {
      assert.strictEqual(JSON.stringify(yield* model.ask(tenant, histories.get(tenant) ?? [])), views.get(tenant))
    }
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(yield* violations(model, shown.values(), tenants), [])
  })

  it.effect("keep what was shown when the caller changes the beginning of the history", function* () {
    const { shown, started, stores } = yield* world()
    const model = yield* started
    let history: Messages = []
    for (let turn = 0; turn < 14; turn += 1) yield* model.ask("a", (history = grown(history, "a", turn)))
    let other: Messages = [system, says("another beginning")]
    for (let turn = 20; turn < 34; turn += 1) yield* model.ask("a", (other = grown(other, "a", turn)))
    assert.deepStrictEqual(yield* violations(model, shown.values(), ["a", "b"]), [])
    const ids = yield* Effect.provideContext(
      SessionStore.use(({ list }) => list),
      stores
    )
    assert.lengthOf(ids, 2)
    assert.isAbove(shown.size, 6)
    assert.deepStrictEqual(yield* violations(yield* started, shown.values(), ["a", "b"]), [])
  })

  it.effect("take calls at the same time", function* () {
    const { problems, shown, started } = yield* world()
    const model = yield* started
    const tenants = ["a", "b"]
    const histories = tenants.flatMap((tenant) => {
      let history: Messages = []
      return Array.from({ length: 10 }, (_, turn) => ({ tenant, history: (history = grown(history, tenant, turn)) }))
    })
    yield* Effect.forEach(histories, ({ history, tenant }) => model.ask(tenant, history), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(yield* violations(yield* started, shown.values(), tenants), [])
    assert.deepStrictEqual(problems, [])
  })

  const Step = Schema.Struct({
    tenant: Schema.Literals(["a", "b", "c"]),
    what: Schema.Literals(["says", "says", "says", "is read anew", "restarts", "undoes", "asks again"])
  })

  it.effect.prop(
    "are never mixed, in whichever order their calls come",
    [Schema.Array(Step).check(Schema.isMinLength(10), Schema.isMaxLength(40)), Schema.Literals([1, 4, 1_000])],
    ([steps, remembered]) =>
      Effect.gen(function* () {
        const { problems, shown, started } = yield* world({ remembered, window: 1_200 })
        let model = yield* started
        const histories = new Map<string, Messages>()
        for (const [n, { tenant, what }] of steps.entries()) {
          let history = histories.get(tenant) ?? []
          if (what === "restarts") model = yield* started
          if (what === "is read anew") history = history.map((message) => ({ ...message }))
          if (what === "undoes") history = history.slice(0, Math.ceil(history.length / 2))
          if (what !== "asks again" || history.length === 0) history = grown(history, tenant, n)
          histories.set(tenant, history)
          yield* model.ask(tenant, history)
        }
        const found = [...problems, ...(yield* violations(model, shown.values(), ["a", "b", "c"]))]
        return found.length === 0 ? true : yield* Effect.fail(found.slice(0, 3).join("\n"))
      }).pipe(Effect.scoped),
    { arbitrary: { ...thousand("keyed", 40), size: 40 }, timeout: 600_000 }
  )
})
