import { createHash } from "node:crypto"
import { portable } from "../../../src/domain/content/Sha256.ts"
import { assert, it } from "../../support/vitest.ts"

it("SHA-256 without the platform's is the platform's, for any length and any pieces", () => {
  for (const length of [0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 118, 119, 120, 127, 128, 129, 1_000, 4_096]) {
    const bytes = Uint8Array.from({ length }, (_, n) => (n * 131 + length) & 255)
    for (const cut of [0, 1, Math.floor(length / 3), length]) {
      const digest = portable()
      digest.update(bytes.subarray(0, cut))
      digest.update(bytes.subarray(cut))
      assert.deepStrictEqual(
        Buffer.from(digest.digest()).toString("hex"),
        createHash("sha256").update(bytes).digest("hex"),
        `${length} bytes, cut at ${cut}`
      )
    }
  }
})
