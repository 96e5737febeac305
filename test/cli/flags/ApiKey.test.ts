import { ConfigProvider, Effect } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { missingKeyLines, noKeyText } from "../../../src/cli/flags/ApiKey.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A machine on which Ollama has these models, or none runs. */
const withOllama = (models: ReadonlyArray<string>, at = "http://localhost:11434") =>
  HttpClient.make((request, url) =>
    Effect.sync(() =>
      HttpClientResponse.fromWeb(
        request,
        url.href === `${at}/api/tags` && models.length > 0
          ? Response.json({ models: models.map((name) => ({ name })) })
          : new Response(null, { status: 404 })
      )
    )
  )

const offered = (
  models: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  named?: string,
  at?: string
) =>
  missingKeyLines(named).pipe(
    Effect.provideService(HttpClient.HttpClient, withOllama(models, at)),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
  )

describe("without a key", () => {
  it.effect("at most three models of an Ollama on this machine are offered", function* () {
    const [, ollama, ...rest] = yield* offered(["a", "b", "c", "d"])
    assert.strictEqual(
      ollama,
      "Ollama runs on this machine and needs no key: palimpsest -m ollama/a, palimpsest -m ollama/b, palimpsest -m ollama/c"
    )
    assert.lengthOf(rest, 1)
    assert.lengthOf(yield* offered([]), 2)
  })

  it.effect.each([
    [" ", "http://localhost:11434"],
    ["0.0.0.0", "http://localhost:11434"],
    [":8080", "http://localhost:8080"],
    ["gpu.test", "http://gpu.test:11434"],
    ["gpu.test:81", "http://gpu.test:81"],
    ["https://gpu.test/", "https://gpu.test"]
  ] as const)("the Ollama that OLLAMA_HOST names is asked: %s", function* ([host, at]) {
    assert.match((yield* offered(["a"], { OLLAMA_HOST: host }, undefined, at))[1] ?? "", /ollama\/a/)
  })

  it.effect("of one provider, the model of another whose key is there is offered", function* () {
    const lines = yield* offered([], { ANTHROPIC_API_KEY: "x" }, "gpt-5")
    assert.match(lines.join("\n"), /^gpt-5 needs a key: set OPENAI_API_KEY\nANTHROPIC_API_KEY is set: use --model \S+,/)
  })

  it.effect.each([
    ["claude-sonnet-5", "claude-sonnet-5 needs a key: set ANTHROPIC_API_KEY"],
    ["anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5 needs a key: set ANTHROPIC_API_KEY"],
    ["gemini-2.5-pro", noKeyText],
    [undefined, noKeyText]
  ] as const)("at all, the key of the model is asked for: %s", function* ([named, line]) {
    assert.strictEqual((yield* offered([], {}, named))[0], line)
  })
})
