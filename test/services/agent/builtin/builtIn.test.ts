import { Effect, Result } from "effect"
import { globSync, readFileSync } from "node:fs"
import path from "node:path"
import { fillTemplate } from "../../../../src/domain/agent/AgentDefinition.ts"
import { HookEvent } from "../../../../src/domain/hooks/Hook.ts"
import { browserAgent } from "../../../../src/services/agent/builtin/BrowserAgent.ts"
import { cliHelp, getInternalDocs } from "../../../../src/services/agent/builtin/CliHelp.ts"
import { codebaseInvestigator } from "../../../../src/services/agent/builtin/CodebaseInvestigator.ts"
import { generalist } from "../../../../src/services/agent/builtin/Generalist.ts"
import { manual } from "../../../../src/services/agent/builtin/Manual.ts"
import * as Subagents from "../../../../src/services/agent/Subagents.ts"
import { Browser } from "../../../../src/services/tools/Browser.ts"
import { root } from "../../../support/paths.ts"
import { begin } from "../../../support/sending.ts"
import { runtime } from "../../../support/subagents.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const sources = (pattern: string) =>
  globSync(pattern, { cwd: root }).map((file) => readFileSync(path.join(root, file), "utf8"))

const unavailable = Browser.of({ open: () => Effect.die("nobody opens it") })
const builtIn = [codebaseInvestigator, generalist, cliHelp, browserAgent(unavailable, () => Effect.succeed([]))]

describe("built-in agents", () => {
  for (const { definition } of builtIn) {
    it(`${definition.name} uses only the inputs that it declares`, () => {
      assert.strictEqual(definition.kind, "local")
      if (definition.kind !== "local") return
      const inputs = Object.fromEntries(Object.keys(definition.inputs).map((key) => [key, "x"]))
      assert.isTrue(Result.isSuccess(fillTemplate(definition.prompt, inputs)))
      const query = fillTemplate(definition.query ?? "", inputs)
      assert.isTrue(Result.isSuccess(query) && query.success.includes("x"))
    })
  }

  it("have these limits", () =>
    assert.deepStrictEqual(
      builtIn.map(({ definition: one }) =>
        one.kind === "local" ? [one.name, one.maxTurns, one.timeoutMinutes, one.temperature, one.topP] : [one.name]
      ),
      [
        ["codebase_investigator", 50, 10, 0.1, 0.95],
        ["generalist", 20, 10, 1, 0.95],
        ["cli_help", 10, 3, 0.1, 0.95],
        ["browser_agent", 50, 10, 1, 0.95]
      ]
    ))

  it("codebase_investigator has only existing tools that read", () => {
    const { definition } = codebaseInvestigator
    const named = definition.kind === "local" ? (definition.tools ?? []) : []
    const tools = sources("src/services/tools/builtin/*.ts").join("\n")
    assert.isAbove(named.length, 3)
    for (const name of named) {
      const [, declared = ""] = tools.split(`name: "${name}"`)
      assert.match(declared, /^[^]*?kind: "read"/, name)
      assert.notMatch(declared.slice(0, declared.indexOf("run:")), /kind: "(?:edit|execute|fetch)"/, name)
    }
  })

  it.effect("the browser is offered only when enabled", runtime([]), function* () {
    const { chat } = yield* begin()
    const options = { agents: builtIn, tools: [], settings: chat.settings }
    const names = ({ tools }: Subagents.Subagents) => tools.map(({ name }) => name)
    assert.deepStrictEqual(names(yield* Subagents.make(options)), ["codebase_investigator", "generalist", "cli_help"])
    const all = yield* Subagents.make({ ...options, include: ["browser_agent"] })
    assert.include(names(all), "browser_agent")
  })
})

const context = {
  id: "1",
  agent: "cli_help",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => work
}
const docs = (args: unknown) =>
  Effect.flatMap(getInternalDocs.call(args, context), ({ run }) => Effect.map(run, ({ value }) => String(value)))

describe("the manual tool", () => {
  it.effect("reads a topic, and lists the topics without one or for an unknown one", function* () {
    assert.include(yield* docs({}), "agents: built-in ones")
    assert.include(yield* docs({ topic: "agents" }), "palimpsest agents run NAME PROMPT")
    for (const topic of ["nothing", "toString"]) {
      assert.match((yield* Effect.flip(docs({ topic }))).message, /^there is no topic \w+; there are: overview, /)
    }
  })

  const pages = Object.values(manual)
    .map(({ text }) => text)
    .join("\n")
  const cli = sources("src/cli/**/*.ts").join("\n")

  it("names every event of hooks and every built-in agent on their pages", () => {
    for (const event of Object.keys(HookEvent.cases)) assert.include(manual["hooks"]?.text, event)
    for (const { definition } of builtIn) assert.include(manual["agents"]?.text, definition.name)
  })

  it("names existing commands", () => {
    const commands = new Set([...pages.matchAll(/palimpsest ([a-z]+)/g)].map(([, name = ""]) => name))
    const named = [...commands].filter((name) => !["on", "is", "in", "or"].includes(name))
    assert.isAbove(named.length, 8)
    for (const name of named) assert.include(cli, `"${name}"`, name)
  })

  it("names existing flags", () => {
    const flags = new Set([...pages.matchAll(/--([a-z][a-z-]*)/g)].map(([, name = ""]) => name))
    assert.isAbove(flags.size, 15)
    for (const flag of flags) {
      if (flag === "help") continue
      assert.match(cli, new RegExp(`"${flag}"|\\b${flag}: (?:Input|Flag)`), flag)
    }
  })
})
