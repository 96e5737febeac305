import { assert, it } from "@effect/vitest"
import { offeredThreshold } from "../../../src/domain/compression/HandCompressions.ts"

it.each<readonly [shares: ReadonlyArray<number>, threshold: number, expected: number | undefined]>([
  [[0.31, 0.33], 0.5, undefined],
  [[0.31, 0.33, 0.36], 0.5, 0.3],
  [[0.9, 0.31, 0.33, 0.36], 0.5, 0.3],
  [[0.1, 0.33, 0.36], 0.5, undefined],
  [[0.5, 0.52, 0.51], 0.5, undefined],
  [[0.01, 0.02, 0.01], 0.5, undefined]
])(
  "offers a threshold after three compressions by hand at about one size: %j below %d",
  (shares, threshold, expected) => {
    assert.strictEqual(offeredThreshold(shares, threshold), expected)
  }
)
