import type { Part } from "../content/Content.ts"
import type { Json } from "./MessageCodec.ts"
import type { SseEvent } from "./SseEvents.ts"

/** What the gateway reads from an answer: the calls of its own tool, which are hidden from the client. */

/** A part of an answer that the client saw. */
export interface VisibleBlock {
  readonly kind: "text" | "thought" | "other"
  /** The text of a text or a thought. */
  readonly text: string
}

/** A call of the gateway's recall tool. */
export interface RecallCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
  /** The JSON of the call as the provider wrote it, which is sent back to the provider. */
  readonly json: string
}

/** What a call of the gateway's tool gets: a text, and images or files where the dialect can carry them. */
export interface RecalledContent {
  readonly text: string
  readonly media: ReadonlyArray<Part>
}

/** A complete answer of the provider. */
export interface ReadAnswer {
  readonly calls: ReadonlyArray<RecallCall>
  /** Whether the answer also calls tools of the client. */
  readonly hasOthers: boolean
  /** The messages that stand for the whole answer in the next request. */
  readonly sent: ReadonlyArray<string>
  readonly visible: ReadonlyArray<VisibleBlock>
  /** The provider's counts, in its own form. */
  readonly usage: unknown
}

/** How an answer ends for the client. */
export type Ending =
  /** With the provider's own ending. */
  | "as sent"
  /** With a normal stop, in place of a tool call that the client cannot answer. */
  | "stopped"

/**
 * Reads the provider's stream and passes it on to the client: one answer for the client, made of one or more answers
 * of the provider, without the calls of the gateway's tool. Mutable.
 */
export interface AnswerStream {
  /** Reads an event. Returns the text to send to the client. */
  readonly push: (event: SseEvent) => string
  /** Returns the current answer of the provider. */
  readonly read: () => ReadAnswer
  /**
   * Begins the provider's next answer. Returns the text to send to the client: what was held back of the events that
   * ended this answer, and `note`, a text of the gateway, unless it is empty.
   */
  readonly next: (note: string) => string
  /** Returns the events that end the answer for the client. */
  readonly finish: (ending: Ending) => string
  /** Returns an event that reports a failure to the client. */
  readonly failure: (status: number, body: string) => string
}

/** The counterpart of `AnswerStream` for an answer that is not streamed. */
export interface WholeAnswer {
  /** Reads a body. Returns undefined for a body in an unknown form. */
  readonly push: (body: string) => ReadAnswer | undefined
  /** Adds a text of the gateway, unless it is empty. */
  readonly next: (note: string) => void
  /** Returns the body for the client. */
  readonly finish: (ending: Ending) => string
}

/** The parts of a dialect that read and write answers. */
export interface AnswerDialect {
  /** Begins to read a stream. `tool` is the name of the gateway's tool. */
  readonly stream: (tool: string) => AnswerStream
  /** Begins to read an answer that is not streamed. */
  readonly whole: (tool: string) => WholeAnswer
  /** How the client sees a block of an answer. */
  readonly visible: (block: Json) => VisibleBlock
  /** The messages that answer the calls, to be sent after `ReadAnswer.sent`. */
  readonly results: (
    calls: ReadonlyArray<RecallCall>,
    recalled: ReadonlyArray<RecalledContent>
  ) => ReadonlyArray<string>
}
