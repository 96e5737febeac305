/**
 * Compressions of a cluster, as durable workflows: the result of each step is stored under the key of session and range, which is
 * the version of the conversation. When a runner dies, the one that has the session next asks for the same compression, and
 * goes on after the last step that was stored: no model is asked twice for the same answer.
 */

import { Context, Deferred, Effect, Exit, Layer, Option, Schema } from "effect"
import { EntityId, Sharding } from "effect/cluster"
import * as Hex from "effect/encoding/Hex"
import { Activity, Workflow, WorkflowEngine } from "effect/workflow"
import { digestOf } from "../../domain/content/Sha256.ts"
import { encode } from "../../domain/text/Bytes.ts"
import {
  CompressionSteps,
  type CompressionStep,
  inProcess,
  type Steps
} from "../compression/summary/CompressionSteps.ts"
import { entityId } from "./SessionEntity.ts"

/** The steps of a session's compressions. Default: they just run. */
export const SessionSteps = Context.Reference<(tenant: string, id: string) => Steps>(
  "palimpsest/services/serve/SessionSteps",
  { defaultValue: () => () => inProcess }
)

const Compression = Workflow.make("palimpsest/Compression", {
  payload: { session: Schema.String, version: Schema.Natural, attempt: Schema.Natural },
  idempotencyKey: ({ attempt, session, version }) => `${session}/${version}/${attempt}`
})

/** What a workflow runs for a chat. Returns false if the chat gave it up: it may ask for it again. */
type WorkflowRun = Effect.Effect<boolean, never, Workflowing>

/** The services of a running workflow. */
type Workflowing = WorkflowEngine.WorkflowEngine | WorkflowEngine.WorkflowInstance

/** How long a workflow waits for the chat whose compression it is. */
const chatTimeout = "1 minute"

const digest = (about: unknown): string => Hex.encode(digestOf(encode(JSON.stringify(about)))).slice(0, 32)

/** How long the engine may take to start work, and to store a result. After that, the work runs without it, and no result is stored. */
const startTimeout = "20 seconds"
const storeTimeout = "10 seconds"

/** The result of an activity. Without a value, the step failed and runs again. */
const resultOf = <A>(result: Schema.Codec<A, unknown>) => Schema.Struct({ value: Schema.optionalKey(result) })

/** Carries out a step as an activity of the workflow whose services these are. */
const activity =
  (workflow: Context.Context<Workflowing>): Steps["step"] =>
  <A, E, R>({ about, name, result }: CompressionStep<A>, work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const context = yield* Effect.context<R>()
      const key = about === undefined ? name : `${name}/${digest(about)}`
      const started = yield* Deferred.make<void>()
      const once = yield* Effect.cached(Effect.exit(Effect.provideContext(work, context)))
      let failure: Exit.Exit<A, E> | undefined
      const execute = Effect.andThen(Deferred.succeed(started, undefined), once).pipe(
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
      const alone = Deferred.await(started).pipe(
        Effect.timeoutOption(startTimeout),
        Effect.andThen(once),
        Effect.tap(() => Effect.sleep(storeTimeout))
      )
      return yield* yield* Effect.raceFirst(stored, alone)
    })

/** The workflows of this process. */
interface Workflows {
  readonly engine: WorkflowEngine.WorkflowEngine["Service"]
  readonly sharding: Sharding.Sharding["Service"]
  /** The work of each execution, once a chat of this process asks for it. */
  readonly works: Map<string, Deferred.Deferred<WorkflowRun>>
}

const workOf = ({ works }: Workflows, execution: string): Deferred.Deferred<WorkflowRun> => {
  const work = works.get(execution) ?? Deferred.makeUnsafe<WorkflowRun>()
  works.set(execution, work)
  return work
}

/** Runs an execution: waits for a chat that asks for it, again after one that gave up. */
const runExecution = (workflows: Workflows, execution: string) =>
  Effect.gen(function* () {
    for (;;) {
      const work = yield* Effect.timeoutOption(Deferred.await(workOf(workflows, execution)), chatTimeout)
      workflows.works.delete(execution)
      if (Option.isNone(work) || (yield* work.value)) return
    }
  }).pipe(Effect.ensuring(Effect.sync(() => workflows.works.delete(execution))))

/** Ids of executions in the shard of the session, so that a compression runs where its session is. */
function* executionsOf({ sharding }: Workflows, session: string, version: number) {
  const shard = sharding.getShardId(EntityId.make(session), "default").id
  for (let number = 0; ; number += 1) {
    const id = `${session}/${version}/${number}`
    if (sharding.getShardId(EntityId.make(id), "default").id === shard) yield id
  }
}

