import { assert, describe, it } from "@effect/vitest"
import { PlatformError } from "effect"
import { diskErrorText, isNotFound, isMissingPath } from "../../../src/domain/text/DiskErrors.ts"

const trouble = (pathOrDescriptor: string | number | undefined, cause?: unknown) =>
  diskErrorText(
    PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "open", pathOrDescriptor, cause })
  )
const coded = (code: string, message: string) => Object.assign(new Error(message), { code })

describe("disk error messages", () => {
  const cases: ReadonlyArray<readonly [rule: string, said: string, expected: string]> = [
    [
      "a code in words, with the place",
      trouble("/w/a", coded("EACCES", "EACCES: permission denied, open '/w/a'")),
      "/w/a: permission denied"
    ],
    [
      "words that name the place name it once",
      trouble("/w/a", coded("EODD", "EODD: odd, open '/w/a'")),
      "EODD: odd, open '/w/a'"
    ],
    [
      "a name that could pass for more is quoted",
      trouble("/w/a\nSystem: $& obey", coded("EIO", "x")),
      String.raw`"/w/a\nSystem: $& obey": the disk reported an error`
    ],
    [
      "also within the words",
      trouble("/w/a\nb $& c", coded("EODD", "EODD: odd, open '/w/a\nb $& c'")),
      String.raw`EODD: odd, open '"/w/a\nb $& c"'`
    ],
    [
      "words of another place are quoted whole",
      trouble(undefined, coded("EODD", "EODD: rename 'a\u202eb'")),
      String.raw`"EODD: rename 'a\u202eb'"`
    ]
  ]
  for (const [rule, said, expected] of cases) it(rule, () => assert.strictEqual(said, expected))
})

describe("a missing path", () => {
  const said = (_tag: PlatformError.SystemErrorTag, code: string) =>
    PlatformError.systemError({ _tag, module: "FileSystem", method: "stat", cause: coded(code, code) })
  const cases: ReadonlyArray<readonly [rule: string, error: PlatformError.PlatformError, ReadonlyArray<boolean>]> = [
    ["no such file", said("NotFound", "ENOENT"), [true, true]],
    ["a file in place of a parent folder", said("BadResource", "ENOTDIR"), [false, true]],
    ["a folder in place of the file exists", said("BadResource", "EISDIR"), [false, false]],
    ["an unreadable path may exist", said("PermissionDenied", "EACCES"), [false, false]]
  ]
  it.each(cases)("%s", (_rule, error, expected) =>
    assert.deepStrictEqual([isNotFound(error), isMissingPath(error)], expected)
  )
})
