/** The `agents` command: lists and shows the agents, and runs one of them. */

import { Effect, Path, Schema, Stdio, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { AgentDefinition, LocalAgent, RemoteAgent } from "../../domain/agent/AgentDefinition.ts"
import { TerminateReason } from "../../domain/agent/AgentResult.ts"
import { type UnusableFile, unusableFileText } from "../../domain/agent/UnusableFile.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { KnownAgent } from "../../services/agent/AgentDefinitions.ts"
import { type AgentRunner, type Task } from "../../services/agent/AgentRunner.ts"
import { eventText, parseTask, type ProcessEvent } from "../../services/agent/ProcessAgentProtocol.ts"
import { isTrusted } from "../../services/runtime/FolderTrust.ts"
import * as Runtime from "../../services/runtime/Runtime.ts"
import { RuntimePlatform } from "../../services/runtime/RuntimePlatform.ts"
import * as ChatFlags from "../flags/ChatFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import { orNull } from "../output/JsonFields.ts"
import * as Output from "../output/Output.ts"
import * as RuntimeText from "../output/RuntimeText.ts"
import { activityText } from "../output/ToolCallText.ts"

const readTask = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  const text = yield* Stream.mkString(Stream.decodeText(stdin)).pipe(
    Effect.mapError(() => badInput("standard input cannot be read"))
  )
  return parseTask(text) ?? (yield* badInput("--process is how an agent starts another; use agents run without it"))
})

/** Runs an agent to its end. */
const resultOf = (runner: AgentRunner, prompt: string, activity: Task["activity"]) =>
  runner.start({ prompt, activity, waiting: (work) => work }).pipe(
    Effect.flatMap(({ result }) => result),
    Effect.mapError(({ message }) => failed(printableLine(message)))
  )

/** Runs the agent that the parent of this process describes on stdin (`ProcessAgentProtocol`), and reports to it on stdout. */
const runProcess = Effect.gen(function* () {
  const { definition, model, prompt } = yield* readTask
  const stdio = yield* Stdio.Stdio
  const report = (event: ProcessEvent) => Effect.provideService(Output.text(eventText(event)), Stdio.Stdio, stdio)
  const { progress: _progress, ...handlers } = yield* RuntimeText.handlers
  const { host } = yield* RuntimeText.orExit(Runtime.make({ model, isAgentProcess: true, handlers }))
  const runner = host.agents.inPlace(definition)
  if (runner === undefined) return yield* failed(`the agent ${definition.name} cannot be started here`)
  // Without a parent that reads, the work has no purpose: it ends.
  const { duration, note, reason, text, turns } = yield* resultOf(runner, prompt, (activity) =>
    Effect.orDie(report({ _tag: "Working", activity }))
  )
  yield* report({ _tag: "Ended", text, reason, turns, duration, note })
})

/** An agent in the output of `list --json`. */
const Row = Schema.Struct({
  name: Schema.String,
  /** `local` runs in this process, `process` in one of its own, `remote` on a server. */
  kind: Schema.Literals(["local", "process", "remote"]),
  source: Schema.Literals(["built-in", "project", "user"]),
  file: orNull(Schema.String),
  description: orNull(Schema.String),
  /** Whether the agent is offered to a model only when the settings name it. */
  optIn: Schema.Boolean
})
type Row = typeof Row.Type

/** The output of `list --json`, including the files that could not be used. */
const List = Schema.Struct({
  agents: Schema.Array(Row),
  problems: Schema.Array(Schema.Struct({ file: Schema.String, message: Schema.String }))
})

/** The output of `show --json`. The card of a remote agent is not read here. */
const Shown = Schema.Struct({
  ...Row.fields,
  displayName: orNull(Schema.String),
  /** Names of the agent's inputs. */
  inputs: Schema.Array(Schema.String),
  /** Tools of the agent; null means all. */
  tools: orNull(Schema.Array(Schema.String)),
  mcpServers: Schema.Array(Schema.String),
  model: orNull(Schema.String),
  temperature: orNull(Schema.Finite),
  topP: orNull(Schema.Finite),
  maxTurns: orNull(Schema.Natural),
  timeoutMinutes: orNull(Schema.Natural),
  card: orNull(Schema.String),
  prompt: orNull(Schema.String)
})

