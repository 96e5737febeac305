import { assert, it } from "@effect/vitest"
import { BoundedMap } from "../../../src/domain/text/BoundedMap.ts"

it("a bounded map drops what was set longest ago", () => {
  const map = new BoundedMap<string, number>(2)
  map.set("a", 1)
  map.set("b", 2)
  map.set("a", 3)
  map.set("c", 4)
  assert.deepStrictEqual(
    ["a", "b", "c"].map((key) => map.get(key)),
    [3, undefined, 4]
  )
})

it("a map that is bounded by what its entries weigh keeps the newest, whatever that weighs", () => {
  const map = new BoundedMap<string, string>(4, (text) => text.length)
  const held = () => ["a", "b", "c"].map((key) => map.get(key) ?? "")
  map.set("a", "11")
  map.set("b", "22")
  map.set("b", "2")
  map.set("c", "3")
  assert.deepStrictEqual(held(), ["11", "2", "3"])
  map.set("c", "33")
  assert.deepStrictEqual(held(), ["", "2", "33"])
  map.set("a", "11111")
  assert.deepStrictEqual(held(), ["11111", "", ""])
})
