import { Effect } from "effect"
import * as GatewayPage from "../../src/cli/page/GatewayPage.ts"
import { codecs } from "../support/GatewayDialects.ts"
import { makeGateway, makeProvider, metricsToken, noted, raw } from "../support/GatewayScene.ts"
import { needs } from "../support/machine.ts"
import { assert, it } from "../support/vitest.ts"
import { fits, open, seriousProblems, sharesBrowser } from "./browserPage.ts"
import { run } from "./program.ts"

/** The gateway as a program. */

it.live("prints how to point a client at it", function* () {
  const printed = yield* run(["gateway", "--print", "claude", "--port", "5000"])
  assert.strictEqual(printed.stdout.toString(), "export ANTHROPIC_BASE_URL=http://127.0.0.1:5000\nclaude\n")
})

it.live("passes requests on, and lets the last answer end when it is stopped", function* () {
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
})

needs("Chromium")("the gateway's page", () => {
  sharesBrowser()

  it.live("shows the totals, light and dark, wide and narrow", function* () {
    const provider = yield* makeProvider(noted)
    const gateway = yield* makeGateway(provider.url, { page: yield* GatewayPage.render })
    const ask = raw(
      `${gateway.url}/v1/messages`,
      [],
      JSON.stringify(codecs.anthropic.body(codecs.anthropic.user("hello"), true))
    )
    yield* Effect.repeat(ask, { times: 2 })
    for (const [width, scheme] of [
      [1_280, "light"],
      [360, "dark"]
    ] as const) {
      const { check, page } = yield* open(`${gateway.url}/#token=${metricsToken.text}`, { width, scheme })
      yield* Effect.promise(async () => {
        const row = page.locator("#rows tr", { hasText: "anthropic" }).filter({ hasText: "unchanged" })
        await row.waitFor()
        assert.isAtLeast(Number(await row.locator("td").last().innerText()), 3)
        assert.match(await page.locator("#state").innerText(), /^[\d,]+ requests$/)
        // The counters are those of the process: other tests of it may have added to them.
        const facts = await page.locator("#facts").innerText()
        assert.match(facts, /Cost by the price table\s+\$\d/)
        assert.match(facts, /Tokens, input\s+[\d,]+/)
        assert.isTrue(await fits(page))
        assert.deepStrictEqual(await seriousProblems(page), [])
        await check()
      })
    }
  })
})
