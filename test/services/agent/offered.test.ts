import { Effect, Logger, Schema } from "effect"
import { call, text } from "../../../src/domain/content/Content.ts"
import { Script } from "../../../src/layers/testing/ScriptedModel.ts"
import type { KnownAgent } from "../../../src/services/agent/AgentDefinitions.ts"
import type { ExternalRunner } from "../../../src/services/agent/AgentRunner.ts"
import type * as Tool from "../../../src/services/tools/Tool.ts"
import { brief } from "../../support/brief.ts"
import { callTool } from "../../support/callTool.ts"
import { agent, answersOf, calls, complete, each, echo, runtime, told, whose } from "../../support/subagents.ts"
import { describe, expect, it } from "../../support/vitest.ts"

/** What a parent offers of its agents, and a run with all of them, whole. */

const [look, change, mcp] = [
  { ...echo("look"), aliases: ["grep_it"] },
  echo("change", "edit"),
  echo("mcp_docs_find", "fetch")
]
const long = "a".repeat(70)
const agents: ReadonlyArray<KnownAgent> = [
  agent("reader", { tools: ["look"], model: "gemini-2.5-pro", temperature: 0.5, topP: 0.9, maxTurns: 3 }),
  agent("writer", { tools: ["look", "change", "reader"], maxTurns: 2 }),
  agent("server", { tools: ["mcp_*", "complete_task", "recall"], mcpServers: { docs: { command: "docs" } } }),
  agent("1st", { description: "x".repeat(80) }),
  agent("process", { runner: "process", tools: ["look", "reader"] }),
  { ...agent("opted"), isOptIn: true },
  { ...agent("hidden"), isOptIn: true },
  agent("plans", { tools: ["look", "process"] }),
  agent("counter", { tools: [] }, { name: "report", description: "x", schema: Schema.Struct({ count: Schema.Int }) }),
  agent("twice", { tools: [] }),
  agent("empty", { tools: [] }),
  agent("odd", { prompt: "You are odd. ${HOME} and ${query}" }),
  agent("far", { runner: "process" }),
  agent(`${long}x`),
  {
    source: "project",
    file: "remote.md",
    definition: {
      kind: "remote",
      name: "remote",
      displayName: undefined,
      description: undefined,
      auth: undefined,
      card: { url: "https://a.example/b" }
    }
  },
  // These have a name that is taken.
  agent("palimpsest"),
  agent("look"),
  agent("grep_it"),
  agent("reader"),
  agent("recall"),
  agent(long)
]

const elsewhere = (started: Array<string>): ExternalRunner => ({
  start: (task, share) =>
    Effect.sync(() => {
      started.push(brief({ prompt: task.prompt, context: task.context, ...share, tools: share.tools.join() }))
      return {
        id: "remote",
        result: Effect.succeed({ text: "from afar", reason: "GOAL", turns: 1, duration: 5, session: undefined }),
        send: () => Effect.succeed("reply")
      }
    })
})

const query = (name: string, words: string) => call(name, { query: words })
const task = (name: string, words: string, more: object = {}) => ({ agent: name, task: words, ...more })

