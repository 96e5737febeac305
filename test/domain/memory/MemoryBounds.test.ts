import { assert, describe, it } from "@effect/vitest"
import { openclawAgentDefaults } from "../../../src/domain/compression/strategies/openclaw/OpenClaw.ts"
import { boundedMemory } from "../../../src/domain/memory/MemoryBounds.ts"
import type { MemoryBlock } from "../../../src/domain/memory/MemoryText.ts"

const block = (shown: string, text: string): MemoryBlock => ({
  source: "project",
  file: `/work/${shown}`,
  shown,
  text,
  imports: []
})

const bounds = openclawAgentDefaults.memory
const sizes = (blocks: ReadonlyArray<MemoryBlock>) =>
  blocks.map(({ text }) => text.replace(/\n?\[\d+ of [^\]]*\]\n?/, "").length)

describe("the bounds of memory", () => {
  it("openclaw: 20,000 characters a file, and a marker says what is cut and where it is (OpenClaw 2026.9; ours: the end of the file stays, too)", () => {
    const long = `${"head ".repeat(4_000)}${"tail ".repeat(4_000)}`
    const { blocks, problems } = boundedMemory([block("AGENTS.md", long), block("a/AGENTS.md", "short")], bounds)
    assert.deepStrictEqual(sizes(blocks), [20_000, 5])
    const [cut] = blocks
    assert.match(
      cut?.text ?? "",
      /^head [^]*\n\[20000 of 40000 characters are left out here; they are in AGENTS\.md: read it before [^\]]*\]\n[^]*tail $/
    )
    assert.deepStrictEqual(
      problems.map(({ text }) => text),
      ["AGENTS.md: has 40000 characters, of which 20000 are read (memory.fileChars)"]
    )
  })

  it("openclaw: 60,000 characters in all (OpenClaw 2026.9; ours: the files nearest to the work get room first)", () => {
    const names = ["a", "b", "c", "d", "e"]
    const { blocks, problems } = boundedMemory(
      names.map((name) => block(name, name.repeat(18_000))),
      bounds
    )
    assert.deepStrictEqual(sizes(blocks), [0, 6_000, 18_000, 18_000, 18_000])
    assert.match(blocks[0]?.text ?? "", /^\[18000 of 18000 characters are left out here; they are in a/)
    assert.deepStrictEqual(
      problems.map(({ text }) => text),
      [
        "a: has 18000 characters, of which 0 are read (memory.totalChars)",
        "b: has 18000 characters, of which 6000 are read (memory.totalChars)"
      ]
    )
  })

  it("0 is no bound", () => {
    const blocks = [block("a", "a".repeat(1_000_000))]
    assert.deepStrictEqual(boundedMemory(blocks, { fileChars: 0, totalChars: 0 }), { blocks, problems: [] })
  })
})