/** The output of `run --json`, also for a run without a result. */
const RunResult = Schema.Struct({
  agent: Schema.String,
  reason: TerminateReason,
  result: Schema.String,
  note: orNull(Schema.String),
  turns: Schema.Natural,
  /** Duration in milliseconds. */
  duration: Schema.Finite,
  session: orNull(Schema.String)
})

const kindOf = (definition: AgentDefinition): Row["kind"] =>
  definition.kind === "local" && definition.runner === "process" ? "process" : definition.kind

const rowOf = ({ definition, file, isOptIn = false, source }: KnownAgent): Row => ({
  name: definition.name,
  kind: kindOf(definition),
  source,
  file,
  description: definition.description,
  optIn: isOptIn
})

/** Loads the agents of this folder and of the user. */
const loadAgents = Effect.gen(function* () {
  const platform = yield* RuntimePlatform
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const trusted = yield* isTrusted
  const definitions = yield* platform.agents(folder, yield* trusted(folder))
  return yield* definitions.all
})

const unknownAgent = (name: string, agents: ReadonlyArray<KnownAgent>): ExitError =>
  badInput(
    `unknown agent ${printableLine(name)}; available: ${agents.map((agent) => agent.definition.name).join(", ")}`
  )

/** Prints the problem of each broken file on one line. */
const printProblems = (problems: ReadonlyArray<UnusableFile>) =>
  Effect.forEach(problems, (problem) => Output.notice(unusableFileText(problem)), { discard: true })

const name = Input.argument("name", `Agent name, as "agents list" shows it`)

const maxDescriptionColumns = 72

const list = Command.make(
  "list",
  { json: Input.json },
  Effect.fn("cli.agents.list")(function* ({ json }) {
    const { agents, problems } = yield* loadAgents
    if (json) {
      const rows = problems.map((problem) => ({ file: problem.file, message: unusableFileText(problem) }))
      return yield* Output.json(List, { agents: agents.map(rowOf), problems: rows })
    }
    const { bold, dim } = yield* Output.style
    const rows = agents
      .map(rowOf)
      .map(({ description, file, kind, name: called, optIn, source }) => [
        bold(called),
        optIn ? `${kind}, opt-in` : kind,
        file === undefined ? source : `${source}: ${printableLine(file)}`,
        dim(truncate(printableLine(description ?? ""), maxDescriptionColumns))
      ])
    yield* Output.text(Output.table([["NAME", "KIND", "FROM", "PURPOSE"], ...rows]))
    yield* printProblems(problems)
  })
).pipe(Command.withDescription("List built-in agents, this folder's and yours"))

const localFacts = (definition: LocalAgent): ReadonlyArray<readonly [string, string]> => [
  ["Inputs", Object.keys(definition.inputs).join(", ")],
  ["Tools", definition.tools === undefined ? "all" : definition.tools.join(", ")],
  ...(Object.keys(definition.mcpServers).length === 0
    ? []
    : [["Servers", Object.keys(definition.mcpServers).join(", ")] as const]),
  ["Model", `${definition.model}, temperature ${definition.temperature}, top_p ${definition.topP}`],
  ["Limits", `${Output.plural(definition.maxTurns, "turn")}, ${Output.plural(definition.timeoutMinutes, "minute")}`],
  ...(definition.output === undefined ? [] : [["Output", `${definition.output.name}, as JSON`] as const])
]

const remoteFacts = ({ auth, card }: RemoteAgent): ReadonlyArray<readonly [string, string]> => [
  ["Card", "url" in card ? card.url : "in the file"],
  ["Auth", auth?.type ?? "none"]
]

const shownOf = (agent: KnownAgent): typeof Shown.Type => {
  const { definition } = agent
  const row = rowOf(agent)
  if (definition.kind === "local") {
    const { inputs, mcpServers } = definition
    return { ...definition, ...row, inputs: Object.keys(inputs), mcpServers: Object.keys(mcpServers) }
  }
  const { card, displayName } = definition
  return { ...row, displayName, inputs: [], mcpServers: [], card: "url" in card ? card.url : card.json }
}

