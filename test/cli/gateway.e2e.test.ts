import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { codecs } from "../support/GatewayDialects.ts"
import { makeProvider } from "../support/GatewayScene.ts"
import { run } from "./program.ts"

/** The gateway as a program. */

it.live("prints how to point a client at it, and what is wrong with a flag", () =>
  Effect.gen(function* () {
    const printed = yield* run(["gateway", "--print", "claude", "--port", "5000"])
    assert.strictEqual(printed.stdout.toString(), "export ANTHROPIC_BASE_URL=http://127.0.0.1:5000\nclaude\n")
    const wrong = yield* run(["gateway", "--upstream", "mistral=http://x"])
    assert.strictEqual(wrong.status, 2)
    assert.match(wrong.stderr, /^palimpsest: --upstream mistral=http:\/\/x: expected anthropic=/)
  })
)

it.live("passes requests on, and lets the last answer end when it is stopped", () =>
  Effect.gen(function* () {
    const provider = yield* makeProvider(() => [{ kind: "text", text: "Noted." }])
    let kill: (signal: NodeJS.Signals) => void = () => {}
    let answer = ""
    const body = JSON.stringify(codecs.anthropic.body(codecs.anthropic.user("hello"), true))
    const ended = yield* run(["gateway", "--port", "0", "--upstream", `anthropic=${provider.url}`], {
      started: (child) => {
        kill = child.kill
      },
      noticed: (stderr) => {
        const [, url] = /listening on (http:\S+);/.exec(stderr) ?? []
        if (url === undefined || answer !== "") return
        answer = "asked"
        void fetch(`${url}/v1/messages`, { method: "POST", body }).then(async (response) => {
          kill("SIGTERM")
          answer = await response.text()
        })
      }
    })
    assert.strictEqual(codecs.anthropic.readEvents(answer).blocks.length, 1)
    assert.strictEqual(ended.status, 143)
    assert.strictEqual(provider.requests[0]?.text, body)
  }).pipe(Effect.scoped)
)
