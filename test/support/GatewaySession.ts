import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { estimateText } from "../../src/domain/tokens/Tokens.ts"
import { withoutCacheMarks } from "../../src/domain/wire/anthropic/CacheMarks.ts"
import type { Dialect } from "../../src/domain/wire/Dialect.ts"
import { type Block, codecs, signatureOf } from "./GatewayDialects.ts"
import { type FakeModel, makeGateway, makeProvider, type ProviderRequest } from "./GatewayScene.ts"

/** A session in which each turn plants a code word and some turns ask for an early one, for any client of the gateway. */

const lines = 60

/** Text that fills the window. */
export const filler = (turn: number): string =>
  Array.from(
    { length: lines },
    (_, at) => `Line ${at} of turn ${turn} tells of part ${(turn * 61 + at * 17) % 997}.`
  ).join("\n")

/** The code word of a turn. */
export const wordOf = (turn: number): string => `${["amber", "birch", "cedar", "delta"][turn % 4]}-${turn * 7919}`

/** The sentence that plants it. */
export const fact = (turn: number): string => `The code word of turn ${turn} is ${wordOf(turn)}.`

/** A model that answers from what it sees, and recalls what it does not see. `asked` is the turn whose word is asked for. */
export const lookingModel = (asked: () => number | undefined): FakeModel => {
  let calls = 0
  return ({ dialect, text }: ProviderRequest) => {
    const messages = codecs[dialect].messages(text)
    const turn = asked()
    const thought: Block = { kind: "thought", text: "I think.", signature: signatureOf(`${calls}`) }
    calls += 1
    if (turn !== undefined) {
      const found = new RegExp(`code word of turn ${turn} is (\\w+-\\d+)`).exec(messages.join("\n"))
      if (found !== null) return [thought, { kind: "text", text: `It was ${found[1]}.` }]
      const name = /"(palimpsest_recall(?:_\d+)?)"/.exec(text)?.[1]
      if (name === undefined) return [{ kind: "text", text: "I do not know." }]
      return [
        thought,
        ...(turn % 2 === 0 ? [{ kind: "text" as const, text: "Let me look. " }] : []),
        { kind: "call", id: `call_${calls}`, name, args: { grep: `code word of turn ${turn} ` } }
      ]
    }
    const read = /Read (file\d+)\./.exec(messages.at(-1) ?? "")
    return read === null
      ? [thought, { kind: "text", text: "Noted." }]
      : [
          thought,
          { kind: "text", text: "Reading." },
          { kind: "call", id: `call_${calls}`, name: "read_file", args: { path: read[1] } }
        ]
  }
}

/** A client that keeps its own history: says something, and returns the words of the answer. */
export type Talker = (url: string) => (text: string) => Promise<string>

const commonShare = (before: string, now: string): number => {
  let same = 0
  while (same < before.length && before[same] === now[same]) same += 1
  return same / before.length
}

/** Runs a session of so many turns through a gateway with this window, and checks what the provider got. */
export const talkThrough = Effect.fnUntraced(function* (
  dialect: Dialect,
  talker: Talker,
  { canRead = false, turns, window }: { readonly canRead?: boolean; readonly turns: number; readonly window: number }
) {
  let asked: number | undefined
  const provider = yield* makeProvider(lookingModel(() => asked))
  const gateway = yield* makeGateway(provider.url, { window })
  const say = talker(gateway.url)
  let answers = 0
  for (let turn = 1; turn <= turns; turn += 1) {
    asked = turn % 6 === 0 ? Math.max(1, turn - 17) : undefined
    const words = yield* Effect.promise(() =>
      say(
        asked === undefined
          ? `${fact(turn)}\n${filler(turn)}\n${canRead && turn % 4 === 1 ? `Read file${turn}.` : ""}`
          : `Which code word had turn ${asked}?`
      )
    )
    answers += 1
    if (asked !== undefined && asked % 6 !== 0) assert.include(words, wordOf(asked), `turn ${turn}`)
  }
  const compressions = [...gateway.held.keys()].filter((key) => key.includes("/view/")).length
  const shown = (text: string) => codecs[dialect].messages(text).map(withoutCacheMarks).join()
  let breaks = 0
  for (const [at, { text }] of provider.requests.entries()) {
    assert.isBelow(estimateText(text), window, `request ${at}`)
    const previous = provider.requests[at - 1]
    if (previous !== undefined && commonShare(shown(previous.text), shown(text)) < 0.95) breaks += 1
  }
  assert.isAtLeast(compressions, 2)
  assert.isAtMost(breaks, compressions, "the prefix broke between compressions")
  assert.isAbove(provider.requests.length, answers, "the model recalled nothing")
  return { requests: provider.requests.length, compressions }
})
