import { Schema } from "effect"
import type { Draft } from "../Conversation.ts"
import type { Work } from "../Work.ts"

/** The formats a conversation can be read from (CLI contract, input formats). */
export const FormatName = Schema.Literals(["palimpsest", "contents", "gemini", "pi", "claude", "codex"])
export type FormatName = typeof FormatName.Type

/** One thing that happened in another agent's conversation, in order. */
export type Step =
  | { readonly _tag: "Message"; readonly draft: Draft }
  /**
   * From here on the agent saw `insert` (a summary, or all that a checkpoint held) in place of all messages before it, save
   * the last ones from message number `keptFrom` (index among the `Message` steps; undefined: none was kept).
   */
  | {
      readonly _tag: "Compaction"
      readonly insert: ReadonlyArray<Draft>
      readonly keptFrom: number | undefined
      readonly trigger: "manual" | "auto"
      /** Tokens the agent reported before it. */
      readonly tokensBefore: number | undefined
    }

/** What a file of another agent says. */
export interface Transcript {
  readonly format: FormatName
  readonly session: string | undefined
  readonly cwd: string | undefined
  readonly model: string | undefined
  readonly steps: ReadonlyArray<Step>
  /** Records that are no part of the conversation, by kind. */
  readonly skipped: Readonly<Record<string, number>>
}

/** What is wrong with a line or with the whole (line 0), in words a person can act on. */
export interface Problem {
  readonly line: number
  readonly message: string
}

/**
 * Reads a format line by line. `line` takes one line of the file, already checked to be JSON, with its text (so that exact
 * slices can be kept) and says what is wrong with it, if anything; `end` gives what was read, sliced.
 */
export interface LineReader {
  /** Takes the next line; a Problem says why it cannot be used, and the reader goes on without it. */
  readonly line: (value: unknown, text: string, number: number) => Problem | undefined
  /** What all lines together say. */
  readonly end: () => Work<Transcript | Problem>
}

/** A conversation in another agent's format. */
export interface Written {
  /** Records, one a line, without line breaks. */
  readonly lines: ReadonlyArray<string>
  /** What the format has no place for, so that its agent will not see it, by kind. */
  readonly unheld: Readonly<Record<string, number>>
}

/**
 * Writes a conversation in another agent's format. Reading it again gives the same parts in the same order, and the same
 * view; what the format itself cannot say travels beside it, under a key of ours (`recordLine`).
 */
export type Writer = (transcript: Transcript) => Work<Written>

type Compaction = Extract<Step, { readonly _tag: "Compaction" }>

/** What the agent saw, as it grew message by message and was cut by compactions: for formats that write all of it down. */
export class Shown {
  private items: Array<{ readonly draft: Draft; readonly message: number | undefined }> = []
  private messages = 0

  /** What the agent sees now, in order. */
  get drafts(): ReadonlyArray<Draft> {
    return this.items.map(({ draft }) => draft)
  }

  /** The next message. */
  message(draft: Draft): void {
    this.items.push({ draft, message: this.messages })
    this.messages += 1
  }

  /** A compaction: what it inserted, then what it kept. */
  compact({ insert, keptFrom }: Compaction): void {
    const isFirst = (item: { readonly draft: Draft }) => item.draft.author === "environment"
    const first = this.items.filter(isFirst)
    const others = this.items.filter((item) => !isFirst(item))
    const kept = keptFrom === undefined ? -1 : others.findIndex(({ message }) => (message ?? -1) >= keptFrom)
    this.items = [
      ...first,
      ...insert.map((draft) => ({ draft, message: undefined })),
      ...(kept < 0 ? [] : others.slice(kept))
    ]
  }
}

/** Whether reading ended with a problem. */
export const isProblem = (value: Transcript | Problem): value is Problem => "message" in value
