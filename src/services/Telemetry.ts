import { Clock, Context, Effect, Metric, type Scope, Stream } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import {
  type Activities,
  ActivityBuffer,
  compressionTold,
  eventTold,
  promptTold,
  summaryCallsTold,
  ToolsSeen,
  type Told
} from "../domain/Telemetry.ts"
import type { TelemetryRecord } from "../domain/Telemetry.ts"
import { HookSystem } from "./HookSystem.ts"

/** Where records go. It may fail: the first failure is told, and the run goes on. */
export type Sink = (record: TelemetryRecord) => Effect.Effect<void, { readonly message: string }>

/** How is told. */
export interface TelemetryOptions {
  /** Where records go, beside the buffer and Effect's own metrics and logs; none: nowhere. */
  readonly sinks: ReadonlyArray<Sink>
  /** Records that are held for who asks (seed 002: 100). */
  readonly buffer: number
  /** Whether what people, models and tools said is told too. */
  readonly prompts: boolean
  /** Whether each record is also a log entry of level Info, as those who export logs want it. */
  readonly logs: boolean
}

const events = Metric.counter("palimpsest_events", { description: "What happened, by name", incremental: true })
const tokens = Metric.counter("palimpsest_tokens", { description: "Tokens, by kind", incremental: true })
const saved = Metric.counter("palimpsest_tokens_saved", {
  description: "Tokens that compressions saved",
  incremental: true
})
const tools = Metric.histogram("palimpsest_tool_milliseconds", {
  description: "How long calls of tools ran",
  boundaries: Metric.exponentialBoundaries({ start: 10, factor: 4, count: 8 })
})

const tokenKinds = ["prompt_tokens", "answer_tokens", "thought_tokens", "cached_tokens"] as const

const numberAt = (attributes: TelemetryRecord["attributes"], key: string): number => {
  const value = attributes[key]
  return typeof value === "number" ? value : 0
}

const measured = Effect.fnUntraced(function* ({ attributes, name }: Told) {
  yield* Metric.update(Metric.withAttributes(events, { name }), 1)
  if (name === "turn") {
    for (const kind of tokenKinds) {
      const count = numberAt(attributes, kind)
      if (count > 0) yield* Metric.update(Metric.withAttributes(tokens, { kind }), count)
    }
  }
  if (name === "tool_call") yield* Metric.update(tools, numberAt(attributes, "duration"))
  if (name === "chat_compression" && attributes["status"] === "COMPRESSED") {
    yield* Metric.update(
      saved,
      Math.max(0, numberAt(attributes, "tokens_before") - numberAt(attributes, "tokens_after"))
    )
  }
})

/** Tells what happens in conversations to who watches: never what was said, unless that was asked for. Never fails. */
export class Telemetry extends Context.Service<
  Telemetry,
  {
    /** Passes events on as they are, and tells of them. `session`: the conversation's id. */
    readonly watch: <E, R>(
      session: string | undefined,
      prompt: string,
      stream: Stream.Stream<ChatEvent, E, R>
    ) => Stream.Stream<ChatEvent, E, R>
    /** Tells of every compression, automatic or asked for, as long as the scope is open. */
    readonly compressions: Effect.Effect<void, never, HookSystem | Scope.Scope>
    /** Tells of one thing: that a session began, for example. */
    readonly record: (session: string | undefined, told: Told) => Effect.Effect<void>
    /** What happened last. */
    readonly recent: Effect.Effect<Activities>
  }
>()("palimpsest/services/Telemetry") {
  /** Tells by these options. */
  static readonly make = ({ buffer, logs, prompts, sinks }: TelemetryOptions): Telemetry["Service"] => {
    const held = new ActivityBuffer(buffer)
    const failing = new Set<Sink>()
    const seen = new ToolsSeen()

    const record = Effect.fnUntraced(function* (session: string | undefined, told: Told) {
      const made = { ...told, at: yield* Clock.currentTimeMillis, session: session ?? null }
      held.push(made)
      yield* measured(told)
      if (logs) {
        yield* Effect.logInfo(told.name).pipe(
          Effect.annotateLogs({ ...told.attributes, ...(session === undefined ? {} : { session }), [mark]: true })
        )
      }
      for (const sink of sinks) {
        if (failing.has(sink)) continue
        yield* Effect.catch(sink(made), ({ message }) => {
          failing.add(sink)
          return Effect.logWarning(`no more telemetry is kept: ${message}`)
        })
      }
    })
    const tell = (session: string | undefined, told: Told | undefined) =>
      told === undefined ? Effect.void : record(session, told)

    return {
      record,
      recent: Effect.sync(() => held.view()),
      watch: (session, prompt, stream) =>
        Stream.concat(
          Stream.fromEffectDrain(prompts ? record(session, promptTold(prompt)) : Effect.void),
          Stream.tap(stream, (event) => tell(session, eventTold(event, prompts, seen.of(event))))
        ),
      compressions: HookSystem.use((hooks) =>
        hooks.add([
          {
            name: "telemetry",
            event: "PostCompress",
            priority: 0,
            run: (event, { session }) =>
              event._tag === "PostCompress"
                ? Effect.forEach([...summaryCallsTold(event), compressionTold(event)], (one) => tell(session, one), {
                    discard: true
                  })
                : Effect.void
          }
        ])
      )
    }
  }
}

/** Stands among the annotations of what is logged for telemetry, so that a terminal need not show it. */
export const mark = "palimpsest.telemetry"
