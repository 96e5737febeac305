import type { Effect } from "effect"
import type { ChatSession, NextSession, Requirements } from "./ChatSession.ts"

/** The form of a slash command: its names, its help, and what it does with the session. */

/** `argument` is the trimmed text after the name. A failure is shown to the user, and the session continues. */
type Run<A> = (session: ChatSession, argument: string) => Effect.Effect<A, { readonly message: string }, Requirements>

interface Named {
  /** The word after the slash. */
  readonly name: string
  readonly aliases?: ReadonlyArray<string> | undefined
  /** The arguments as `/help` shows them; absent when there are none. */
  readonly usage?: string | undefined
  /** One line for `/help`. */
  readonly help: string
}

/**
 * A command that the user types after a slash. `SlashCommands.ts` lists them all. One with `run` stays
 * in the session; one with `leave` returns the next session, or undefined to stay.
 *
 * *Details*: any effect fits `Effect<void>`, and one of type void may hold a value, as `Ref.set` does. Hence `void | undefined`,
 * which refuses a session that would be ignored, and no `void` in `leave`.
 */
export type SlashCommand = Named &
  (
    | { readonly run: Run<void | undefined>; readonly leave?: never }
    | { readonly leave: Run<NextSession | undefined>; readonly run?: never }
  )
