/** Sends spans, metrics and logs of this program to a collector (OTLP over HTTP, JSON). */

import { Cause, Effect, Exit, Layer, Logger, References, Tracer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as OtlpLogger from "effect/observability/OtlpLogger"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import { safeName } from "../../domain/telemetry/Telemetry.ts"
import { telemetryMark } from "../../services/telemetry/Telemetry.ts"

/** Options of the export. */
export interface OtlpOptions {
  /** The collector's address, without `/v1/traces`. */
  readonly endpoint: string
  readonly version: string
  /** Whether it may contain texts of users, models and tools. */
  readonly prompts: boolean
}

/** How long the program waits at its end for a collector that does not answer. */
const shutdownTimeout = "2 seconds"

/** Attributes of spans that are names. All others may contain text of users or models. */
const names: ReadonlySet<string> = new Set([
  "model",
  "prompt_id",
  "purpose",
  "role",
  "status",
  "strategy",
  "tool",
  "trigger"
])

const nameOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return "failure"
  const tag = "_tag" in error ? error._tag : error instanceof Error ? error.name : "failure"
  const reason = "reason" in error && typeof error.reason === "object" && error.reason !== null ? error.reason : {}
  return "_tag" in reason ? `${String(tag)} (${String(reason._tag)})` : String(tag)
}

/** Reduces a failure to names, because its message may contain private text. */
const wordless = <A, E>(exit: Exit.Exit<A, E>): Exit.Exit<unknown, unknown> =>
  Exit.isSuccess(exit)
    ? Exit.void
    : Cause.hasInterruptsOnly(exit.cause)
      ? Exit.failCause(exit.cause)
      : Exit.fail(nameOf(Cause.squash(exit.cause)))

/** A tracer whose spans contain names and numbers only. */
const withoutWords = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    ...tracer,
    span: (options) => {
      const span = tracer.span(options)
      const { attribute, end } = span
      span.end = (time, exit) => end.call(span, time, wordless(exit))
      span.attribute = (key, value) => {
        if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
          attribute.call(span, key, value)
        } else if (typeof value === "string" && names.has(key)) attribute.call(span, key, safeName(value))
      }
      span.event = () => {}
      return span
    }
  })

/** Only log entries of telemetry are exported, because other entries may contain private text. */
const onlyTelemetry = <Message>(logger: Logger.Logger<Message, void>): Logger.Logger<Message, void> =>
  Logger.make((options) => {
    if (options.fiber.getRef(References.CurrentLogAnnotations)[telemetryMark] === true) logger.log(options)
  })

/** Exports while the layer lives, and sends the rest when it closes. An unreachable collector does not delay anything else. */
export const layer = ({ endpoint, prompts, version }: OtlpOptions): Layer.Layer<never> => {
  const resource = { serviceName: "palimpsest", serviceVersion: version }
  const to = (signal: string) =>
    ({ url: `${endpoint.replace(/\/+$/, "")}/v1/${signal}`, resource, shutdownTimeout }) as const
  const tracer = Layer.effect(
    Tracer.Tracer,
    Effect.map(OtlpTracer.make(to("traces")), (made) => (prompts ? made : withoutWords(made)))
  )
  const logger = Logger.layer(
    [Effect.map(OtlpLogger.make(to("logs")), (made) => (prompts ? made : onlyTelemetry(made)))],
    { mergeWithExisting: true }
  )
  // The metrics layer provides the flusher that all three share.
  return Layer.merge(tracer, logger).pipe(
    Layer.provideMerge(OtlpMetrics.layer(to("metrics"))),
    Layer.provide(OtlpSerialization.layerJson),
    Layer.provide(FetchHttpClient.layer)
  )
}
