import { Cause, Effect, Queue } from "effect"
import { Closed } from "../../services/terminal/ChatTerminal.ts"

/** A complete message. */
export interface TypedMessage {
  readonly text: string
  /** Whether it waits for a prompt, also while work goes on that could take it. */
  readonly waits: boolean
  /** Stores it in the history. */
  readonly store: Effect.Effect<void>
}

/** The messages that wait for the next prompts, oldest first. The user can take them back until a prompt takes them. */
export class MessageQueue {
  private readonly arrivals: Queue.Queue<TypedMessage, Closed>
  /** Messages in `arrivals` that were not taken back. */
  private readonly waiting: Array<TypedMessage> = []

  constructor(arrivals: Queue.Queue<TypedMessage, Closed>) {
    this.arrivals = arrivals
  }

  /** Whether messages are still taken. */
  get isOpen(): boolean {
    return this.arrivals.state._tag === "Open"
  }

  /** The messages. */
  get messages(): ReadonlyArray<TypedMessage> {
    return this.waiting
  }

  /** Whether no message waits. */
  get isEmpty(): boolean {
    return this.waiting.length === 0
  }

  /** Adds a message as the newest. */
  add(message: TypedMessage) {
    this.waiting.push(message)
    Queue.offerUnsafe(this.arrivals, message)
  }

  /** Takes the messages that need not wait for a prompt. */
  takeTyped(): ReadonlyArray<TypedMessage> {
    const taken = this.waiting.filter(({ waits }) => !waits)
    this.waiting.splice(0, this.waiting.length, ...this.waiting.filter((message) => !taken.includes(message)))
    return taken
  }

  /** Takes all messages back and returns their texts. */
  takeBackAll(): ReadonlyArray<string> {
    return this.waiting.splice(0).map(({ text }) => text)
  }

  /** Takes the newest message back and returns its text. */
  takeBackLast(): string | undefined {
    return this.waiting.pop()?.text
  }

  /** Waits for the oldest message that was not taken back. */
  take(): Effect.Effect<TypedMessage, Closed> {
    return Effect.gen({ self: this }, function* () {
      let message = yield* Queue.take(this.arrivals)
      while (message !== this.waiting[0]) message = yield* Queue.take(this.arrivals)
      this.waiting.shift()
      return message
    })
  }

  /** Takes no more messages, and fails what waits for one. */
  close() {
    Queue.failCauseUnsafe(this.arrivals, Cause.fail(new Closed()))
  }
}

/** Makes an empty queue. */
export const make = Effect.map(Queue.unbounded<TypedMessage, Closed>(), (arrivals) => new MessageQueue(arrivals))
