/** An open session of this process, its running turn, and the streams of its events. */

import { Deferred, Effect, type Fiber, Option, Semaphore, Stream } from "effect"
import {
  beforeEvents,
  EventBuffer,
  eventLifetime,
  isBeforeEvents,
  type ServedEvent,
  type TurnStatus
} from "../../domain/serve/EventBuffer.ts"
import type { CallQuestion } from "../../domain/session/CallQuestions.ts"
import type { AssembledAgent } from "../runtime/Runtime.ts"
import type { StreamEvent } from "./ServeApi.ts"
import type { JournaledTurn, StoredTurn } from "./TurnJournal.ts"
import type { TurnQuestions } from "./TurnQuestions.ts"

/** A message and its turn. Mutable: it runs and ends. */
export interface ServedTurn {
  readonly message: string
  /** The words of the message; undefined where another process began the turn. */
  readonly words: string | undefined
  /** The number of its first event. */
  readonly start: number
  /** How the turn ended. Undefined while it runs. `stopped`: another process began the turn and did not end it. */
  ended: TurnStatus | undefined
  /** Completing it cancels the turn. */
  readonly cancel: Deferred.Deferred<void>
  /** Completed once the turn has ended. */
  readonly done: Deferred.Deferred<void>
  /** The fiber that runs the turn. */
  fiber: Fiber.Fiber<void> | undefined
}

const makeTurn = (message: string, words: string | undefined, start: number, ended?: TurnStatus): ServedTurn => {
  const [cancel, done] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  return { message, words, start, ended, cancel, done, fiber: undefined }
}

/** Maximum number of turns whose streams can be resumed. */
const maxTurns = 64

/** After this time without events, a `Ping` shows that the stream is alive. */
const pingMillis = 15_000

/** Events within this time are stored together. */
const batchMillis = 100

/**
 * Stores events before clients receive them. Gets the events, and the number of the first event to keep when that
 * changes. Returns false when another process has taken the session.
 */
type Save = (turn: JournaledTurn & { readonly first: number | undefined }) => Effect.Effect<boolean>

/** The state of an open session. Mutable: all requests of the session share it. */
export class OpenedSession {
  readonly id: string
  readonly agent: AssembledAgent
  /** What its turn asks the clients. */
  readonly questions: TurnQuestions
  /** The system instruction of its turn. Undefined: the server's own. */
  instruction: string | undefined
  readonly events: EventBuffer
  /** Completed when the session is deleted or the server stops, which ends the streams. */
  readonly closing = Deferred.makeUnsafe<void>()
  running: ServedTurn | undefined
  private readonly turns = new Map<string, ServedTurn>()
  private changed = Deferred.makeUnsafe<void>()
  private readonly save: Save | undefined
  private readonly saving = Semaphore.makeUnsafe(1)
  /** Events that are not stored yet. */
  private waiting: Array<ServedEvent> = []
  private isWaiting = Deferred.makeUnsafe<void>()
  private isUrgent = Deferred.makeUnsafe<void>()
  /** Another process, or a later opening here, sends the events of this session now. */
  isLost = false
  /** The version of the conversation when it was opened. */
  private readonly version: number
  /** The time of the oldest event that the journal held then, in milliseconds since 1970. */
  private readonly since: number | undefined
  /** The number of the first event in the journal. */
  private kept: number | undefined
  /** The calls of the running turn that clients know of and that have no response yet, and whether they run. */
  private calls = new Map<string, boolean>()
  /** Questions about calls that clients do not know of yet. */
  private early: ReadonlyArray<{ readonly call: string; readonly turn: ServedTurn; readonly question: CallQuestion }> =
    []

  /** `version`: that of its conversation. `journal`: stores events before clients receive them; `last`: the turn that it holds. */
  constructor(
    id: string,
    agent: AssembledAgent,
    questions: TurnQuestions,
    name: string,
    version: number,
    journal?: { readonly save: Save; readonly last: StoredTurn | undefined }
  ) {
    this.id = id
    this.agent = agent
    this.questions = questions
    this.save = journal?.save
    const { last } = journal ?? {}
    this.version = version
    this.since = last?.since
    this.events = new EventBuffer(last?.name ?? name, last?.events)
    this.kept = last?.events[0]?.number
    for (const { event, message, number } of last?.events ?? []) {
      if (message === null) continue
      const turn = this.turns.get(message) ?? makeTurn(message, undefined, number, "stopped")
      if (event._tag === "TurnEnded") turn.ended = event.status
      this.turns.set(message, turn)
    }
  }

  /**
   * The id of the event after which a client that has read the stored messages continues: the last event before the
   * running turn.
   */
  get lastEvent(): string {
    return this.events.idOf(this.start)
  }

