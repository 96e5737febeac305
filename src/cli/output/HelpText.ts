import { Option } from "effect"
import type { HelpDoc } from "effect/cli"
import { definitions } from "./Columns.ts"
import type { Style } from "./Output.ts"

/**
 * The help pages. Effect's own formatter never wraps and lists five global flags on every page; this one keeps each line within
 * 100 columns and names the global flags in one line.
 */

/** Maximum columns of a help line. */
export const maxHelpColumns = 100

const globalFlags = "Global flags: --help, --version, --log-level <level>, --completions <shell>"

const section = (title: string, rows: ReadonlyArray<readonly [string, string]>, style: Style): ReadonlyArray<string> =>
  rows.length === 0 ? [] : [`${style.bold(title)}\n${definitions(rows, maxHelpColumns)}`]

const flagRow = ({ aliases, description, name, type }: HelpDoc.FlagDoc): readonly [string, string] => [
  `${[`--${name}`, ...aliases].join(", ")}${type === "boolean" ? "" : ` ${type}`}`,
  Option.getOrElse(description, () => "").replace(" (choices: ", " (one of: ")
]

const argumentRow = ({ description, name, required, variadic }: HelpDoc.ArgDoc): readonly [string, string] => [
  `${name}${variadic ? "..." : ""}`,
  `${Option.getOrElse(description, () => "")}${required ? "" : " (optional)"}`
]

/** The help page of a command, as `--help` prints it. */
export const helpText = (
  { args = [], description, examples = [], flags, subcommands = [], usage }: HelpDoc.HelpDoc,
  style: Style
): string =>
  [
    description,
    `${style.bold("USAGE")}\n  ${usage}`,
    ...section(
      "COMMANDS",
      subcommands.flatMap(({ commands }) =>
        commands.map(({ description: long, name, shortDescription }) => [name, shortDescription ?? long] as const)
      ),
      style
    ),
    ...section("ARGUMENTS", args.map(argumentRow), style),
    ...section("FLAGS", flags.map(flagRow), style),
    ...(examples.length === 0
      ? []
      : [
          `${style.bold("EXAMPLES")}\n${examples
            .map(({ command, description: purpose }) => `  ${style.dim(`# ${purpose ?? ""}`)}\n  ${command}`)
            .join("\n\n")}`
        ]),
    style.dim(globalFlags)
  ]
    .filter((text) => text !== "")
    .join("\n\n")
