import { Context, Effect, Layer, Logger, type Scope, Schema, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { handleOf } from "../../../src/domain/content/Handle.ts"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { routeOf } from "../../../src/domain/gateway/Route.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import type { ReadAnswer } from "../../../src/domain/wire/RelayedAnswer.ts"
import { SseSplitter } from "../../../src/domain/wire/SseEvents.ts"
import { nextStep, noRounds } from "../../../src/services/gateway/AnswerRounds.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import type {
  AskUpstream,
  GatewayError,
  GatewayOptions,
  GatewayPlan,
  SentView
} from "../../../src/services/gateway/GatewayPlan.ts"
import * as Sha256 from "../../../src/services/session/Sha256.ts"
import { type Block, codecs, type Json, signatureOf } from "../../support/GatewayDialects.ts"
import { gatewayLayer } from "../../support/GatewayScene.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * The law of the gateway, over generated conversations: between compressions each request extends the one before it byte for byte;
 * one that fits goes out unchanged; whatever left can be read back exactly; the client sees all but our calls.
 */

/** Whole numbers below a bound, from a seed. */
const randomOf = (seed: number) => {
  const random = seededRandom(seed)
  return (below: number): number => Math.floor(random() * below)
}

const words = (random: (below: number) => number, count: number): string =>
  Array.from(
    { length: count },
    () => ["alpha", "src/a.ts", "42", "wörter", '"quoted"', "line\n", "tab\t", "😀", "path/to/b"][random(9)]
  ).join(" ")

const window = 6_000

/** One conversation: what the client has, and what the provider last got of it. */
interface Line {
  history: Array<Json>
  last: ReadonlyArray<string> | undefined
}

/** Moves the client's cache mark to the last message, as Claude Code does. */
const marked = (dialect: Dialect, history: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  dialect !== "anthropic"
    ? history
    : history.map((message, at) =>
        at < history.length - 1
          ? message
          : {
              ...message,
              content: message["content"].map((block: Json, index: number) =>
                index === message["content"].length - 1 ? { ...block, cache_control: { type: "ephemeral" } } : block
              )
            }
      )

const unmarked = (message: string): string => message.replace(/,\s*"cache_control": \{[^}]*\}/g, "")

/** A gateway over what is held, whose preparations end with the test. */
const opened = (options: Partial<GatewayOptions>, held: Map<string, string>) =>
  Effect.map(Layer.build(gatewayLayer({ window, threshold: 0.75, ...options }, held)), Context.get(Gateway))

const writtenGoal = "intent: keep the words of the turns"

/** A model that writes a snapshot. */
const writing =
  (asked: Array<string> = []): AskUpstream =>
  (text) =>
    Effect.sync((): ReadAnswer => {
      asked.push(text)
      const written = `<state_snapshot>\n<overall_goal>\n- ${writtenGoal}\n</overall_goal>\n</state_snapshot>`
      return { calls: [], hasOthers: false, sent: [], visible: [{ kind: "text", text: written }], usage: undefined }
    })

const yields = (times: number): Effect.Effect<void> => Effect.repeat(Effect.yieldNow, { times })

