/**
 * The turns of open sessions. A message begins a turn, joins the running one, or continues one that another process
 * began.
 */

import { Cause, Deferred, Effect, Exit, FiberSet, Metric, Option, Path, RcMap, Stream } from "effect"
import { type Part, text } from "../../domain/content/Content.ts"
import { viewTokens } from "../../domain/conversation/Conversation.ts"
import { answerLength } from "../../domain/model/ModelLimits.ts"
import { endAfter, type ServedTurnEnd } from "../../domain/serve/EventBuffer.ts"
import { filePart } from "../../domain/serve/MessageFiles.ts"
import { ResumedAnswer, resumption } from "../../domain/serve/ResumedTurn.ts"
import { answerTo, hasWords } from "../../domain/serve/SessionLedger.ts"
import type { TurnOptions } from "../../domain/serve/SessionRecord.ts"
import type { Session } from "../../domain/session/Session.ts"
import { reconfigure } from "../chat/Chat.ts"
import type { TurnError } from "../chat/Turn.ts"
import { CompressionSteps } from "../compression/summary/CompressionSteps.ts"
import type { Generation } from "../model/Model.ts"
import { newId } from "../platform/NewId.ts"
import { RuntimePlatform } from "../runtime/RuntimePlatform.ts"
import { noMessage, otherWords, storeError } from "./Failures.ts"
import { type OpenedSession, recordedTurn, type ServedTurn } from "./OpenedSession.ts"
import { accepting, keyOf, open, type OpenSessions, within } from "./OpenSessions.ts"
import type { ServedSessions } from "./ServedSessions.ts"
import { BadRequest, Conflict, Unavailable } from "./ServeErrors.ts"
import { runningTurns, turnsEnded } from "./ServeMetrics.ts"
import * as StoredSessions from "./StoredSessions.ts"

const agentsHere = Effect.gen(function* () {
  const path = yield* Path.Path
  const { all } = yield* (yield* RuntimePlatform).agents(path.resolve("."), false)
  return (yield* all).agents
})

/** The agent with this name. Sessions without tools have loaded none. */
const agentNamed = Effect.fnUntraced(function* (
  stored: StoredSessions.StoredSessions,
  tenant: string,
  { agent }: OpenedSession,
  name: string
) {
  const loaded = agent.host.definitions.agents
  const agents = loaded.length > 0 ? loaded : yield* StoredSessions.inTenant(stored, tenant, agentsHere)
  const definition = agents.find((one) => one.definition.name === name)?.definition
  if (definition?.kind === "local") return definition
  const names = agents.flatMap((one) => (one.definition.kind === "local" ? [one.definition.name] : []))
  return yield* new BadRequest({ message: `there is no agent ${name}; the agents are: ${names.join(", ")}` })
})

/** Returns how a turn is answered. What a message sets replaces what its session does, and what is set beside an agent replaces what the agent says. */
const turnSettings = Effect.fnUntraced(function* (
  stored: StoredSessions.StoredSessions,
  tenant: string,
  session: OpenedSession,
  record: TurnOptions,
  own: TurnOptions = {}
) {
  const { agent: name, generation, instruction, model, responseSchema } = { ...record, ...own }
  const agent = name === undefined ? undefined : yield* agentNamed(stored, tenant, session, name)
  const parameters: Generation = {
    ...(agent === undefined ? {} : { temperature: agent.temperature, topP: agent.topP }),
    ...generation,
    ...(responseSchema === undefined ? {} : { responseSchema })
  }
  return {
    instruction: instruction ?? agent?.prompt,
    model: model ?? (agent === undefined || agent.model === "inherit" ? undefined : agent.model),
    // The model of the session decides who writes its summaries, whatever model one message has.
    chosen: record.model,
    generation: Object.keys(parameters).length === 0 ? undefined : parameters,
    // Names and wildcards of the server's tools that it may use. Undefined: all.
    selects: agent?.tools
  }
})

type Served = ServedSessions["Service"]

