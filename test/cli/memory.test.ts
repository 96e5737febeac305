import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, Path, Schema } from "effect"
import { Command } from "effect/cli"
import { memory } from "../../src/cli/commands/memory.ts"
import { ExitError } from "../../src/cli/output/ExitError.ts"
import * as FileMemory from "../../src/layers/memory/FileMemory.ts"
import * as MemoryFileSystem from "../../src/layers/testing/MemoryFileSystem.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import { assert, layer } from "../support/vitest.ts"
import { recordedStdio } from "./recordedStdio.ts"

/** What the command prints, and how it ends. */
const ran = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  files: Readonly<Record<string, string>> = {},
  isTrusted = true
) {
  const { layer: stdio, texts } = recordedStdio()
  const here = FileMemory.layer({
    home: "/home/.palimpsest",
    geminiHome: "/home/.gemini",
    extensions: [],
    root: "/home/work",
    isTrusted: () => Effect.succeed(isTrusted)
  }).pipe(Layer.provide(MemoryFileSystem.layer({ "/home/work/.git/HEAD": "", ...files })), Layer.provide(Path.layer))
  const exit = yield* Command.runWith(memory, { version: "0" })(args).pipe(
    Effect.provide([here, TokenCounter.layerEstimate, stdio]),
    Effect.exit
  )
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  return { ...texts, error: error instanceof ExitError ? `${error.status}: ${error.message}` : error }
})

const some = {
  "/home/.gemini/GEMINI.md": "I like tea",
  "/home/work/GEMINI.md": "# Rules\n\n  - indented \u001b[31m @docs.md @none.md",
  "/home/work/docs.md": "docs"
}

layer(NodeServices.layer)("memory", (it) => {
  it.effect("show: prints each text with its file, scope and tokens, and the total", function* () {
    const { err, error, out } = yield* ran(["show"], some)
    assert.isUndefined(error)
    assert.match(
      out,
      /^~\/\.gemini\/GEMINI\.md \(global, \d+ tokens\)\nI like tea\n\nGEMINI\.md \(project, \d+ tokens, 1 import\)\n# Rules\n\n {2}- indented /
    )
    assert.notInclude(out, "\u001b")
    assert.match(out, /\n2 files, \d+ tokens in every request\n$/)
    assert.strictEqual(err, "palimpsest: GEMINI.md: @none.md was not imported: there is no such file\n")
  })

  it.effect("show --json: prints one document that includes the problems", function* () {
    const { err, out } = yield* ran(["show", "--json"], some)
    const document = yield* Schema.decodeEffect(
      Schema.fromJsonString(
        Schema.Struct({
          blocks: Schema.Array(
            Schema.Struct({
              source: Schema.String,
              file: Schema.String,
              imports: Schema.Array(Schema.String),
              tokens: Schema.Finite
            })
          ),
          tokens: Schema.Finite,
          problems: Schema.Array(Schema.String)
        })
      )
    )(out)
    assert.deepStrictEqual(
      document.blocks.map(({ file, imports, source }) => [source, file, ...imports]),
      [
        ["global", "/home/.gemini/GEMINI.md"],
        ["project", "/home/work/GEMINI.md", "/home/work/docs.md"]
      ]
    )
    assert.strictEqual(
      document.tokens,
      document.blocks.reduce((sum, { tokens }) => sum + tokens, 0)
    )
    assert.lengthOf(document.problems, 1)
    assert.strictEqual(err, "")
  })

  it.effect("list: prints a table of the files and their imports", function* () {
    const { out } = yield* ran(["list"], some)
    assert.match(
      out,
      /^SOURCE +FILE +TOKENS\nglobal +~\/\.gemini\/GEMINI\.md +\d+\nproject +GEMINI\.md +\d+\n +imports \/home\/work\/docs\.md\n2 files, \d+ tokens in every request\n$/
    )
    const document: { readonly files: ReadonlyArray<unknown> } = JSON.parse((yield* ran(["list", "--json"], some)).out)
    assert.lengthOf(document.files, 2)
  })

  it.effect("refresh: prints what was loaded and what was wrong", function* () {
    const { err, out } = yield* ran(["refresh"], some)
    assert.match(out, /^2 files, \d+ tokens in every request\n$/)
    assert.include(err, "@none.md was not imported")
  })

  it.effect("says so when there is no memory, and shows none of an untrusted folder", function* () {
    for (const name of ["show", "list", "refresh"]) {
      assert.include((yield* ran([name])).out, "memory is empty here")
    }
    assert.notInclude((yield* ran(["show"], some, false)).out, "Rules")
  })

  it.effect("add: prints the change, or that the fact is already there", function* () {
    const { err, out } = yield* ran(["add", "tabs", "--scope", "project"])
    assert.strictEqual(out, "--- a/GEMINI.md\n+++ b/GEMINI.md\n@@ -0,0 +1,2 @@\n+## Gemini Added Memories\n+- tabs\n")
    assert.strictEqual(err, "palimpsest: saved to GEMINI.md\n")
    const again = yield* ran(["add", "tabs", "--scope", "global"], { "/home/.palimpsest/GEMINI.md": "- tabs\n" })
    assert.strictEqual(again.out, "~/.palimpsest/GEMINI.md already contains this fact\n")
    const document: { readonly scope: string; readonly file: string } = JSON.parse(
      (yield* ran(["add", "tabs", "--scope", "project", "--json"])).out
    )
    assert.deepInclude(document, { scope: "project", file: "/home/work/GEMINI.md" })
  })

  it.effect("add without a scope or words is bad usage; a write error is a failure", function* () {
    const whichScope = "2: give a scope: --scope project (this folder) or --scope global (everywhere)"
    assert.strictEqual((yield* ran(["add", "tabs"])).error, whichScope)
    assert.match(String((yield* ran(["add", " ", "--scope", "project"])).error), /^2: the fact is empty/)
    assert.match(
      String((yield* ran(["add", "tabs", "--scope", "project"], {}, false)).error),
      /^1: .* is not trusted; remember it as global instead; to trust it: palimpsest trust$/
    )
  })
})
