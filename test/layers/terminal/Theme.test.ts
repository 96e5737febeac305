import { assert, describe, it } from "@effect/vitest"
import { backgroundOf, painter } from "../../../src/layers/terminal/Theme.ts"

describe("the colours of a theme", () => {
  const row = "\u001b[2mdim\u001b[22m \u001b[36maccent\u001b[39m \u001b[1mbold\u001b[22m"

  it("changes only backgrounds on a dark background", () => {
    const changed = "\u001b[42m+ a\u001b[49m"
    for (const paint of [painter("auto", "dark"), painter("dark", "light")]) {
      assert.strictEqual(paint?.(row), row)
      assert.strictEqual(paint?.(changed), "\u001b[48;5;22m+ a\u001b[49m")
    }
  })

  it("has darker backgrounds of changed lines where the terminal has 24-bit colours", () => {
    assert.strictEqual(painter("dark", "dark", true)?.("\u001b[42m+ a\u001b[49m"), "\u001b[48;2;2;40;0m+ a\u001b[49m")
    assert.strictEqual(painter("light", "dark", true), painter("light", "dark"))
  })

  it.each([
    ["auto", "light", "\u001b[90mdim\u001b[22;39m \u001b[38;5;25maccent\u001b[39m \u001b[1mbold\u001b[22;39m"],
    ["contrast", "dark", "\u001b[22mdim\u001b[22m \u001b[96maccent\u001b[39m \u001b[1mbold\u001b[22m"]
  ] as const)("%s on a %s background", (theme, background, expected) =>
    assert.strictEqual(painter(theme, background)?.(row), expected)
  )

  it("tells light backgrounds from dark ones", () => {
    const rows = [
      [{ r: 255, g: 255, b: 255 }, "light"],
      [{ r: 253, g: 246, b: 227 }, "light"],
      [{ r: 0, g: 43, b: 54 }, "dark"],
      [{ r: 40, g: 40, b: 40 }, "dark"]
    ] as const
    for (const [colour, expected] of rows) assert.strictEqual(backgroundOf(colour), expected)
  })
})
