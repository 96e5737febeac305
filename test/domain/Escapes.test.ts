import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { fileContent, unescaped } from "../../src/domain/Escapes.ts"

describe("escapes", () => {
  for (const [escaped, text] of [
    ["a\\nb", "a\nb"],
    ["\\tx\\r\\n", "\tx\r\n"],
    [`say(\\"hi\\", \\'you\\', \\\`me\\\`)`, `say("hi", 'you', \`me\`)`],
    ["C:\\\\new", "C:\\new"],
    ["/\\d+\\s/", "/\\d+\\s/"],
    ["", ""]
  ] as const) {
    it(`spec 14: ${JSON.stringify(escaped)} is ${JSON.stringify(text)}`, () => {
      assert.strictEqual(unescaped(escaped), text)
    })
  }

  it.prop("what was escaped once comes back", [Schema.String], ([text]) => {
    const escaped = text.replace(/[\n\t\r'"`\\]/g, (char) => {
      const name = { "\n": "n", "\t": "t", "\r": "r" }[char] ?? char
      return `\\${name}`
    })
    assert.strictEqual(unescaped(escaped), text)
  })

  it("spec 14: a content is left as it is, unless its author escapes too much", () => {
    assert.strictEqual(fileContent(`print("a\\nb")`, false), `print("a\\nb")`)
    assert.strictEqual(fileContent("a\\nb", true), "a\nb")
  })
})
