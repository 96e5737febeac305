/** The `config import` command: takes over the settings, memory, agents and skills of Gemini CLI. */

import { Effect } from "effect"
import { Command } from "effect/cli"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { GeminiImport } from "../../services/settings/GeminiImport.ts"
import { ImportReport } from "../../services/settings/ImportReport.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** Rows under a heading; empty without rows. */
const section = (heading: string, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  rows.length === 0
    ? ""
    : `${heading}\n${Output.table(rows.map((row) => ["", ...row.map(printableLine)]))
        .split("\n")
        .map((line) => `${line}\n`)
        .join("")}\n`

/** The report as text: which settings were imported, which were kept, and which were skipped and why. */
const reportText = ({ dryRun, from, kept, notTaken, taken }: ImportReport): string => {
  const nothing = taken.length === 0 ? "Nothing new to import" : dryRun ? "Would import" : "Imported"
  return [
    section(
      `${nothing} from ${printableLine(from)}:`,
      taken.map(({ from: what, kind, note, to }) => [kind, what, `→ ${to}${note === null ? "" : ` (${note})`}`])
    ) || `${nothing} from ${printableLine(from)}.\n\n`,
    section(
      "Unchanged here:",
      kept.map(({ from: what, kind, why }) => [kind, what, why])
    ),
    section(
      "Not imported:",
      notTaken.map(({ from: what, kind, why }) => [kind, what, why])
    )
  ]
    .join("")
    .trimEnd()
}

const gemini = Command.make(
  "gemini",
  {
    from: Input.text("from", "folder", "Gemini CLI's folder (default: .gemini in your home folder)"),
    dryRun: Input.flag("dry-run", "Show what would be imported and change nothing"),
    json: Input.json
  },
  Effect.fn("cli.config.import.gemini")(
    function* ({ dryRun, from, json }) {
      const { run } = yield* GeminiImport
      const report = yield* run({ from, dryRun })
      yield* json ? Output.json(ImportReport, report) : Output.text(reportText(report))
    },
    Effect.catchTag("GeminiImportError", ({ message, reason }) => {
      const hint = reason === "NoFolder" ? "; name Gemini CLI's folder with --from" : ""
      return Effect.fail((reason === "NotWritten" ? failed : badInput)(printableLine(`${message}${hint}`)))
    })
  )
).pipe(
  Command.withDescription("Import settings, memory, agents and skills of Gemini CLI; existing values stay"),
  Input.withExamples({
    "palimpsest config import gemini --dry-run": "Preview the import",
    "palimpsest config import gemini --from backup/.gemini": "Import from another folder"
  })
)

/** The command `palimpsest config import …`, a subcommand of `config`. */
export const configImport = Command.make("import").pipe(
  Command.withDescription("Import the configuration of another program"),
  Command.withSubcommands([gemini])
)
