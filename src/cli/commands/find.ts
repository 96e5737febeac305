/** The `find` command: lists and searches the sessions of every agent on this machine. */

import { Clock, Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { ignoresCase } from "../../domain/conversation/RecallQuery.ts"
import type { Spent } from "../../domain/evaluation/SessionCost.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { AgentName } from "../../domain/transcripts/AgentFolders.ts"
import { type SessionQuery, wordsQuery } from "../../domain/transcripts/facts/SessionSearch.ts"
import * as Patterns from "../../services/platform/Patterns.ts"
import * as FindSessions from "../../services/transcripts/FindSessions.ts"
import * as ReportFlags from "../flags/ReportFlags.ts"
import * as SessionFlags from "../flags/SessionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import { orNull, Time } from "../output/JsonFields.ts"
import * as Output from "../output/Output.ts"
import { ago } from "../output/TimeText.ts"

const Hit = Schema.Struct({
  /** The file, which may be one of a subagent. */
  path: Schema.String,
  /** The line in the file, from 1. */
  line: Schema.Natural,
  speaker: Schema.String,
  text: Schema.String,
  /** The characters of `text` that match: from, to. */
  marks: Schema.Array(Schema.Tuple([Schema.Natural, Schema.Natural]))
})

const Row = Schema.Struct({
  agent: AgentName,
  id: Schema.String,
  path: Schema.String,
  folder: orNull(Schema.String),
  title: orNull(Schema.String),
  model: orNull(Schema.String),
  startedAt: orNull(Time),
  updatedAt: Time,
  bytes: Schema.Natural,
  prompts: Schema.Natural,
  subagents: Schema.Natural,
  /** Tokens of all requests, sent and answered. */
  tokens: Schema.Natural,
  /** US dollars; null when no request has a price. */
  cost: Schema.NullOr(Schema.Finite),
  matches: Schema.Natural,
  hits: Schema.Array(Hit)
})
type Row = typeof Row.Type

/** The output of `--json`. */
export const Found = Schema.Struct({
  sessions: Schema.Array(Row),
  /** Sessions that match the flags, without the limit and the text. */
  total: Schema.Natural,
  /** Whether an index was used. */
  indexed: Schema.Boolean,
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
})

const costOf = ({ cost, requests, unpriced }: Spent): number | null =>
  requests > 0 && unpriced === requests ? null : Math.round(cost * 1e6) / 1e6

const rowOf = (
  session: FindSessions.FoundSession,
  spent: Spent,
  found?: Omit<FindSessions.FoundHits, "session">
): Row => ({
  ...session,
  tokens: spent.sent + spent.answered,
  cost: costOf(spent),
  matches: found?.matches ?? 0,
  hits: found?.hits ?? []
})

const titleColumns = 40
const folderColumns = 24
/** Width of a line. The title stands last and is cut where the others are wide. */
const lineColumns = 100
const minFolderColumns = 70

/** Shortens a folder to its last components that fit. */
const shortFolder = (folder = ""): string => {
  const text = printableLine(folder)
  return text.length <= folderColumns ? text : `…${text.slice(1 - folderColumns)}`
}

const costText = ({ cost, tokens }: Row): string => (cost === null ? "?" : tokens === 0 ? "" : dollars(cost))

/** Escapes a part of a line and keeps the blanks at its ends. */
const piece = (text: string): string => printableLine(`.${text}.`).slice(1, -1)

const marked = ({ marks, text }: Row["hits"][number], mark: (text: string) => string): string => {
  let result = ""
  let at = 0
  for (const [from, to] of [...marks].sort(([a], [b]) => a - b)) {
    if (from < at) continue
    result += piece(text.slice(at, from)) + mark(piece(text.slice(from, to)))
    at = to
  }
  return result + piece(text.slice(at))
}

const hitLines = ({ hits, matches, path }: Row, style: Output.Style): ReadonlyArray<string> => {
  const mark = style === Output.plain ? (text: string) => `«${text}»` : style.bold
  const lines = hits.map((hit) => {
    const elsewhere = hit.path === path ? "" : ` ${style.dim(hit.path.split(/[\\/]/).at(-1) ?? "")}`
    return `    ${style.dim(String(hit.line))} ${hit.speaker}${elsewhere}: ${marked(hit, mark)}`
  })
  const more = matches - hits.length
  return more > 0 ? [...lines, style.dim(`    and ${Output.plural(more, "more match", "more matches")}`)] : lines
}

const listText = (rows: ReadonlyArray<Row>, now: number, style: Output.Style, columns: number): string => {
  // Below this width, a folder would leave no room for the title.
  const hasFolder = columns >= minFolderColumns
  const cells = rows.map((row) => [
    row.agent,
    ago(row.updatedAt, now),
    row.tokens === 0 ? "" : Output.tokensText(row.tokens),
    costText(row),
    ...(hasFolder ? [shortFolder(row.folder)] : []),
    truncate(printableLine(row.title ?? "(no title)"), titleColumns)
  ])
  const header = ["Agent", "Updated", "Tokens used", "Cost", ...(hasFolder ? ["Folder"] : []), "Title"]
  const [head = "", ...lines] = Output.table([header, ...cells], "llrrll").split("\n")
  const sessions = rows.map((row, index) =>
    [truncate(lines[index] ?? "", columns), style.dim(`  ${printableLine(row.path)}`), ...hitLines(row, style)].join(
      "\n"
    )
  )
  return [style.bold(truncate(head, columns)), ...sessions].join("\n")
}

const badGrep = ({ message }: Patterns.BadPattern) => badInput(`--grep: ${message}`)

const queryOf = Effect.fnUntraced(function* (
  words: ReadonlyArray<string>,
  grep: string | undefined
): Effect.fn.Return<SessionQuery | undefined, ExitError> {
  // The shell removes the quotes of a phrase.
  const text = words
    .map((word) => (/\s/.test(word.trim()) && !word.includes('"') ? `"${word}"` : word))
    .join(" ")
    .trim()
  if (grep === undefined) return text === "" ? undefined : wordsQuery(text)
  if (text !== "") return yield* badInput("give words or --grep, not both")
  const pattern = yield* Effect.mapError(Patterns.compile(grep, { ignoresCase: ignoresCase(grep) }), badGrep)
  return { _tag: "Pattern", pattern }
})

/** Sessions that are shown when no limit is given. */
const defaultLimit = 20
const maxHits = 3

/** The command `palimpsest find [text]`. */
export const find = Command.make(
  "find",
  {
    text: Input.argument("text", "Words that a message must have, in any case; quotes keep a phrase together").pipe(
      Argument.variadic()
    ),
    grep: Input.text("grep", "regex", "Search lines by a pattern; ignores case unless it has a capital"),
    ...SessionFlags.flags,
    limit: Input.size("limit", `Sessions to show, newest first (default: ${defaultLimit})`),
    prices: ReportFlags.prices,
    json: Input.json
  },
  Effect.fn("cli.find")(function* (input) {
    const { json, limit = defaultLimit } = input
    const query = yield* queryOf(input.text, input.grep)
    const filter = yield* SessionFlags.filterOf(input)
    const prices = yield* ReportFlags.readPrices(input.prices)
    const list = yield* Output.progress("reading the sessions of your agents")(FindSessions.listSessions(filter))
    const shown = list.sessions.slice(0, query === undefined ? limit : 0)
    const { found, problems } =
      query === undefined
        ? { found: shown.map((session) => ({ session, hits: [], matches: 0 })), problems: [] }
        : yield* Output.progress("searching")(
            Effect.mapError(
              FindSessions.searchSessions(list.sessions, query, { sessions: limit, hits: maxHits }),
              badGrep
            )
          )
    const rows = yield* Effect.forEach(found, ({ session, ...hits }) =>
      Effect.map(FindSessions.spentBy(session, prices), (spent) => rowOf(session, spent, hits))
    )
    const allProblems = [...list.problems, ...problems]
    if (json) {
      yield* Output.json(Found, {
        sessions: rows,
        total: list.sessions.length,
        indexed: list.isIndexed,
        problems: allProblems
      })
      return yield* query !== undefined && rows.length === 0 ? failed("") : Effect.void
    }
    yield* SessionFlags.tellProblems(allProblems)
    if (!list.isIndexed && query !== undefined) {
      yield* Output.notice("searched without an index, which needs Node 22.13 or newer and a folder to write to")
    }
    if (rows.length > 0) {
      const columns = yield* Output.tableColumns(lineColumns)
      yield* Output.text(listText(rows, yield* Clock.currentTimeMillis, yield* Output.style, columns))
    } else if (query !== undefined) {
      const where = list.sessions.length === 0 ? ` (${yield* SessionFlags.lookedIn})` : ""
      return yield* failed(`no match in ${Output.plural(list.sessions.length, "session")}${where}`)
    } else yield* Output.notice(`no sessions found (${yield* SessionFlags.lookedIn})`)
    const more = list.sessions.length - rows.length
    if (query === undefined && more > 0) {
      yield* Output.notice(`${Output.plural(more, "older session")} not shown; see --limit`)
    } else if (query !== undefined && rows.length === limit) {
      yield* Output.notice(`stopped after ${Output.plural(limit, "session")} with a match; see --limit`)
    }
  })
).pipe(
  Input.withExamples({
    "palimpsest find": "List the newest sessions of every agent",
    'palimpsest find "prompt cache" ttl --since 30d': "Search for a phrase and a word in a month of sessions",
    "palimpsest find --grep 'ECONN(RESET|REFUSED)' --agent claude,codex":
      "Search the sessions of two agents by a pattern"
  })
)
