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
