/** The conversation of another agent, as steps, and what readers and writers of a format are. */

import { Schema } from "effect"
import type { Draft } from "../conversation/Conversation.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { type Problem, recordProblem } from "./Problem.ts"

/** A format in which a conversation can be read and written. */
export const FormatName = Schema.Literals(["palimpsest", "contents", "gemini", "pi", "claude", "codex"])
export type FormatName = typeof FormatName.Type

/** A format from which a conversation can be read. */
export const SourceFormat = Schema.Literals([...FormatName.literals, "opencode"])
export type SourceFormat = typeof SourceFormat.Type

/** One step of another agent's conversation. */
export type Step =
  | { readonly _tag: "Message"; readonly draft: Draft }
  /**
   * From here on the agent saw `insert` (a summary, or the content of a checkpoint) in place of the earlier messages, except
   * the last ones from message number `keptFrom` (index among the `Message` steps; undefined when none was kept).
   */
  | {
      readonly _tag: "Compaction"
      readonly insert: ReadonlyArray<Draft>
      readonly keptFrom: number | undefined
      readonly trigger: "manual" | "auto"
      /** Tokens that the agent reported before the compaction. */
      readonly tokensBefore: number | undefined
      /**
       * Where the summary belongs in `insert` when its provider encrypted it. The import writes a handover of the messages before
       * the compaction in its place.
       */
      readonly encryptedAt?: number
    }

/** A compaction of another agent's conversation. */
export type Compaction = Extract<Step, { readonly _tag: "Compaction" }>

/** The content of another agent's file. */
export interface Transcript {
  readonly format: SourceFormat
  readonly session: string | undefined
  readonly cwd: string | undefined
  readonly model: string | undefined
  readonly steps: ReadonlyArray<Step>
  /** Texts that the agent's model saw in place of whole results, by the id of their call. Absent: it saw all results whole. */
  readonly shown?: ReadonlyMap<string, string> | undefined
  /** Records that are not part of the conversation, by kind. */
  readonly skipped: Readonly<Record<string, number>>
  /** Kinds of records that this program does not know, and the program that wrote them. Absent: none. */
  readonly unknown?: UnknownKinds | undefined
}

/** What Claude Code and opencode show to the model in place of an old result. */
export const clearedResult = "[Old tool result content cleared]"

/** Kinds of records that no reader knows: a newer version of an agent wrote them. */
export interface UnknownKinds {
  /** The agent and its version, as `Claude Code 2.1.300`. */
  readonly program: string
  readonly kinds: ReadonlyArray<string>
}

/** Reads a format line by line. Each line is passed as a JSON value and as text, from which exact slices are kept. */
export interface LineReader {
  /** Reads the next line. A problem says why the line cannot be used; the reader can continue without it. */
  readonly line: (value: unknown, text: string, number: number) => Problem | undefined
  /** Returns the transcript of all lines. */
  readonly end: () => SlicedWork<Transcript | Problem>
}

/** Makes a reader of lines with a record each, an object; `expected` says which. */
export const recordReader = (
  expected: string,
  read: (record: Json, text: string, line: number) => Problem | undefined,
  end: LineReader["end"]
): LineReader => ({
  line: (value, text, line) => {
    const problem = isJson(value) ? read(value, text, line) : recordProblem("", expected)
    return problem === undefined ? undefined : { ...problem, line }
  },
  end
})

/** A conversation in another agent's format. */
export interface Written {
  /** Records, one a line, without line breaks. */
  readonly lines: ReadonlyArray<string>
  /** Content that the format cannot hold and that its agent will not see, counted by kind. */
  readonly unheld: Readonly<Record<string, number>>
}

/**
 * Writes a conversation in another agent's format. A reader returns the same parts in the same order, and the same view:
 * data that the format cannot hold is stored under the key `palimpsest` (`recordLine`).
 */
export type Writer = (transcript: Transcript) => SlicedWork<Written>

/** A message of a view, with its number among the `Message` steps; undefined for one that a compaction inserted. */
interface VisibleMessage {
  readonly draft: Draft
  readonly message: number | undefined
}

const isEnvironment = ({ draft }: VisibleMessage): boolean => draft.author === "environment"

/** Collects steps, and tracks the agent's view while messages are added and compactions replace them. */
export class VisibleMessages {
  /** The steps so far. */
  readonly steps: Array<Step> = []
  /** The number of the next message. */
  messages = 0
  private items: Array<VisibleMessage> = []

  /** The messages of the view, in order. */
  get drafts(): ReadonlyArray<Draft> {
    return this.items.map(({ draft }) => draft)
  }

  /** The messages that a compaction can replace: all but those about the environment. */
  get others(): ReadonlyArray<VisibleMessage> {
    return this.items.filter((item) => !isEnvironment(item))
  }

  /** Adds a message, or applies a compaction: its inserted messages, then the kept ones. */
  add(step: Step): void {
    this.steps.push(step)
    if (step._tag === "Message") {
      this.items.push({ draft: step.draft, message: this.messages })
      this.messages += 1
      return
    }
    const { others } = this
    const { insert, keptFrom } = step
    const kept = keptFrom === undefined ? -1 : others.findIndex(({ message }) => (message ?? -1) >= keptFrom)
    this.items = [
      ...this.items.filter(isEnvironment),
      ...insert.map((draft) => ({ draft, message: undefined })),
      ...(kept < 0 ? [] : others.slice(kept))
    ]
  }
}

/** Returns what the agent sees after all steps, for formats that hold no more. */
export const visibleAtEnd = (steps: ReadonlyArray<Step>): ReadonlyArray<Draft> => {
  const shown = new VisibleMessages()
  for (const step of steps) shown.add(step)
  return shown.drafts
}

/** Returns the messages of a step: the one of a message, or those that a compaction inserts. */
export const draftsOf = (step: Step): ReadonlyArray<Draft> => (step._tag === "Message" ? [step.draft] : step.insert)
