import { Clock, Effect, FileSystem, Option, Path } from "effect"
import { Flag } from "effect/cli"
import { AgentName } from "../../domain/transcripts/AgentFolders.ts"
import { AgentSessions, type SessionProblem } from "../../services/transcripts/AgentSessions.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as Input from "./SharedFlags.ts"
import * as SinceFlag from "./SinceFlag.ts"

/** The flags that select sessions of the agents, and the notices about those that cannot be read. */

const names = AgentName.literals.join(", ")

/** Parses names separated by commas; undefined when one is unknown. */
const parseAgents = (text: string): ReadonlyArray<AgentName> | undefined => {
  const agents = text
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .map((name) => AgentName.literals.find((agent) => agent === name))
  return agents.every((agent) => agent !== undefined) ? agents.filter((agent) => agent !== undefined) : undefined
}

/** The flags. */
export const flags = {
  agent: Input.optional(
    Flag.String("agent").pipe(
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(parseAgents(text)),
        () => `one or more of ${names}, separated by commas`
      ),
      Flag.withMetavar("names")
    ),
    `Only sessions of these agents: ${names}`
  ),
  folder: Input.optional(
    Flag.String("folder").pipe(Flag.withMetavar("folder")),
    "Only sessions of this folder and of those below it"
  ),
  since: SinceFlag.flag
}

/** Makes a filter of the flags. A missing folder is bad input, unless its path is absolute: sessions may still name it. */
export const filterOf = Effect.fnUntraced(function* (input: {
  readonly agent: ReadonlyArray<AgentName> | undefined
  readonly folder: string | undefined
  readonly since: SinceFlag.Since | undefined
}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { agent, folder } = input
  if (folder !== undefined && !path.isAbsolute(folder)) {
    const there = yield* Effect.orElseSucceed(fs.exists(folder), () => false)
    if (!there)
      return yield* badInput(`${folder}: no such folder; give its full path to find sessions of a removed one`)
  }
  return {
    agents: agent,
    folder: folder === undefined ? undefined : path.resolve(folder),
    since: SinceFlag.timeOf(input.since, yield* Clock.currentTimeMillis)
  }
})

const maxProblems = 5

/** Prints a line for each file that could not be read, and how many more there are. */
export const tellProblems = Effect.fnUntraced(function* (problems: ReadonlyArray<SessionProblem>) {
  for (const { message, path } of problems.slice(0, maxProblems)) yield* Output.notice(`${path}: ${message}`)
  const more = problems.length - maxProblems
  if (more > 0) yield* Output.notice(`${Output.plural(more, "more file")} could not be read (--json lists them)`)
})

/** Where sessions of agents are looked for, for a search that finds none. */
export const lookedIn: Effect.Effect<string, never, AgentSessions> = AgentSessions.use(({ roots }) =>
  Effect.map(roots, (all) => `looked in ${[...new Set(all.map(({ path }) => path))].join(", ")}`)
)
