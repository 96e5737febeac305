/** Counts the tokens of a tenant where models are asked, so that every request counts once: turns, snapshots, titles, subagents. */

import { Cause, Effect, Exit, Metric, Stream } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"
import type { Model, ModelRequest } from "../model/Model.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { tokensUsed } from "./ServeMetrics.ts"
import type { TenantLimiter } from "./TenantLimiter.ts"

/** A request, and what is known of its answer. Mutable: it arrives. */
interface Asked {
  readonly request: ModelRequest
  readonly parts: Array<Part>
  usage: Usage | null
}

/** The model of a tenant's sessions. A request counts once its answer began, also when the answer is cut short. */
export const metered = (
  model: Model["Service"],
  tenant: string,
  limiter: TenantLimiter["Service"],
  counter: TokenCounter["Service"]
): Model["Service"] => {
  /** A provider that reports no usage would otherwise never reach a limit. */
  const estimated = ({ parts, request }: Asked) =>
    counter.count([...request.contents.flatMap((content) => content.parts), ...parts]).pipe(
      Effect.map((counts) => counts.reduce((sum, tokens) => sum + tokens, 0)),
      Effect.orElseSucceed(() => 0)
    )
  const count = (asked: Asked) =>
    (asked.usage === null
      ? estimated(asked)
      : Effect.succeed(asked.usage.prompt + asked.usage.answer + asked.usage.thoughts)
    ).pipe(
      Effect.map(Math.ceil),
      Effect.tap((tokens) => limiter.tokens(tenant, tokens)),
      Effect.flatMap((tokens) => Metric.update(tokensUsed, tokens))
    )
  const isCut = <A, E>(exit: Exit.Exit<A, E>) => Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
  return {
    ...model,
    generate: (request) =>
      Effect.onExit(model.generate(request), (exit) =>
        Exit.isSuccess(exit)
          ? count({ request, parts: [...exit.value.content.parts], usage: exit.value.usage })
          : isCut(exit)
            ? count({ request, parts: [], usage: null })
            : Effect.void
      ),
    stream: (request) =>
      Stream.suspend(() => {
        const asked: Asked = { request, parts: [], usage: null }
        let hasBegun = false
        return model.stream(request).pipe(
          Stream.map((chunk) => {
            hasBegun = true
            for (const each of chunk.parts) asked.parts.push(each)
            asked.usage = chunk.usage ?? asked.usage
            return chunk
          }),
          Stream.onExit((exit) => (hasBegun || isCut(exit) ? count(asked) : Effect.void))
        )
      })
  }
}
