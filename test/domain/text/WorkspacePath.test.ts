import { assert, describe, it } from "@effect/vitest"
import { innermostFolder } from "../../../src/domain/text/WorkspacePath.ts"

describe("the innermost folder of a path", () => {
  it.each([
    ["is the only folder that holds it", ["/a", "/b"], "/b/file", "/b"],
    ["is the deepest of several, in any order", ["/a/b", "/a", "/a/b/c"], "/a/b/c/file", "/a/b/c"],
    ["is the folder itself", ["/a", "/a/b"], "/a/b", "/a/b"],
    ["is not a folder whose name only begins the same", ["/a", "/a/b"], "/a/bc", "/a"],
    ["is empty outside all of them", ["/a"], "/b", ""]
  ] as const)("%s", (_title, folders, place, expected) =>
    assert.strictEqual(innermostFolder(folders, place, "/"), expected)
  )
})
