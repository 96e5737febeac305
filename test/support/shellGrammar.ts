import { Context, Effect, Layer } from "effect"
import { verdict } from "../../src/domain/Approval.ts"
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
  // `/w` has one part: a word that goes up leads to the root.
  if (command === undefined || (command.climbs ?? 0) >= 1) return []
  return grantsOf(command, "/w")
}

/** What a person may have allowed for always: each program and sub-command that these attacks begin with. */
export const everyday: ReadonlyArray<string> = [
  "git status && git diff; git log; git show; git grep x; git add a; git commit -m x; git branch; git remote; git blame a; git tag",
  "ls; cat a; head a; tail a; wc a; sort a; uniq a; find .; grep x a; rg x; sed -n 1p a; awk '{print}' a; jq . a; diff a b; tree",
  "echo x; printf x; test -f x; date; hostname; file a; env; ps; fd x; touch a; mkdir a; npm test; npm run build; command -v x; arch",
  "cargo build; cargo test; go test; go build; pytest; docker ps; docker logs x; pwd; true; type x; sleep 1; which x; : a",
  "cd a"
]

const granted = new Set(everyday.flatMap(grantsFor))

/** Whether a line is asked about although all of these were allowed. */
export const isAsked = (line: string): boolean =>
  verdict({ mode: "none", granted }, { kind: "execute", grants: grantsFor(line) }) === "asked"
