import { assert, describe, it } from "@effect/vitest"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { SessionSecrets } from "../../../src/domain/transcripts/RecordSecrets.ts"

const base64 = (text: string): string => Buffer.from(text).toString("base64")

describe("a known value", () => {
  const values = ["correct-horse-battery", "correct-horse-batteryy", "correct-horse-batteryyy", "Größe-von-語-und-mehr"]

  it.each(values)("is replaced in base64 after and before any number of bytes: %s", (value) => {
    for (const before of ["", "x", "xy", "xyz"]) {
      for (const after of ["", "a", "ab", "abc"]) {
        for (const neighbour of ["\0", "~", "\x7f"]) {
          const secrets = new SessionSecrets({ secrets: true, personal: false, known: [{ kind: "password", value }] })
          secrets.settle()
          const encoded = base64(`${before.replaceAll(/./g, neighbour)}${value}${after.replaceAll(/./g, neighbour)}`)
          const { replaced, text } = runSync(secrets.replace(JSON.stringify({ text: `see ${encoded}.` })))
          assert.strictEqual(replaced, 1, `${before}|${after}`)
          assert.include(text, "[redacted: password #1]")
          // Of the value, no more is left than the bits that share a character with a neighbour.
          assert.isAtMost(
            text.replace("[redacted: password #1]", "").length,
            encoded.length - base64(value).length + 20
          )
          assert.isFalse(secrets.isRevealedBy(text))
        }
      }
    }
  })
})
