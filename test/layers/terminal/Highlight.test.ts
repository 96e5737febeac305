import { Effect } from "effect"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const green = "\u001b[32m"
const reset = "\u001b[0m"

/** A highlighter that is loaded. */
const loaded = Effect.promise(
  () =>
    new Promise<Highlight.Highlight>((resolve) => {
      const made: Highlight.Highlight = Highlight.make(() => resolve(made))
      made.code("1", "ts")
    })
)

describe("the colours of a diff", () => {
  const diff = ["@@ -1,2 +1,2 @@", " const a = 1", "-const b = 2", "+const b = 3", "… 4 more lines"]

  it.live("are those of the language in added and unchanged code; the rest stays as it was", function* () {
    const { diff: colour } = yield* loaded
    const [hunk, same = "", removed, added = "", rest] = colour(diff, "ts")
    assert.deepStrictEqual([hunk, removed, rest], [diff[0], diff[2], diff[4]])
    assert.include(same, `\u001b[35mconst${reset}`)
    assert.isTrue(added.startsWith(`${green}+`))
    assert.include(added, `\u001b[33m3${reset}`)
  })

  it.live("end with the hunk that leaves a comment open, and with the line", function* () {
    const { diff: colour } = yield* loaded
    const rows = colour(["@@ -1 +1 @@", "+/* open", "+still", "@@ -9 +9 @@", "+const a = 1"], "ts")
    assert.include(rows[2], `\u001b[2mstill${reset}`)
    assert.include(rows[4], `\u001b[35mconst${reset}`)
    for (const row of [rows[1], rows[2], rows[4]]) assert.isTrue(row?.endsWith(reset))
  })

  it.live("are the signs alone where the language is unknown", function* () {
    const { diff: colour } = yield* loaded
    for (const language of [undefined, "", "nothing"]) assert.deepStrictEqual(colour(diff, language), diff)
  })
})
