import { assert, describe, it } from "@effect/vitest"
import { ago, iso } from "../../../src/cli/output/TimeText.ts"

const now = Date.UTC(2026, 10, 22, 12)
const minute = 60_000

describe("relative times", () => {
  it.each([
    ["just now", 59_999],
    ["just now", -minute],
    ["1 min ago", minute],
    ["59 min ago", 60 * minute - 1],
    ["1 h ago", 60 * minute],
    ["23 h ago", 24 * 60 * minute - 1],
    ["1 d ago", 24 * 60 * minute],
    ["29 d ago", 30 * 24 * 60 * minute - 1],
    ["2026-10-23", 30 * 24 * 60 * minute]
  ] as const)("%s: after %s ms", (said, passed) => assert.strictEqual(ago(now - passed, now), said))

  it("prints an absolute time as ISO text", () => assert.strictEqual(iso(now), "2026-11-22T12:00:00.000Z"))
})