describe("the agents of a parent", () => {
  it.effect(
    "are offered and work like this: see `test/golden/agents.txt`, and take a new one with `vitest -u`",
    runtime(
      each({
        main: [
          calls(query("reader", "read"), query("writer", "write"), query("server", "serve")),
          calls(query("agent_1st", "first"), query("process", "afar"), query("opted", "opt")),
          calls(...["counter", "twice", "empty", "odd", "far", "plans", "remote"].map((name) => query(name, "do"))),
          "Thanks"
        ],
        reader: (request) =>
          JSON.stringify(request.contents).includes("look read")
            ? complete("read it")
            : calls(text("I look."), call("look", { word: "read" })),
        writer: [
          calls(query("reader", "inner"), call("change", { word: "w" })),
          calls(call("look", {})),
          "I cannot",
          "No"
        ],
        server: [calls(call("mcp_docs_own", { word: "s" }), call("change", {})), complete("served")],
        opted: ["half a result", complete("late")],
        plans: [calls(query("process", "on")), complete("planned")],
        counter: [complete({ count: "three" }, "report"), complete({ count: 3 }, "report")],
        twice: [calls(call("complete_task", { result: "first" }), call("complete_task", { result: "second" }))],
        empty: () => ({ content: { role: "model", parts: [] }, finishReason: "SAFETY", usage: null })
      })
    ),
    function* () {
      const ids = new Map<string, string>()
      const masked = (line: string) =>
        line
          .replace(/[\da-f]{8}-[\da-f-]{27}/g, (id) => ids.get(id) ?? `id_${ids.set(id, `id_${ids.size + 1}`).size}`)
          .replace(/h_[a-z2-7]{10}/g, "h_")
          // Ids are counted, too.
          .replace(/(TurnEnded",tokens:)\d+/g, "$1N")
      const started: Array<string> = []
      const warnings: Array<unknown> = []
      const logger = Logger.layer([Logger.make(({ message }) => void warnings.push(message))])
      const { contents, events, offered } = yield* told(agents, [look, change, mcp], {
        include: ["opted"],
        batch: { tasks: 4, parallel: 2 },
        elsewhere: () => elsewhere(started),
        memory: Effect.succeed("Remember the memory."),
        rules: (model, names) => Effect.succeed(`Rules for ${model}: ${names.join()}`),
        mcp: (servers) =>
          Effect.succeed({
            tools: [echo(`mcp_${Object.keys(servers).join()}_own`, "fetch")],
            problems: ["The MCP server docs offers 3 tools; 2 are ignored, beyond 1 or described at too great a length"]
          })
      }).pipe(Effect.provide(logger))
      const lines = ["# offered"]
      const all: ReadonlyArray<Tool.Tool> = [...offered.tools, ...(offered.batch === undefined ? [] : [offered.batch])]
      for (const { description, kind, name, parameters } of all) {
        lines.push(`${name} ${kind} ${description.length} ${brief(parameters)}`)
      }
      const named = ["1st", "agent_1st", "look", long, long.slice(6), `${long}x`]
      lines.push(named.map((name) => offered.runner(name) !== undefined).join())
      if (offered.batch !== undefined) {
        const { batch } = offered
        const lists = [
          { tasks: [task("reader", "one\nmore"), task("reader", "two"), task("none", "three")] },
          {
            chain: [
              task("reader", "four"),
              task("process", "after {previous}"),
              task("writer", "{previous}?"),
              task("reader", "never")
            ]
          },
          { tasks: [task("process", "five", { context: "fork" })] },
          { tasks: [task("writer", "six")] },
          { tasks: [task("reader", "in"), task("remote", "out"), task("remote", "out too")] },
          { tasks: Array.from({ length: 5 }, () => task("reader", "more")) },
          { tasks: [task("reader", "one")], chain: [task("reader", "two")] },
          {}
        ]
        for (const list of lists) {
          lines.push(`# ${batch.name} ${brief(list)}`)
          const ended = yield* Effect.result(
            callTool(batch, list, (question) => Effect.sync(() => void lines.push(brief(question))))
          )
          lines.push(
            ...(ended._tag === "Failure"
              ? [ended.failure.message]
              : [brief(ended.success.title), String(ended.success.result.value)])
          )
        }
      }
      lines.push("# events")
      for (const event of events) {
        if (!["ModelInfo", "ToolCallRequest", "Finished"].includes(event._tag)) lines.push(brief(event))
      }
      lines.push("# warnings", ...warnings.map(brief), "# outside", ...started, "# answers")
      for (const name of ["writer", "opted", "agent_1st", "counter", "twice", "empty", "odd", "plans"])
        lines.push(...answersOf(contents, name))
      lines.push("# requests")
      const { calls: made } = yield* Script
      for (const { request } of yield* made) {
        const { contents: sent, generation, model, systemInstruction = "", tools = [] } = request
        const names = JSON.stringify(tools).match(/(?<="name":")\w+/g) ?? []
        const said = sent.map(
          ({ parts, role }) =>
            `${role}(${parts.map((part) => brief(part.text ?? part.functionCall?.name ?? part.functionResponse?.response)).join()})`
        )
        lines.push(
          `${whose(request)} ${model} ${brief(generation)} ${systemInstruction.split("\n\n").slice(1).map(brief).join()} [${names.join()}] ${said.join(" ")}`
        )
      }
      lines.push("# conversation", ...contents.map(brief))
      yield* Effect.promise(() =>
        expect(`${masked(lines.join("\n"))}\n`).toMatchFileSnapshot("../../golden/agents.txt")
      )
    }
  )
})
