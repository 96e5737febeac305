import { assert, describe, it } from "@effect/vitest"
import { openclawAgentDefaults } from "../../../src/domain/compression/strategies/openclaw/OpenClaw.ts"
import type { MemoryBlock } from "../../../src/domain/memory/MemoryText.ts"
import { repeatedRules, sectionsUnder } from "../../../src/domain/memory/RepeatedRules.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"

const block = (shown: string, text: string): MemoryBlock => ({
  source: "project",
  file: shown,
  shown,
  text,
  imports: []
})

const file = [
  "# House",
  "Intro.",
  "## Red Lines",
  "- Never push.",
  "### How so",
  "Because.",
  "```sh",
  "## Red Lines",
  "```",
  "## Style",
  "Tabs.",
  "## session startup ##",
  "Read the notes."
].join("\n")

describe("rules that are repeated", () => {
  const { headings } = openclawAgentDefaults.repeatRules

  it("openclaw: are the sections Session Startup and Red Lines (OpenClaw 2026.9; ours: of all memory files, in their order)", () => {
    assert.deepStrictEqual(sectionsUnder(file, headings), [
      "## Red Lines\n- Never push.\n### How so\nBecause.\n```sh\n## Red Lines\n```",
      "## session startup ##\nRead the notes."
    ])
    const text = repeatedRules(
      [block("AGENTS.md", file), block("a/AGENTS.md", "# Red Lines\nNo.")],
      openclawAgentDefaults.repeatRules
    )
    assert.isTrue(text?.startsWith(`${runtimeMark} The conversation was compressed.`))
    assert.match(text ?? "", /From AGENTS\.md:\n\n## Red Lines[^]*From a\/AGENTS\.md:\n\n# Red Lines\nNo\.$/)
    assert.notInclude(text ?? "", "Tabs.")
  })

  it("openclaw: have 2,000 characters at most (OpenClaw 2026.9)", () => {
    const text = repeatedRules(
      [block("AGENTS.md", `## Red Lines\n${"x".repeat(5_000)}`)],
      openclawAgentDefaults.repeatRules
    )
    assert.match(text ?? "", /x\n\[\d+ more characters are in the memory above\]$/)
    assert.isBelow(text?.length ?? 0, 2_300)
  })

  it("are none where no heading is named or found", () => {
    assert.isUndefined(repeatedRules([block("AGENTS.md", file)], { headings: [], chars: 2_000 }))
    assert.isUndefined(repeatedRules([block("AGENTS.md", file)], { headings: ["Nothing"], chars: 2_000 }))
  })
})