const session = Effect.fnUntraced(function* (
  dialect: Dialect,
  seed: number
): Effect.fn.Return<{ count: number; prepared: number }, GatewayError, Scope.Scope> {
  const random = randomOf(seed)
  const codec = codecs[dialect]
  const held = new Map<string, string>()
  const snapshots = (["code", "model"] as const)[random(2)]
  const open = opened({ snapshots }, held)
  let gateway = yield* open
  const route = routeOf("POST", requestTarget(codec.path(true)) ?? { path: "", query: [] })
  if (route === undefined) return assert.fail("no route")
  let calls = 0
  const spoken: Array<string> = []
  const compressed = { count: 0, prepared: 0, recalls: 0, unchanged: 0 }
  const line: Line = { history: [], last: undefined }

  /** What the model says: it calls what is declared to it, ours among it. */
  const said = (tool: string | undefined): ReadonlyArray<Block> => {
    calls += 1
    const own: Block = {
      kind: "call",
      id: `r${calls}`,
      name: tool ?? "",
      args: { grep: ["alpha", "nothing", "("][random(3)] }
    }
    const other: Block = { kind: "call", id: `c${calls}`, name: "read_file", args: { path: "a" } }
    const text: Block = { kind: "text", text: words(random, 3 + random(8)) }
    const thought: Block = { kind: "thought", text: "hm", signature: signatureOf(`${calls}`) }
    const kind = random(tool === undefined ? 3 : 7)
    const start = random(2) === 0 ? [thought] : []
    return [
      ...start,
      ...(kind === 1
        ? [other]
        : kind < 3
          ? [text]
          : kind === 3
            ? [own]
            : kind === 4
              ? [text, own]
              : kind === 5
                ? [text, own, other]
                : [own, own2(own)])
    ]
  }
  const own2 = (own: Block): Block =>
    own.kind === "call" ? { ...own, id: `${own.id}b`, args: { handle: "h_aaaaaaaaaa" } } : own

  const sentTo = (text: string, isNew: boolean): void => {
    assert.deepStrictEqual(codec.problems(JSON.parse(text)), [])
    const now = codec.messages(text).map(unmarked)
    if (!isNew && line.last !== undefined) {
      assert.deepStrictEqual(now.slice(0, line.last.length), line.last, "a request does not extend the one before")
    }
    line.last = now
  }

  /** Sends the client's history, and returns the calls that the client has to answer. */
  const ask = Effect.fnUntraced(function* () {
    const body = codec.body(marked(dialect, line.history), true, dialect === "anthropic" ? { max_tokens: 512 } : {})
    // With white space, which the gateway would not write.
    const text = JSON.stringify(body, undefined, 1)
    const plan: GatewayPlan = yield* gateway.plan({ owner: "me", route, text })
    yield* gateway.prepare(plan, writing())
    yield* yields(random(3) * 30)
    if (plan._tag === "Unchanged") {
      compressed.unchanged += 1
      sentTo(text, line.last !== undefined && line.last.length > line.history.length)
      return said(undefined)
    }
    if (plan.isNew) compressed.count += 1
    if (plan.by === "model") compressed.prepared += 1
    assert.isAtMost(plan.sent.tokens.total, window, "the request does not fit")
    sentTo(plan.text, plan.isNew)
    const { sent } = plan
    const tool = sent.declaration?.name ?? ""
    const stream = wire[dialect].answers.stream(tool)
    const visible: Array<Block> = []
    let client = ""
    let counts = 0
    let rounds = noRounds
    for (;;) {
      const blocks = rounds.rounds.length > 6 ? [{ kind: "text" as const, text: "Enough." }] : said(tool)
      visible.push(...blocks.filter((block) => block.kind !== "call" || block.name !== tool))
      counts += 11
      const splitter = new SseSplitter()
      for (const event of codec
        .events({ blocks, counts: { input: 11, output: 3 } })
        .flatMap((each) => splitter.push(each))) {
        client += stream.push(event)
      }
      const step = yield* nextStep(gateway, sent, rounds, stream.read())
      compressed.recalls += blocks.filter((block) => block.kind === "call" && block.name === tool).length
      if (step._tag === "End") {
        client += stream.finish(step.ending)
        break
      }
      client += stream.next(step.note)
      rounds = step.rounds
      sentTo(step.text, false)
    }
    assert.notInclude(client, "palimpsest_recall")
    const answer = codec.readEvents(client)
    const shown = (list: ReadonlyArray<Block>) =>
      list.map((block) => (block.kind === "call" ? block : { ...block, signature: "" }))
    const isJoined = dialect === "chat" || dialect === "gemini"
    if (isJoined) {
      const textOf = (list: ReadonlyArray<Block>) =>
        list.map((block) => (block.kind === "text" ? block.text : "")).join("")
      assert.strictEqual(textOf(answer.blocks), textOf(visible))
    } else {
      const plain = (list: ReadonlyArray<Block>) =>
        shown(list).map((block) =>
          "text" in block && dialect === "responses" && block.kind === "thought" ? { ...block, text: "" } : block
        )
      assert.deepStrictEqual(plain(answer.blocks), plain(visible))
    }
    assert.strictEqual(answer.counts.input, counts)
    yield* everythingAnswers(sent)
    return answer.blocks
  })

  /** Whatever the request does not show is read back exactly. */
  const everythingAnswers = Effect.fnUntraced(function* (sent: SentView) {
    const whole = sent.messages.join("\n")
    const history = JSON.stringify(line.history)
    const gone = spoken.filter((text) => {
      const written = JSON.stringify(text).slice(1, -1)
      return history.includes(written) && !whole.includes(written)
    })
    const text = gone[random(Math.max(1, gone.length))]
    if (text === undefined) return
    const handle = handleOf(Sha256.hashSync(text))
    const [recalled] = yield* gateway.recall(sent, [{ id: "x", name: "", args: { handle }, json: "" }], 100_000)
    assert.strictEqual(recalled?.text, text)
  })

  for (let turn = 0; turn < 22; turn += 1) {
    const event = random(12)
    if (event === 0 && line.history.length > 8) {
      // The client goes back: another line, of which nothing was sent yet.
      const users = line.history.flatMap((message, at) => (JSON.stringify(message).includes("Turn ") ? [at] : []))
      line.history = line.history.slice(0, users[random(users.length)])
      line.last = undefined
    }
    if (event === 1) gateway = yield* open
    const text = `Turn ${turn}: ${words(random, 60 + random(180))}`
    spoken.push(text)
    line.history.push(...codec.user(text))
    for (let asked = 0; asked < 4; asked += 1) {
      const blocks = yield* ask()
      line.history.push(...codec.assistant(blocks))
      const own = blocks.flatMap((block) => (block.kind === "call" ? [block] : []))
      if (own.length === 0) break
      const results = own.map(({ id, name }) => ({
        id,
        name,
        text: `Result ${id}: ${words(random, 40 + random(150))}`
      }))
      spoken.push(...results.map((result) => result.text))
      line.history.push(...codec.results(results))
    }
    const last = JSON.stringify(line.history.at(-1))
    // A turn that was broken off: the client says nothing more of it.
    if (/tool_result|functionResponse|function_call_output|"tool"/.test(last)) {
      line.history.push(...codec.assistant([{ kind: "text", text: "Stopped." }]))
    }
  }
  return compressed
})

