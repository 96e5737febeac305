/** Concludes a compression of the strategy `gemini` from both answers: the new history, or why there is none. */

import { type Content, model, type Part, text, user } from "../../../content/Content.ts"
import type * as Work from "../../../text/SlicedWork.ts"
import type { Summarize } from "./Decision.ts"
import { defaultRates, estimating, partsOf, type Rates } from "./TokenEstimate.ts"

/** The model's message after its summary. */
export const acknowledgement = "Got it. Thanks for the additional context!"

/** The texts of both answers; a missing one is empty. */
export interface Answers {
  readonly summary: string
  readonly verified: string
}

/** Returns the second answer if it contains text, else the first. A scratchpad stays in it. */
export const finalSummary = ({ summary, verified }: Answers): string =>
  (verified.trim() === "" ? summary : verified).trim()

/** The new history: the summary, the acknowledgement, the kept messages. */
export const layoutOf = ({ keep }: Summarize, summary: string): ReadonlyArray<Content> => [
  user(text(summary)),
  model(text(acknowledgement)),
  ...keep
]

/** Returns all parts of the new history to count, starting with the environment message. */
export const countedParts = ({ environment }: Summarize, layout: ReadonlyArray<Content>): ReadonlyArray<Part> =>
  partsOf(environment === undefined ? layout : [environment, ...layout])

/** The result of a compression that called the model. Telemetry also reports `before` and `after`. */
export type Conclusion =
  | {
      readonly status: "COMPRESSED"
      readonly before: number
      readonly after: number
      readonly summary: string
      /** Without the environment message, which the caller prepends. */
      readonly history: ReadonlyArray<Content>
    }
  | {
      readonly status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"
      readonly before: number
      readonly after: number
      readonly summary: string
    }
  | {
      readonly status: "COMPRESSION_FAILED_EMPTY_SUMMARY" | "COMPRESSION_FAILED_TOKEN_COUNT_ERROR"
      readonly before: number
      readonly after: number
    }

/**
 * The API's count of the new history. Undefined: no count was needed, and the estimate decides. "failed": the API gave no
 * count, which ends as a counting error; Gemini CLI uses its estimate in that case.
 */
export type ApiCount = number | "failed" | undefined

/** Returns the conclusion from both answers: the new history, or why there is none. */
export function* concluding(
  decision: Summarize,
  answers: Answers,
  counted?: ApiCount,
  rates: Rates = defaultRates
): Work.SlicedWork<Conclusion> {
  const { before } = decision
  const summary = finalSummary(answers)
  if (summary === "") return { status: "COMPRESSION_FAILED_EMPTY_SUMMARY", before, after: before }
  if (counted === "failed") return { status: "COMPRESSION_FAILED_TOKEN_COUNT_ERROR", before, after: before }
  const history = layoutOf(decision, summary)
  const after = counted ?? (yield* estimating(countedParts(decision, history), rates))
  return after > before
    ? { status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", before, after, summary }
    : { status: "COMPRESSED", before, after, summary, history }
}
