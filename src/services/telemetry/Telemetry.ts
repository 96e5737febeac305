/** Turns what happens in conversations into records for sinks, and into metrics. */

import { Clock, Context, Effect, Metric, type Scope, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import {
  type RecentActivity,
  ActivityBuffer,
  compressionEntry,
  eventEntry,
  promptEntry,
  summaryCallEntries,
  ToolNameTracker,
  type TelemetryEntry,
  type TelemetryRecord
} from "../../domain/telemetry/Telemetry.ts"
import { HookSystem } from "../hooks/HookSystem.ts"

/** Receives records. After its first failure a warning is logged and it receives no more; the run continues. */
export type Sink = (record: TelemetryRecord) => Effect.Effect<void, { readonly message: string }>

/** Options of telemetry. */
export interface TelemetryOptions {
  /** Receive every record, in addition to the buffer and Effect's own metrics and logs. */
  readonly sinks: ReadonlyArray<Sink>
  /** The number of records that `recent` holds. */
  readonly buffer: number
  /** Whether the texts of users, models and tools are recorded, too. */
  readonly prompts: boolean
  /** Whether each record is also logged at level Info, for log exporters. */
  readonly logs: boolean
}

const events = Metric.counter("palimpsest_events_total", { description: "What happened, by name", incremental: true })
const tokens = Metric.counter("palimpsest_tokens_by_kind_total", { description: "Tokens, by kind", incremental: true })
const saved = Metric.counter("palimpsest_tokens_saved_total", {
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

const updateMetrics = Effect.fnUntraced(function* ({ attributes, name }: TelemetryEntry) {
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

/** Records what happens in conversations, without their texts unless that is enabled. Never fails. */
export class Telemetry extends Context.Service<
  Telemetry,
  {
    /** Passes events on unchanged and records them. `session`: the conversation's id. */
    readonly watch: <E, R>(
      session: string | undefined,
      prompt: string,
      stream: Stream.Stream<ChatEvent, E, R>
    ) => Stream.Stream<ChatEvent, E, R>
    /** Records every compression, automatic or manual, as long as the scope is open. */
    readonly compressions: Effect.Effect<void, never, HookSystem | Scope.Scope>
    /** Records one entry, such as the start of a session. */
    readonly record: (session: string | undefined, entry: TelemetryEntry) => Effect.Effect<void>
    /** The latest records. */
    readonly recent: Effect.Effect<RecentActivity>
  }
>()("palimpsest/services/telemetry/Telemetry") {
  /**
   * Telemetry with these options.
   *
   * **Example** (Recording what happens in a chat)
   *
   * ```ts
   * import { Effect, Stream } from "effect"
   * import { Chats, Palimpsest, Records } from "palimpsest"
   * import { ScriptedModel } from "palimpsest/testing"
   *
   * const program = Effect.gen(function* () {
   *   const telemetry = Records.Telemetry.make({ sinks: [], buffer: 10, prompts: false, logs: false })
   *   const chat = yield* Chats.open("bridge")
   *   yield* Stream.runDrain(telemetry.watch("bridge", "When?", chat.send("When?")))
   *   return (yield* telemetry.recent).records.map(({ name }) => name)
   * }).pipe(Effect.scoped)
   * const Runtime = Palimpsest.layer({ model: ScriptedModel.layer(["In 1743."]) })
   * console.log(await Effect.runPromise(Effect.provide(program, Runtime))) // => [ 'request', 'turn' ]
   * ```
   */
  static readonly make = ({ buffer, logs, prompts, sinks }: TelemetryOptions): Telemetry["Service"] => {
    const held = new ActivityBuffer(buffer)
    const failing = new Set<Sink>()
    const toolNames = new ToolNameTracker()

    const record = Effect.fnUntraced(function* (session: string | undefined, entry: TelemetryEntry) {
      const made = { ...entry, at: yield* Clock.currentTimeMillis, session: session ?? null }
      held.push(made)
      yield* updateMetrics(entry)
      if (logs) {
        yield* Effect.logInfo(entry.name).pipe(
          Effect.annotateLogs({
            ...entry.attributes,
            ...(session === undefined ? {} : { session }),
            [telemetryMark]: true
          })
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
    const tell = (session: string | undefined, entry: TelemetryEntry | undefined) =>
      entry === undefined ? Effect.void : record(session, entry)

    return {
      record,
      recent: Effect.sync(() => held.view()),
      watch: (session, prompt, stream) =>
        Stream.concat(
          Stream.fromEffectDrain(prompts ? record(session, promptEntry(prompt)) : Effect.void),
          Stream.tap(stream, (event) => tell(session, eventEntry(event, prompts, toolNames.of(event))))
        ),
      compressions: HookSystem.use((hooks) =>
        hooks.add([
          {
            name: "telemetry",
            event: "PostCompress",
            priority: 0,
            run: (event, { session }) =>
              event._tag === "PostCompress"
                ? Effect.forEach([...summaryCallEntries(event), compressionEntry(event)], (one) => tell(session, one), {
                    discard: true
                  })
                : Effect.void
          }
        ])
      )
    }
  }
}

/** Annotates log entries of telemetry, so that a terminal can hide them. */
export const telemetryMark = "palimpsest.telemetry"