describe.each(dialects)("conversations in the dialect %s", (dialect) => {
  it.effect.prop(
    "extend what the provider saw, fit, and lose nothing",
    [Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))],
    ([seed]) => Effect.asVoid(session(dialect, seed)),
    { arbitrary: { runs: runsOf(24, 1) } }
  )
})

/** What is planned for growing conversations of one dialect. */
const sceneOf = (dialect: Dialect) => {
  const codec = codecs[dialect]
  const route = routeOf("POST", requestTarget(codec.path(true)) ?? { path: "", query: [] })

  /** So many messages of the user, each with its answer, and a last one. */
  const turns = (count: number): ReadonlyArray<Json> => [
    ...Array.from({ length: count }, (_, at) => [
      ...codec.user(`Turn ${at} tells of part ${at * 17}: ${"words that fill the window ".repeat(20)}`),
      ...codec.assistant([{ kind: "text", text: `Noted ${at}.` }])
    ]).flat(),
    ...codec.user("Go on.")
  ]
  const more = dialect === "anthropic" ? { max_tokens: 512 } : {}
  const planOf = (gateway: Gateway["Service"], messages: ReadonlyArray<Json>, owner = "me") =>
    route === undefined
      ? Effect.die("no route")
      : gateway.plan({ owner, route, text: JSON.stringify(codec.body(messages, true, more)) })
  const planned = (gateway: Gateway["Service"], count: number) => planOf(gateway, turns(count))

  /** The number of turns from which a request is compressed, and the last one before it. */
  const threshold = Effect.fnUntraced(function* (gateway: Gateway["Service"]) {
    for (let count = 1; ; count += 1) if ((yield* planned(gateway, count))._tag === "Changed") return count
  })

  let found: number | undefined
  /** The threshold of a gateway with default options. */
  const usualThreshold = Effect.gen(function* () {
    return (found ??= yield* threshold(yield* opened({}, new Map())))
  })

  const prepared = Effect.fnUntraced(function* (options: Partial<GatewayOptions>, ask: AskUpstream, isQuick = false) {
    const due = yield* usualThreshold
    const gateway = yield* opened(options, new Map())
    const near = yield* planned(gateway, due - 1)
    yield* gateway.prepare(near, ask)
    if (!isQuick) yield* yields(500)
    const plan = yield* planned(gateway, due)
    assert.deepStrictEqual(codec.problems(JSON.parse(plan._tag === "Changed" ? plan.text : "{}")), [])
    return { near, plan, whole: JSON.stringify(codec.body(turns(due), true, more)) }
  }, Effect.scoped)

  return { codec, more, planned, planOf, prepared, route, threshold, turns, usualThreshold }
}

