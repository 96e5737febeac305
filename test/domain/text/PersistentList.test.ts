import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Chain from "../../../src/domain/text/PersistentList.ts"
import { runsOf } from "../../support/runs.ts"

const of = <A>(values: ReadonlyArray<A>): Chain.PersistentList<A> =>
  values.reduce<Chain.PersistentList<A>>((chain, value, index) => Chain.append(chain, value, index + 1), undefined)

describe("PersistentList", () => {
  it("is empty at first: no length, tokens or values", () => {
    assert.strictEqual(Chain.length(undefined), 0)
    assert.strictEqual(Chain.total(undefined), 0)
    assert.deepStrictEqual(Chain.toArray(undefined), [])
    assert.deepStrictEqual(Chain.drop(undefined, 3), [])
  })

  it("earlier versions are unchanged and shared", () => {
    const two = of(["a", "b"])
    const left = Chain.append(two, "left", 10)
    const right = Chain.append(two, "right", 20)
    assert.deepStrictEqual(Chain.toArray(two), ["a", "b"])
    assert.deepStrictEqual(Chain.toArray(left), ["a", "b", "left"])
    assert.deepStrictEqual(Chain.toArray(right), ["a", "b", "right"])
    assert.strictEqual(left.before, two)
    assert.strictEqual(right.before, two)
    assert.deepStrictEqual([Chain.total(two), Chain.total(left), Chain.total(right)], [3, 13, 23])
  })

  it("walks the values of one version once", () => {
    const chain = of([1, 2, 3])
    assert.strictEqual(Chain.toArray(chain), Chain.toArray(chain))
  })

  it.prop(
    "agrees with an array",
    [Schema.Array(Schema.Int), Schema.Natural],
    ([values, count]) => {
      const chain = of(values)
      const dropped = count % (values.length + 2)
      assert.strictEqual(Chain.length(chain), values.length)
      assert.strictEqual(Chain.total(chain), (values.length * (values.length + 1)) / 2)
      assert.deepStrictEqual(Chain.toArray(chain), values)
      assert.deepStrictEqual(Chain.drop(chain, dropped), values.slice(dropped))
    },
    { arbitrary: { runs: runsOf(500), seed: "chain" } }
  )
})
