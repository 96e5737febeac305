import { assert, describe, it } from "@effect/vitest"
import { followIssues } from "../../../../src/domain/compression/evidence/TodoHistory.ts"

const filed = (...runs: ReadonlyArray<readonly [command: string, output: string]>): ReadonlyArray<string> => {
  const issues = new Map()
  for (const [command, output] of runs) followIssues(issues, command, output)
  return [...issues.values()].map(({ status, text }) => `[${status}] ${text}`)
}

describe("issues that the agent filed", () => {
  const created = ['bd create "Look into maps" -p 2', "Created issue: app-k3x7"] as const
  it.each([
    ["filed by command", [created], ["[open] issue app-k3x7: Look into maps"]],
    [
      "filed with a title and an address",
      [["gh issue create --title 'A leak' --body x", "https://example.com/o/r/issues/12"]],
      ["[open] issue 12: A leak"]
    ],
    [
      "with a separator in its title",
      [['bd create "Fix login & logout; then rest" -p 2', "Created issue: app-k3x7"]],
      ["[open] issue app-k3x7: Fix login & logout; then rest"]
    ],
    [
      "with a short option for its title",
      [["gh issue create -t 'A leak' -b x", "https://example.com/o/r/issues/12"]],
      ["[open] issue 12: A leak"]
    ],
    ["closed", [created, ["bd close app-k3x7 --reason 'done it'", ""]], ["[completed] issue app-k3x7: Look into maps"]],
    [
      "reopened",
      [created, ["bd close app-k3x7", ""], ["bd reopen app-k3x7", ""]],
      ["[open] issue app-k3x7: Look into maps"]
    ],
    [
      "taken on",
      [created, ["bd update app-k3x7 --status in_progress", ""]],
      ["[in_progress] issue app-k3x7: Look into maps"]
    ],
    ["of somebody else", [["bd close app-zzz1", "Closed"]], []],
    ["told by another program", [["cat notes.md", "Created issue: app-k3x7"]], []],
    ["without an answer", [['bd create "Look"', ""]], []]
  ] as const)("%s", (_, runs, expected) => assert.deepStrictEqual(filed(...runs), [...expected]))
})
