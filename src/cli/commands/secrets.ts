/** The `secrets` command: shows where secrets and personal data stand in sessions, without their values. */

import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { handleOf, Hash } from "../../domain/content/Handle.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { ReportProgress } from "../../services/platform/Progress.ts"
import type { SessionProblem } from "../../services/transcripts/AgentSessions.ts"
import { type FoundSecrets, secretsOf, secretsOfEvents } from "../../services/transcripts/FindSecrets.ts"
import { type FoundSession, listSessions } from "../../services/transcripts/FindSessions.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as RedactionFlags from "../flags/RedactionFlags.ts"
import * as SessionFlags from "../flags/SessionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The output of `--json`. It holds no value of a secret. */
export const Secrets = Schema.Struct({
  /** Sessions that were searched. */
  searched: Schema.Natural,
  sessions: Schema.Array(
    Schema.Struct({
      agent: Schema.String,
      id: Schema.String,
      path: Schema.String,
      /** Different values. */
      values: Schema.Natural,
      places: Schema.Array(
        Schema.Struct({
          path: Schema.String,
          /** The line in the file, from 1. In a history for the Gemini API, and on standard input: the number of the message. */
          line: Schema.Natural,
          kind: Schema.String,
          isPersonal: Schema.Boolean,
          count: Schema.Natural
        })
      )
    })
  ),
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
})

/** Places of one kind that are listed. */
const maxPlaces = 8

const isHash = Schema.is(Hash)

/** What is searched: a session, or a conversation that is none, whose places are messages. */
interface Searched {
  readonly agent: string
  readonly id: string
  readonly path: string
  readonly isConversation: boolean
}

/** Where secrets of one kind stand: lines of the session's file, other files with their lines, and handles of stored parts. */
const placesText = (session: Searched, list: FoundSecrets["places"]): string => {
  const shown = list.slice(0, maxPlaces)
  const lines = shown.flatMap(({ line, path }) => (path === session.path ? [String(line)] : []))
  const others = shown.flatMap(({ line, path }) => {
    const file = path.split(/[\\/]/).at(-1) ?? ""
    if (path === session.path) return []
    return [isHash(file) ? handleOf(file) : `${printableLine(file)}:${line}`]
  })
  const more = list.length - shown.length
  return [
    ...(lines.length === 0 ? [] : [`${session.isConversation ? "message" : "line"} ${lines.join(", ")}`]),
    ...others,
    ...(more > 0 ? [`${Output.number(more)} more`] : [])
  ].join(", ")
}

/** The kinds of secrets of a session, each with its places. */
const sessionText = (
  session: Searched,
  { places, values }: Pick<FoundSecrets, "places" | "values">,
  style: Output.Style
): string => {
  const kinds = new Map<string, Array<FoundSecrets["places"][number]>>()
  for (const place of places) kinds.set(place.kind, [...(kinds.get(place.kind) ?? []), place])
  const rows = [...kinds]
    .sort(([, a], [, b]) => Number(a[0]?.isPersonal) - Number(b[0]?.isPersonal) || b.length - a.length)
    .map(([kind, list]) => {
      const count = list.reduce((sum, one) => sum + one.count, 0)
      return [`  ${kind}`, Output.plural(count, "time"), placesText(session, list)]
    })
  return [
    `${style.bold(session.agent)}  ${printableLine(session.path)}  ${style.dim(Output.plural(values, "value"))}`,
    Output.table(rows, "lrl")
  ].join("\n")
}

/** The command `palimpsest secrets [session]`. */
export const secrets = Command.make(
  "secrets",
  {
    session: Input.optionalArgument(
      "session",
      "File or id of one session, as find lists it, or - for standard input (default: all sessions that match the flags)"
    ),
    from: Input.from,
    ...SessionFlags.flags,
    only: RedactionFlags.only,
    json: Input.json
  },
  Effect.fn("cli.secrets")(function* (input) {
    const { session: name } = input
    if (name === undefined && input.from !== undefined)
      return yield* badInput("--from needs a file, or - for standard input")
    const style = yield* Output.style
    const search = yield* RedactionFlags.searchOf(input.only)
    const rows: Array<(typeof Secrets.Type)["sessions"][number]> = []
    const take = Effect.fnUntraced(function* (searched: Searched, { places, values }: FoundSecrets) {
      if (places.length === 0) return
      rows.push({ agent: searched.agent, id: searched.id, path: searched.path, values, places })
      if (!input.json) yield* Output.text(sessionText(searched, { places, values }, style))
    })
    const filter = yield* SessionFlags.filterOf(input)
    const chosen = name === undefined ? undefined : yield* ConversationInput.chooseAny(name, input.from)
    const list =
      chosen === undefined
        ? yield* Output.progress("reading the sessions of your agents")(listSessions(filter))
        : { sessions: chosen._tag === "Session" ? [chosen.session] : [], problems: [] }
    const { sessions } = list
    const problems: Array<SessionProblem> = [...list.problems]
    if (chosen?._tag === "Conversation") {
      const { events, format, name: path } = chosen
      const found = yield* Output.progress("searching")(secretsOfEvents(events, path, search))
      yield* take({ agent: format, id: path, path, isConversation: true }, found)
    }
    const searchOne = Effect.fnUntraced(function* (session: FoundSession, at: number) {
      const report = yield* ReportProgress
      report({ done: at, total: sessions.length, unit: "sessions" })
      const found = yield* secretsOf(session, search)
      problems.push(...found.problems.filter(({ path }) => problems.every((other) => other.path !== path)))
      yield* take({ agent: session.agent, id: session.id, path: session.path, isConversation: false }, found)
    })
    yield* Effect.forEach(sessions, searchOne, { discard: true }).pipe(Output.progress("searching"))
    const count = chosen === undefined ? sessions.length : 1
    if (input.json) return yield* Output.json(Secrets, { searched: count, sessions: rows, problems })
    yield* SessionFlags.tellProblems(problems)
    const searched = Output.plural(count, "session")
    yield* Output.notice(
      rows.length === 0
        ? `nothing found in ${searched}${count === 0 ? ` (${yield* SessionFlags.lookedIn})` : ""}`
        : `found in ${Output.number(rows.length)} of ${searched}; palimpsest export SESSION FILE --redact writes a copy without them`
    )
  })
).pipe(
  Input.withExamples({
    "palimpsest secrets --since 30d": "Search the sessions of a month",
    "palimpsest secrets session.jsonl --only secrets": "Search one file for keys and passwords"
  })
)
