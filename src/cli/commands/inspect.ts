/** The `inspect` command: shows where the tokens of a conversation go, as text, JSON or a page. */

import { Effect } from "effect"
import { Command } from "effect/cli"
import { viewSizes } from "../../domain/evaluation/Compactions.ts"
import { OwnQuestion, questionsOf } from "../../domain/evaluation/OwnQuestions.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import { inspected, writePage } from "../flags/InspectedFile.ts"
import * as RedactionFlags from "../flags/RedactionFlags.ts"
import * as ReportFlags from "../flags/ReportFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { badInput } from "../output/ExitError.ts"
import { comparisonSection } from "../output/InspectComparison.ts"
import { Report } from "../output/InspectReport.ts"
import { inspectFacts, inspectSections } from "../output/InspectSections.ts"
import * as Output from "../output/Output.ts"
import { reportText, terminalLimits, type TextLimits, textLimits } from "../output/ReportText.ts"

/** The report as text. `sizes` are the view's tokens after each message. */
export const describe = (
  report: Report,
  sizes: ReadonlyArray<number>,
  style: Output.Style = Output.plain,
  limits: TextLimits = textLimits
): string => {
  const { all, view } = report.tokens
  const facts = [
    ["file", report.file] as const,
    ...inspectFacts(report),
    ["tokens", `${Output.number(all)} in total, ${Output.number(view)} in the current view`] as const
  ]
  const width = limits.columns - 14
  return [
    Output.table(
      facts.map(([name, value]) => [name, truncate(printableLine(value), width, name === "file" ? "end" : "start")])
    ),
    reportText(inspectSections(report, { sizes, recall: "palimpsest recall FILE" }), style, limits)
  ].join("\n\n")
}

const flags = {
  ...Input.conversation,
  prices: ReportFlags.prices,
  html: ReportFlags.html,
  beside: Input.text("beside", "file", "Compare with the figures of another conversation"),
  questions: Input.flag("questions", "Print the ratings of its compressions as questions for eval --questions"),
  ...RedactionFlags.flags,
  json: Input.json
}

/** The command `palimpsest inspect <file>`. */
export const inspect = Command.make(
  "inspect",
  flags,
  Effect.fn("cli.inspect")(function* (input) {
    yield* ReportFlags.checkPlace(input.file, input)
    const sharing = yield* RedactionFlags.sharingOf(input)
    if (input.beside !== undefined && input.json) return yield* badInput("use either --beside or --json, not both")
    if (input.beside === "-" && input.file === "-") return yield* badInput("standard input has one conversation only")
    const prices = yield* ReportFlags.readPrices(input.prices)
    const read = Effect.fnUntraced(function* (file: string, shortens: boolean) {
      const conversation = yield* ConversationInput.load({ ...input, file, shortens })
      const { loaded, name } = yield* sharing.clean(
        conversation,
        sharing.isClean ? (file.split(/[\\/]/).at(-1) ?? file) : file
      )
      return { loaded, ...(yield* inspected(loaded, { file: name, prices })) }
    })
    const { loaded, ...one } = yield* read(input.file, true)
    const other = input.beside === undefined ? undefined : yield* read(input.beside, false)
    const { report } = one
    if (input.html !== undefined) {
      yield* writePage(input.html, loaded, one, { hidesTexts: input.redactTexts, beside: other })
    }
    if (input.questions) {
      const questions = questionsOf(report.compactions)
      yield* Effect.forEach(questions, (question) => Output.json(OwnQuestion, question))
      if (questions.length === 0)
        yield* Output.notice("no compression here has a rating that names something to ask about")
    } else if (input.json) yield* Output.json(Report, report)
    else if (input.html === undefined) {
      const style = yield* Output.style
      const limits = yield* terminalLimits
      const sizes = viewSizes(one.measured ?? one.conversation)
      yield* Output.text(
        other === undefined
          ? describe(report, sizes, style, limits)
          : reportText([comparisonSection(report, other.report)], style, { ...limits, rows: Infinity })
      )
    }
    yield* sharing.tell
  })
).pipe(
  Input.withExamples({
    "palimpsest inspect examples/claude-code-subagent.jsonl": "Inspect a Claude Code transcript",
    "palimpsest inspect session.json --json | jq .tokens": "Use the numbers in a script",
    "palimpsest inspect session.jsonl --html session.html": "Open it in a browser",
    "palimpsest inspect session.jsonl --html session.html --share":
      "Write a page to share, without secrets and account names",
    "palimpsest inspect before.jsonl --beside after.jsonl": "Compare two runs"
  })
)
