import type { Effect } from "effect"
import type { ChatSession, NextSession, Requirements } from "./ChatSession.ts"

/** A command that the user types after a slash. Each has a file of its own; `SlashCommands.ts` lists them all. */
export interface SlashCommand {
  /** The word after the slash. */
  readonly name: string
  /** Other names of the command. */
  readonly aliases?: ReadonlyArray<string> | undefined
  /** The arguments as `/help` shows them; empty when there are none. */
  readonly usage: string
  /** One line for `/help`. */
  readonly help: string
  /**
   * Runs the command. `argument` is the trimmed text after the name. Returns the next session, or undefined when the current
   * session continues. A failure is shown to the user, and the session continues.
   */
  readonly run: (
    session: ChatSession,
    argument: string
  ) => Effect.Effect<NextSession | void, { readonly message: string }, Requirements>
}
