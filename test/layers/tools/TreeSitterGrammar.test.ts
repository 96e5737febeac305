import { Effect } from "effect"
import { maxLineChars, type SyntaxNode } from "../../../src/domain/tools/ShellCommand.ts"
import * as TreeSitterGrammar from "../../../src/layers/tools/TreeSitterGrammar.ts"
import { ShellGrammar } from "../../../src/services/tools/ShellGrammar.ts"
import { assert, layer } from "../../support/vitest.ts"

const leaves = (node: SyntaxNode): ReadonlyArray<string> =>
  node.children.length === 0 ? [`${node.type} ${node.start}-${node.end}`] : node.children.flatMap(leaves)

layer(TreeSitterGrammar.layer)("TreeSitterGrammar", (it) => {
  it.effect("parses a line, with positions in string units", function* () {
    const { parse } = yield* ShellGrammar
    const tree = yield* parse("echo 'é😀' | ls -l")
    assert.deepStrictEqual(tree === undefined ? [] : leaves(tree), [
      "word 0-4",
      "raw_string 5-10",
      "| 11-12",
      "word 13-15",
      "word 16-18"
    ])
  })

  it.effect("reports what it could not parse", function* () {
    const { parse } = yield* ShellGrammar
    const tree = yield* parse("ls 'a")
    const isFaulty = (node: SyntaxNode): boolean => node.isFaulty || node.children.some(isFaulty)
    assert.isTrue(tree === undefined || isFaulty(tree))
  })

  it.effect("gives up on long or deep lines", function* () {
    const { parse } = yield* ShellGrammar
    assert.isUndefined(yield* parse("a".repeat(maxLineChars + 1)))
    assert.isUndefined(yield* parse(`${"$(".repeat(300)}ls${")".repeat(300)}`))
  })

  it.effect("is one grammar for all, one line after the other", function* () {
    const { parse } = yield* ShellGrammar
    const trees = yield* Effect.all(
      Array.from({ length: 200 }, (_, at) => parse(`ls ${at}`)),
      { concurrency: "unbounded" }
    )
    assert.isTrue(trees.every((tree) => tree?.type === "program"))
  })
})