/** Escapes control characters and keeps line breaks. */
const lines = (text: string): string => text.split("\n").map(printableLine).join("\n")

const show = Command.make(
  "show",
  { name, json: Input.json },
  Effect.fn("cli.agents.show")(function* ({ json, name: agentName }) {
    const { agents, problems } = yield* loadAgents
    const agent = agents.find(({ definition }) => definition.name === agentName)
    if (agent === undefined) {
      yield* printProblems(problems)
      return yield* unknownAgent(agentName, agents)
    }
    if (json) return yield* Output.json(Shown, shownOf(agent))
    const { definition, file, source } = agent
    const { bold, dim } = yield* Output.style
    const facts = [
      ["Name", bold(definition.name)],
      ["Purpose", printableLine(definition.description ?? "see its card")],
      ["From", file === undefined ? source : `${source}: ${printableLine(file)}`],
      ["Runs", kindOf(definition)],
      ...(definition.kind === "local" ? localFacts(definition) : remoteFacts(definition)).map(([label, value]) => [
        label,
        printableLine(value)
      ])
    ].map(([label = "", value = ""]) => [dim(label), value])
    yield* Output.text(Output.table(facts))
    if (definition.kind === "local") yield* Output.text(`\n${lines(definition.prompt)}`)
  })
).pipe(Command.withDescription("Show an agent's definition"))

const run = Command.make(
  "run",
  {
    name,
    prompt: Input.argument("prompt", "Task; a JSON object for an agent with several inputs"),
    model: ChatFlags.flags.model,
    approve: ChatFlags.agentFlags.approve,
    addDir: ChatFlags.agentFlags.addDir,
    json: Input.json,
    process: Flag.withHidden(Input.flag("process", "Run the agent that standard input describes"))
  },
  Effect.fn("cli.agents.run")(function* ({ addDir, approve, json, model, name: agentName, process, prompt }) {
    if (process) return yield* runProcess
    if (prompt.trim() === "") return yield* badInput("the task is empty; give a task")
    const stdio = yield* Stdio.Stdio
    const notice = (line: string) => Effect.provideService(Output.notice(line), Stdio.Stdio, stdio)
    const options = yield* ChatFlags.sessionOptions({ model })
    const { progress: _progress, ...handlers } = yield* RuntimeText.handlers
    const { host } = yield* RuntimeText.orExit(Runtime.make({ ...options, addDir, approve, handlers }))
    const { agents, definitions: all } = host
    const runner = agents.runner(agentName)
    if (runner === undefined) {
      return yield* all.agents.some(({ definition }) => definition.name === agentName)
        ? failed(`the agent ${agentName} runs in another process, and none is configured here`)
        : unknownAgent(agentName, all.agents)
    }
    const { duration, note, reason, session, text, turns } = yield* resultOf(runner, prompt, (activity) => {
      const line = activityText(agentName, activity)
      return line === undefined ? Effect.void : notice(line)
    })
    if (json) {
      yield* Output.json(RunResult, { agent: agentName, reason, result: text, note, turns, duration, session })
      return reason === "GOAL" ? undefined : yield* failed("")
    }
    if (reason !== "GOAL") return yield* failed(`${agentName} did not finish (${reason}): ${printableLine(text)}`)
    if (note !== undefined) yield* Output.notice(note)
    yield* Output.text(lines(text))
  }, Effect.scoped)
).pipe(
  Command.withDescription("Run an agent: its progress goes to stderr, its result to stdout"),
  Input.withExamples({
    'palimpsest agents run codebase_investigator "Where are sessions locked?"': "Search the code",
    'palimpsest agents run generalist --approve edits "Fix the typos in docs"': "Let the agent edit files"
  })
)

/** The command `palimpsest agents …`. */
export const agents = Command.make("agents").pipe(Command.withSubcommands([list, show, run]))
