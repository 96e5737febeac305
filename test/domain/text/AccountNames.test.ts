import { assert, describe, it } from "@effect/vitest"
import { accountFinder, accountNamesIn, accountOf } from "../../../src/domain/text/AccountNames.ts"

describe("names of accounts", () => {
  const rows: ReadonlyArray<readonly [text: string, names: ReadonlyArray<string>]> = [
    ["cd /home/marotte/src && ls /Users/j.doe/x", ["marotte", "j.doe"]],
    [String.raw`C:\Users\Anna\x and {"cwd":"C:\\Users\\Berta\\y"}`, ["Anna", "Berta"]],
    ["/home/USER/x /Users/runner/y /home/node /root/z /home/al", []],
    ["see /home/marotte.", ["marotte"]]
  ]
  it.each(rows)("%s", (text, names) => assert.deepStrictEqual([...accountNamesIn(text)], names))

  it("include those of the environment, if they belong to a person", () =>
    assert.deepStrictEqual(accountOf({ USER: "marotte", LOGNAME: "root" }), ["marotte"]))

  const found = accountFinder(["marotte", "j.doe"])
  const places: ReadonlyArray<readonly [text: string, found: ReadonlyArray<string>]> = [
    ["/home/marotte/src", ["home folder /home/marotte"]],
    [String.raw`C:\Users\J.Doe\src`, [String.raw`home folder C:\Users\J.Doe`]],
    ["-home-marotte-src, by Marotte", ["account marotte", "account Marotte"]],
    ["marotteria and jxdoe", []]
  ]
  it.each(places)("in %s", (text, expected) =>
    assert.deepStrictEqual(
      found(text).map(({ end, kind, start }) => `${kind} ${text.slice(start, end)}`),
      expected
    )
  )
})
