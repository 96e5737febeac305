import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Path } from "effect"
import type { Activity } from "../../../src/domain/chat/ChatEvent.ts"
import { text, user } from "../../../src/domain/content/Content.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { surroundings } from "../../../src/services/agent/LocalAgentPrompt.ts"
import { begin as beginAgent, type ParentAgent } from "../../../src/services/agent/LocalAgentStart.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { tool } from "../../support/agents.ts"
import { atScales, countingBy } from "../../support/scales.ts"
import { begin, taken } from "../../support/sending.ts"
import { agent, complete, runtime } from "../../support/subagents.ts"
import { assert, it } from "../../support/vitest.ts"

const known = agent("mid", { tools: [] })
const task = {
  prompt: "Look at it.",
  activity: () => Effect.void,
  waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => work
}

const localDefinition = known.definition.kind === "local" ? known.definition : assert.fail("it is local")

/** Starts the agent. Returns it, and what its own agents would inherit. */
const started = Effect.fnUntraced(function* (parent: ParentAgent, context?: "fork") {
  const nested: Array<ParentAgent> = []
  const offer = (inherited: ParentAgent) => {
    nested.push(inherited)
    return []
  }
  const made = yield* beginAgent(known, localDefinition, parent, offer, { ...task, context })
  const [inherited] = nested
  return inherited === undefined ? assert.fail("no agents were offered") : { started: made, inherited }
})

it.effect(
  "an agent's own agents inherit its conversation and session, not those of its parent",
  runtime([complete("done")]),
  function* () {
    const { chat } = yield* begin()
    yield* chat.append([{ content: user(text("The word is palimpsest.")) }])
    const settings = chat.settings
    const parent: ParentAgent = {
      tools: [],
      settings,
      session: "main",
      fork: { chat, session: "main", maxTokens: 900 }
    }
    const first = yield* started(parent, "fork")
    const second = yield* started(first.inherited, "fork")
    for (const { inherited, started: made } of [first, second]) {
      assert.strictEqual(inherited.fork?.chat, made.chat)
      assert.deepStrictEqual([inherited.fork?.session, inherited.session], [made.id, made.id])
      assert.strictEqual(inherited.fork?.maxTokens, 900)
      assert.strictEqual(inherited.settings, made.chat.settings)
    }
    assert.notStrictEqual(first.started.id, second.started.id)
    const alone = yield* started({ tools: [], settings })
    assert.isUndefined(alone.inherited.fork)
    const saved = yield* started({ tools: [], settings, sessions: yield* SessionStore })
    assert.deepStrictEqual([alone.started.isSaved, saved.started.isSaved], [false, true])
  }
)

it.effect("an agent whose servers may not be started says so", runtime([]), function* () {
  const { chat } = yield* begin()
  const failures: Array<string> = []
  const activity = (one: Activity) => Effect.sync(() => void (one._tag === "Failed" && failures.push(one.message)))
  const served = { ...known, definition: { ...localDefinition, mcpServers: { docs: { command: "docs" } } } }
  yield* beginAgent(served, served.definition, { tools: [], settings: chat.settings }, () => [], { ...task, activity })
  assert.match(failures.join(), /^its MCP servers are ignored: [^,]*$/)
})

it.effect("an agent's own tools and those of its servers take the place of its parent's", runtime([]), function* () {
  const { chat } = yield* begin()
  const offered = (whose: string, ...names: ReadonlyArray<string>) =>
    names.map((name) => ({ ...tool(name, "read", Effect.succeed), description: `${name} of ${whose}` }))
  const definition = { ...localDefinition, mcpServers: { docs: { command: "docs" } }, tools: ["a", "b", "c"] }
  const parent: ParentAgent = {
    tools: offered("parent", "a", "b", "c", "d"),
    settings: chat.settings,
    mcp: () => Effect.succeed({ tools: offered("server", "b", "e"), problems: [] })
  }
  const own = { reads: false, open: Effect.succeed(offered("own", "c")) }
  const { tools } = yield* beginAgent({ ...known, definition, own }, definition, parent, () => [], task)
  const shown = tools.map(({ description }) => description).filter((each) => each.includes(" of "))
  assert.deepStrictEqual(shown.slice(0, 4), ["a of parent", "b of server", "c of own", "e of server"])
})

it.effect("an agent sees the day, and two hundred entries of its folder", function* () {
  const shown = (cwd: string | undefined, files: Record<string, string>) =>
    surroundings(cwd, 86_400_000).pipe(Effect.provide(Layer.merge(MemoryFileSystem.layer(files), Path.layer)))
  const many = Array.from({ length: 201 }, (_, at) => [`/work/f${1_000 + at}`, ""])
  const lines = (yield* shown("/work", { ...Object.fromEntries(many), "/work/.git/x": "", "/work/a/b": "" })).split(
    "\n"
  )
  assert.deepStrictEqual(
    [lines.length, lines[0]?.slice(0, 19), lines[2], lines[3], lines.at(-2), lines.at(-1)],
    [203, "Today is 1970-01-02", '"a"/', '"f1000"', '"f1198"', "and 2 more"]
  )
  assert.deepStrictEqual((yield* shown("/none", {})).split("\n").slice(2), ["(nothing)"])
  assert.lengthOf((yield* shown(undefined, {})).split("\n"), 1)
})

it.effect("what an agent may begin with is measured in its model's tokens", () =>
  atScales((scale) =>
    Effect.gen(function* () {
      const { chat } = yield* begin({ window: 100_000 * scale })
      for (let n = 0; n < 3; n += 1) yield* taken(chat.send("the builder keeps the old road open ".repeat(60)))
      const { tokens } = yield* chat.usage
      const copied = (maxTokens: number) =>
        Effect.map(
          started({ tools: [], settings: chat.settings, fork: { chat, session: "main", maxTokens } }, "fork"),
          ({ started: made }) => made.note === undefined
        )
      assert.deepStrictEqual([yield* copied(tokens * 0.9), yield* copied(tokens * 1.1)], [false, true])
      return { tokens: { tokens } }
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(countingBy(scale), NodeServices.layer, Approval.layer({ mode: "all", granted: [] }))
      )
    )
  )
)

it.effect(
  "an agent compresses from its own threshold on, whatever the settings say of its model",
  runtime([]),
  function* () {
    const { chat } = yield* begin({ threshold: 0.5, models: { "gemini-2.5-flash": { threshold: 0.8 } } })
    const parent = { tools: [], settings: chat.settings }
    const thresholdOf = (compressionThreshold?: number) =>
      Effect.gen(function* () {
        const definition = { ...localDefinition, compressionThreshold }
        const made = yield* beginAgent({ ...known, definition }, definition, parent, () => [], task)
        return (yield* made.chat.usage).threshold
      })
    assert.strictEqual(yield* thresholdOf(0.25), 0.25)
    assert.strictEqual(yield* thresholdOf(), (yield* chat.usage).threshold)
  }
)