/** How a turn ended that failed. In a cluster, an unavailable database comes back, and the turn is continued. */
const endOf = (cause: Cause.Cause<TurnError>, { error: told }: ServedTurnEnd, isCluster: boolean): ServedTurnEnd => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  const wasTakenOver =
    error?._tag === "SessionStoreError" &&
    (isCluster || error.reason._tag === "SessionTaken" || error.reason._tag === "SessionChanged")
  return Cause.hasInterrupts(cause) || wasTakenOver
    ? { status: "stopped", error: "another server took over, or this one stopped; send the message again" }
    : { status: "failed", error: told ?? error?.message ?? "the server could not do this; its log says why" }
}

const runTurn = Effect.fnUntraced(function* (
  state: OpenSessions,
  tenant: string,
  session: OpenedSession,
  turn: ServedTurn,
  parts: ReadonlyArray<Part>,
  resumed: ResumedAnswer,
  settings: Effect.Success<ReturnType<typeof turnSettings>>,
  release: Effect.Effect<void>
) {
  const { journal, opened, sessions, stepsOf } = state
  let end: ServedTurnEnd = { status: "answered", error: null }
  const { agent, questions } = session
  const options = {
    cancel: Deferred.await(turn.cancel),
    messageId: turn.message,
    tools: questions.tools,
    lasting: questions.lasting,
    selects: settings.selects,
    model: settings.model
  }
  session.instruction = settings.instruction
  const configured = reconfigure(agent.chat, { generation: settings.generation, chosen: settings.chosen })
  const work = Stream.unwrap(Effect.as(configured, agent.send(parts, options))).pipe(
    Stream.provideService(CompressionSteps, stepsOf(tenant, session.id)),
    Stream.runForEach((event) => {
      end = endAfter(end, event)
      for (const next of resumed.next(event)) session.publish({ message: turn.message, event: next })
      return Effect.void
    })
  )
  yield* Effect.onExit(work, (exit) =>
    Effect.suspend(() => {
      if (Exit.isFailure(exit)) end = endOf(exit.cause, end, journal !== undefined)
      session.end(turn, end.status, end.error)
      // The streams continue with the session when it is opened again.
      if (end.status === "stopped") Deferred.doneUnsafe(session.closing, Effect.void)
      const log = Exit.isFailure(exit) && Cause.hasDies(exit.cause) ? Effect.logError(exit.cause) : Effect.void
      return Effect.all(
        [
          log,
          release,
          // A session that another process has written must be read again before it is written.
          end.status === "stopped" && opened.get(keyOf(tenant, session.id)) === session
            ? RcMap.invalidate(sessions, keyOf(tenant, session.id))
            : Effect.void,
          Metric.modify(runningTurns, -1),
          Metric.update(Metric.withAttributes(turnsEnded, { status: end.status }), 1)
        ],
        { discard: true }
      )
    })
  ).pipe(Effect.exit)
})

type Message = Parameters<Served["send"]>[2]

/** Begins the turn of a message, or continues the `lost` one that another process began, unless the session works on another message. */
const beginTurn = Effect.fnUntraced(function* (
  state: OpenSessions,
  tenant: string,
  session: OpenedSession,
  id: string,
  message: Message,
  whole: Session,
  lost: ServedTurn | undefined,
  missing: ReturnType<typeof resumption>
) {
  const { limiter } = state.stored
  const { isAccepted = false } = message
  const { conversation, model } = whole
  // Another server has begun the turn: this one continues it, whatever was used since.
  const isRecorded = answerTo(whole, id) !== undefined
  const isBegun = isAccepted && (lost !== undefined || isRecorded)
  const record = yield* StoredSessions.recordOf(state.stored, tenant, session.id)
  const settings = yield* turnSettings(state.stored, tenant, session, record, message.options)
  const likely = viewTokens(conversation) + answerLength(settings.model ?? model ?? "")
  const settled = isBegun ? Effect.void : yield* limiter.reserve(tenant, likely)
  const taken = limiter.take(tenant, "turns", { name: session.id, isAccepted })
  const release = Effect.andThen(yield* Effect.onError(taken, () => settled), settled)
  const { running } = session
  if (running !== undefined) {
    yield* release
    if (running.message === id) return running
    return yield* new Conflict({
      message: `the session is answering message ${running.message}; wait until it ends, or cancel it`
    })
  }
  if (Deferred.isDoneUnsafe(session.closing)) {
    yield* release
    return yield* new Unavailable({ message: "the session was closed; send the message again" })
  }
  // No other request runs between these checks and this.
  const turn = lost === undefined ? session.begin(id, message.text) : session.resume(lost, missing.events)
  session.questions.begin(record, whole, (question, call) => session.askClients(turn, question, call))
  yield* Metric.modify(runningTurns, 1)
  // A message that is already in the conversation is asked again, not added again.
  const parts = isRecorded ? [text("")] : [text(message.text), ...(message.media ?? []).map(filePart)]
  const resumed = new ResumedAnswer(lost === undefined ? "" : missing.open)
  const work = runTurn(state, tenant, session, turn, parts, resumed, settings, release)
  // The session stays open until the turn ends.
  const opened = Effect.ignore(RcMap.get(state.sessions, keyOf(tenant, session.id)))
  turn.fiber = yield* FiberSet.run(state.turns, Effect.scoped(Effect.andThen(opened, work)), { startImmediately: true })
  return turn
})

