import { assert, it } from "@effect/vitest"
import { asksFor, skipReason, summary } from "../../../src/domain/workspace/ManyFiles.ts"

it.each([
  ["**/*.png", "logo.png", ".png", true],
  ["img/LOGO*", "logo.png", ".png", true],
  ["img/*", "logo.png", ".png", false],
  ["**/Makefile", "Makefile", "", true]
])("%s asks for %s: %s", (pattern, base, ending, isAskedFor) =>
  assert.strictEqual(asksFor(pattern, base, ending), isAskedFor)
)

const image = { _tag: "Media", what: "image", mimeType: "image/png" } as const
it.each([
  [{ _tag: "Binary" } as const, true, "binary"],
  [image, false, "image, not requested by name"],
  [image, true, undefined],
  [{ _tag: "Text" } as const, false, undefined]
])("skipReason of %j, asked for: %s", (kind, isAskedFor, why) => assert.strictEqual(skipReason(kind, isAskedFor), why))

it("summary names the first files only", () => {
  const names = Array.from({ length: 12 }, (_, i) => `f${i}`)
  const skipped = names.slice(0, 6).map((file) => ({ file, why: "binary" }))
  const lines = summary(names, skipped).split("\n")
  assert.deepStrictEqual(lines.slice(10), [
    "f9",
    "… and 2 more",
    "6 skipped",
    ...skipped.slice(0, 5).map(({ file }) => `${file}: binary`),
    "… and 1 more"
  ])
  assert.strictEqual(summary(["a"], []), "1 file read\na")
})