describe.each(dialects)("the next compression of a conversation in the dialect %s", (dialect) => {
  const { codec, more, planned, prepared, route, turns, usualThreshold } = sceneOf(dialect)

  it.effect("is made for no request that only counts", function* () {
    const gateway = yield* opened({}, new Map())
    const due = yield* usualThreshold
    if (route === undefined) return assert.fail("no route")
    for (const count of [due - 1, due]) {
      const text = JSON.stringify(codec.body(turns(count), true, more))
      const plan = yield* gateway.plan({ owner: "me", route: { ...route, asks: "count" }, text })
      assert.deepStrictEqual([plan._tag, plan.next], ["Unchanged", undefined])
    }
    // What was compressed stays so where it is counted, without another compression and without the tool.
    const made = yield* planned(gateway, due)
    const text = JSON.stringify(codec.body(turns(due + 40), true, more))
    const counted = yield* gateway.plan({ owner: "me", route: { ...route, asks: "count" }, text })
    if (made._tag !== "Changed" || counted._tag !== "Changed") return assert.fail("it is not compressed")
    assert.strictEqual(counted.sent.view, made.sent.view)
    assert.deepStrictEqual([counted.isNew, counted.next, counted.sent.declaration], [false, undefined, undefined])
  })

  it.effect("is made by code while the client works", function* () {
    const { near, plan } = yield* prepared({}, () => Effect.die("a model is asked"))
    assert.strictEqual(near._tag, "Unchanged")
    if (plan._tag !== "Changed") return assert.fail("it is not compressed")
    assert.deepInclude(plan, { isNew: true, by: "code" })
    assert.isUndefined(plan.next)
    assert.isBelow(plan.sent.view.messages, near.next?.body.messages.length ?? 0)
  })

  it.effect("is written by the client's model, which is asked with the client's own request", function* () {
    const asked: Array<string> = []
    const { near, plan } = yield* prepared({ snapshots: "model" }, writing(asked))
    if (plan._tag !== "Changed") return assert.fail("it is not compressed")
    assert.strictEqual(plan.by, "model")
    assert.include(plan.text, writtenGoal)
    assert.lengthOf(asked, 1)
    const [question = ""] = asked
    const seen = near.next?.body.messages ?? []
    assert.deepStrictEqual(codec.messages(question).slice(-seen.length - 1, -1), seen)
    assert.deepStrictEqual(codec.problems(JSON.parse(question)), [])
  })
})

