import { assert, describe, it } from "@effect/vitest"
import { Data } from "effect"
import { errorText } from "../../../src/domain/text/ErrorText.ts"

class Boom extends Data.TaggedError("Boom")<{ readonly code: number }> {}

const circular: { self?: unknown } = {}
circular.self = circular

describe("the text of an error", () => {
  const rows: ReadonlyArray<readonly [error: unknown, text: string]> = [
    [new Error("the disk is full"), "the disk is full"],
    [new Boom({ code: 3 }), "Boom"],
    [{ _tag: "Boom", code: 3 }, '{"_tag":"Boom","code":3}'],
    [circular, '{"self":[Circular]}'],
    ["refused", "refused"],
    [undefined, "undefined"]
  ]
  for (const [error, text] of rows) it(text, () => assert.strictEqual(errorText(error), text))
})
