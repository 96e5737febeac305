/** The contract of counting tokens, with the estimate and counters by a function. */

import { Context, Effect, Layer, Schema } from "effect"
import { isMedia, outputText, type Part, payload } from "../../domain/content/Content.ts"
import { responseContent } from "../../domain/content/MediaBlocks.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { partTokens, TokenCount } from "../../domain/tokens/Tokens.ts"

/** Tokens could not be counted. */
export class TokenCountError extends Schema.TaggedError<TokenCountError>()("TokenCountError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Counts tokens part by part, so that a count can be stored with its part and never needs repeating. */
export class TokenCounter extends Context.Service<
  TokenCounter,
  {
    /** Tokens of each part, in order: whole numbers that are not negative. */
    readonly count: (parts: ReadonlyArray<Part>) => Effect.Effect<ReadonlyArray<number>, TokenCountError>
  }
>()("palimpsest/services/tokens/TokenCounter") {
  /**
   * Provides a counter of your own: a function of a text, for example a tokenizer. Tool results count as their texts,
   * other parts as their JSON; media are estimated. Fractions are rounded up. A count that is not a number, or is negative, is a failure.
   *
   * **Example** (Counting with a tokenizer of your own)
   *
   * ```ts
   * import { Effect } from "effect"
   * import { Content, Tokens } from "palimpsest"
   *
   * const Words = Tokens.TokenCounter.layer((text) => text.split(" ").length)
   * const counted = Tokens.TokenCounter.use((counter) =>
   *   counter.count([Content.text("Why does the build fail?")])
   * )
   * console.log(await Effect.runPromise(Effect.provide(counted, Words))) // => [ 5 ]
   * ```
   */
  static readonly layer = (count: (text: string) => number): Layer.Layer<TokenCounter> =>
    Layer.succeed(TokenCounter, {
      count: (parts) => Effect.forEach(parts, (part) => countedBy(count, part))
    })

  /** Provides an estimate by class of character: offline, deterministic, under 10 ms per MiB. */
  static readonly layerEstimate = Layer.succeed(TokenCounter, {
    count: (parts) => Effect.suspend(() => Work.run(counts(parts)))
  })
}

/** Parts in another form, each with the tokens of that. */
export const withTokens = <P extends { readonly replacement: Part }>(parts: ReadonlyArray<P>) =>
  Effect.map(
    TokenCounter.use(({ count }) => count(parts.map(({ replacement }) => replacement))),
    (counts) => parts.map((part, at) => ({ ...part, tokens: TokenCount.make(counts[at] ?? 0) }))
  )

const failed = (message: string, cause: unknown) => new TokenCountError({ message, cause })

const countedBy = (count: (text: string) => number, part: Part) =>
  isMedia(part) || responseContent(part).media.length > 0
    ? Effect.suspend(() => Work.run(partTokens(part)))
    : Effect.try({
        try: () => count(outputText(part) ?? payload(part).text),
        catch: (cause) => failed(`the token counter failed: ${errorText(cause)}`, cause)
      }).pipe(
        Effect.flatMap((tokens) =>
          Number.isFinite(tokens) && tokens >= 0
            ? Effect.succeed(Math.ceil(tokens))
            : Effect.fail(failed(`the token counter returned ${tokens}; expected a number of tokens`, tokens))
        )
      )

function* counts(parts: ReadonlyArray<Part>): Work.SlicedWork<ReadonlyArray<number>> {
  const tokens: Array<number> = []
  for (const part of parts) tokens.push(yield* partTokens(part))
  return tokens
}
