import { Effect } from "effect"
import { applyCompletion, menuOf, provider } from "../../../src/layers/terminal/CompletionMenu.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("menuOf", () => {
  it("shows candidates with what is said about them, and none with control characters", () =>
    assert.deepStrictEqual(
      menuOf({ candidates: ["/undo ", "a\u001b[2J", "/redo "], replaced: "/", about: { "/undo ": "Undo it" } }),
      {
        items: [
          { value: "/undo ", label: "/undo", description: "Undo it" },
          { value: "/redo ", label: "/redo" }
        ],
        prefix: "/"
      }
    ))

  it("is none without candidates", () => assert.isNull(menuOf({ candidates: ["\u0007"], replaced: "" })))
})

const cases: ReadonlyArray<
  readonly [rule: string, lines: Array<string>, row: number, column: number, after: Array<string>, cursor: number]
> = [
  ["replaces the word at the cursor", ["see @do now"], 0, 7, ["see @docs/ now"], 10],
  ["inserts where the text has changed", ["see "], 0, 4, ["see @docs/"], 10],
  ["changes the line of the cursor alone", ["one", "@do"], 1, 3, ["one", "@docs/"], 6]
]
it.each(cases)("applyCompletion %s", (_rule, lines, row, column, after, cursor) =>
  assert.deepStrictEqual(applyCompletion(lines, row, column, { value: "@docs/", label: "@docs/" }, "@do"), {
    lines: after,
    cursorLine: row,
    cursorCol: cursor
  })
)

describe("provider", () => {
  const suggestions = (complete: Parameters<typeof provider>[0]["completer"]) => {
    const menus: Array<string> = []
    const made = provider({
      completer: complete,
      onMenu: (text) => menus.push(text),
      onOpened: () => {},
      run: Effect.runPromise
    })
    return Effect.promise(async () => ({
      found: await made.getSuggestions(["one", "/un"], 1, 3, { signal: new AbortController().signal }),
      menus
    }))
  }

  it.effect("completes the text before the cursor", function* () {
    const asked: Array<string> = []
    const { found, menus } = yield* suggestions(() => (line) => {
      asked.push(line)
      return Effect.succeed({ candidates: ["/undo"], replaced: "/un" })
    })
    assert.deepStrictEqual(asked, ["one\n/un"])
    assert.deepStrictEqual(found?.items, [{ value: "/undo", label: "/undo" }])
    assert.deepStrictEqual(menus, ["one\n/un"])
  })

  it.effect("gives up a completion that fails, and asks for none without a completer", function* () {
    assert.isNull((yield* suggestions(() => () => Effect.die(new Error("no")))).found)
    const without = yield* suggestions(() => undefined)
    assert.deepStrictEqual(without, { found: null, menus: [] })
  })
})
