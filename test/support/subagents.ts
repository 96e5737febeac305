import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Schema, Stream } from "effect"
import { type AgentOutput, type LocalAgent, localDefaults } from "../../src/domain/agent/AgentDefinition.ts"
import { call, type Content, model, type Part } from "../../src/domain/content/Content.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../src/services/agent/Agent.ts"
import type { KnownAgent } from "../../src/services/agent/AgentDefinitions.ts"
import * as Subagents from "../../src/services/agent/Subagents.ts"
import type { ModelAnswer, ModelRequest } from "../../src/services/model/Model.ts"
import { Approval } from "../../src/services/tools/Approval.ts"
import * as Tool from "../../src/services/tools/Tool.ts"
import { begin, taken } from "./sending.ts"

/** Agents that start others, with a scripted model. */

/** An answer that calls tools. */
export const calls = (...parts: ReadonlyArray<Part>): ModelAnswer => ({
  content: model(...parts),
  finishReason: "STOP",
  usage: null
})

/** Hands in a result. */
export const complete = (result: unknown, name = "result"): ModelAnswer =>
  calls(call("complete_task", { [name]: result }))

/** A small agent. Its requests are recognised by its prompt. */
export const agent = (name: string, of: Partial<LocalAgent> = {}, output?: AgentOutput): KnownAgent => ({
  source: "project",
  file: `${name}.md`,
  definition: {
    ...localDefaults,
    kind: "local",
    name,
    description: `${name} does things.`,
    prompt: `You are ${name}.`,
    output,
    ...of
  }
})

/** The agent of a request, by its instruction; `main` where there is none. */
export const whose = ({ systemInstruction = "" }: ModelRequest): string =>
  /^You are (\w+)\./.exec(systemInstruction)?.[1] ?? "main"

/** Answers each agent from its own list. */
export const each = (
  scripts: Readonly<Record<string, ReadonlyArray<ScriptedModel.Step> | ((request: ModelRequest) => ScriptedModel.Step)>>
): ScriptedModel.Answers => {
  const used = new Map<string, number>()
  return (request) => {
    const who = whose(request)
    const script = scripts[who]
    if (typeof script === "function") return script(request)
    const index = used.get(who) ?? 0
    used.set(who, index + 1)
    return script?.[index] ?? `${who} has nothing more to say`
  }
}

/** A tool that returns its name and arguments. */
export const echo = (name: string, kind: Tool.ToolKind = "read"): Tool.Tool =>
  Tool.make({
    name,
    description: `The tool ${name}.`,
    parameters: Schema.Struct({ word: Schema.optionalKey(Schema.String) }),
    result: Schema.String,
    kind,
    run: ({ word = "" }) => Effect.succeed({ value: `${name} ${word}` })
  })

/** The runtime with that model; all calls are allowed. */
export const runtime = (answers: ScriptedModel.Answers) =>
  Layer.mergeAll(
    Offline.layerWithModel(ScriptedModel.layer(answers)),
    NodeServices.layer,
    Approval.layer({ mode: "all", granted: [] })
  )

/** Sends one message to a parent with these agents and tools; returns its events and its conversation. */
export const told = Effect.fnUntraced(function* (
  agents: ReadonlyArray<KnownAgent>,
  tools: ReadonlyArray<Tool.Tool> = [],
  options: Partial<Subagents.SubagentsOptions> = {}
) {
  const { chat } = yield* begin()
  const offered = yield* Subagents.make({ agents, tools, settings: chat.settings, ...options })
  const approval = yield* Approval
  const { error, events } = yield* taken(
    Agent.run({ name: "main", chat, tools: [...tools, ...offered.tools] }, "Begin with it").pipe(
      Stream.provideService(Approval, approval)
    )
  )
  return { chat, error, events, offered, contents: yield* chat.contents }
})

/** Waits until the model received this many requests, regardless of time spent on the disk. */
export const asked = Effect.fnUntraced(function* (times: number) {
  const { calls: made } = yield* ScriptedModel.Script
  while ((yield* made).length < times) yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
})

/** The text of all results of one tool, with errors marked. */
export const answersOf = (contents: ReadonlyArray<Content>, name: string): ReadonlyArray<string> =>
  contents
    .flatMap(({ parts }) => parts)
    .flatMap(({ functionResponse }) => {
      if (functionResponse?.name !== name) return []
      const { error, output } = Object(functionResponse.response)
      return [error === undefined ? String(output) : `error: ${String(error)}`]
    })

/** All text of a request. */
export const saidIn = ({ contents }: ModelRequest): string =>
  contents
    .flatMap(({ parts }) => parts)
    .map((part) => part.text ?? JSON.stringify(part))
    .join("\n")
