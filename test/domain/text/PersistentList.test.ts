import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as PersistentList from "../../../src/domain/text/PersistentList.ts"
import { runsOf } from "../../support/runs.ts"

const of = <A>(values: ReadonlyArray<A>): PersistentList.PersistentList<A> =>
  values.reduce<PersistentList.PersistentList<A>>(
    (chain, value, index) => PersistentList.append(chain, value, index + 1),
    undefined
  )

describe("PersistentList", () => {
  it("is empty at first: no length, tokens or values", () => {
    assert.strictEqual(PersistentList.length(undefined), 0)
    assert.strictEqual(PersistentList.total(undefined), 0)
    assert.deepStrictEqual(PersistentList.toArray(undefined), [])
    assert.deepStrictEqual(PersistentList.drop(undefined, 3), [])
  })

  it("earlier versions are unchanged and shared", () => {
    const two = of(["a", "b"])
    const left = PersistentList.append(two, "left", 10)
    const right = PersistentList.append(two, "right", 20)
    assert.deepStrictEqual(PersistentList.toArray(two), ["a", "b"])
    assert.deepStrictEqual(PersistentList.toArray(left), ["a", "b", "left"])
    assert.deepStrictEqual(PersistentList.toArray(right), ["a", "b", "right"])
    assert.strictEqual(left.before, two)
    assert.strictEqual(right.before, two)
    assert.deepStrictEqual(
      [PersistentList.total(two), PersistentList.total(left), PersistentList.total(right)],
      [3, 13, 23]
    )
  })

  it("walks the values of one version once", () => {
    const chain = of([1, 2, 3])
    assert.strictEqual(PersistentList.toArray(chain), PersistentList.toArray(chain))
  })

  it.prop(
    "agrees with an array",
    [Schema.Array(Schema.Int), Schema.Natural],
    ([values, count]) => {
      const chain = of(values)
      const dropped = count % (values.length + 2)
      assert.strictEqual(PersistentList.length(chain), values.length)
      assert.strictEqual(PersistentList.total(chain), (values.length * (values.length + 1)) / 2)
      assert.deepStrictEqual(PersistentList.toArray(chain), values)
      assert.deepStrictEqual(PersistentList.drop(chain, dropped), values.slice(dropped))
    },
    { arbitrary: { runs: runsOf(500), seed: "chain" } }
  )
})
