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
