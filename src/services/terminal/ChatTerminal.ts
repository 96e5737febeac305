import { Context, type Effect, Schema } from "effect"

/** The chat has no more input: the input ended, the user left, or the reader of the output is gone. */
export class Closed extends Schema.TaggedError<Closed>()("Closed", {}) {
  /** The error as text. */
  override get message() {
    return "the input has ended"
  }
}

/** Completions for a word of a line: all candidates, and the text at the end of the line that they replace. */
export interface Completion {
  /** All candidates, each as a whole. */
  readonly candidates: ReadonlyArray<string>
  /** The end of the line that a candidate replaces. */
  readonly replaced: string
}

/** Looks up completions for the text left of the cursor. The terminal waits at most two seconds. */
export type Completer = (line: string) => Effect.Effect<Completion>

/** Options of the prompt for the next message. */
export interface Question {
  /** Text before the line. Contains no control characters. */
  readonly prompt: string
  /** Text to edit that is already in the line: a message that was cancelled or refused. */
  readonly prefill?: string | undefined
  /** Completes the line when the user presses Tab. */
  readonly complete?: Completer | undefined
}

/** The result of reading a typed line: the answer, or a text to show before the question is asked again. */
export type Reading<A> =
  | { readonly _tag: "Answer"; readonly value: A }
  | { readonly _tag: "Again"; readonly text: string }

/** A question that must be answered before work can continue. */
export interface Inquiry<A> {
  /** The text of the question: whole lines, shown unchanged. The caller removes control characters. */
  readonly text: string
  /** Text before the line. Contains no control characters. */
  readonly prompt: string
  /** Reads a typed line, which is passed without surrounding white space. */
  readonly read: (line: string) => Reading<A>
}

/**
 * The terminal of a chat: the only service that reads the user's input and shows output.
 *
 * When either standard stream is not a terminal, each line of the input is a message, and only answers are written to stdout.
 */
export class ChatTerminal extends Context.Service<
  ChatTerminal,
  {
    /** Whether the chat is interactive: both streams are a terminal that can move its cursor. */
    readonly isTerminal: boolean
    /** Whether colours are shown: the output is a terminal and NO_COLOR is not set. */
    readonly canColor: boolean
    /** Current width of the terminal in columns; Infinity without a terminal, since nothing needs wrapping. */
    readonly columns: Effect.Effect<number>
    /**
     * Reads the next message that is not blank, without white space at its end.
     *
     * A line that ends in a single backslash continues in the next one, and so does everything between two lines `"""`. Several
     * lines pasted at once are one message. While a message is edited, a line break is shown as `↵`, and a text that would fill
     * half the screen as `[#1: 200 lines]`; the original text is sent.
     *
     * Whole lines typed before the prompt are returned first, and a prefill waits for them. Fails when there is no more input:
     * at the end of the input, after Ctrl+D on an empty line, or after Ctrl+C twice on an empty line.
     */
    readonly ask: (question: Question) => Effect.Effect<string, Closed>
    /**
     * Runs work while no prompt is open. Text typed meanwhile is shown below the output and kept for the next prompt.
     *
     * Ctrl+C completes the effect passed to the work, and moves all text typed meanwhile, whole messages too, into the line of
     * the next prompt: it is not sent. After half a second without output, a line with `label` shows progress. It is wiped
     * before anything else is shown.
     */
    readonly during: <A, E, R>(
      label: string,
      work: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, R>
    /** Changes the label of the progress line until the work ends. */
    readonly working: (label: string) => Effect.Effect<void>
    /**
     * Asks a question during work, one at a time, and holds back other output until it is answered. Only text typed after the
     * question was shown answers it; text typed before is restored afterwards. Ctrl+C goes to the work. Fails without an
     * interactive user.
     */
    readonly inquire: <A>(inquiry: Inquiry<A>) => Effect.Effect<A, Closed>
    /** Writes a text to stdout unchanged and waits until it is taken. */
    readonly write: (text: string) => Effect.Effect<void>
    /** Shows a notice on a line of its own: dimmed on a terminal, otherwise on stderr. */
    readonly note: (line: string) => Effect.Effect<void>
  }
>()("palimpsest/services/terminal/ChatTerminal") {}
