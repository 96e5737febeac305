import { Context, Effect, Layer } from "effect"
import { grantsOf, judge, type ShellCommand, type SyntaxNode } from "../../src/domain/ShellCommand.ts"
import * as TreeSitterGrammar from "../../src/layers/TreeSitterGrammar.ts"
import { ShellGrammar } from "../../src/services/ShellGrammar.ts"

const { parse } = await Effect.runPromise(
  Effect.scoped(Effect.map(Layer.build(TreeSitterGrammar.layer), (built) => Context.get(built, ShellGrammar)))
)
// Loaded once, so that it answers at once from now on.
await Effect.runPromise(parse("ls"))

/** The tree of a line. */
export const treeOf = (line: string): SyntaxNode | undefined => Effect.runSync(parse(line))

/** What a line does, as far as it can be told. */
export const judged = (line: string): ShellCommand | undefined => {
  const tree = treeOf(line)
  return tree === undefined ? undefined : judge(line, tree)
}

/** The grants of a line that runs in `/w`; none: it is asked for each time. */
export const grantsFor = (line: string): ReadonlyArray<string> => {
  const command = judged(line)
  return command === undefined ? [] : grantsOf(command, "/w")
}
