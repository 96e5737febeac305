import { assert, it } from "@effect/vitest"
import { Context, Option } from "effect"
import type { HelpDoc } from "effect/cli"
import { helpText, maxHelpColumns } from "../../../src/cli/output/HelpText.ts"
import { plain } from "../../../src/cli/output/Output.ts"

const about = (words: string) => Option.some(words)
const doc: HelpDoc.HelpDoc = {
  description: "Compresses a conversation.",
  usage: "palimpsest compress [flags] <file>",
  annotations: Context.empty(),
  flags: [
    { name: "out", aliases: ["-o"], type: "file", description: about("Where to write"), required: false },
    { name: "json", aliases: ["-j", "--machine"], type: "boolean", description: Option.none(), required: false },
    { name: "form", aliases: [], type: "choice", description: about("The form (choices: a, b)"), required: true },
    { name: "how", aliases: [], type: "choice", description: about("On, or off (choices: On, off)"), required: true },
    { name: "who", aliases: [], type: "choice", description: about("Onwards, off (choices: On, off)"), required: true }
  ],
  args: [
    { name: "file", type: "file", description: about("The conversation"), required: true, variadic: false },
    { name: "more", type: "file", description: about("Others"), required: false, variadic: true }
  ],
  subcommands: [
    {
      group: undefined,
      commands: [
        { name: "one", alias: undefined, shortDescription: "In short", description: "At length" },
        { name: "two", alias: undefined, shortDescription: undefined, description: "At length" }
      ]
    }
  ],
  examples: [{ command: "palimpsest compress a.jsonl", description: "one file" }, { command: "palimpsest x" }]
}

it("a help page has each name of a flag, its type unless it is a switch, what may be left out, and every example", () => {
  const lines = helpText(doc, plain, 200)
    .split("\n")
    .map((line) => line.trim().replace(/ {2,}/g, " | "))
    .filter((line) => line !== "")
  assert.deepStrictEqual(lines.slice(0, -1), [
    "Compresses a conversation.",
    "USAGE",
    "palimpsest compress [flags] <file>",
    "COMMANDS",
    "one | In short",
    "two | At length",
    "ARGUMENTS",
    "file | The conversation",
    "more... | Others",
    "FLAGS",
    "--out, -o file | Where to write",
    "--json, -j, --machine",
    "--form choice | The form (one of: a, b)",
    "--how choice | On, or off",
    "--who choice | Onwards, off (one of: On, off)",
    "EXAMPLES",
    "# one file",
    "palimpsest compress a.jsonl",
    "#",
    "palimpsest x"
  ])
  assert.match(lines.at(-1) ?? "", /--help.*--version/)
})

it("a help page fits its columns, and leaves out what there is not", () => {
  const long = Array.from({ length: 60 }, (_, n) => `word${n}`).join(" ")
  const shown = helpText({ ...doc, description: "", args: [], subcommands: [], examples: [], flags: [] }, plain, 100)
  assert.notMatch(shown, /COMMANDS|ARGUMENTS|FLAGS|EXAMPLES|^\n/)
  const flags = [{ name: "out", aliases: ["-o"], type: "file", description: about(long), required: false }]
  for (const columns of [40, 80, 100, 200]) {
    const page = helpText({ ...doc, flags }, plain, columns)
    for (const line of page.split("\n")) assert.isAtMost(line.length, Math.min(columns, maxHelpColumns))
  }
})
