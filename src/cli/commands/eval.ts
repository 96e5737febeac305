import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { EvaluationReport, type MeasuredFile, sumsOf } from "../../domain/evaluation/EvaluationReport.ts"
import { measures } from "../../domain/evaluation/Measures.ts"
import { evaluateRecording } from "../../services/evaluation/Evaluation.ts"
import * as Input from "../input/Input.ts"
import { describeEvaluation } from "../output/EvaluationTable.ts"
import * as Output from "../output/Output.ts"

/** The command `palimpsest eval <files…>`. */
export const evaluate = Command.make(
  "eval",
  {
    files: Argument.String("files").pipe(
      Argument.withDescription("Recorded conversations"),
      Argument.variadic({ min: 1 })
    ),
    from: Input.from,
    lenient: Input.lenient,
    budget: Input.optional(
      Input.size("budget"),
      "Snapshot size in tokens (default: the recorded summary's, else 2k, 4k and 8k)"
    ),
    scale: Input.optional(Input.share("scale"), "Snapshot size as a share of the recorded summary's"),
    strategy: Input.optional(Flag.Literals("strategy", StrategyName.literals), "Strategy to measure (default: all)"),
    preserve: Input.optional(
      Input.share("preserve"),
      "Keep this share of the conversation's end (default: none, and the policy's share beside it)"
    ),
    seed: Flag.Int("seed").pipe(Flag.withDescription("Seed of the confidence intervals"), Flag.withDefault(1)),
    json: Input.json
  },
  Effect.fn("cli.eval")(function* (input) {
    const files: Array<MeasuredFile> = []
    for (const file of input.files) {
      const recording = yield* Input.load({ file, from: input.from, lenient: input.lenient })
      const points = yield* evaluateRecording(recording, {
        measures,
        strategies: input.strategy === undefined ? StrategyName.literals : [input.strategy],
        preserves: input.preserve === undefined ? [0, defaultPolicy.preserve] : [input.preserve],
        budget: input.budget,
        scale: input.scale ?? 1
      }).pipe(Output.progress(`measuring ${file}`))
      files.push({ file, points })
    }
    const figures = measures.flatMap((measure) => measure.figures)
    const seed = Math.abs(input.seed)
    const report = { seed, files, sums: sumsOf(files, figures, seed) }
    if (input.json) return yield* Output.json(EvaluationReport, report)
    yield* Output.text(describeEvaluation(report, figures))
  })
).pipe(Command.withDescription("Measure how much of what an agent needed later a compression keeps"))
