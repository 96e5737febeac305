import { Context, Effect, Layer } from "effect"
import { verdict } from "../../src/domain/tools/Approval.ts"
import { grantsOf, analyzeCommand, type ShellCommand, type SyntaxNode } from "../../src/domain/tools/ShellCommand.ts"
import * as TreeSitterGrammar from "../../src/layers/tools/TreeSitterGrammar.ts"
import { ShellGrammar } from "../../src/services/tools/ShellGrammar.ts"

const { parse } = await Effect.runPromise(
  Effect.scoped(Effect.map(Layer.build(TreeSitterGrammar.layer), (built) => Context.get(built, ShellGrammar)))
)
// Loaded once, so that it answers without waiting.
await Effect.runPromise(parse("ls"))

/** The tree of a line. */
export const treeOf = (line: string): SyntaxNode | undefined => Effect.runSync(parse(line))

/** The analysis of a line, if it is understood. */
export const judged = (line: string): ShellCommand | undefined => {
  const tree = treeOf(line)
  return tree === undefined ? undefined : analyzeCommand(line, tree)
}

/** The grants of a line that runs in `/w`; none: it asks each time. */
export const grantsFor = (line: string): ReadonlyArray<string> => {
  const command = judged(line)
  // `/w` has one part: a word that goes up leads to the root.
  if (command === undefined || (command.climbs ?? 0) >= 1) return []
  return grantsOf(command, "/w")
}

/** Grants that a user may have given for always: each program and sub-command that these attacks begin with. */
export const everyday: ReadonlyArray<string> = [
  "git status && git diff; git log; git show; git grep x; git add a; git commit -m x; git branch; git remote; git blame a; git tag",
  "ls; cat a; head a; tail a; wc a; sort a; uniq a; find .; grep x a; rg x; sed -n 1p a; awk '{print}' a; jq . a; diff a b; tree",
  "echo x; printf x; test -f x; date; hostname; file a; env; ps; fd x; touch a; mkdir a; npm test; npm run build; command -v x; arch",
  "cargo build; cargo test; go test; go build; pytest; docker ps; docker logs x; pwd; true; type x; sleep 1; which x; : a",
  "cd a"
]

const granted = new Set(everyday.flatMap(grantsFor))

/** Whether a line asks although all of these are granted. */
export const isAsked = (line: string): boolean =>
  verdict({ mode: "none", granted }, { kind: "execute", grants: grantsFor(line) }) === "asked"
