import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { promptCommand, rowsOf, shownOf } from "../../src/cli/commands/prompt.ts"
import { estimateText } from "../../src/domain/tokens/Tokens.ts"
import type { PromptPreview, PromptPreviewOptions } from "../../src/services/runtime/PromptPreview.ts"
import { assert, layer } from "../support/vitest.ts"
import { recordedStdio } from "./recordedStdio.ts"

const preamble = "You are Palimpsest.\n\n  - an agent\u001b[31m"
const memory = "Use tabs."
const assembled: PromptPreview = {
  built: {
    text: `${preamble}\n\n${memory}`,
    sections: [
      { key: "preamble", text: preamble },
      { key: "memory", text: memory }
    ],
    notices: ["GEMINI_PROMPT_X means nothing"]
  },
  toolTokens: 1_200,
  environment: "Today is a day."
}

/** What the command prints, and what it was asked for. */
const printed = Effect.fnUntraced(function* (args: ReadonlyArray<string>, isTerminal = false) {
  const { layer: stdio, texts } = recordedStdio(isTerminal)
  const asked: Array<PromptPreviewOptions> = []
  const command = promptCommand((flags) => Effect.sync(() => asked.push(flags)).pipe(Effect.as(assembled)))
  yield* Command.runWith(command, { version: "0" })(args).pipe(Effect.provide(stdio))
  return { ...texts, asked }
})

layer(NodeServices.layer)("prompt", (it) => {
  it.effect("prints only the prompt on stdout, byte for byte into a file", function* () {
    const { asked, err, out } = yield* printed([])
    assert.strictEqual(out, `${assembled.built.text}\n`)
    assert.match(err, /^palimpsest: GEMINI_PROMPT_X means nothing\nSECTION +TOKENS\npreamble +\d+\nmemory +\d+\n/)
    assert.match(err, /\nsystem prompt +\d+\ntools +1,200\nenvironment +\d+\nin each request +1,2\d\d\n$/)
    assert.deepStrictEqual(asked, [{ size: undefined, plan: false, model: undefined }])
  })

  it.effect("escapes control characters on a terminal, and keeps indentation", function* () {
    const { out } = yield* printed([], true)
    assert.strictEqual(out, `You are Palimpsest.\n\n  - an agent\n\n${memory}\n`)
  })

  it.effect("--json prints one document with the tokens of everything in a request", function* () {
    const { err, out } = yield* printed(["--json"])
    const document = yield* Schema.decodeEffect(Schema.fromJsonString(Schema.Json))(out)
    const { text } = assembled.built
    const around = estimateText("Today is a day.")
    assert.deepStrictEqual(document, {
      prompt: text,
      sections: [
        { key: "preamble", tokens: estimateText(preamble) },
        { key: "memory", tokens: estimateText(memory) }
      ],
      environment: "Today is a day.",
      tokens: {
        prompt: estimateText(text),
        tools: 1_200,
        environment: around,
        total: estimateText(text) + 1_200 + around
      },
      notices: ["GEMINI_PROMPT_X means nothing"]
    })
    assert.strictEqual(err, "")
  })

  it.effect("omits rows without a value", () =>
    Effect.sync(() => {
      const names = rowsOf(shownOf({ built: assembled.built })).map(([name]) => name)
      assert.deepStrictEqual(names, ["SECTION", "preamble", "memory", "system prompt"])
    })
  )
})
