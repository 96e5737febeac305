import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { printable } from "../../domain/Inspection.ts"
import { GeminiImport, ImportReport } from "../../services/GeminiImport.ts"
import { badInput, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

/** Rows under a heading; nothing where there are none. */
const section = (heading: string, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  rows.length === 0
    ? ""
    : `${heading}\n${Output.table(rows.map((row) => ["", ...row.map(printable)]))
        .split("\n")
        .map((line) => `${line}\n`)
        .join("")}\n`

/** The report as a person reads it: what goes where, what stays, and what was left and why. */
export const reportText = ({ dryRun, from, kept, notTaken, taken }: ImportReport): string => {
  const nothing = taken.length === 0 ? "Nothing more is taken" : dryRun ? "Would be taken" : "Taken"
  return [
    section(
      `${nothing} from ${printable(from)}:`,
      taken.map(({ from: what, kind, note, to }) => [kind, what, `→ ${to}${note === null ? "" : ` (${note})`}`])
    ) || `${nothing} from ${printable(from)}.\n\n`,
    section(
      "Kept as it is here:",
      kept.map(({ from: what, kind, why }) => [kind, what, why])
    ),
    section(
      "Not taken:",
      notTaken.map(({ from: what, kind, why }) => [kind, what, why])
    )
  ]
    .join("")
    .trimEnd()
}

const gemini = Command.make(
  "gemini",
  {
    from: Input.optional(Flag.String("from").pipe(Flag.withMetavar("folder"))).pipe(
      Flag.withDescription("The folder of Gemini CLI (default: .gemini in your home folder)")
    ),
    dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Only say what would be done"), Flag.withDefault(false)),
    json: Input.json
  },
  Effect.fn("cli.config.import.gemini")(
    function* ({ dryRun, from, json }) {
      const { run } = yield* GeminiImport
      const report = yield* run({ from, dryRun })
      yield* json ? Output.json(ImportReport, report) : Output.text(reportText(report))
    },
    Effect.catchTag("GeminiImportError", ({ isInput, message }) =>
      Effect.fail((isInput ? badInput : failed)(printable(message)))
    )
  )
).pipe(
  Command.withDescription(
    "Take over settings, memory, agents and skills of Gemini CLI; nothing that is here is changed"
  ),
  Command.withExamples([
    { command: "palimpsest config import gemini --dry-run", description: "See what would be taken" },
    { command: "palimpsest config import gemini --from backup/.gemini", description: "Take over another folder" }
  ])
)

/** `palimpsest config import …`: stands below `config`. */
export const configImport = Command.make("import").pipe(
  Command.withDescription("Take over what was set up for another program"),
  Command.withSubcommands([gemini])
)
