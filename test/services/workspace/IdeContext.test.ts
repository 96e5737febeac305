import { Effect, Layer, Ref } from "effect"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { type IdeLimits, type IdeState, normalise } from "../../../src/domain/workspace/IdeContext.ts"
import { IdeContext, makeUpdates } from "../../../src/services/workspace/IdeContext.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** An editor context with the state of this reference. */
const layer = (current: Ref.Ref<IdeState | undefined>, limits?: IdeLimits): Layer.Layer<IdeContext> =>
  Layer.succeed(IdeContext, {
    state: Effect.map(Ref.get(current), (state) => (state === undefined ? undefined : normalise(state, limits))),
    problem: Effect.undefined
  })

const open = (...paths: ReadonlyArray<string>): IdeState => ({
  openFiles: paths.map((path, index) => ({ path, timestamp: index }))
})

const scene = Effect.gen(function* () {
  const said = yield* Ref.make<IdeState | undefined>(undefined)
  const news = yield* Effect.provide(makeUpdates, layer(said))
  return { news, say: (state: IdeState | undefined) => Ref.set(said, state) }
})

describe("the editor's state for a model", () => {
  it.effect("is complete at the beginning and after a compression; in between what changed", function* () {
    const { news, say } = yield* scene
    yield* say(open("a"))
    assert.include(yield* news.full, `"a"`)
    assert.strictEqual(yield* news.next, undefined)

    yield* say(open("a", "b"))
    const first = yield* news.next
    assert.isTrue(first?.text.startsWith(`${runtimeMark}\n`))
    assert.match(first?.text ?? "", /"filesOpened": \[\s*"b"\s*\]/)
    // The turn failed: what was not sent is news again.
    const again = yield* news.next
    assert.strictEqual(again?.text, first?.text)
    yield* again?.markSent ?? Effect.void
    assert.strictEqual(yield* news.next, undefined)

    yield* say(open("a", "b", "c"))
    assert.include(yield* news.full, `"c"`)
    assert.strictEqual(yield* news.next, undefined)
  })

  it.effect("is fixed at sending, whatever the editor reports meanwhile", function* () {
    const { news, say } = yield* scene
    yield* say(open("a"))
    const first = yield* news.next
    yield* say(open("a", "b"))
    yield* first?.markSent ?? Effect.void
    assert.match((yield* news.next)?.text ?? "", /"filesOpened": \[\s*"b"\s*\]/)
  })

  it.effect("is absent without an editor; a new one is reported in full, and so is its end", function* () {
    const { news, say } = yield* scene
    assert.strictEqual(yield* news.full, undefined)
    assert.strictEqual(yield* news.next, undefined)
    yield* say(open("a"))
    const came = yield* news.next
    assert.include(came?.text, "otherOpenFiles")
    yield* came?.markSent ?? Effect.void
    yield* say(undefined)
    assert.include((yield* news.next)?.text, "filesClosed")
    const none = yield* Effect.provide(
      IdeContext,
      Layer.succeed(IdeContext, { state: Effect.undefined, problem: Effect.undefined })
    )
    assert.strictEqual(yield* none.state, undefined)
    assert.strictEqual(yield* none.problem, undefined)
  })
})
