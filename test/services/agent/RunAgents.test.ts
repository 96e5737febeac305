import { Effect, Fiber, Stream } from "effect"
import { openclawAgentDefaults } from "../../../src/domain/compression/strategies/openclaw/OpenClaw.ts"
import { piAgentDefaults } from "../../../src/domain/compression/strategies/pi/Pi.ts"
import { call } from "../../../src/domain/content/Content.ts"
import { hang, Script } from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { AgentBounds } from "../../../src/services/agent/AgentRunner.ts"
import * as Subagents from "../../../src/services/agent/Subagents.ts"
import type { ModelRequest } from "../../../src/services/model/Model.ts"
import { begin } from "../../support/sending.ts"
import {
  agent,
  answersOf,
  asked,
  calls,
  complete,
  each,
  echo,
  runtime,
  saidIn,
  told,
  whose
} from "../../support/subagents.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const limits = piAgentDefaults.subagents

/** Sends one message to a parent that may give several tasks at once. */
const batched = (
  names: ReadonlyArray<string>,
  options: Partial<Subagents.SubagentsOptions> = {},
  tools: ReadonlyArray<ReturnType<typeof echo>> = []
) =>
  Effect.gen(function* () {
    const { chat } = yield* begin()
    const offered = yield* Subagents.make({
      agents: names.map((name) => agent(name, { tools: [] })),
      tools,
      settings: chat.settings,
      batch: limits,
      ...options
    })
    assert.isDefined(offered.batch)
    const all = [...tools, ...offered.tools, ...(offered.batch === undefined ? [] : [offered.batch])]
    const events = yield* Stream.runCollect(Agent.run({ name: "main", chat, tools: all }, "Begin with it"))
    return { events, answers: answersOf(yield* chat.contents, "run_agents") }
  })

const list = (count: number, name = "finder") =>
  Array.from({ length: count }, (_, index) => ({ agent: name, task: `Find ${index + 1}` }))

const runs = (args: object) => [calls(call("run_agents", args)), "Thanks"]

/** The task of a request: the last words that its agent was sent. */
const taskOf = (request: ModelRequest): string => /(?:Find|Check|Write) [^\n]*/.exec(saidIn(request))?.[0] ?? "nothing"

describe("run_agents", () => {
  it.effect(
    "pi: one call gives up to 8 tasks, and the results come in their order (Pi 0.73)",
    runtime(each({ main: runs({ tasks: list(8) }), finder: (request) => complete(`done: ${taskOf(request)}`) })),
    function* () {
      const { answers } = yield* batched(["finder"])
      const [answer = ""] = answers
      assert.match(answer, /^8 of 8 tasks reached their goal\.\n\n1\. The agent finder reached its goal after 1 turn\./)
      assert.deepStrictEqual(
        [...answer.matchAll(/^done: Find (\d)$/gm)].map(([, number]) => number),
        ["1", "2", "3", "4", "5", "6", "7", "8"]
      )
    }
  )

  it.effect(
    "pi: 4 tasks run at once, and cancelling ends all of them (Pi 0.73)",
    runtime(each({ main: runs({ tasks: list(8) }), finder: () => hang })),
    function* () {
      const fiber = yield* batched(["finder"]).pipe(Effect.forkChild)
      yield* asked(5)
      // Nothing else begins while four are at work.
      for (let turn = 0; turn < 50; turn += 1)
        yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
      assert.lengthOf(yield* Script.use((script) => script.calls), 5)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Script.use((script) => script.interrupted), 4)
    }
  )

  it.effect(
    "pi: in a chain {previous} is the answer to the task before (Pi 0.73)",
    runtime(
      each({
        main: runs({
          chain: [
            { agent: "finder", task: "Find it" },
            { agent: "writer", task: "Write about {previous}!" }
          ]
        }),
        finder: [complete("a.ts, not {previous}")],
        writer: [complete("It is written")]
      })
    ),
    function* () {
      const { answers } = yield* batched(["finder", "writer"])
      assert.match(answers[0] ?? "", /^2 of 2 tasks reached their goal\.[^]*\n\nIt is written$/)
      const all = yield* Script.use((script) => script.calls)
      const writer = all.find(({ request }) => whose(request) === "writer")?.request
      assert.strictEqual(writer === undefined ? "" : taskOf(writer), "Write about a.ts, not {previous}!")
    }
  )

  it.effect(
    "pi: a chain stops at the first failure (Pi 0.73)",
    runtime(
      each({
        main: runs({
          chain: [
            { agent: "finder", task: "Find it" },
            { agent: "writer", task: "Write about {previous}!" },
            { agent: "finder", task: "Check {previous}" }
          ]
        }),
        finder: [complete("a.ts")],
        writer: () => "I cannot."
      })
    ),
    function* () {
      const { answers } = yield* batched(["finder", "writer"])
      assert.match(
        answers[0] ?? "",
        /^error: The chain stopped at task 2 of 3\.\n\n1\. The agent finder reached its goal/
      )
      assert.match(answers[0] ?? "", /\n\n2\. The agent writer stopped without saying that it was done/)
      const all = yield* Script.use((script) => script.calls)
      assert.lengthOf(
        all.filter(({ request }) => whose(request) === "finder"),
        1
      )
    }
  )
})

