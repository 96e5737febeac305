import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import { emptySession } from "../../../src/domain/session/Session.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import {
  catchUp,
  type Head,
  make,
  makeNames,
  namesOf,
  noMark,
  placeOf,
  remember
} from "../../../src/services/effect-ai/PromptMemory.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const said = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })
const prompt = (...texts: ReadonlyArray<string>) => texts.map(said)

/** A memory in which every message has one token. */
const memory = Effect.map(makeNames, (names) => make(names, () => Effect.succeed(1), { whole: 8, remembered: 8 })).pipe(
  Effect.provide(MemoryTempStore.layer)
)

const headAt = (at: number): Head => ({
  at,
  mark: noMark,
  items: [],
  tokens: 0,
  waiting: 0,
  events: undefined,
  stored: undefined
})

describe("the place of a prompt", () => {
  it.effect("is the same for the same messages, whatever objects hold them", function* () {
    const held = yield* memory
    const place = yield* placeOf(held, prompt("a", "b"))
    assert.strictEqual(yield* placeOf(held, prompt("a", "b")), place)
    assert.notStrictEqual(yield* placeOf(held, prompt("a", "c")), place)
  })

  it.effect("sums up the messages of a continued prompt", function* () {
    const held = yield* memory
    const begun = prompt("a", "b")
    yield* placeOf(held, begun)
    const { length, mark } = yield* placeOf(held, [...begun, said("c")])
    assert.deepStrictEqual([length, mark.spoken, mark.system], [3, 3, 0])
  })

  it.effect("has the compression of a continued prompt, and its turn", function* () {
    const held = yield* memory
    const begun = prompt("a", "b")
    const place = yield* placeOf(held, begun)
    remember(held, place, headAt(1), emptySession, undefined)
    const next = yield* placeOf(held, [...begun, said("c")])
    assert.strictEqual(next.head, place.head)
    assert.strictEqual(next.turn, place.turn)
  })

  it.effect("catches up with a compression of the same beginning", function* () {
    const held = yield* memory
    const content = prompt("a", "b", "c")
    const late = yield* placeOf(held, [...content, said("d")])
    const early = yield* placeOf(held, content)
    const head = headAt(2)
    remember(held, early, head, emptySession, (yield* namesOf(held.names, content))[1])
    assert.isUndefined(late.head)
    yield* catchUp(held, late, [...content, said("d")])
    assert.strictEqual(late.head, head)
  })
})
