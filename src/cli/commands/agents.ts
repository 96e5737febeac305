import { Effect, Path, Schema, Stdio } from "effect"
import { Argument, Command } from "effect/cli"
import type { AgentDefinition, LocalAgent, RemoteAgent } from "../../domain/AgentDefinition.ts"
import { printable } from "../../domain/Inspection.ts"
import type { KnownAgent } from "../../services/AgentDefinitions.ts"
import { TerminateReason } from "../../services/AgentRunner.ts"
import { Approval } from "../../services/Approval.ts"
import * as AgentTools from "../AgentTools.ts"
import { Ground } from "../Worker.ts"
import { activityText } from "../chat/CallText.ts"
import { cut } from "../Columns.ts"
import { badInput, type ExitError, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as OpenChat from "../OpenChat.ts"
import * as Output from "../Output.ts"
import { isTrusted } from "../Trusting.ts"

/** What `list --json` prints of an agent. */
const Row = Schema.Struct({
  name: Schema.String,
  /** `local`, in this process or in one of its own, or `remote`. */
  kind: Schema.Literals(["local", "process", "remote"]),
  source: Schema.Literals(["built-in", "project", "user"]),
  file: Schema.NullOr(Schema.String),
  description: Schema.NullOr(Schema.String),
  /** It is offered to a model only where the settings name it. */
  optIn: Schema.Boolean
})
type Row = typeof Row.Type

/** What `list --json` prints: also the files that could not be used. */
const List = Schema.Struct({
  agents: Schema.Array(Row),
  problems: Schema.Array(Schema.Struct({ file: Schema.String, message: Schema.String }))
})

/** What `show --json` prints. Of a remote agent what its card says is not known here. */
const Shown = Schema.Struct({
  ...Row.fields,
  displayName: Schema.NullOr(Schema.String),
  /** What it is called with. */
  inputs: Schema.Array(Schema.String),
  /** Null: all. */
  tools: Schema.NullOr(Schema.Array(Schema.String)),
  mcpServers: Schema.Array(Schema.String),
  model: Schema.NullOr(Schema.String),
  temperature: Schema.NullOr(Schema.Finite),
  topP: Schema.NullOr(Schema.Finite),
  maxTurns: Schema.NullOr(Schema.Natural),
  timeoutMinutes: Schema.NullOr(Schema.Natural),
  card: Schema.NullOr(Schema.String),
  prompt: Schema.NullOr(Schema.String)
})

/** What `run --json` prints, also where it came to no result. */
const Ended = Schema.Struct({
  agent: Schema.String,
  reason: TerminateReason,
  result: Schema.String,
  note: Schema.NullOr(Schema.String),
  turns: Schema.Natural,
  /** Milliseconds. */
  duration: Schema.Finite,
  session: Schema.NullOr(Schema.String)
})

const kindOf = (definition: AgentDefinition): Row["kind"] =>
  definition.kind === "local" && definition.runner === "process" ? "process" : definition.kind

const rowOf = ({ definition, file, isOptIn = false, source }: KnownAgent): Row => ({
  name: definition.name,
  kind: kindOf(definition),
  source,
  file: file ?? null,
  description: definition.description ?? null,
  optIn: isOptIn
})

/** All agents of this folder and this person. */
const known = Effect.gen(function* () {
  const ground = yield* Ground
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const trusted = yield* isTrusted
  const definitions = yield* ground.agents(folder, yield* trusted(folder))
  return yield* definitions.all
})

const unknownAgent = (name: string, agents: ReadonlyArray<KnownAgent>): ExitError =>
  badInput(
    `there is no agent ${printable(name)}; there are: ${agents.map((agent) => agent.definition.name).join(", ")}`
  )

/** What a broken file is told by, one line each. */
const complain = (problems: ReadonlyArray<{ readonly message: string }>) =>
  Effect.forEach(problems, ({ message }) => Output.notice(message), { discard: true })

const name = Argument.String("name").pipe(Argument.withDescription(`The agent's name, as "agents list" shows it`))

/** Columns of a description in the list. */
const describedIn = 72

const list = Command.make(
  "list",
  { json: Input.json },
  Effect.fn("cli.agents.list")(function* ({ json }) {
    const { agents, problems } = yield* known
    if (json) return yield* Output.json(List, { agents: agents.map(rowOf), problems })
    const { bold, dim } = yield* Output.style
    const rows = agents
      .map(rowOf)
      .map(({ description, file, kind, name: called, optIn, source }) => [
        bold(called),
        optIn ? `${kind}, opt-in` : kind,
        file === null ? source : `${source}: ${printable(file)}`,
        dim(cut(printable(description ?? ""), describedIn))
      ])
    yield* Output.text(Output.table([["NAME", "KIND", "FROM", "WHAT FOR"], ...rows]))
    yield* complain(problems)
  })
).pipe(Command.withDescription("List all agents: built-in ones, those of this folder, and your own"))

const localFacts = (definition: LocalAgent): ReadonlyArray<readonly [string, string]> => [
  ["Takes", Object.keys(definition.inputs).join(", ")],
  ["Tools", definition.tools === undefined ? "all" : definition.tools.join(", ")],
  ...(Object.keys(definition.mcpServers).length === 0
    ? []
    : [["Servers", Object.keys(definition.mcpServers).join(", ")] as const]),
  ["Model", `${definition.model}, temperature ${definition.temperature}, top_p ${definition.topP}`],
  ["Limits", `${Output.plural(definition.maxTurns, "turn")}, ${Output.plural(definition.timeoutMinutes, "minute")}`],
  ...(definition.output === undefined ? [] : [["Hands in", `${definition.output.name}, as JSON`] as const])
]

const remoteFacts = ({ auth, card }: RemoteAgent): ReadonlyArray<readonly [string, string]> => [
  ["Card", "url" in card ? card.url : "in the file"],
  ["Asks as", auth?.type ?? "nobody in particular"]
]

const shownOf = (agent: KnownAgent): typeof Shown.Type => {
  const { definition } = agent
  const local = definition.kind === "local" ? definition : undefined
  return {
    ...rowOf(agent),
    displayName: definition.displayName ?? null,
    inputs: local === undefined ? [] : Object.keys(local.inputs),
    tools: local?.tools ?? null,
    mcpServers: Object.keys(local?.mcpServers ?? {}),
    model: local?.model ?? null,
    temperature: local?.temperature ?? null,
    topP: local?.topP ?? null,
    maxTurns: local?.maxTurns ?? null,
    timeoutMinutes: local?.timeoutMinutes ?? null,
    card: definition.kind === "local" ? null : "url" in definition.card ? definition.card.url : definition.card.json,
    prompt: local?.prompt ?? null
  }
}

/** Lines as they are, but for what would steer a terminal. */
const lines = (text: string): string => text.split("\n").map(printable).join("\n")

const show = Command.make(
  "show",
  { name, json: Input.json },
  Effect.fn("cli.agents.show")(function* ({ json, name: wanted }) {
    const { agents, problems } = yield* known
    const agent = agents.find(({ definition }) => definition.name === wanted)
    if (agent === undefined) {
      yield* complain(problems)
      return yield* unknownAgent(wanted, agents)
    }
    if (json) return yield* Output.json(Shown, shownOf(agent))
    const { definition, file, source } = agent
    const { bold, dim } = yield* Output.style
    const facts = [
      ["Name", bold(definition.name)],
      ["What for", printable(definition.description ?? "its card says so")],
      ["From", file === undefined ? source : `${source}: ${printable(file)}`],
      ["Runs", kindOf(definition)],
      ...(definition.kind === "local" ? localFacts(definition) : remoteFacts(definition)).map(([label, value]) => [
        label,
        printable(value)
      ])
    ].map(([label = "", value = ""]) => [dim(label), value])
    yield* Output.text(Output.table(facts))
    if (definition.kind === "local") yield* Output.text(`\n${lines(definition.prompt)}`)
  })
).pipe(Command.withDescription("Show the definition of an agent as it is used"))

const run = Command.make(
  "run",
  {
    name,
    prompt: Argument.String("prompt").pipe(
      Argument.withDescription("Its task; a JSON object for an agent that takes more than one text")
    ),
    model: OpenChat.flags.model,
    approve: AgentTools.flags.approve,
    addDir: AgentTools.flags.addDir,
    json: Input.json
  },
  Effect.fn("cli.agents.run")(function* ({ addDir, approve, json, model, name: wanted, prompt }) {
    if (prompt.trim() === "") return yield* badInput("there is nothing to do; give a task")
    const opened = yield* OpenChat.passing({ model })
    const stdio = yield* Stdio.Stdio
    const told = (line: string) => Effect.provideService(Output.notice(line), Stdio.Stdio, stdio)
    const { agents, approval, known: all } = yield* AgentTools.make(opened, { addDir, approve }, { tell: told })
    const runner = agents.runner(wanted)
    if (runner === undefined) {
      return yield* all.agents.some(({ definition }) => definition.name === wanted)
        ? failed(`the agent ${wanted} does not run in this program, and nothing here reaches where it does`)
        : unknownAgent(wanted, all.agents)
    }
    const ended = yield* Effect.gen(function* () {
      const { result } = yield* runner.start({
        prompt,
        activity: (activity) => {
          const line = activityText(wanted, activity)
          return line === undefined ? Effect.void : told(line)
        },
        waiting: (work) => work
      })
      return yield* result
    }).pipe(
      // One in a process of its own is started with what may run unasked here.
      Effect.provideService(Approval, approval),
      Effect.mapError(({ message }) => failed(printable(message)))
    )
    const { duration, note, reason, session, text, turns } = ended
    if (json) {
      yield* Output.json(Ended, {
        agent: wanted,
        reason,
        result: text,
        note: note ?? null,
        turns,
        duration,
        session: session ?? null
      })
      return reason === "GOAL" ? undefined : yield* failed("")
    }
    if (reason !== "GOAL") return yield* failed(`${wanted} ended with ${reason}. ${printable(text)}`)
    if (note !== undefined) yield* Output.notice(note)
    yield* Output.text(lines(text))
  }, Effect.scoped)
).pipe(
  Command.withDescription("Give an agent a task: what it does on stderr, its result on stdout"),
  Command.withExamples([
    {
      command: `palimpsest agents run codebase_investigator "Where are sessions locked?"`,
      description: "Ask the code"
    },
    { command: `palimpsest agents run generalist --approve edits "Fix the typos in docs"`, description: "Let it edit" }
  ])
)

/** `palimpsest agents …` */
export const agents = Command.make("agents").pipe(
  Command.withDescription("Agents that work can be given to"),
  Command.withSubcommands([list, show, run])
)
