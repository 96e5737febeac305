/** The slash command `/bug`: writes a bug report into a file in the working folder. */

import { Clock, Effect, Path } from "effect"
import { shownValue } from "../../../domain/settings/SettingsSecrets.ts"
import type { TelemetryRecord } from "../../../domain/telemetry/Telemetry.ts"
import { redact } from "../../../domain/text/Redaction.ts"
import { Environment } from "../../../services/platform/Environment.ts"
import { RuntimePlatform } from "../../../services/runtime/RuntimePlatform.ts"
import { Settings } from "../../../services/settings/Settings.ts"
import * as TranscriptExport from "../../../services/transcripts/TranscriptExport.ts"
import { iso } from "../../output/TimeText.ts"
import { version } from "../../output/Version.ts"
import { nextPosition, say, type SlashCommand, tableColumns } from "./ChatSession.ts"

/** The facts of a report. */
interface BugFacts {
  readonly version: string
  readonly platform: string
  /** What identifies the terminal: `TERM`, `TERM_PROGRAM`, the columns. */
  readonly terminal: Readonly<Record<string, string>>
  readonly session: Readonly<Record<string, string | number>>
  /** The settings as written. */
  readonly settings: object
  /** The latest records, oldest first. */
  readonly records: ReadonlyArray<TelemetryRecord>
  /** The user's home folder, shown as `~`; empty when unknown. */
  readonly home: string
}

/** Records of these kinds hold words of the conversation. */
const wordy = new Set(["content", "prompt", "tool_request"])

const maxRecords = 60

const rows = (values: Readonly<Record<string, string | number>>) =>
  Object.entries(values).map(([name, value]) => `- ${name}: ${value}`)

/** Returns the report as Markdown, with room for the user's words. */
export const bugReport = ({ home, platform, records, session, settings, terminal, version }: BugFacts): string => {
  const shown = Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, shownValue([key], value)]))
  const lines = records
    .filter(({ name }) => !wordy.has(name))
    .slice(-maxRecords)
    .map(({ at, attributes, name }) => `${iso(at)} ${name} ${JSON.stringify(attributes)}`)
  const text = [
    "# Bug report",
    "",
    "What did you do? What did you expect, and what happened instead?",
    "",
    "## Program",
    "",
    ...rows({ version, platform }),
    "",
    "## Terminal",
    "",
    ...rows(terminal),
    "",
    "## Session",
    "",
    ...rows(session),
    "",
    "## Settings",
    "",
    "```json",
    JSON.stringify(shown, null, 2),
    "```",
    "",
    "## Latest events",
    "",
    "```text",
    ...lines,
    "```",
    ""
  ].join("\n")
  const safe = redact(text)
  return home.length < 3 ? safe : safe.replaceAll(home, "~")
}

/** Variables that tell which terminal this is. */
const terminalVariables = ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "LANG", "TMUX"]

/** The command `/bug`. */
export const bug: SlashCommand = {
  name: "bug",
  help: "Write a file for a bug report, without secrets and without the conversation's words",
  run: Effect.fnUntraced(function* (session) {
    const { agent, chat } = session
    const path = yield* Path.Path
    const { platform } = yield* RuntimePlatform
    const { settings } = yield* Settings.use(({ read }) => read)
    const variables = yield* Environment.use((environment) => environment.variables)
    const now = yield* Clock.currentTimeMillis
    const { limit, tokens } = yield* chat.usage
    const { model } = yield* chat.settings
    const terminalValues = terminalVariables.flatMap((name) => {
      const value = variables[name]
      return value === undefined ? [] : [[name, name === "TMUX" ? "yes" : value] as const]
    })
    const report = bugReport({
      version,
      platform,
      terminal: { ...Object.fromEntries(terminalValues), columns: String(yield* tableColumns(session)) },
      session: { model, tokens, window: limit, messages: (yield* nextPosition(session)) - 1 },
      settings,
      records: (yield* agent.recent).records,
      home: variables["HOME"] ?? variables["USERPROFILE"] ?? ""
    })
    const file = `palimpsest-bug-${iso(now).slice(0, 19).replaceAll(":", "-")}.md`
    yield* TranscriptExport.writeText(path.resolve(file), report)
    yield* say(session, `Wrote ${file}. Read it, add what happened, and attach it to your report.`)
  })
}
