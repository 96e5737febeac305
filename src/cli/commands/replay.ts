/** The `replay` command: plays a recorded conversation again in a window of another size, by one strategy or several. */

import { Effect } from "effect"
import { Command } from "effect/cli"
import {
  defaultStrategy,
  defaultThreshold,
  strategyDefaults,
  type StrategyName
} from "../../domain/compression/strategies/Strategies.ts"
import { thresholdOf } from "../../domain/compression/strategies/Threshold.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { recordedTurns } from "../../domain/evaluation/Replay.ts"
import type { ContextOverflow } from "../../services/chat/FitRequest.ts"
import { playRecording } from "../../services/evaluation/Replay.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as ReportFlags from "../flags/ReportFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { describe, Report, resultOf } from "../output/ReplayReport.ts"
import { terminalLimits } from "../output/ReportText.ts"
import { renderReplayPage } from "../page/ReplayPage.ts"

const flags = {
  ...Input.conversation,
  window: Input.requiredSize("window", "Context window in tokens"),
  strategy: Input.withDefault(
    Input.strategies,
    [defaultStrategy.name],
    `Strategies to compare, separated by commas: ${Input.strategyNames}`
  ),
  threshold: Input.threshold,
  toolOutputForm: Input.outputForm,
  prices: ReportFlags.prices,
  html: ReportFlags.html,
  json: Input.json
}

const tooSmall = (window: number, { stubborn: [largest] }: ContextOverflow): string => {
  const largestPart = largest === undefined ? "" : ` (the largest: ${largest.what}, about ${largest.tokens} tokens)`
  return `--window ${window} is too small: the messages before the first answer${largestPart} do not fit even after compression; give a larger window`
}

/** The command `palimpsest replay <file>`. */
export const replay = Command.make(
  "replay",
  flags,
  Effect.fn("cli.replay")(function* (input) {
    if (input.window === 0) return yield* badInput("--window 0 leaves no room; give the window in tokens")
    yield* ReportFlags.checkPlace(input.file, input)
    const prices = yield* ReportFlags.readPrices(input.prices)
    const threshold = thresholdOf(input.threshold, undefined)
    const { format, session, transcript } = yield* ConversationInput.load(input)
    const model = session.model ?? transcript?.model
    const turns = recordedTurns(session.conversation)
    const name = inputName(input.file)
    if (turns.length === 0) return yield* badInput(`${name}: it has no model answers, so there is nothing to replay`)
    const triggerOf = (strategy: StrategyName) =>
      Math.ceil((threshold ?? defaultThreshold(strategy, input.window)) * input.window)
    const results = yield* Effect.forEach(input.strategy, (strategy) =>
      playRecording(turns, {
        session: `replay-${strategy}`,
        window: input.window,
        threshold,
        policy: {
          ...strategyDefaults(strategy),
          ...(input.toolOutputForm === undefined ? {} : { outputForm: input.toolOutputForm })
        },
        recording: session
      }).pipe(
        Output.progress(`playing ${name} (${strategy})`),
        Effect.mapError((error) =>
          error._tag === "ContextOverflow" ? badInput(tooSmall(input.window, error)) : failed(error.message)
        ),
        Effect.map((played) =>
          resultOf(
            { strategy, trigger: triggerOf(strategy), window: input.window, turns: turns.length, model, prices },
            played
          )
        )
      )
    )
    const report: Report = {
      file: input.file,
      format,
      messages: entries(session.conversation).length,
      window: input.window,
      threshold: threshold ?? defaultThreshold(input.strategy[0] ?? defaultStrategy.name, input.window),
      model: model ?? null,
      prices: prices.source,
      strategies: results
    }
    if (input.html !== undefined) yield* ReportFlags.writePage(input.html, renderReplayPage(report))
    if (input.json) yield* Output.json(Report, report)
    else if (input.html === undefined) yield* Output.text(describe(report, yield* Output.style, yield* terminalLimits))
    for (const { milliseconds, strategy, turns: count } of results) {
      yield* Output.notice(
        `${strategy} took ${Math.round(milliseconds)} ms, ${(milliseconds / count).toFixed(1)} ms a request`
      )
    }
    const over = results.find((result) => result.over > 0)
    if (over !== undefined) {
      return yield* failed(
        `${over.over} requests with ${over.strategy} were larger than the window; this is a bug, please report it with the file`
      )
    }
  })
).pipe(
  Input.withExamples({
    "palimpsest replay talk.jsonl --window 32k": "Show when a window of 32,000 tokens is compressed and what it keeps",
    "palimpsest replay talk.jsonl --window 32k --strategy palimpsest,gemini": "Compare two strategies",
    "palimpsest replay talk.jsonl --window 32k --strategy palimpsest,pi --html talk.html":
      "Compare them on a page with a chart"
  })
)
