import { Context, Deferred, Effect, Exit, Layer, Option, Schema } from "effect"
import { EntityId, Sharding } from "effect/cluster"
import * as Hex from "effect/encoding/Hex"
import { Activity, Workflow, WorkflowEngine } from "effect/workflow"
import { encode } from "../../domain/text/Bytes.ts"
import {
  CompressionSteps,
  type CompressionStep,
  inProcess,
  type Steps
} from "../compression/summary/CompressionSteps.ts"
import { entityId } from "./SessionEntity.ts"

/**
 * Compressions of a cluster, as durable workflows: the result of each step is stored under the key of session and range, which is
 * the version of the conversation. When a runner dies, the one that has the session next asks for the same compression, and
 * goes on after the last step that was stored: no model is asked twice for the same answer.
 */

/** The steps of a session's compressions. Default: they just run. */
export const SessionSteps = Context.Reference<(tenant: string, id: string) => Steps>(
  "palimpsest/services/serve/SessionSteps",
  { defaultValue: () => () => inProcess }
)

const Compression = Workflow.make("palimpsest/Compression", {
  payload: { session: Schema.String, version: Schema.Natural, attempt: Schema.Natural },
  idempotencyKey: ({ attempt, session, version }) => `${session}/${version}/${attempt}`
})

/** What a chat wants carried out in a workflow. Returns whether it ended; false: it was given up, and may be asked for again. */
type Work = Effect.Effect<boolean, never, Workflowing>

/** The services of a running workflow. */
type Workflowing = WorkflowEngine.WorkflowEngine | WorkflowEngine.WorkflowInstance

/** So long a workflow waits for the chat whose compression it is, before it ends without one. */
const patience = "1 minute"

const digest = (about: unknown) =>
  Effect.map(
    Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", encode(JSON.stringify(about)).slice())),
    (bytes) => Hex.encode(new Uint8Array(bytes)).slice(0, 32)
  )

/** So long the engine may take to begin, and to store a result. Then the work is done without it: what it would store is lost. */
const maxBegin = "20 seconds"
const maxStore = "10 seconds"

/** The result of an activity. Without a value, the step failed, and is done again. */
const resultOf = <A>(result: Schema.Codec<A, unknown>) => Schema.Struct({ value: Schema.optionalKey(result) })

/** Carries out a step as an activity of the workflow whose services these are. */
const activity =
  (workflow: Context.Context<Workflowing>): Steps["step"] =>
  <A, E, R>({ about, name, result }: CompressionStep<A>, work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const context = yield* Effect.context<R>()
      const key = about === undefined ? name : `${name}/${yield* digest(about)}`
      const begun = yield* Deferred.make<void>()
      const once = yield* Effect.cached(Effect.exit(Effect.provideContext(work, context)))
      let failure: Exit.Exit<A, E> | undefined
      const execute = Effect.andThen(Deferred.succeed(begun, undefined), once).pipe(
        Effect.map((exit) => {
          if (Exit.isSuccess(exit)) return { value: exit.value }
          failure = exit
          return {}
        })
      )
      const stored = Effect.gen(function* () {
        for (let attempt = 1; ; attempt += 1) {
          const { value } = yield* Activity.make({ name: key, success: resultOf(result), execute }).pipe(
            Effect.provideService(Activity.CurrentAttempt, attempt),
            Effect.provideContext(workflow)
          )
          if (value !== undefined) return Exit.succeed(value)
          if (failure !== undefined) return failure
        }
      })
      // An engine whose database was away may have lost the request or the answer.
      const alone = Deferred.await(begun).pipe(
        Effect.timeoutOption(maxBegin),
        Effect.andThen(once),
        Effect.tap(() => Effect.sleep(maxStore))
      )
      return yield* yield* Effect.raceFirst(stored, alone)
    })

const make = Effect.gen(function* () {
  const engine = yield* WorkflowEngine.WorkflowEngine
  const sharding = yield* Sharding.Sharding
  const wanted = new Map<string, Deferred.Deferred<Work>>()

  /** The work of an execution, once a chat of this process asks for it. */
  const workOf = (execution: string): Deferred.Deferred<Work> => {
    const known = wanted.get(execution) ?? Deferred.makeUnsafe<Work>()
    wanted.set(execution, known)
    return known
  }

  yield* engine.register(Compression, (_payload, execution) =>
    Effect.gen(function* () {
      for (;;) {
        const work = yield* Effect.timeoutOption(Deferred.await(workOf(execution)), patience)
        wanted.delete(execution)
        if (Option.isNone(work) || (yield* work.value)) return
      }
    }).pipe(Effect.ensuring(Effect.sync(() => wanted.delete(execution))))
  )

  /** Ids of executions in the shard of the session, so that a compression runs where its session is. */
  function* executionsOf(session: string, version: number) {
    const shard = sharding.getShardId(EntityId.make(session), "default").id
    for (let number = 0; ; number += 1) {
      const id = `${session}/${version}/${number}`
      if (sharding.getShardId(EntityId.make(id), "default").id === shard) yield id
    }
  }

  const stepsOf = (session: string): Steps => ({
    step: inProcess.step,
    compression: <A, E, R>(version: number, work: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const context = yield* Effect.context<R>()
        let attempt = 0
        // An execution that ended before this process asked for it was another compression of the same version.
        for (const executionId of executionsOf(session, version)) {
          const ended = yield* Deferred.make<A, E>()
          const stopped = yield* Deferred.make<void>()
          const idle = yield* Deferred.make<void>()
          let isBegun = false
          const asked: Work = Effect.gen(function* () {
            if (isBegun || (yield* Deferred.isDone(stopped))) return false
            isBegun = true
            const step = activity(yield* Effect.context<Workflowing>())
            const carriedOut = Effect.provideContext(
              work,
              Context.add(context, CompressionSteps, { ...inProcess, step })
            )
            const exit = yield* Effect.exit(
              Effect.raceFirst(
                Effect.map(carriedOut, Option.some),
                Effect.as(Deferred.await(stopped), Option.none<A>())
              )
            )
            if (Exit.isSuccess(exit) && Option.isNone(exit.value)) return false
            yield* Deferred.done(ended, Exit.map(exit, Option.getOrThrow))
            return Exit.isSuccess(exit)
          }).pipe(Effect.ensuring(Deferred.succeed(idle, undefined)))
          Deferred.doneUnsafe(workOf(executionId), Effect.succeed(asked))
          const execution = engine.execute(Compression, { executionId, payload: { session, version, attempt } })
          const alone = Effect.suspend(() => {
            if (isBegun) return Effect.never
            isBegun = true
            return Effect.exit(work).pipe(Effect.ensuring(Deferred.succeed(idle, undefined)))
          })
          const done = yield* Effect.raceAllFirst([
            Effect.andThen(execution, Deferred.poll(ended)),
            Effect.asSome(Effect.exit(Deferred.await(ended))),
            Effect.asSome(Effect.delay(alone, maxBegin))
          ]).pipe(
            Effect.onInterrupt(() =>
              Effect.andThen(
                Deferred.succeed(stopped, undefined),
                Effect.suspend(() => (isBegun ? Deferred.await(idle) : Effect.void))
              )
            ),
            Effect.ensuring(Effect.sync(() => wanted.delete(executionId)))
          )
          if (Option.isSome(done)) return yield* done.value
          attempt += 1
        }
        return yield* Effect.never
      })
  })
  return (tenant: string, id: string) => stepsOf(entityId(tenant, id))
})

/** Compressions of the sessions of this process as workflows of the engine. */
export const layer = Layer.effect(SessionSteps, make)
