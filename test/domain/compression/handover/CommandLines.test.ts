import { assert, describe, it } from "@effect/vitest"
import type { CommandRun } from "../../../../src/domain/compression/evidence/CommandHistory.ts"
import { cost } from "../../../../src/domain/compression/handover/Budget.ts"
import { commandItems, listedCommands } from "../../../../src/domain/compression/handover/CommandLines.ts"
import { Handle } from "../../../../src/domain/content/Handle.ts"
import { entryId } from "../../../../src/domain/conversation/Conversation.ts"

const runs = (...commands: ReadonlyArray<readonly [command: string, exit: number]>) => runsWith(() => true, ...commands)

const runsWith = (
  isOpen: (command: string) => boolean,
  ...commands: ReadonlyArray<readonly [command: string, exit: number]>
) =>
  listedCommands(
    new Map(
      commands.map(([command, exit], index): readonly [string, CommandRun] => [
        command,
        { exit, ok: exit === 0, times: 1, entry: entryId(index + 1), handle: Handle.make("h_aaaaaaaaaa") }
      ])
    ),
    (text) => text,
    isOpen
  )
const lines = (commands: ReturnType<typeof runs>, budget: number) =>
  commandItems(commands)(budget).flatMap(({ text }) =>
    text
      .split("\n")
      .slice(1)
      .map((line) => line.trim())
  )

describe("the list of commands", () => {
  it("says where a command failed, and shows it whole where there is room", () => {
    assert.deepStrictEqual(lines(runs(["npm test 2>&1 | tail -5", 1], ["npm run build", 0]), 1_000), [
      "npm test → exit 1 (e1 h_aaaaaaaaaa)",
      "npm run build"
    ])
  })

  it("lists open failures first, and those that a success ended in their turn", () => {
    const commands = runsWith(
      (command) => command === "npm run lint",
      ["npm run lint", 1],
      ["npm run old", 1],
      ["npm test", 0]
    )
    assert.deepStrictEqual(lines(commands, 1_000), [
      "npm run lint → exit 1 (e1 h_aaaaaaaaaa)",
      "npm test",
      "npm run old → exit 1 (e2 h_aaaaaaaaaa)"
    ])
  })

  it("clips commands to what tells them apart, so that more fit", () => {
    const folder = "packages/service/internal"
    const commands = runs(
      ...Array.from(
        { length: 20 },
        (_, n) => [`go test ./${folder}/part${n} -run TestOfTheWholeThing -count=1`, 0] as const
      )
    )
    const shown = lines(commands, 500)
    assert.lengthOf(shown, 20)
    for (const line of shown) assert.match(line, /^go test .\/packages\/service\/internal\/part\d+…?/)
    assert.lengthOf(new Set(shown), 20)
  })

  it("leaves out runs that a later one of the same command outdates, and looks", () => {
    const commands = runs(["npm test | tail -3", 1], ["git log -3", 0], ["npm run build", 0], ["npm test | tail -9", 0])
    assert.deepStrictEqual(lines(commands, 24), ["npm test", "npm run build"])
    assert.deepStrictEqual(lines(commands, 1_000), ["npm test", "npm run build"])
  })

  it("shows a here-document that is an argument by its first line", () => {
    const commands = runs([`git commit -m "$(cat <<'EOF'\nfix: close the socket\n\nLong text.\nEOF\n)" && git push`, 0])
    assert.deepStrictEqual(lines(commands, 1_000), ['git commit -m "fix: close the socket…" && git push'])
  })

  it("fits its budget", () => {
    const commands = runs(...Array.from({ length: 100 }, (_, n) => [`make target-${n} VERBOSE=1`, n % 3] as const))
    for (const budget of [0, 20, 40, 200, 1_000]) {
      const tokens = commandItems(commands)(budget).reduce((sum, item) => sum + cost(item), 0)
      assert.isAtMost(tokens, budget)
    }
  })
})
