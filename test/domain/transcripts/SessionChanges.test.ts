import { assert, describe, it } from "@effect/vitest"
import { type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { entriesSince, parseSince } from "../../../src/domain/transcripts/SessionChanges.ts"

const entry = (sequence: number, at?: number): Entry => ({
  id: entryId(sequence),
  content: { role: "user", parts: [] },
  tokens: [],
  handles: [],
  ...(at === undefined ? {} : { at })
})
const log = [entry(1, 10), entry(2), entry(3, 20), entry(4), entry(5, 30)]

describe("what came since a point", () => {
  it.each([
    [{ _tag: "Entry", entry: entryId(2) }, [3, 4, 5]],
    [{ _tag: "Entry", entry: entryId(5) }, []],
    [{ _tag: "Time", at: 9 }, [1, 2, 3, 4, 5]],
    [{ _tag: "Time", at: 10 }, [3, 4, 5]],
    [{ _tag: "Time", at: 29 }, [5]],
    [{ _tag: "Time", at: 30 }, []]
  ] as const)("is after it: %j", (since, expected) => {
    assert.deepStrictEqual(
      entriesSince(log, since).map(({ id }) => id),
      expected.map(entryId)
    )
  })

  it("is named by an entry, a time, or a time ago", () => {
    const now = 1_000_000_000
    for (const [text, at] of [
      ["2m", now - 120_000],
      ["3 h", now - 10_800_000],
      [" 1d ", now - 86_400_000],
      ["2026-01-01T00:00:00Z", Date.UTC(2026, 0, 1)]
    ] as const) {
      assert.deepStrictEqual(parseSince(text, now), { _tag: "Time", at })
    }
    assert.deepStrictEqual(parseSince("e12", now), { _tag: "Entry", entry: entryId(12) })
    for (const text of ["e0", "e", "", "yesterday", "2w"]) assert.isUndefined(parseSince(text, now), text)
  })
})