  private get start(): number {
    return this.running === undefined ? this.events.last : this.running.start - 1
  }

  /** Sends an event to clients: at once, or with a journal once the event is stored. */
  publish(event: ServedEvent): void {
    if (this.isLost) return
    this.put(event)
    const { event: happened } = event
    if (happened._tag === "ToolCallStarted") this.calls.set(happened.id, true)
    if (happened._tag === "ToolCallResponse") this.calls.delete(happened.id)
    if (happened._tag !== "ToolCallRequest") return
    this.calls.set(happened.id, false)
    const { early } = this
    this.early = []
    for (const { call, question, turn } of early) this.askClients(turn, question, call)
  }

  private put(event: ServedEvent): void {
    if (this.save === undefined) return this.tell([event])
    this.waiting.push(event)
    Deferred.doneUnsafe(this.isWaiting, Effect.void)
    if (event.event._tag === "TurnEnded") Deferred.doneUnsafe(this.isUrgent, Effect.void)
  }

  /** Stops sending events, because another process has the session and sends its own. */
  private lose(): void {
    this.isLost = true
    Deferred.doneUnsafe(this.closing, Effect.void)
  }

  /** Adds events, and wakes the readers. */
  private tell(events: ReadonlyArray<ServedEvent>): void {
    for (const event of events) this.events.add(event)
    const { changed } = this
    this.changed = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(changed, Effect.void)
  }

  /** Stores and sends the waiting events. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const batch = this.waiting
    // Where nothing waits, `flushing` still awaits the present signals: new ones would never reach it.
    if (this.save === undefined || batch.length === 0) return Effect.void
    this.waiting = []
    this.isWaiting = Deferred.makeUnsafe<void>()
    this.isUrgent = Deferred.makeUnsafe<void>()
    const numbered = batch.map((event, index) => ({ ...event, number: this.events.last + 1 + index }))
    // A turn that this process stopped has not ended: another process continues it.
    const events = numbered.filter(({ event }) => event._tag !== "TurnEnded" || event.status !== "stopped")
    const lastStart = numbered.findLast(({ event }) => event._tag === "TurnStarted")?.number
    const first = Math.max(lastStart ?? this.kept ?? this.events.first, this.events.first)
    const isKept = first === this.kept
    this.kept = first
    return Effect.map(this.save({ name: this.events.name, events, first: isKept ? undefined : first }), (isStored) =>
      isStored ? this.tell(batch) : this.lose()
    )
  }).pipe(this.saving.withPermit, Effect.uninterruptible)

  /** Stores and sends events in batches until it is interrupted. */
  readonly flushing: Effect.Effect<never> = Effect.suspend(() => Deferred.await(this.isWaiting)).pipe(
    Effect.andThen(Effect.suspend(() => Effect.raceFirst(Effect.sleep(batchMillis), Deferred.await(this.isUrgent)))),
    Effect.andThen(this.flush),
    Effect.forever
  )

  /** Begins the turn of a message. */
  begin(message: string, text: string): ServedTurn {
    const turn = makeTurn(message, text, this.events.last + this.waiting.length + 1)
    this.turns.set(message, turn)
    const [oldest] = this.turns.keys()
    if (this.turns.size > maxTurns && oldest !== undefined) this.turns.delete(oldest)
    this.run(turn)
    this.publish({ message, event: { _tag: "TurnStarted", text } })
    return turn
  }

  /** Continues a turn that another process began. `missing`: events of it that its streams lack. */
  resume({ message, start, words }: ServedTurn, missing: ReadonlyArray<ServedEvent["event"]>): ServedTurn {
    const turn = makeTurn(message, words, start)
    this.turns.set(message, turn)
    this.run(turn)
    for (const event of missing) this.publish({ message, event })
    return turn
  }

  private run(turn: ServedTurn): void {
    this.running = turn
    this.calls = new Map()
    this.early = []
  }

  /** Whether the turn does nothing but wait for clients. */
  get waitsForClients(): boolean {
    const { ofRunningCalls, size } = this.questions.waiting
    return size > 0 && [...this.calls.values()].filter((isRunning) => isRunning).length <= ofRunningCalls
  }

  /** Returns the events of a turn that clients received. */
  eventsOf({ message, start }: ServedTurn): ReadonlyArray<ServedEvent["event"]> {
    const { events } = this.events.after(start - 1, Infinity)
    return events.flatMap((one) => (one.message === message ? [one.event] : []))
  }