describe("the next compression of a conversation", () => {
  const { codec, planned, planOf, prepared, route, threshold, turns, usualThreshold } = sceneOf("chat")

  it.effect("is written by code where the model has not answered, failed or wrote something else", function* () {
    const talking: AskUpstream = (text) =>
      Effect.map(writing()(text), (answer) =>
        answer === undefined ? answer : { ...answer, visible: [{ kind: "text", text: "I go on." }] }
      )
    let ended = 0
    const hanging = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (ended += 1)))
    const asks: ReadonlyArray<AskUpstream> = [() => hanging, () => Effect.undefined, talking]
    for (const ask of asks) {
      for (const isQuick of [true, false]) {
        const { plan } = yield* prepared({ snapshots: "model" }, ask, isQuick)
        assert.deepInclude(plan, { _tag: "Changed", isNew: true, by: "code" })
      }
    }
    assert.strictEqual(ended, 1)
    // So does another line of the conversation: its preparation takes the place of the first.
    const gateway = yield* opened({ snapshots: "model" }, new Map())
    const history = turns((yield* usualThreshold) - 1)
    const other = history.map((message, at) =>
      at < 2 ? message : JSON.parse(JSON.stringify(message).replace("words that", "other words"))
    )
    for (const line of [history, other]) {
      yield* gateway.prepare(yield* planOf(gateway, line), () => hanging)
      yield* yields(500)
    }
    assert.strictEqual(ended, 2)
  })

  it.effect("is tried again once the conversation has grown by a tenth where nothing could leave", function* () {
    let tried = 0
    const tracer = Tracer.make({
      span: (options) => {
        if (options.name === "ViewMaking.makeView") tried += 1
        return new Tracer.NativeSpan(options)
      }
    })
    // All of it waits for an answer.
    const question = codec.user("What of the part of it that the window still holds? ".repeat(4))
    const asked = (count: number) => Array.from({ length: count }, () => question).flat()
    /** The requests for which a compression was tried, below `end`. */
    const tries = Effect.fnUntraced(function* (end: number, ask?: AskUpstream) {
      const gateway = yield* opened({}, new Map())
      const found: Array<{ readonly count: number; readonly tokens: number }> = []
      for (let count = 20, tokens = 0; tokens < end; count += 1) {
        const before = tried
        const plan = yield* planOf(gateway, asked(count))
        if (ask !== undefined) yield* Effect.andThen(gateway.prepare(plan, ask), yields(100))
        tokens = plan._tag === "Unchanged" && plan.tokens !== undefined ? plan.tokens.total : end
        if (tried > before && tokens < end) found.push({ count, tokens })
      }
      return found
    })
    const grows = (all: Effect.Success<ReturnType<typeof tries>>) => {
      assert.isAbove(all.length, 1)
      for (const [at, { tokens }] of all.slice(1).entries())
        assert.approximately(tokens / (all[at]?.tokens ?? 0), 1.115, 0.016)
      return all[0] ?? { count: 0, tokens: 0 }
    }
    yield* Effect.gen(function* () {
      const due = grows(yield* tries(window))
      const near = grows(yield* tries(due.tokens, () => Effect.undefined))
      assert.approximately(near.tokens / due.tokens, 0.82, 0.03)
      // One that has not ended yet goes on, although the conversation has grown meanwhile.
      const gateway = yield* opened({}, new Map())
      const counts = [near.count, Math.ceil(near.count * 1.14)]
      const plans = yield* Effect.forEach(counts, (count) => planOf(gateway, asked(count)))
      const before = tried
      for (const plan of plans) yield* gateway.prepare(plan, () => Effect.undefined)
      yield* yields(200)
      assert.deepStrictEqual([plans.every(({ next }) => next !== undefined), tried - before], [true, 1])
    }).pipe(Effect.scoped, Effect.withTracer(tracer))
  })

  it.effect(
    "that another gateway stored is found within five seconds, and one that cannot be read is made anew",
    function* () {
      const held = new Map<string, string>()
      const due = yield* usualThreshold
      const all = yield* Effect.forEach([1, 2, 3], () => opened({}, held))
      for (const gateway of all) assert.strictEqual((yield* planned(gateway, due - 1))._tag, "Unchanged")
      const isNew = (plan: GatewayPlan) => plan._tag === "Changed" && plan.isNew
      const asked = (at: number) => Effect.flatMap(Effect.fromNullishOr(all[at]), (gateway) => planned(gateway, due))
      assert.isTrue(isNew(yield* asked(0)))
      yield* TestClock.adjust("4999 millis")
      assert.isTrue(isNew(yield* asked(1)))
      yield* TestClock.adjust("1 millis")
      const found = yield* asked(2)
      assert.deepStrictEqual([found._tag, isNew(found)], ["Changed", false])
      // Nor is one used that stands for as many messages as its name does not.
      for (const [key, text] of held)
        held.set(
          key,
          text.replace(/"messages":(\d+)/, (_, n) => `"messages":${Number(n) - 2}`)
        )
      assert.isTrue(isNew(yield* planned(yield* opened({}, held), due)))
      for (const key of held.keys()) held.set(key, "{")
      assert.isTrue(isNew(yield* planned(yield* opened({}, held), due)))
    }
  )

  it.effect("continues after a restart with what it would have sent", function* () {
    /** The requests up to the third compression. */
    const sent = Effect.fnUntraced(function* (isRestarted: boolean) {
      const held = new Map<string, string>()
      let gateway = yield* opened({}, held)
      const texts: Array<string> = []
      for (let count = 10, made = 0; made < 3; count += 1) {
        const plan = yield* planned(gateway, count)
        if (plan._tag !== "Changed") continue
        texts.push(plan.text)
        if (plan.isNew) made += 1
        if (plan.isNew && isRestarted) gateway = yield* opened({}, held)
      }
      const views = [...held].flatMap(([key, text]) => (key.includes("/view/") ? [JSON.parse(text)] : []))
      assert.deepStrictEqual(
        views.map(({ parent }) => parent),
        [null, ...views.map(({ name }) => name)].slice(0, 3)
      )
      // What left is stored once, and whole.
      const originals = [...held].flatMap(([key, text]) => (key.includes("/original/") ? JSON.parse(text) : []))
      assert.deepStrictEqual(originals, turns(100).slice(0, views.at(-1)?.messages))
      // Each view knows the handles of all that it stands for, so that another conversation finds them.
      assert.deepStrictEqual(
        views.flatMap(({ handles }) => handles),
        originals.map(({ content }) => handleOf(Sha256.hashSync(content)))
      )
      return texts
    })
    assert.deepStrictEqual(yield* sent(true), yield* sent(false))
  })

  it.effect("is its owner's alone, and is not prepared again at once", function* () {
    const gateway = yield* opened({ snapshots: "model" }, new Map())
    const due = yield* usualThreshold
    yield* gateway.prepare(yield* planned(gateway, due - 1), writing())
    yield* yields(500)
    const [theirs, mine] = [yield* planOf(gateway, turns(due), "another"), yield* planned(gateway, due)]
    assert.deepInclude(theirs, { _tag: "Changed", by: "code" })
    assert.deepInclude(mine, { _tag: "Changed", by: "model" })
    assert.isUndefined((yield* planned(gateway, due + 1)).next)
  })

  it.effect("counts the tool that is declared", function* () {
    const due = yield* usualThreshold
    const after = (options: Partial<GatewayOptions>) =>
      Effect.flatMap(opened(options, new Map()), (gateway) =>
        Effect.map(planned(gateway, due + 4), (plan) => {
          if (plan._tag !== "Changed") return assert.fail("it is not compressed")
          const { declaration } = plan.sent
          return {
            after: plan.sent.tokens.total,
            declared: declaration === undefined ? 0 : estimateText(declaration.inDialect)
          }
        })
      )
    const [counted, bare] = [yield* after({}), yield* after({ recall: false })]
    assert.approximately(counted.after - bare.after, counted.declared, 40)
    assert.isAbove(counted.declared, 80)
    // It has a name that no tool of the client has, and the client need not have tools.
    const [first, ...others] = turns(due)
    const nameBeside = Effect.fnUntraced(function* (name: string | undefined) {
      const tools = name === undefined ? undefined : [{ type: "function", function: { name, parameters: {} } }]
      const body = { ...codec.body([{ ...first, name: "palimpsest_recall" }, ...others], true), tools }
      if (route === undefined) return assert.fail("no route")
      const gateway = yield* opened({}, new Map())
      const plan = yield* gateway.plan({ owner: "me", route, text: JSON.stringify(body) })
      return plan._tag === "Changed" ? plan.sent.declaration?.name : "not compressed"
    })
    assert.deepStrictEqual(yield* Effect.forEach([undefined, "read_file", "palimpsest_recall"], nameBeside), [
      "palimpsest_recall",
      "palimpsest_recall",
      "palimpsest_recall_2"
    ])
  })

  it.effect("goes without a recall once its answer was made again without one", function* () {
    const held = new Map<string, string>()
    const gateway = yield* opened({}, held)
    const due = yield* threshold(gateway)
    const made = yield* planned(gateway, due)
    if (made._tag !== "Changed") return assert.fail("it is not compressed")
    const hidden = [
      ...codec.assistant([{ kind: "call", id: "r1", name: made.sent.declaration?.name ?? "", args: {} }]),
      ...codec.results([{ id: "r1", name: "", text: "recalled" }])
    ].map((message) => JSON.stringify(message))
    const answer = codec.assistant([{ kind: "text", text: "It is 12." }])
    for (const [at, rounds] of [[], [{ sent: hidden, visible: [] }], []].entries()) {
      yield* gateway.remember(made.sent, { rounds })
      // Most answers have no hidden part, and none is stored for them.
      assert.lengthOf(
        [...held.keys()].filter((key) => key.includes("/hidden/")),
        Math.min(at, 1)
      )
      const next = yield* planOf(gateway, [...turns(due), ...answer, ...codec.user("And now?")])
      assert.strictEqual(next._tag === "Changed" && next.text.includes("recalled"), rounds.length > 0)
    }
  })

  it.effect("lets calls share the room that is left", function* () {
    const gateway = yield* opened({}, new Map())
    const made = yield* planned(gateway, yield* threshold(gateway))
    if (made._tag !== "Changed") return assert.fail("it is not compressed")
    const args = { handle: made.sent.view.dropped }
    const sizes = Effect.fnUntraced(function* (room: number, count: number) {
      const calls = Array.from({ length: count }, (_, at) => ({ id: `${at}`, name: "", args, json: "" }))
      const answers = yield* gateway.recall(made.sent, calls, room)
      return answers.map(({ text }) => estimateText(text))
    })
    // The whole range has some 3,000 tokens. A note says what is left out.
    for (const [room, count, share] of [
      [1_000, 1, 1_000],
      [1_000, 2, 500],
      [-1_000, 2, 200]
    ] as const) {
      for (const size of yield* sizes(room, count))
        assert.isTrue(size > share * 0.6 && size < share + 40, `${size} of ${share}`)
    }
    const [failed] = yield* gateway.recall(made.sent, [{ id: "x", name: "", args: "none", json: "" }], 1_000)
    assert.match(failed?.text ?? "", /^give a handle/)
  })

  it.effect("is asked of a model until it has written nothing usable twice in a row", function* () {
    const warnings: Array<string> = []
    const logged = Logger.layer([Logger.make(({ message }) => void warnings.push(String(message)))])
    let asked = 0
    let plan: GatewayPlan | undefined
    const by: Array<string> = []
    const asks: Array<readonly [asked: ReadonlyArray<string>, sent: ReadonlyArray<string>]> = []
    const ask: AskUpstream = (text) => {
      // After a compression too, the question follows what the provider has in its cache.
      if (plan?._tag === "Changed") asks.push([codec.messages(text).slice(0, -1), codec.messages(plan.text)])
      return (asked += 1) === 2 ? writing()(text) : Effect.undefined
    }
    yield* Effect.gen(function* () {
      const gateway = yield* opened({ snapshots: "model" }, new Map())
      for (let count = 1; by.length < 6; count += 1) {
        plan = yield* planned(gateway, count)
        if (plan._tag === "Changed" && plan.isNew) by.push(plan.by)
        yield* gateway.prepare(plan, ask)
        yield* yields(200)
      }
    }).pipe(Effect.scoped, Effect.provide(logged))
    assert.strictEqual(by.join(" "), "code model code code code code")
    assert.deepStrictEqual([asked, warnings.length], [4, 1])
    assert.isAtLeast(asks.length, 2)
    for (const [question, sent] of asks) assert.deepStrictEqual(question, sent)
  })
})
