import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { endText, outputText } from "../../../src/domain/agent/DecodedOutput.ts"
import { HeadAndTail } from "../../../src/domain/text/HeadAndTail.ts"

const bytesFrom = (from: number, count: number) => Uint8Array.from({ length: count }, (_, i) => (from + i) % 251)

it.prop(
  "the two ends of an output are the same for any limit and chunks",
  [
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 64 })),
    Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 }))),
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 }))
  ],
  ([limit, pieces, count]) => {
    const kept = new HeadAndTail(limit)
    let size = 0
    for (const piece of pieces) {
      const bytes = bytesFrom(size, piece)
      kept.add(bytes)
      // What is added is copied: whoever gave it may write over it.
      bytes.fill(255)
      size += piece
    }
    const all = bytesFrom(0, size)
    const { dropped, head, tail } = kept.kept()
    assert.strictEqual(head.length + tail.length, Math.min(size, limit))
    assert.strictEqual(dropped, Math.max(0, size - limit))
    assert.deepStrictEqual([...head], [...all.subarray(0, head.length)])
    assert.deepStrictEqual([...tail], [...all.subarray(size - tail.length)])
    const end = kept.end(count)
    const most = dropped === 0 ? Math.min(count, size) : Math.min(count, tail.length)
    assert.deepStrictEqual([...end], [...all.subarray(size - most)])
  }
)

const encoder = new TextEncoder()

const textOf = (limit: number, ...pieces: ReadonlyArray<string | Uint8Array>): string => {
  const kept = new HeadAndTail(limit)
  for (const piece of pieces) kept.add(typeof piece === "string" ? encoder.encode(piece) : piece)
  return outputText(kept.kept())
}

describe("an output as text", () => {
  const cases: ReadonlyArray<readonly [rule: string, pieces: ReadonlyArray<string | Uint8Array>, text: string]> = [
    ["nothing is nothing", [], ""],
    ["text is itself", ["one\n", "two ✓\n"], "one\ntwo ✓\n"],
    ["a character may come in two pieces", [Uint8Array.of(0xe2, 0x9c), Uint8Array.of(0x93)], "✓"],
    [
      "a few bytes that are no UTF-8 are replaced",
      ["long enough a text ", Uint8Array.of(0xff)],
      "long enough a text \ufffd"
    ],
    ["NUL ends a line", ["./one/long/path\u0000./other/long/path\u0000"], "./one/long/path\n./other/long/path\n"],
    ["colours are left out", ["\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x"], "red x"],
    ["a bell is left out", ["a long enough text\u0007"], "a long enough text"],
    ["CRLF is a line end", ["a\r\nb\r\n"], "a\nb\n"],
    ["binary is named with its size", [new Uint8Array(1234)], "(binary output, 1,234 bytes)"],
    [
      "so are a picture's bytes",
      [Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13)],
      "(binary output, 12 bytes)"
    ]
  ]
  it.each(cases)("%s", (_rule, pieces, text) => assert.strictEqual(textOf(1_000_000, ...pieces), text))

  it("counts what is left out between the ends", () =>
    assert.strictEqual(
      textOf(10, "abcdefghijklmnop"),
      "abcde\n[… 6 of 16 bytes are left out here: more is not kept …]\nlmnop"
    ))

  it("splits no character at the cut", () => {
    const text = textOf(10, "✓✓✓✓✓✓✓✓✓✓")
    assert.notInclude(text, "\ufffd")
    assert.isTrue(text.startsWith("✓\n") && text.endsWith("\n✓"))
  })

  it("joins a part that both halves kept", () => assert.strictEqual(textOf(8, "a✓✓b"), "a✓✓b"))

  it("shows an end from its first whole character", () => {
    assert.strictEqual(endText(encoder.encode("✓✓").subarray(1)), "✓")
    assert.strictEqual(endText(new Uint8Array(100)), "(binary output)")
  })
})
