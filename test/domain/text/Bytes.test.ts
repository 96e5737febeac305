import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { decode, encode } from "../../../src/domain/text/Bytes.ts"
import { runsOf } from "../../support/runs.ts"

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
/** Bytes of which whole and broken UTF-8 sequences are likely. */
const Piece = Schema.Literals(
  [
    [0x61],
    [0xc3, 0xa9],
    [0xe2, 0x82, 0xac],
    [0xf0, 0x9f, 0x98, 0x80],
    [0xed, 0xa0, 0x80],
    [0xed, 0xb2, 0x80],
    [0xc0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe2, 0x82],
    [0x80],
    [0xff],
    [0xef, 0xbb, 0xbf],
    [0x00]
  ].map((bytes) => bytes.join())
)
const bytesOf = (pieces: ReadonlyArray<string>) =>
  Uint8Array.from(pieces.flatMap((piece) => piece.split(",").map(Number)))

const same = (bytes: Uint8Array): void => {
  const { text, valid } = decode(bytes)
  assert.deepStrictEqual(encode(text), bytes)
  // Node's own decoder puts U+FFFD for what is broken.
  assert.strictEqual(valid, Buffer.from(Buffer.from(bytes).toString("utf8")).equals(bytes))
}

describe("Bytes", () => {
  it.prop("round-trips any bytes", [Schema.Array(Byte)], ([bytes]) => same(Uint8Array.from(bytes)), {
    arbitrary: { runs: runsOf(1_000), seed: "bytes", size: 64 }
  })

  it.prop(
    "round-trips broken sequences among valid ones",
    [Arbitrary.map(Arbitrary.schema(Schema.Array(Piece)), bytesOf)],
    ([bytes]) => same(bytes),
    { arbitrary: { runs: runsOf(1_000), seed: "pieces", size: 24 } }
  )

  it("maps each invalid byte to U+DC80 to U+DCFF", () => {
    assert.deepStrictEqual(decode(Uint8Array.from([0x61, 0x80, 0xff, 0xe2, 0x82])), {
      text: "a\uDC80\uDCFF\uDCE2\uDC82",
      valid: false
    })
  })

  it("writes any other lone surrogate as three bytes", () => {
    assert.deepStrictEqual([...encode("\uD800")], [0xed, 0xa0, 0x80])
    assert.deepStrictEqual([...encode("a\uDFFF")], [0x61, 0xed, 0xbf, 0xbf])
  })
})
