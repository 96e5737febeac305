import { Effect } from "effect"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { makeClient, makeGateway, makeProvider } from "../../support/GatewayScene.ts"
import { fact, filler, lookingModel, wordOf } from "../../support/GatewaySession.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Whole sessions over sockets: a client that never compacts, a window that its history outgrows several times. */

const window = 8_192
const turns = 48

const headOf = (dialect: Dialect, text: string): string => text.replace(codecs[dialect].messages(text).join(","), "")

describe.each(dialects)("a session through the gateway in the dialect %s", (dialect) => {
  it.live.each([true, false])("stays in its window and forgets nothing (stream: %s)", function* (isStream) {
    let asked: number | undefined
    const provider = yield* makeProvider(lookingModel(() => asked))
    const gateway = yield* makeGateway(provider.url, { window })
    const client = makeClient(dialect, gateway.url, isStream)
    let counted = 0
    for (let turn = 1; turn <= turns; turn += 1) {
      asked = turn % 6 === 0 ? Math.max(1, turn - 17) : undefined
      const before = provider.counted.length
      const { counts, words } = yield* Effect.promise(() =>
        client.say(
          asked === undefined
            ? `${fact(turn)}\n${turn % 3 === 0 ? "" : filler(turn)}\n${turn % 4 === 1 ? `Read file${turn}.` : ""}`
            : `Which code word had turn ${asked}?`,
          (path) => `${path} has these lines:\n${filler(turn + 500)}`
        )
      )
      if (asked !== undefined && asked % 6 !== 0) assert.include(words, wordOf(asked), `turn ${turn}`)
      // What the client is told is what the provider counted, for all requests of an answer.
      const input = counts.reduce((sum, each) => sum + each.input, 0)
      assert.strictEqual(
        input,
        provider.counted.slice(before).reduce((sum, each) => sum + each.input, 0)
      )
      counted += counts.length
    }
    let breaks = 0
    for (const [at, { text }] of provider.requests.entries()) {
      assert.isBelow(estimateText(text), window, `request ${at}`)
      const previous = provider.requests[at - 1]
      if (previous === undefined) continue
      const now = codecs[dialect].messages(text)
      const then = codecs[dialect].messages(previous.text)
      const isLonger = then.every((message, index) => message === now[index])
      const isSameHead = headOf(dialect, text) === headOf(dialect, previous.text)
      if (!isLonger || !isSameHead) breaks += 1
    }
    const compressions = [...gateway.held.keys()].filter((key) => key.includes("/view/")).length
    assert.isAtLeast(compressions, 2)
    assert.isAtLeast(provider.requests.length, counted + 1, "the model recalled nothing")
    assert.isAtMost(breaks, compressions, "the prefix broke between compressions")
    for (const message of client.history) assert.notInclude(JSON.stringify(message), "palimpsest")
  })
})
