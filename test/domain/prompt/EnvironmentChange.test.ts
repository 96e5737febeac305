import { assert, describe, it } from "@effect/vitest"
import { environmentChange } from "../../../src/domain/prompt/EnvironmentChange.ts"
import {
  type EnvironmentFacts,
  environmentMessage,
  type TreeEntry
} from "../../../src/domain/prompt/EnvironmentMessage.ts"
import { full } from "../../../src/domain/workspace/IdeContext.ts"

const file = (name: string): TreeEntry => ({ _tag: "File", name })
const folder = (name: string, entries?: ReadonlyArray<TreeEntry>, more = 0): TreeEntry => ({
  _tag: "Folder",
  name,
  entries,
  more
})
const tree = (entries: ReadonlyArray<TreeEntry>, more = 0): Partial<EnvironmentFacts> => ({
  trees: [{ folder: "/work", entries, more }]
})

const facts: EnvironmentFacts = {
  now: Date.UTC(2026, 10, 22),
  zone: "UTC",
  platform: "linux",
  folders: ["/work"],
  outputs: undefined,
  repository: undefined,
  sandbox: "none",
  approvedPlan: undefined,
  ide: undefined,
  trees: []
}

/** The lines that tell of a change, without the two that open it. */
const told = (before: Partial<EnvironmentFacts>, now: Partial<EnvironmentFacts>) =>
  environmentChange(environmentMessage({ ...facts, ...before }), environmentMessage({ ...facts, ...now }))
    ?.split("\n")
    .slice(2)

const editor = full({ openFiles: [{ path: "/work/a.ts", timestamp: 1, isActive: true }] })

describe("a change of the environment", () => {
  it.each<[string, Partial<EnvironmentFacts>, Partial<EnvironmentFacts>, ReadonlyArray<string> | undefined]>([
    ["nothing", tree([file("a")]), tree([file("a")]), undefined],
    ["another day", {}, { now: Date.UTC(2026, 10, 23) }, ["Today is Monday, November 23, 2026."]],
    ["a folder less", { folders: ["/work", "/more"] }, {}, ["No longer true: Also part of the workspace: /more"]],
    [
      "files",
      tree([file("a"), file("b")]),
      tree([file("b"), file("c")]),
      ["New in /work:", "  c", "No longer in /work:", "  a"]
    ],
    ["the first file", tree([]), tree([file("a")]), ["New in /work:", "  a"]],
    [
      "a file in a folder",
      tree([folder("x", [file("a")])]),
      tree([folder("x", [file("a"), file("b")])]),
      ["New in /work:", "  x/b"]
    ],
    ["a folder", tree([]), tree([folder("x", [file("a")])]), ["New in /work:", "  x/", "  x/a"]],
    [
      "what a limit hides is neither new nor gone",
      tree([folder("x"), file("a")], 3),
      tree([folder("x", [file("b")]), file("c")], 3),
      undefined
    ],
    ["the editor", {}, { ide: editor }, editor?.split("\n")]
  ])("%s", (_, before, now, expected) => {
    assert.deepStrictEqual(told(before, now), expected)
  })

  it("lists a bounded number of paths", () => {
    const names = Array.from({ length: 500 }, (_, at) => file(`f${at}`))
    assert.lengthOf(told(tree([]), tree(names)) ?? [], 102)
  })
})
