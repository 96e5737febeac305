import { assert, describe, it } from "@effect/vitest"
import { withExif } from "../../../src/domain/content/Exif.ts"

const start = [0xff, 0xd8]
const jfif = [0xff, 0xe0, 0, 4, 1, 2]
const exif = [0xff, 0xe1, 0, 10, ...Buffer.from("Exif\0\0"), 7, 8]
const pixels = [0xff, 0xda, 0, 2, 9, 9]
const file = (...segments: ReadonlyArray<ReadonlyArray<number>>) => Uint8Array.from(segments.flat())

describe("withExif", () => {
  it.each([
    ["is taken over", file(start, jfif, exif, pixels), file(start, exif, jfif, pixels)],
    ["may be missing", file(start, jfif, pixels), file(start, jfif, pixels)],
    ["is not looked for among pixels", file(start, pixels, exif), file(start, jfif, pixels)],
    ["may be torn", file(start, exif.slice(0, 8)), file(start, jfif, pixels)],
    [
      "is another segment of its kind",
      file(start, [0xff, 0xe1, 0, 6, 1, 2, 3, 4], exif),
      file(start, exif, jfif, pixels)
    ],
    ["is none in other files", file([1, 2, 3]), file(start, jfif, pixels)]
  ])("the description %s", (_, from, expected) => {
    assert.deepStrictEqual(withExif(file(start, jfif, pixels), from), expected)
  })

  it("other files stay as they are", () => {
    assert.deepStrictEqual(withExif(file([1, 2]), file(start, exif)), file([1, 2]))
  })
})
