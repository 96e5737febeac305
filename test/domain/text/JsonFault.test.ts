import { assert, describe, it } from "@effect/vitest"
import { faultIn } from "../../../src/domain/text/JsonFault.ts"

describe("the position of a JSON fault", () => {
  for (const [json, place] of [
    ["", [1, 1, "a value"]],
    ["{", [1, 2, `a name in double quotes or "}"`]],
    ["{model: 1}", [1, 2, `a name in double quotes or "}"`]],
    [`{"a" 1}`, [1, 6, `":"`]],
    [`{"a": }`, [1, 7, "a value"]],
    [`{"a": 1,}`, [1, 9, "a name in double quotes"]],
    [`{\n  "a": 1\n  "b": 2\n}`, [3, 3, `"," or "}"`]],
    [`{"a": [1 2]}`, [1, 10, `"," or "]"`]],
    ["[1,]", [1, 4, "a value"]],
    ["[1}", [1, 3, `"," or "]"`]],
    ["{} {}", [1, 4, "nothing more"]],
    [`{"a": big}`, [1, 7, "a value"]],
    [`{"a": 01}`, [1, 7, "a value"]],
    [`{"a": 'b'}`, [1, 7, "a value"]],
    [`{"a": "b\nc"}`, [1, 7, "a text that ends in its line, with escapes that JSON has"]],
    [`{"a": "\\x"}`, [1, 7, "a text that ends in its line, with escapes that JSON has"]]
  ] as const) {
    it(JSON.stringify(json), () => {
      const fault = faultIn(json)
      assert.deepStrictEqual(fault && [fault.line, fault.column, fault.expected], [...place])
      assert.throws(() => JSON.parse(json))
    })
  }

  it.each([`{"a": [1, -0.5e+3, true, null, "\\u00e9\\n", {}, []], "b": {"c": false}}`, " 1 ", `"x"`, "[[[]]]"])(
    "none in %s",
    (json) => {
      assert.isUndefined(faultIn(json))
      assert.doesNotThrow(() => JSON.parse(json))
    }
  )
})
