import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { unescapedContent, withoutExtraEscapes } from "../../../src/domain/tools/ModelEscapes.ts"

describe("escapes", () => {
  for (const [escaped, text] of [
    ["a\\nb", "a\nb"],
    ["\\tx\\r\\n", "\tx\r\n"],
    [`say(\\"hi\\", \\'you\\', \\\`me\\\`)`, `say("hi", 'you', \`me\`)`],
    ["C:\\\\new", "C:\\new"],
    ["/\\d+\\s/", "/\\d+\\s/"],
    ["", ""]
  ] as const) {
    it(`${JSON.stringify(escaped)} is ${JSON.stringify(text)}`, () => {
      assert.strictEqual(withoutExtraEscapes(escaped), text)
    })
  }

  it.prop("one level of escapes is reversible", [Schema.String], ([text]) => {
    const escaped = text.replace(/[\n\t\r'"`\\]/g, (char) => {
      const name = { "\n": "n", "\t": "t", "\r": "r" }[char] ?? char
      return `\\${name}`
    })
    assert.strictEqual(withoutExtraEscapes(escaped), text)
  })

  it("content is unchanged, unless its model escapes too much", () => {
    assert.strictEqual(unescapedContent(`print("a\\nb")`, false), `print("a\\nb")`)
    assert.strictEqual(unescapedContent("a\\nb", true), "a\nb")
  })
})
