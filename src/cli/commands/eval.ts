/** The `eval` command: measures what compressions of recorded conversations leave to the agent. */

import { Effect, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { strategies, StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { EvaluationReport, type MeasuredFile, sumsOf } from "../../domain/evaluation/EvaluationReport.ts"
import { measures } from "../../domain/evaluation/Measures.ts"
import { ownQuestions, parseQuestions } from "../../domain/evaluation/OwnQuestions.ts"
import { evaluateRecording } from "../../services/evaluation/Evaluation.ts"
import { sumPlanted } from "../../services/evaluation/PlantedRun.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as Input from "../flags/SharedFlags.ts"
import { describeEvaluation, describePlanted } from "../output/EvaluationTable.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** Default size of a snapshot with planted facts, in tokens. */
const defaultPlantedBudget = 4_000

/** Whether a strategy writes a snapshot of a given size. */
const writesSnapshots = (name: StrategyName): boolean =>
  strategies.some((strategy) => strategy.name === name && strategy.hasSnapshotBudget)

/** Reads a questions file. A file without valid questions is bad input: status 2. */
const questionsIn = Effect.fnUntraced(function* (file: string) {
  const text = yield* Input.fileText(file, "--questions expects a file with one JSON object a line")
  const questions = parseQuestions(text)
  return Result.isFailure(questions)
    ? yield* badInput(`${file}, line ${questions.failure.line}: ${questions.failure.message}`)
    : questions.success
})

/** The command `palimpsest eval [files…]`. */
export const evaluate = Command.make(
  "eval",
  {
    files: Input.argument("files", "Recorded conversations").pipe(Argument.variadic()),
    from: Input.from,
    lenient: Input.lenient,
    budget: Input.size("budget", "Snapshot size in tokens (default: the recorded summary's, else 2k, 4k and 8k)"),
    scale: Input.share("scale", "Snapshot size as a fraction of the recorded summary's"),
    strategy: Input.optional(
      Input.strategies,
      `Strategies to measure, separated by commas (default: all): ${Input.strategyNames}`
    ),
    preserve: Input.share(
      "preserve",
      "Keep this part of the conversation's end (default: none, and what the strategy says)"
    ),
    questions: Input.text("questions", "file", "Ask the questions in this file, one JSON object a line"),
    planted: Input.optional(
      Flag.Int("planted"),
      "Plant facts in this many synthetic conversations, and compress each 20 times"
    ),
    seed: Input.withDefault(Flag.Int("seed"), 1, "Seed of the confidence intervals and the planted facts"),
    json: Input.json
  },
  Effect.fn("cli.eval")(function* (input) {
    const { planted = 0 } = input
    if (planted < 0) return yield* badInput(`--planted ${planted}: expected 1 or more conversations`)
    if (input.files.length === 0 && planted === 0) {
      return yield* badInput("name a recorded conversation, or plant facts with --planted N")
    }
    const own = input.questions === undefined ? [] : [ownQuestions(yield* questionsIn(input.questions))]
    const used = [...measures, ...own]
    const names = input.strategy ?? StrategyName.literals
    const seed = Math.abs(input.seed)
    const files: Array<MeasuredFile> = []
    for (const file of input.files) {
      const recording = yield* ConversationInput.load({ file, from: input.from, lenient: input.lenient })
      const points = yield* evaluateRecording(recording, {
        measures: used,
        strategies: names,
        preserves: input.preserve === undefined ? [0, defaultPolicy.preserve] : [input.preserve],
        budget: input.budget,
        scale: input.scale ?? 1
      }).pipe(Output.progress(`measuring ${file}`))
      files.push({ file, points })
    }
    const figures = used.flatMap((measure) => measure.figures)
    const sums = yield* Effect.forEach(planted === 0 ? [] : names.filter(writesSnapshots), (strategy) =>
      sumPlanted(planted, {
        seed,
        strategy,
        budget: input.budget ?? defaultPlantedBudget,
        preserve: input.preserve ?? 0
      }).pipe(Output.progress("compressing planted facts"))
    )
    const report: EvaluationReport = {
      seed,
      files,
      sums: sumsOf(files, figures, seed),
      ...(planted === 0 ? {} : { planted: sums.flat() })
    }
    if (input.json) return yield* Output.json(EvaluationReport, report)
    const { stdout: columns } = yield* Output.TerminalColumns
    yield* Output.text(
      [
        ...(files.length === 0 ? [] : [describeEvaluation(report, figures, columns)]),
        ...(planted === 0 ? [] : [describePlanted(sums.flat())])
      ].join("\n\n")
    )
  })
)
