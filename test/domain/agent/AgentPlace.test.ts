import { assert, describe, it } from "@effect/vitest"
import {
  type AgentPlace,
  firstPlace,
  isTooDeep,
  narrowedPlace,
  parsePlace,
  placeBelow,
  placeText
} from "../../../src/domain/agent/AgentPlace.ts"

const first = firstPlace({ depth: 2, running: 8 }, "/home/running/a")
const inherited = placeBelow(first, 0, "edits")

describe("the place of an agent", () => {
  it("is inherited as text", () => {
    assert.deepStrictEqual(parsePlace(placeText(inherited)), inherited)
    assert.deepStrictEqual(inherited, {
      depth: 1,
      limits: { depth: 2, running: 8 },
      approve: "edits",
      slots: "/home/running/a"
    })
  })

  const broken: ReadonlyArray<readonly [name: string, text: string]> = [
    ["no JSON", "1"],
    ["a part is missing", `{"depth":1}`],
    ["a depth that is none", placeText(inherited).replace(`"depth":1`, `"depth":-1`)],
    ["a depth without an end", placeText(inherited).replace(`"depth":1`, `"depth":1e999`)],
    ["an unknown mode", placeText(inherited).replace("edits", "everything")],
    ["no file to count with", placeText(inherited).replace("/home/running/a", "")]
  ]
  it.each(broken)("is not guessed: %s", (_, text) => assert.isUndefined(parsePlace(text)))

  const narrower: ReadonlyArray<readonly [own: AgentPlace["limits"], expected: AgentPlace["limits"]]> = [
    [
      { depth: 5, running: 100 },
      { depth: 2, running: 8 }
    ],
    [
      { depth: 1, running: 100 },
      { depth: 1, running: 8 }
    ],
    [
      { depth: 5, running: 3 },
      { depth: 2, running: 3 }
    ]
  ]
  it.each(narrower)("never has wider limits than it inherited: own limits %j", (own, expected) =>
    assert.deepStrictEqual(narrowedPlace(inherited, own), { ...inherited, limits: expected })
  )

  it("is too deep beyond the limit, however long the chain and whatever its agents set", () => {
    let place = first
    const started: Array<number> = []
    for (let link = 0; link < 100 && !isTooDeep(place); link += 1) {
      started.push(place.depth)
      place = narrowedPlace(placeBelow(place, place.depth, "all"), { depth: 5, running: 100 })
    }
    assert.deepStrictEqual(started, [0, 1, 2])
  })
})
