import { shownValue } from "../../domain/settings/SettingsSecrets.ts"
import type { TelemetryRecord } from "../../domain/telemetry/Telemetry.ts"
import { redact } from "../../domain/text/Redaction.ts"
import { iso } from "./TimeText.ts"

/** Writes a bug report about the program and the session, without text of the conversation and without secrets. */

/** The facts of a report. */
export interface BugFacts {
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
