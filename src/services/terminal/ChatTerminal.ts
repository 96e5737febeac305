/** The contract of the chat's terminal: prompts, questions, lists, cards and output. */

import { Context, type Effect, type Option, Schema } from "effect"
import type { TerminalSettings } from "../../domain/settings/Settings.ts"

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
  /** One line about a candidate, for menus. */
  readonly about?: Readonly<Record<string, string>> | undefined
}

/** Looks up completions for the text left of the cursor. The terminal waits at most two seconds. */
export type Completer = (line: string) => Effect.Effect<Completion>

/** Options of the prompt for the next message. */
export interface Question {
  /** Text before the line. Contains no control characters. */
  readonly prompt: string
  /** Text to edit that is already in the line: a message that was cancelled or refused. */
  readonly prefill?: string | undefined
  /** Completes the text while it is typed and when the user presses Tab. */
  readonly complete?: Completer | undefined
  /** Whether work that goes on may take a message with this text; another one, such as a command, waits for a prompt. Absent: any. */
  readonly steers?: ((text: string) => boolean) | undefined
}

/** The result of reading a typed line: the answer, a text to show before the question is asked again, or another question in its place. */
export type Reading<A> =
  | { readonly _tag: "Answer"; readonly value: A }
  | { readonly _tag: "Again"; readonly text: string }
  | { readonly _tag: "Then"; readonly inquiry: Inquiry<A> }

/** A letter that answers a question, and what it means. */
export type Option = readonly [letter: string, meaning: string]

/** What a question is about, such as a diff. The caller removes control characters. */
export interface Detail {
  /** Lines above it. May contain text styles, as all of this. */
  readonly head: string
  readonly lines: ReadonlyArray<string>
  /** The possible answers below it. */
  readonly options: ReadonlyArray<Option>
  /** What Escape does, shown behind the last answer; empty: not said. */
  readonly hint: string
  /** The language of the code when the lines are a diff: the ending of a file's name. */
  readonly language?: string | undefined
  /** The language of lines that are code and no diff. */
  readonly code?: string | undefined
}

/** A question that must be answered before work can continue. */
export interface Inquiry<A> {
  /** The text of the question: whole lines, shown unchanged. The caller removes control characters. */
  readonly text: string
  /** The same in parts. A terminal that can scroll shows all of it in place of `text`. */
  readonly detail?: Detail | undefined
  /** Text before the line. Contains no control characters. */
  readonly prompt: string
  /**
   * Letters that answer without Enter when they are the first key. A user whose unfinished message was interrupted by the
   * question confirms with Enter, so that a word on its way answers nothing.
   */
  readonly keys?: ReadonlyArray<string> | undefined
  /** The line that Escape stands for. Absent: Escape cancels the work that asks. */
  readonly escape?: string | undefined
  /** Letters that open another question without Enter. */
  readonly opens?: Readonly<Record<string, Inquiry<A>>> | undefined
  /** Text to edit that is already in the line. */
  readonly fill?: string | undefined
  /** Reads a typed line, which is passed without surrounding white space. */
  readonly read: (line: string) => Reading<A>
}

/** An item of a list to choose from. */
export interface Choice<A> {
  readonly value: A
  /** The item in one line: what the search looks at. */
  readonly label: string
  /** More about it, beside the label where there is room. */
  readonly about?: string | undefined
  /** Whether the list begins at this item, which is the one in use. */
  readonly isCurrent?: boolean | undefined
}

/** A piece of work in the conversation, such as a tool call: one line that opens into the rest. */
export interface Card {
  /** Names the card while it runs: another with this key takes its place. */
  readonly key: string
  /** Whether the work goes on: the card stays below the conversation until it ends. */
  readonly isRunning: boolean
  /** The line that is always shown. May contain text styles. */
  readonly head: string
  /** Lines that are always shown below it. */
  readonly body: ReadonlyArray<string>
  /** Lines that Ctrl+O shows. */
  readonly more: ReadonlyArray<string>
  /** The language of the code when the lines are a diff: the ending of a file's name. */
  readonly language?: string | undefined
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
     * lines pasted at once are one message; a long paste is shown as `[paste #1 +200 lines]`, and the original text is sent.
     *
     * Messages queued before the prompt are returned first, and a prefill waits for them. Fails when there is no more input:
     * at the end of the input, after Ctrl+D on an empty line, or after Ctrl+C twice on an empty line.
     */
    readonly ask: (question: Question) => Effect.Effect<string, Closed>
    /**
     * Runs work while no prompt is open. Messages typed meanwhile are shown in a queue, for `takeTyped` or the next prompts, and can be taken
     * back. One that is ended with Tab waits for a prompt. A line with `label` shows progress.
     *
     * Ctrl+C and Escape complete the effect passed to the work, and move everything typed meanwhile, queued messages too, into
     * the editor: it is not sent.
     */
    readonly during: <A, E, R>(
      label: string,
      work: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E, R>
    /** Takes the messages in the queue that need not wait for a prompt, and shows them as sent. */
    readonly takeTyped: Effect.Effect<ReadonlyArray<string>>
    /** Changes the label of the progress line until the work ends. `seconds` are counted down beside it. */
    readonly working: (label: string, seconds?: number) => Effect.Effect<void>
    /**
     * Asks a question during work, one at a time, and holds back other output until it is answered. Only text typed after the
     * question was shown answers it; text typed before is restored afterwards. Ctrl+C goes to the work. Fails without an
     * interactive user.
     */
    readonly inquire: <A>(inquiry: Inquiry<A>) => Effect.Effect<A, Closed>
    /** Lets the user search a list and choose an item of it; none when the user leaves it. Fails where no list can be shown. */
    readonly choose: <A>(title: string, choices: ReadonlyArray<Choice<A>>) => Effect.Effect<Option.Option<A>, Closed>
    /** Adds a piece of Markdown to the answer that is shown. Everything else that is shown ends the answer. */
    readonly answer: (piece: string) => Effect.Effect<void>
    /** Ends the answer, if one is shown. A discarded answer is marked as such where it can still be changed. */
    readonly endAnswer: (isDiscarded: boolean) => Effect.Effect<void>
    /** Shows a card, or updates one that runs. */
    readonly card: (card: Card) => Effect.Effect<void>
    /** Sets the line that stays beside the prompt; it is made again for each width in columns. */
    readonly status: (line: (columns: number) => string) => Effect.Effect<void>
    /** Sets what Shift+Tab does. */
    readonly onModeKey: (run: Effect.Effect<void>) => Effect.Effect<void>
    /** Sets the lines that stay above the status line, such as the steps of the work; none when empty. */
    readonly panel: (lines: ReadonlyArray<string>) => Effect.Effect<void>
    /** Changes how the chat looks and behaves. */
    readonly configure: (options: TerminalSettings) => Effect.Effect<void>
    /** Sets the title of the window. */
    readonly title: (text: string) => Effect.Effect<void>
    /** Copies a text to the user's clipboard. Returns false where that is not possible, or where the text is too long for it. */
    readonly copy: (text: string) => Effect.Effect<boolean>
    /** Writes a text to stdout unchanged and waits until it is taken. */
    readonly write: (text: string) => Effect.Effect<void>
    /** Shows a notice on a line of its own: dimmed on a terminal, otherwise on stderr. */
    readonly note: (line: string) => Effect.Effect<void>
  }
>()("palimpsest/services/terminal/ChatTerminal") {}
