/**
 * The help pages. Effect's own formatter never wraps and lists five global flags on every page; this one keeps each line within
 * the terminal or 100 columns, and names the global flags in one line.
 */

import { Option } from "effect"
import type { HelpDoc } from "effect/cli"
import { wrap } from "../../domain/text/Wrap.ts"
import { definitions } from "./Columns.ts"
import { columnsOf, type Style } from "./Output.ts"

/** Maximum columns of a help line. */
export const maxHelpColumns = 100

const globalFlags = "Global flags: --help, --version, --log-level <level>, --completions <shell>"

type Section = (title: string, rows: ReadonlyArray<readonly [string, string]>) => ReadonlyArray<string>

const lines = (text: string, columns: number, indent = ""): string =>
  wrap(text, columns - indent.length, columnsOf)
    .map((line) => `${indent}${line}`)
    .join("\n")

/** Names the choices of a flag, where its description does not name them all. */
const withChoices = (description: string): string =>
  description.replace(/ \(choices: ([^)]*)\)$/, (_, choices: string, at: number) =>
    choices.split(", ").every((choice) => new RegExp(`\\b${choice}\\b`).test(description.slice(0, at)))
      ? ""
      : ` (one of: ${choices})`
  )

const flagRow = ({ aliases, description, name, type }: HelpDoc.FlagDoc): readonly [string, string] => [
  `${[`--${name}`, ...aliases].join(", ")}${type === "boolean" ? "" : ` ${type}`}`,
  withChoices(Option.getOrElse(description, () => ""))
]

/** The usage line puts optional arguments in brackets. */
const argumentRow = ({ description, name, variadic }: HelpDoc.ArgDoc): readonly [string, string] => [
  `${name}${variadic ? "..." : ""}`,
  Option.getOrElse(description, () => "")
]

/** The help page of a command, as `--help` prints it. */
export const helpText = (
  { args = [], description, examples = [], flags, subcommands = [], usage }: HelpDoc.HelpDoc,
  style: Style,
  terminalColumns: number
): string => {
  const columns = Math.min(maxHelpColumns, terminalColumns)
  const section: Section = (title, rows) =>
    rows.length === 0 ? [] : [`${style.bold(title)}\n${definitions(rows, columns)}`]
  return [
    lines(description, columns),
    `${style.bold("USAGE")}\n${lines(usage, columns, "  ")}`,
    ...subcommands.flatMap(({ commands, group = "COMMANDS" }) =>
      section(
        group,
        commands.map(({ description: long, name, shortDescription }) => [name, shortDescription ?? long] as const)
      )
    ),
    ...section("ARGUMENTS", args.map(argumentRow)),
    ...section("FLAGS", flags.map(flagRow)),
    ...(examples.length === 0
      ? []
      : [
          `${style.bold("EXAMPLES")}\n${examples
            .map(
              ({ command, description: purpose = "" }) =>
                `${style.dim(lines(purpose, columns, "  # "))}\n${lines(command, columns, "  ")}`
            )
            .join("\n\n")}`
        ]),
    style.dim(lines(globalFlags, columns))
  ]
    .filter((text) => text !== "")
    .join("\n\n")
}
