import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { ByteCollector, HeldBytes } from "../../../src/layers/gateway/HeldBytes.ts"

/** The bound on unfinished messages. */

const opened = (held: HeldBytes, ended: Array<string>, name: string) => held.open(() => void ended.push(name))

describe("unfinished messages", () => {
  it("end, the oldest with more than its share first, where they are too large together", () => {
    const held = new HeldBytes(1_000)
    const ended: Array<string> = []
    const small = opened(held, ended, "small")
    const slow = opened(held, ended, "slow")
    const slower = opened(held, ended, "slower")
    small.add(10)
    slow.add(400)
    slower.add(590)
    assert.deepStrictEqual([ended, held.bytes], [[], 1_000])
    const fresh = opened(held, ended, "fresh")
    fresh.add(300)
    assert.deepStrictEqual([ended, held.bytes], [["slow"], 900])
    fresh.add(101)
    assert.deepStrictEqual([ended, held.bytes], [["slow", "slower"], 411])
    // What has ended counts no more.
    slow.add(5_000)
    slower.close()
    assert.strictEqual(held.bytes, 411)
    small.close()
    fresh.add(-401)
    assert.strictEqual(held.bytes, 0)
    fresh.close()
    fresh.close()
    assert.deepStrictEqual([ended, held.bytes], [["slow", "slower"], 0])
  })

  it("end by themselves where one alone is too large", () => {
    const held = new HeldBytes(10)
    const ended: Array<string> = []
    opened(held, ended, "one").add(11)
    opened(held, ended, "none")
    assert.deepStrictEqual([ended, held.bytes], [["one"], 0])
  })
})

it("bytes in pieces are what they were, and take about as much memory as they are", () => {
  const collector = new ByteCollector()
  const all = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251))
  let taken = 0
  for (let at = 0; at < all.length;) {
    const size = 1 + (at % 7) * (at % 1_999)
    taken += collector.push(all.subarray(at, at + size))
    at += size
  }
  assert.isTrue(collector.collected.equals(all))
  assert.isAtMost(taken, 2 * all.length)
  assert.isAtLeast(taken, all.length)
})
