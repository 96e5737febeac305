import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { createHash } from "node:crypto"
import { Handle, handleOf, Hash, hashOf, isHandle, matches, mentions } from "../../../src/domain/content/Handle.ts"
import { runsOf } from "../../support/runs.ts"

const digest = (text: string) => createHash("sha256").update(text).digest()
const hash = (text: string) => hashOf(digest(text))

/** Base32 by the book (RFC 4648, lower case, no padding): bits as text, five by five. */
const base32 = (bytes: Uint8Array): string => {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("")
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => "abcdefghijklmnopqrstuvwxyz234567".charAt(Number.parseInt(five.padEnd(5, "0"), 2)))
    .join("")
}

describe("Handle", () => {
  it.prop(
    "a hash is the base32 of the digest",
    [Schema.String],
    ([text]) => assert.strictEqual(hash(text), base32(digest(text))),
    { arbitrary: { runs: runsOf(500), seed: "hash" } }
  )

  it("has a known hash for the empty input", () => {
    assert.strictEqual(hash(""), "4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbkq")
  })

  it("is h_ and ten characters of the hash", () => {
    assert.strictEqual(handleOf(hash("")), "h_4oymiquy7q")
    assert.isTrue(isHandle(handleOf(hash("x"))))
  })

  it("grows by one character per collision, up to the whole hash", () => {
    const of = hash("a")
    const taken = new Set([`h_${of.slice(0, 10)}`, `h_${of.slice(0, 11)}`])
    assert.strictEqual(
      handleOf(of, (handle) => taken.has(handle)),
      `h_${of.slice(0, 12)}`
    )
    assert.strictEqual(
      handleOf(of, () => true),
      `h_${of}`
    )
  })

  it("matches only its own hash", () => {
    assert.isTrue(matches(handleOf(hash("a")), hash("a")))
    assert.isFalse(matches(handleOf(hash("a")), hash("b")))
  })

  it.each(["", "h_", "h_abc", "H_abcdefghij", "h_abcdefghi1", "abcdefghij", `h_${"a".repeat(53)}`, "h_abcdefghij "])(
    "%j is none",
    (name) => assert.isFalse(isHandle(name))
  )

  it("a hash has 52 characters", () => {
    assert.isTrue(Schema.is(Hash)("a".repeat(52)))
    assert.isFalse(Schema.is(Hash)("a".repeat(51)))
  })

  it("finds the handles that a text mentions", () => {
    const one = handleOf(hash("1"))
    const two = handleOf(hash("2"), (handle) => handle.length < 20)
    assert.deepStrictEqual(mentions(`recall ${one}, or "${two}". ${one}`), [one, two, one])
    assert.deepStrictEqual(mentions("h_short, xh_abcdefghij, h_abcdefghijK, h_ABCDEFGHIJ"), [])
    assert.deepStrictEqual(mentions("h_abcdefghij"), [Handle.make("h_abcdefghij")])
  })
})