/** A compression that a chat asked for. It runs once: in the workflow, or without it if the engine does not start it. */
interface Request<A, E> {
  readonly work: (steps: Steps) => Effect.Effect<A, E>
  readonly ended: Deferred.Deferred<A, E>
  /** Done when the chat gives it up. */
  readonly stopped: Deferred.Deferred<void>
  /** Done when it no longer runs. */
  readonly idle: Deferred.Deferred<void>
  hasStarted: boolean
}

/** Runs a request in the workflow, which stores its steps. */
const inWorkflow = <A, E>(request: Request<A, E>): WorkflowRun =>
  Effect.gen(function* () {
    const { ended, stopped, work } = request
    if (request.hasStarted || (yield* Deferred.isDone(stopped))) return false
    request.hasStarted = true
    const step = activity(yield* Effect.context<Workflowing>())
    const exit = yield* Effect.exit(
      Effect.raceFirst(
        Effect.map(work({ ...inProcess, step }), Option.some),
        Effect.as(Deferred.await(stopped), Option.none<A>())
      )
    )
    if (Exit.isSuccess(exit) && Option.isNone(exit.value)) return false
    yield* Deferred.done(ended, Exit.map(exit, Option.getOrThrow))
    return Exit.isSuccess(exit)
  }).pipe(Effect.ensuring(Deferred.succeed(request.idle, undefined)))

const withoutWorkflow = <A, E>(request: Request<A, E>) =>
  Effect.suspend(() => {
    if (request.hasStarted) return Effect.never
    request.hasStarted = true
    return Effect.exit(request.work(inProcess)).pipe(Effect.ensuring(Deferred.succeed(request.idle, undefined)))
  })

const stop = <A, E>(request: Request<A, E>) =>
  Effect.andThen(
    Deferred.succeed(request.stopped, undefined),
    Effect.suspend(() => (request.hasStarted ? Deferred.await(request.idle) : Effect.void))
  )

/** Returns how the work ended; none if the execution had ended before: it was another compression of the same version. */
const execute = Effect.fnUntraced(function* <A, E>(
  workflows: Workflows,
  executionId: string,
  payload: (typeof Compression.payloadSchema)["Type"],
  work: Request<A, E>["work"]
) {
  const { engine, works } = workflows
  const request: Request<A, E> = {
    work,
    ended: yield* Deferred.make<A, E>(),
    stopped: yield* Deferred.make<void>(),
    idle: yield* Deferred.make<void>(),
    hasStarted: false
  }
  Deferred.doneUnsafe(workOf(workflows, executionId), Effect.succeed(inWorkflow(request)))
  return yield* Effect.raceAllFirst([
    Effect.andThen(engine.execute(Compression, { executionId, payload }), Deferred.poll(request.ended)),
    Effect.asSome(Effect.exit(Deferred.await(request.ended))),
    Effect.asSome(Effect.delay(withoutWorkflow(request), startTimeout))
  ]).pipe(
    Effect.onInterrupt(() => stop(request)),
    Effect.ensuring(Effect.sync(() => works.delete(executionId)))
  )
})

const compress = Effect.fnUntraced(function* <A, E, R>(
  workflows: Workflows,
  session: string,
  version: number,
  work: Effect.Effect<A, E, R>
) {
  const context = yield* Effect.context<R>()
  const workWith = (steps: Steps) => Effect.provideContext(work, Context.add(context, CompressionSteps, steps))
  let attempt = 0
  for (const executionId of executionsOf(workflows, session, version)) {
    const end = yield* execute(workflows, executionId, { session, version, attempt }, workWith)
    if (Option.isSome(end)) return yield* end.value
    attempt += 1
  }
  return yield* Effect.never
})

const make = Effect.gen(function* () {
  const engine = yield* WorkflowEngine.WorkflowEngine
  const workflows: Workflows = { engine, sharding: yield* Sharding.Sharding, works: new Map() }
  yield* engine.register(Compression, (_payload, execution) => runExecution(workflows, execution))
  return (tenant: string, id: string): Steps => ({
    step: inProcess.step,
    compression: (version, work) => compress(workflows, entityId(tenant, id), version, work)
  })
})

/** Compressions of the sessions of this process as workflows of the engine. */
export const layer = Layer.effect(SessionSteps, make)
