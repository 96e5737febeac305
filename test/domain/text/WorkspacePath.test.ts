import { assert, describe, it } from "@effect/vitest"
import { innermostFolder, leadsOut, relativePath } from "../../../src/domain/text/WorkspacePath.ts"

it.each([
  ["is the only folder that holds it", ["/a", "/b"], "/b/file", "/b"],
  ["is the deepest of several, in any order", ["/a/b", "/a", "/a/b/c"], "/a/b/c/file", "/a/b/c"],
  ["is the folder itself", ["/a", "/a/b"], "/a/b", "/a/b"],
  ["is not a folder whose name only begins the same", ["/a", "/a/b"], "/a/bc", "/a"],
  ["is empty outside all of them", ["/a"], "/b", ""]
] as const)("the innermost folder of a path %s", (_title, folders, place, expected) =>
  assert.strictEqual(innermostFolder(folders, place, "/"), expected)
)

it("only a path whose first step is .. leads out of its folder", () => {
  for (const path of ["..", "../a", "..\\a", "../../a"]) assert.isTrue(leadsOut(path), path)
  for (const path of ["", "a", "..a", "...", "..a/../b", "a/.."]) assert.isFalse(leadsOut(path), path)
})

describe("a path relative to a folder", () => {
  it.each([
    ["/w/a.ts", "/w", "a.ts"],
    ["/w/a.ts", "/w/", "a.ts"],
    ["/wide/a.ts", "/w", "/wide/a.ts"],
    ["/w", "/w", "/w"],
    ["/w/a.ts", "/", "/w/a.ts"],
    ["src\\a.ts", "/w", "src\\a.ts"],
    ["C:\\w\\src\\a.ts", "c:\\W", "src/a.ts"],
    ["c:/w/a.ts", "C:\\w\\", "a.ts"],
    ["/c/w/a.ts", "C:\\w", "a.ts"],
    ["/mnt/c/w/a.ts", "C:\\w", "a.ts"],
    ["src\\a.ts", "C:\\w", "src/a.ts"],
    ["D:\\w\\a.ts", "C:\\w", "D:\\w\\a.ts"],
    ["\\\\host\\w\\a.ts", "\\\\host\\w", "a.ts"]
  ])("%s in %s is %s", (path, folder, shown) => assert.strictEqual(relativePath(path, folder), shown))
})
