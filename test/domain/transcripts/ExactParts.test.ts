import { assert, describe, it } from "@effect/vitest"
import { lineNumbers, samePieces, sourcesOf } from "../../../src/domain/transcripts/ExactParts.ts"

it("the lines of slices are those on which they begin, wherever a text is cut, also when slices repeat", () => {
  const text = "aa\n\naa\naab\n\n"
  for (let from = 0; from < text.length; from += 1) {
    for (let to = from + 1; to < text.length; to += 1) {
      const slices = [text.slice(from, to), text.slice(to)]
      const first = text.indexOf(slices[0] ?? "")
      const second = text.indexOf(slices[1] ?? "", first + to - from)
      const lineAt = (place: number) => text.slice(0, place).split("\n").length
      assert.deepStrictEqual(lineNumbers(text, slices), [lineAt(first), lineAt(second)], `${from} ${to}`)
    }
  }
  assert.deepStrictEqual(lineNumbers("a\na\na", ["a", "a", "a"]), [1, 2, 3])
  assert.deepStrictEqual(lineNumbers("", []), [])
})

describe("exact texts", () => {
  it("are known by the number of their part", () => {
    assert.isUndefined(sourcesOf([]))
    assert.isUndefined(sourcesOf([undefined, undefined]))
    assert.deepStrictEqual(sourcesOf([undefined, "b", undefined, "d"]), { "1": "b", "3": "d" })
  })

  it("are compared part by part", () => {
    const [one, other] = [
      { part: { text: "a" }, source: undefined },
      { part: { text: "b" }, source: undefined }
    ]
    const spelled = { part: { text: "a" }, source: '{"text":"\\u0061"}' }
    const lists = [[], [one], [other], [one, other], [other, one], [one, one]]
    for (const [at, left] of lists.entries()) {
      for (const [place, right] of lists.entries()) assert.strictEqual(samePieces(left, right), at === place)
    }
    assert.isTrue(samePieces([spelled], [{ ...spelled }]))
  })
})
