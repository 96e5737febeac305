import { Context, Effect } from "effect"
import type { SyntaxNode } from "../domain/ShellCommand.ts"

/** Reads a line for a shell. */
export interface Grammar {
  /** The line's syntax tree as bash has it; undefined: there is no grammar to be had, and every command is asked about. */
  readonly parse: (line: string) => Effect.Effect<SyntaxNode | undefined>
}

/** The grammar of bash, without which no command can be told from another. */
export const ShellGrammar = Context.Reference<Grammar>("palimpsest/services/ShellGrammar", {
  defaultValue: () => ({ parse: () => Effect.undefined })
})
