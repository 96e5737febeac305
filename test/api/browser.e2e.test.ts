import { Effect } from "effect"
import path from "node:path"
import { runInNewContext } from "node:vm"
import { rolldown } from "rolldown"
import { root } from "../support/paths.ts"
import { assert, it } from "../support/vitest.ts"

/** The pure parts in a bundle for a browser: no module of Node, and they work without its globals. */

const program = `
import { Effect, Result } from "effect"
import { Chats, Compress, Compression, Content, Conversation, Models, Session, Tokens, Transcripts } from "palimpsest"

export const parts = [Chats.Chats, Compress.openAi, Compression.Compression, Models.Model, Session.SessionStore, Transcripts.Transcripts].length
export const text = Content.plainText(Content.user(Content.text("hello")))
export const tokens = Tokens.estimateText("hello, world")
export const entries = Conversation.entries(Conversation.empty).length
export const status = Compression.statusOf(Compression.Outcome.cases.Cancelled.make({}))
`

const entry = path.join(root, "virtual", "browser.js")

it.effect("a bundle for a browser of the pure parts loads nothing of Node, and runs without it", function* () {
  const bundle = yield* Effect.promise(() =>
    rolldown({
      input: entry,
      platform: "browser",
      logLevel: "silent",
      plugins: [
        {
          name: "program",
          resolveId: (id) => (id === entry ? id : id === "palimpsest" ? path.join(root, "src", "index.ts") : null),
          load: (id) => (id === entry ? program : null)
        }
      ]
    })
  )
  const { output } = yield* Effect.promise(() => bundle.generate({ format: "iife", name: "made", minify: true }))
  yield* Effect.promise(() => bundle.close())
  assert.lengthOf(output, 1)
  const [{ code, dynamicImports, imports, moduleIds }] = output
  assert.deepStrictEqual([...imports, ...dynamicImports], [])
  // Effect asks for one where there is a process.
  assert.notMatch(code, /(?<!getBuiltinModule\?\.\()["'`]node:/)
  assert.deepStrictEqual(
    moduleIds.filter((id) => id.includes("/src/layers/") && !id.includes("node_modules")),
    []
  )
  const context = {
    TextEncoder,
    TextDecoder,
    URL,
    setTimeout,
    clearTimeout,
    queueMicrotask,
    AbortController,
    console,
    performance
  }
  const made: unknown = runInNewContext(`${code}\nJSON.stringify(made)`, context)
  assert.deepStrictEqual(JSON.parse(String(made)), {
    entries: 0,
    parts: 6,
    status: "CANCELLED",
    text: "hello",
    tokens: 3
  })
})
