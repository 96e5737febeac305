import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Layer } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import { begin as beginAgent, type ParentAgent } from "../../../src/services/agent/LocalAgentStart.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
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

/** Starts the agent. Returns it, and what its own agents would inherit. */
const started = Effect.fnUntraced(function* (parent: ParentAgent, context?: "fork") {
  const { definition } = known
  if (definition.kind !== "local") return assert.fail(definition.kind)
  const nested: Array<ParentAgent> = []
  const offer = (inherited: ParentAgent) => {
    nested.push(inherited)
    return []
  }
  const made = yield* beginAgent(known, definition, parent, offer, { ...task, context })
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
  }
)

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