  /**
   * Shows a question of a turn to the clients, unless they have it from the process that began the turn. `call`: the call that
   * this run of the turn asks about, whose request comes first.
   */
  askClients(turn: ServedTurn, question: CallQuestion, call: string | undefined): void {
    if (call !== undefined && !this.calls.has(call)) {
      this.early = [...this.early, { call, turn, question }]
      return
    }
    const isShown = this.eventsOf(turn).some((event) => event._tag === "Question" && event.call === question.call)
    if (!isShown) this.publish({ message: turn.message, event: { _tag: "Question", ...question } })
  }

  /** Ends a turn. */
  end(turn: ServedTurn, status: TurnStatus, error: string | null): void {
    if (this.running === turn) this.running = undefined
    turn.ended = status
    this.publish({ message: turn.message, event: { _tag: "TurnEnded", status, error } })
    Deferred.doneUnsafe(turn.done, Effect.void)
  }

  /** Returns the turn of a message that was sent since the session was opened. */
  turn(message: string): ServedTurn | undefined {
    return this.turns.get(message)
  }

  /**
   * Streams all events after a number. The reader takes events from the buffer at its own speed, so a slow reader
   * does not delay others. When events it has not read leave the buffer, it gets a `Reset`.
   */
  private from(number: number): Stream.Stream<StreamEvent> {
    let isOpen = false
    return Stream.paginate(number, (after) =>
      Effect.suspend(() => {
        const { events, hasGap } = this.events.after(after)
        const shown = events.map((one) => streamEvent(one, this.events.idOf(one.number)))
        const answer = (all: ReadonlyArray<StreamEvent>) => [all, Option.some(events.at(-1)?.number ?? after)] as const
        // Sends something at once, because the head of an HTTP answer is sent with its first bytes.
        const isBeginning = !isOpen
        isOpen = true
        if (shown.length > 0 || isBeginning) {
          return Effect.succeed(answer(shown.length === 0 ? [ping] : hasGap ? [reset, ...shown] : shown))
        }
        // Sends the events so far before the stream ends.
        if (Deferred.isDoneUnsafe(this.closing)) return Effect.succeed([[], Option.none()] as const)
        const woken = Effect.raceFirst(Deferred.await(this.changed), Deferred.await(this.closing))
        return Effect.map(Effect.timeoutOption(woken, pingMillis), (isWoken) =>
          answer(Option.isSome(isWoken) ? [] : [ping])
        )
      })
    )
  }

  /** Streams the session's events. Without an id, from the running turn on. `now`: milliseconds since 1970. */
  stream(lastId: string | undefined, now: number): Stream.Stream<StreamEvent> {
    const { start } = this
    if (lastId === undefined) return this.from(start)
    // A client that has read the session as it was opened, or as no turn was kept, lacks all events: a kept one that is older it may have read.
    const lacksAll =
      lastId === beforeEvents(this.version) ||
      (isBeforeEvents(lastId) && this.since !== undefined && now - this.since < eventLifetime)
    const after = lacksAll ? 0 : this.events.numberOf(lastId)
    return after === undefined ? Stream.concat(Stream.make(reset), this.from(start)) : this.from(after)
  }

  /** Streams one turn to its end. */
  turnStream(turn: ServedTurn, lastId: string | undefined): Stream.Stream<StreamEvent> {
    const after = lastId === undefined ? undefined : this.events.numberOf(lastId)
    const events = this.from(Math.max(after ?? 0, turn.start - 1))
    const isLost = lastId !== undefined && after === undefined
    return (isLost ? Stream.concat(Stream.make(reset), events) : events).pipe(
      Stream.filter(({ data, event }) => data.message === turn.message || event === "Ping" || event === "Reset"),
      Stream.takeUntil(({ data, event }) => event === "TurnEnded" && data.message === turn.message)
    )
  }
}

/** An event as streams send it. Without an id, a client cannot go on after it. */
export const streamEvent = ({ event, message }: ServedEvent, id?: string): StreamEvent => ({
  ...(id === undefined ? {} : { id }),
  event: event._tag,
  data: { message, event }
})

const ping = streamEvent({ message: null, event: { _tag: "Ping" } })
/** The client's view of the stream is void: it must read the session again. */
export const reset = streamEvent({ message: null, event: { _tag: "Reset" } })

/**
 * Streams a turn that ended before the session was opened: the answer in the session. `lastId`: the client already
 * has events, which are void.
 */
export const recordedTurn = (message: string, text: string, lastId: string | undefined): Stream.Stream<StreamEvent> => {
  const events: ReadonlyArray<ServedEvent["event"]> = [
    { _tag: "Content", text },
    { _tag: "TurnEnded", status: "answered", error: null }
  ]
  const streamed = events.map((event) => streamEvent({ message, event }))
  return Stream.fromIterable(lastId === undefined ? streamed : [reset, ...streamed])
}
