/** The bash grammar of tree-sitter, as WebAssembly. It is loaded for the first command, which keeps 60 ms out of the start-up. */

import { Effect, Layer, Option } from "effect"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { setFlagsFromString } from "node:v8"
import type * as TreeSitter from "web-tree-sitter"
import { maxLineChars, type SyntaxNode } from "../../domain/tools/ShellCommand.ts"
import { ShellGrammar } from "../../services/tools/ShellGrammar.ts"

const read = (file: string | URL) => Effect.tryPromise(() => readFile(file))

/** Reads a file of an installed package, or the copy beside the built program. */
const bytesOf = (name: string, specifier: string) =>
  read(new URL(name, import.meta.url)).pipe(
    Effect.catch(() =>
      Effect.flatMap(
        Effect.try(() => createRequire(import.meta.url).resolve(specifier)),
        read
      )
    )
  )

/** Maximum size of a tree; larger ones belong to lines too long to be worth a grant. */
const maxNodes = 20_000

/** Converts the tree to our own type; undefined when it is too large. */
const treeOf = (root: TreeSitter.Node): SyntaxNode | undefined => {
  let nodes = 0
  const copy = (node: TreeSitter.Node, depth: number): SyntaxNode | undefined => {
    nodes += 1
    if (nodes > maxNodes || depth > 200) return undefined
    const children: Array<SyntaxNode> = []
    for (const child of node.children) {
      const copied = copy(child, depth + 1)
      if (copied === undefined) return undefined
      children.push(copied)
    }
    const { endIndex: end, isError, isMissing, startIndex: start, type } = node
    return { type, start, end, isFaulty: isError || isMissing, children }
  }
  return copy(root, 0)
}

/**
 * Keeps V8 from compiling the grammar with its optimizing compiler, which takes 500 MB of memory and makes no command faster. V8 gives
 * a module its budget of executed code when it compiles it (Node 24), so that other modules keep theirs.
 */
const unoptimized = <A, E>(work: Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => setFlagsFromString("--wasm-tiering-budget=2000000000")),
    () => work,
    () => Effect.sync(() => setFlagsFromString(`--wasm-tiering-budget=${defaultTieringBudget}`))
  )
const defaultTieringBudget = 13_000_000

const load = Effect.gen(function* () {
  const engine = yield* bytesOf("web-tree-sitter.wasm", "web-tree-sitter/web-tree-sitter.wasm")
  const grammar = yield* bytesOf("tree-sitter-bash.wasm", "tree-sitter-bash/tree-sitter-bash.wasm")
  const { Language, Parser } = yield* Effect.tryPromise(() => import("web-tree-sitter"))
  const language = yield* unoptimized(
    Effect.tryPromise(async () => {
      await Parser.init({ wasmBinary: engine })
      return Language.load(grammar)
    })
  )
  return yield* Effect.try(() => new Parser().setLanguage(language))
})

/** Provides the grammar. Without the packages, or when they fail to load, there is no grammar. */
export const layer: Layer.Layer<never> = Layer.effect(
  ShellGrammar,
  Effect.gen(function* () {
    const parser = yield* Effect.cached(Effect.option(load))
    return {
      parse: Effect.fn("ShellGrammar.parse")(function* (line: string) {
        if (line.length > maxLineChars) return undefined
        const loaded = yield* parser
        if (Option.isNone(loaded)) return undefined
        return yield* Effect.try(() => {
          const tree = loaded.value.parse(line)
          if (tree === null) return undefined
          const copied = treeOf(tree.rootNode)
          tree.delete()
          return copied
        }).pipe(Effect.orElseSucceed(() => undefined))
      })
    }
  })
)
