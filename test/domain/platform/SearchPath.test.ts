import { assert, describe, it } from "@effect/vitest"
import { absoluteParts, withAbsolutePath } from "../../../src/domain/platform/SearchPath.ts"

describe("the parts of a PATH", () => {
  const cases: ReadonlyArray<readonly [what: string, path: string, separator: string, parts: ReadonlyArray<string>]> = [
    ["absolute ones stay, each once", "/usr/bin:/bin:/usr/bin", "/", ["/usr/bin", "/bin"]],
    ["relative ones go", "node_modules/.bin:./bin:../bin:~/bin:/bin", "/", ["/bin"]],
    ["an empty one is the folder one works in", "/bin:", "/", ["/bin"]],
    ["also at the beginning and between", ":/bin::/usr/bin", "/", ["/bin", "/usr/bin"]],
    ["dots", ".:..:/bin", "/", ["/bin"]],
    ["nothing", "", "/", []],
    ["Windows", "C:\\a;.;\\\\host\\b;tools;D:/c", "\\", ["C:\\a", "\\\\host\\b", "D:/c"]]
  ]
  it.each(cases)("%s", (_, path, separator, parts) => assert.deepStrictEqual(absoluteParts(path, separator), parts))

  it("keeps variables with absolute parts only, and never omits PATH, since shells would then search the working folder", () => {
    assert.deepStrictEqual(withAbsolutePath({ PATH: ".:/bin:", A: ".:" }), { PATH: "/bin", A: ".:" })
    for (const PATH of ["", ".", ":", "a:b"])
      assert.deepStrictEqual(withAbsolutePath({ PATH }), { PATH: "/usr/bin:/bin" })
    assert.deepStrictEqual(withAbsolutePath({ Path: "C:\\a;.;D:\\b" }), { Path: "C:\\a;D:\\b" })
    assert.deepStrictEqual(withAbsolutePath({}), {})
  })
})
