import { assert, describe, it } from "@effect/vitest"
import { matchExactName, matchName, shortName } from "../../../src/domain/session/SessionName.ts"

const sessions = [
  { id: "child", title: undefined, parent: "work" },
  { id: "0198-aaaa", title: "Fix the build" },
  { id: "0198-bbbb", title: undefined },
  { id: "2", title: "latest news" },
  { id: "work", title: "0198-bbbb" },
  { id: "other", title: "twice" },
  { id: "another", title: "twice" }
]

const idOf = (name: string) => {
  const answer = matchName(name, sessions)
  return answer._tag === "Found" ? answer.session.id : answer._tag === "Ambiguous" ? answer.ids : undefined
}

describe("a session's names", () => {
  it.each([
    ["its exact id", "work", "work"],
    ["its exact id, before the title of another", "0198-bbbb", "0198-bbbb"],
    ["its exact id, before a number of the list", "2", "2"],
    ["its exact title", "Fix the build", "0198-aaaa"],
    ["latest: the one written last", "latest", "0198-aaaa"],
    ["its number in the list, from 1", "4", "work"],
    ["the beginning of its id, where no other begins so", "0198-a", "0198-aaaa"],
    ["and blanks round it do not matter", "  work ", "work"],
    ["no number that begins with a zero, but the beginning of ids", "01", ["0198-aaaa", "0198-bbbb"]],
    ["no number that is not in the list", "7", undefined],
    ["no number zero, while an id begins with one", "00", undefined],
    ["no name at all", " ", undefined],
    ["nothing that it is not", "nope", undefined],
    ["its exact id, also where an agent's work is kept, which no number counts", "child", "child"]
  ] as const)("%s", (_, name, id) => assert.deepStrictEqual(idOf(name), id))

  it("an ambiguous name lists all matches", () => {
    assert.deepStrictEqual(idOf("0198"), ["0198-aaaa", "0198-bbbb"])
    assert.deepStrictEqual(idOf("twice"), ["other", "another"])
  })

  it("its id or title exactly, where a missing session would be created", () => {
    assert.deepStrictEqual(
      ["work", "Fix the build", "latest", "1", "0198-a"].map((name) => matchExactName(name, sessions)._tag),
      ["Found", "Found", "Unknown", "Unknown", "Unknown"]
    )
  })

  it("the short name of an id that we made is its beginning, and of another one the whole id", () => {
    const made = "01a228cc-2be2-7220-80a0-499616360fca"
    const names = [made, "491e126e-1e71-469c-ade2-fcc8af567c74", "work"].map(shortName)
    assert.deepStrictEqual(names, ["01a228cc-2be2-7220", "491e126e-1e71-469c-ade2-fcc8af567c74", "work"])
    assert.deepStrictEqual(matchName(shortName(made), [{ id: made, title: undefined }])._tag, "Found")
  })
})
