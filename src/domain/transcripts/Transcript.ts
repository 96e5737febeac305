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
   * From here on the agent saw `summary` in place of all messages before it, save the last ones from message number
   * `keptFrom` (index among the `Message` steps; undefined: none was kept).
   */
  | {
      readonly _tag: "Compaction"
      readonly summary: Draft
      readonly keptFrom: number | undefined
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
  readonly line: (value: unknown, text: string, number: number) => Problem | undefined
  readonly end: () => Work<Transcript | Problem>
}

export const isProblem = (value: Transcript | Problem): value is Problem => "message" in value
