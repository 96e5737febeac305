import { Context, type Effect, Schema } from "effect"

/** Nobody types any more: the input has ended, the person left, or the reader of the answers is gone. */
export class Closed extends Schema.TaggedError<Closed>()("Closed", {}) {
  /** In words, for whoever reports it. */
  override get message() {
    return "the input has ended"
  }
}

/** What a word of a line may become: every way to write it, and the end of the line that they stand in for. */
export interface Completion {
  readonly candidates: ReadonlyArray<string>
  readonly replaced: string
}

/** Looks up what the text left of the cursor may be completed to. It is given two seconds. */
export type Completer = (line: string) => Effect.Effect<Completion>

/** How the next message is asked for. */
export interface Question {
  /** Stands before the line. Without control characters. */
  readonly prompt: string
  /** Text that is in the line already, to be edited: a message that was cancelled or refused. */
  readonly prefill?: string | undefined
  /** Used when Tab is pressed. */
  readonly complete?: Completer | undefined
}

/** What a line that was typed means: the answer, or nothing yet; then this is shown and it is asked again. */
export type Reading<A> =
  | { readonly _tag: "Answer"; readonly value: A }
  | { readonly _tag: "Again"; readonly text: string }

/** Something that has to be known before work can go on. */
export interface Inquiry<A> {
  /** What it is about: whole lines, shown as they are. Whoever makes them has taken control characters out. */
  readonly text: string
  /** Stands before the line. Without control characters. */
  readonly prompt: string
  /** What a line means; it is given without white space around it. */
  readonly read: (line: string) => Reading<A>
}

/**
 * The one place where a chat meets a person: what is typed and what is shown. Where either standard stream is no terminal,
 * each line of the input is a message, and nothing but answers is written to stdout.
 */
export class ChatTerminal extends Context.Service<
  ChatTerminal,
  {
    /** Whether a person sees and types: both streams are a terminal that can move its cursor. */
    readonly isTerminal: boolean
    /** Whether colours are shown: a terminal, and no NO_COLOR. */
    readonly canColor: boolean
    /** Columns of the terminal as it is now; Infinity where there is none, since nothing has to be wrapped. */
    readonly columns: Effect.Effect<number>
    /**
     * The next message that is not blank, without white space at its end. A line that ends in a single backslash goes on in
     * the next, and so does everything between two lines `"""`; several lines pasted at once are one message. While it is
     * edited a line break is shown as `↵`, and a text that would fill half the screen as `[#1: 200 lines]`: that is sent
     * as the text it stands for. Whole lines typed before they were asked for are taken first, and a prefill waits
     * for them. Fails once there will be no more: the end of the input, Ctrl+D on an empty line, Ctrl+C twice on an empty line.
     */
    readonly ask: (question: Question) => Effect.Effect<string, Closed>
    /**
     * Runs work while nothing is asked. What is typed meanwhile is shown below the output and stays for the next prompt.
     * Ctrl+C completes the effect that the work is given, and puts all that was typed meanwhile into the line of the next
     * prompt, whole messages too: they are not sent. After half a second without output a
     * line with `label` says that something is going on; it is wiped before anything else is shown.
     */
    readonly during: <A, E, R>(
      label: string,
      work: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, R>
    /** Changes what is said to be going on, until the work ends. */
    readonly working: (label: string) => Effect.Effect<void>
    /**
     * Asks during work, one question at a time, and holds back what else is to be shown until it is answered. Only what is
     * typed after it was shown answers it; what was typed before is there again afterwards. Ctrl+C is the work's. Fails where
     * nobody is there to ask.
     */
    readonly inquire: <A>(inquiry: Inquiry<A>) => Effect.Effect<A, Closed>
    /** Writes to stdout as it is, and waits until it is taken. */
    readonly write: (text: string) => Effect.Effect<void>
    /** Tells something beside the answers, on a line of its own: dimmed on a terminal, else on stderr. */
    readonly note: (line: string) => Effect.Effect<void>
  }
>()("palimpsest/services/ChatTerminal") {}