/** The turn of a message: the one that it has here, its recorded answer, or a new one. */
const turnFor = Effect.fnUntraced(function* (
  state: OpenSessions,
  tenant: string,
  session: OpenedSession,
  id: string,
  message: Message
) {
  const before = session.turn(id)
  // The session holds a message once its model has begun to answer.
  if (before?.ended === undefined && (before?.words ?? message.text) !== message.text) {
    return yield* otherWords(session.id, id)
  }
  const whole = yield* Effect.catch(session.agent.chat.whole, storeError)
  const recorded = answerTo(whole, id)
  if (recorded !== undefined && !hasWords(recorded.message, message.text)) return yield* otherWords(session.id, id)
  if (before !== undefined && (before.ended === undefined || before.ended === "answered")) return before
  const lost = before?.ended === "stopped" ? before : undefined
  const missing = resumption(lost === undefined ? [] : session.eventsOf(lost), recorded?.texts ?? [])
  if (recorded?.isComplete !== true) {
    return yield* beginTurn(state, tenant, session, id, message, whole, lost, missing)
  }
  if (lost === undefined) return recorded.text
  const resumed = session.resume(lost, missing.events)
  session.end(resumed, "answered", null)
  return resumed
}, Effect.uninterruptible)

/** Sends a message, and streams its turn. A repeated message id returns the same turn. */
export const send = (state: OpenSessions): Served["send"] =>
  Effect.fnUntraced(function* (tenant, id, message, lastId) {
    yield* accepting(state)
    yield* StoredSessions.checkModel(state.stored, tenant, message.options?.model)
    const messageId = message.id ?? (yield* newId)
    const turn = yield* within(state, tenant, id, (session) => turnFor(state, tenant, session, messageId, message))
    if (typeof turn === "string") return recordedTurn(messageId, turn, lastId)
    const cancels = (message.onDisconnect ?? state.settings.onDisconnect ?? "continue") === "cancel"
    if (cancels) {
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (turn.ended === undefined) Deferred.doneUnsafe(turn.cancel, Effect.void)
        })
      )
    }
    return yield* Effect.map(open(state, tenant, id), (session) => session.turnStream(turn, lastId))
  })

/** Streams the turn of a message, or the answer in the session. */
export const turnOf = (state: OpenSessions): Served["turn"] =>
  Effect.fnUntraced(function* (tenant, id, message, lastId) {
    const turn = yield* within(state, tenant, id, (session) =>
      Effect.gen(function* () {
        const known = session.turn(message)
        if (known !== undefined) return known
        return answerTo(yield* Effect.catch(session.agent.chat.whole, storeError), message)
      })
    )
    if (turn === undefined) return yield* noMessage(id, message)
    return "text" in turn
      ? recordedTurn(message, turn.text, lastId)
      : yield* Effect.map(open(state, tenant, id), (session) => session.turnStream(turn, lastId))
  })
