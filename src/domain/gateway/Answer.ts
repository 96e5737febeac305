import type { SseEvent } from "./SseEvents.ts"

/** What the gateway reads in an answer: calls of its own tool, which the client does not see. */

/** A part of an answer that the client saw. */
export interface VisibleBlock {
  readonly kind: "text" | "thought" | "other"
  /** The text of a text or a thought. */
  readonly text: string
}

/** A call of our tool. */
export interface RecallCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
  /** The JSON of the call as the provider wrote it, to be sent back. */
  readonly json: string
}

/** An answer of the provider, once it is complete. */
export interface ReadAnswer {
  readonly calls: ReadonlyArray<RecallCall>
  /** Whether the model calls tools of the client too. */
  readonly hasOthers: boolean
  /** The messages that stand for the whole answer in the next request. */
  readonly sent: ReadonlyArray<string>
  readonly visible: ReadonlyArray<VisibleBlock>
  /** The provider's counts, in its own form. */
  readonly usage: unknown
}

/** How an answer ends for the client. */
export type Ending =
  /** As the provider ended it. */
  | "as sent"
  /** With a plain end in place of a call that nobody answers. */
  | "stopped"

/**
 * A stream that is read and passed on: one answer for the client, made of one or more answers of the provider, without the calls
 * of our tool. Mutable.
 */
export interface AnswerStream {
  /** Reads an event. Returns the text that goes to the client. */
  readonly push: (event: SseEvent) => string
  /** What the present answer of the provider was. */
  readonly read: () => ReadAnswer
  /**
   * Begins with the next answer of the provider. Returns what goes to the client of the events that ended this one, and `note`, a
   * text of our own, where it is not empty.
   */
  readonly next: (note: string) => string
  /** Returns the events that end the answer for the client. */
  readonly finish: (ending: Ending) => string
  /** An event that tells the client of a failure. */
  readonly failure: (status: number, body: string) => string
}

/** The same for an answer that comes whole. */
export interface WholeAnswer {
  /** Reads a body; undefined where it is not understood. */
  readonly push: (body: string) => ReadAnswer | undefined
  /** Adds a text of our own, where it is not empty. */
  readonly next: (note: string) => void
  /** Returns the body for the client. */
  readonly finish: (ending: Ending) => string
}

/** The parts of a dialect that read and write answers. */
export interface AnswerDialect {
  /** Begins to read a stream in which this tool is ours. */
  readonly stream: (tool: string) => AnswerStream
  /** The same for an answer that comes whole. */
  readonly whole: (tool: string) => WholeAnswer
  /** The messages that answer the calls, to be sent after `ReadAnswer.sent`. */
  readonly results: (calls: ReadonlyArray<RecallCall>, texts: ReadonlyArray<string>) => ReadonlyArray<string>
}
