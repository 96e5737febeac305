/** The contract of the parser of shell command lines. */

import { Context, Effect } from "effect"
import type { SyntaxNode } from "../../domain/tools/ShellCommand.ts"

/** Parses a shell command line. */
interface Grammar {
  /** Returns the bash syntax tree of a line. Undefined: no grammar is available, and every command asks. */
  readonly parse: (line: string) => Effect.Effect<SyntaxNode | undefined>
}

/** The bash grammar. Without it commands cannot be analyzed. Default: none. */
export const ShellGrammar = Context.Reference<Grammar>("palimpsest/services/tools/ShellGrammar", {
  defaultValue: () => ({ parse: () => Effect.undefined })
})