describe("the limits of agents", () => {
  it("openclaw: 5 deep, 5 children, 8 at once, forks up to 100,000 tokens (OpenClaw 2026.9)", () =>
    assert.deepStrictEqual(openclawAgentDefaults.subagents, {
      depth: 5,
      children: 5,
      running: 8,
      prompt: "minimal",
      forkTokens: 100_000
    }))

  const reader = (request: ModelRequest) => (whose(request) === "reader" ? complete("read") : "Thanks")

  it.effect(
    "openclaw: an agent has at most so many children at work, and the refusal is one line (OpenClaw 2026.9)",
    () =>
      Effect.gen(function* () {
        const { answers } = yield* batched(["reader"])
        const [answer = ""] = answers
        assert.match(answer, /^2 of 3 tasks reached their goal\./)
        assert.match(
          answer,
          /\n\d\. reader failed: 2 agents that you started are already running, which is the maximum; wait until one ends, or do this yourself(?:\n|$)/
        )
      }).pipe(
        Effect.provide(runtime(each({ main: runs({ tasks: list(3, "reader") }), reader }))),
        Effect.provideService(AgentBounds, { depth: 1, children: 2, running: 8 })
      )
  )

  it.effect("openclaw: in all at most so many agents are at work, at every depth (OpenClaw 2026.9)", () =>
    Effect.gen(function* () {
      const { contents } = yield* told([
        agent("one", { tools: ["two"] }),
        agent("two", { tools: ["three"] }),
        agent("three", { tools: [] })
      ])
      assert.include(answersOf(contents, "one")[0] ?? "", "2 agents are already running, which is the maximum")
    }).pipe(
      Effect.provide(
        runtime(
          each({
            main: [calls(call("one", { query: "Find it" })), "Thanks"],
            one: (request) => {
              const [answer] = answersOf(request.contents, "two")
              return answer === undefined ? calls(call("two", { query: "Find it" })) : complete(answer)
            },
            two: (request) => {
              const [answer] = answersOf(request.contents, "three")
              return answer === undefined ? calls(call("three", { query: "Find it" })) : complete(answer)
            }
          })
        )
      ),
      Effect.provideService(AgentBounds, { depth: 5, children: 5, running: 2 })
    )
  )

  it.effect("openclaw: agents start agents 5 deep (OpenClaw 2026.9)", () =>
    Effect.gen(function* () {
      const names = ["a1", "a2", "a3", "a4", "a5", "a6"]
      const { contents } = yield* told(
        names.map((name, index) => agent(name, { tools: names.slice(index + 1, index + 2) }))
      )
      assert.include(answersOf(contents, "a1")[0] ?? "", "there is no tool a6")
      const all = yield* Script.use((script) => script.calls)
      assert.isTrue(all.some(({ request }) => whose(request) === "a5"))
      assert.isFalse(all.some(({ request }) => whose(request) === "a6"))
    }).pipe(
      Effect.provide(
        runtime((request) => {
          const who = whose(request)
          const next = who === "main" ? "a1" : `a${Number(who.slice(1)) + 1}`
          const [answer] = answersOf(request.contents, next)
          if (answer === undefined) return calls(call(next, { query: "Find it" }))
          return who === "main" ? "Thanks" : complete(answer)
        })
      ),
      Effect.provideService(AgentBounds, openclawAgentDefaults.subagents)
    )
  )
})

describe("a fork", () => {
  const spawn = (context: string) => runs({ tasks: [{ agent: "finder", task: "Find it", context }] })

  /** A parent whose conversation agents may begin with, up to so many tokens. */
  const forking = (maxTokens: number) =>
    Effect.gen(function* () {
      const { chat } = yield* begin()
      const tools = [echo("look")]
      const offered = yield* Subagents.make({
        agents: [agent("finder", { tools: [] })],
        tools,
        settings: chat.settings,
        batch: limits,
        fork: { chat, session: "main", maxTokens }
      })
      const all = [...tools, ...(offered.batch === undefined ? [] : [offered.batch])]
      yield* Stream.runDrain(Agent.run({ name: "main", chat, tools: all }, "The word is palimpsest"))
      const asks = yield* Script.use((script) => script.calls)
      const finder = asks.find(({ request }) => whose(request) === "finder")?.request
      return { answer: answersOf(yield* chat.contents, "run_agents")[0] ?? "", finder }
    })

  it.effect(
    "openclaw: the child begins with what its parent sees (OpenClaw 2026.9; ours: without calls that have no response)",
    runtime(each({ main: [calls(call("look", { word: "here" })), ...spawn("fork")], finder: [complete("done")] })),
    function* () {
      const { answer, finder } = yield* forking(openclawAgentDefaults.subagents.forkTokens)
      assert.isDefined(finder)
      assert.include(saidIn(finder), "The word is palimpsest")
      assert.include(saidIn(finder), "look here")
      assert.include(saidIn(finder), "Find it")
      assert.notInclude(saidIn(finder), '"name":"run_agents"')
      assert.notInclude(answer, "task alone")
    }
  )

  it.effect(
    "openclaw: above 100,000 tokens it begins isolated, with a note in the result (OpenClaw 2026.9)",
    runtime(each({ main: spawn("fork"), finder: [complete("done")] })),
    function* () {
      const { answer, finder } = yield* forking(5)
      assert.isDefined(finder)
      assert.notInclude(saidIn(finder), "The word is palimpsest")
      assert.match(
        answer,
        /It began with its task alone: the conversation has about \d+ tokens, and at most 5 are copied\./
      )
    }
  )

  it.effect(
    "openclaw: isolated is the default (OpenClaw 2026.9)",
    runtime(each({ main: runs({ tasks: list(1) }), finder: [complete("done")] })),
    function* () {
      const { finder } = yield* forking(openclawAgentDefaults.subagents.forkTokens)
      assert.isDefined(finder)
      assert.notInclude(saidIn(finder), "The word is palimpsest")
    }
  )
})
