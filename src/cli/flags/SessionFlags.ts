/** The flags that select sessions of the agents, and the notices about those that cannot be read. */

import { Clock, Effect, FileSystem, Path } from "effect"
import { AgentName } from "../../domain/transcripts/AgentFolders.ts"
import { AgentSessions, type SessionProblem } from "../../services/transcripts/AgentSessions.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as Input from "./SharedFlags.ts"

const unitMillis: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** A time in milliseconds since 1970, by the present one. */
type Since = (now: number) => number

/** Parses `30m`, `12h`, `7d`, `2w`, `2026-02-03` or a whole ISO time; undefined for anything else. */
const parseSince = (text: string): Since | undefined => {
  const [, digits, unit] = /^(\d{1,6})\s*([mhdw])$/i.exec(text.trim()) ?? []
  const millis = unitMillis[(unit ?? "").toLowerCase()]
  if (digits !== undefined && millis !== undefined) return (now) => now - Number(digits) * millis
  const at = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$/.test(text.trim())
    ? Date.parse(text.trim())
    : Number.NaN
  return Number.isFinite(at) ? () => at : undefined
}

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
    Input.parsed("agent", "names", `one or more of ${names}, separated by commas`, parseAgents),
    `Only sessions of these agents: ${names}`
  ),
  folder: Input.text("folder", "folder", "Only sessions of this folder and of those below it"),
  since: Input.optional(
    Input.parsed("since", "time", "a time such as 12h, 7d or 2026-02-03", parseSince),
    "Only sessions that changed since then: 12h, 7d, 2026-02-03"
  )
}

/** Makes a filter of the flags. A missing folder is bad input, unless its path is absolute: sessions may still name it. */
export const filterOf = Effect.fnUntraced(function* (input: {
  readonly agent: ReadonlyArray<AgentName> | undefined
  readonly folder: string | undefined
  readonly since: Since | undefined
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
    since: input.since?.(yield* Clock.currentTimeMillis)
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
