import { Effect, Option } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { edited } from "../../../src/layers/terminal/TerminalKeys.ts"
import { newFolder } from "../../support/paths.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const folder = newFolder("editor-")
const script = (name: string, body: string): string => {
  const file = path.join(folder, name)
  writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return file
}

/** Edits a text with these variables in place of the user's. */
const withEditor = (variables: { readonly VISUAL?: string; readonly EDITOR?: string }, text: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const { EDITOR, VISUAL } = process.env
      for (const name of ["VISUAL", "EDITOR"] as const) {
        const value = variables[name]
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
      return { EDITOR, VISUAL }
    }),
    () => edited(text),
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of Object.entries(before)) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

describe.skipIf(process.platform === "win32")("the editor of the user", () => {
  const seen = path.join(folder, "seen")
  const appends = script("appends", `cat "$1" > ${seen}; echo "$1" > ${seen}.name; printf 'more\\n' >> "$1"`)

  it.live("edits the text in a private file that is removed afterwards; VISUAL comes before EDITOR", function* () {
    const text = yield* withEditor({ VISUAL: appends, EDITOR: "false" }, "first\nsecond\n")
    assert.deepStrictEqual(text, Option.some("first\nsecond\nmore"))
    assert.strictEqual(readFileSync(seen, "utf8"), "first\nsecond\n")
    assert.isFalse(existsSync(readFileSync(`${seen}.name`, "utf8").trim()))
  })

  it.live("takes a command with arguments", function* () {
    const withFlag = script("flag", `[ "$1" = --wait ] && echo waited > "$2"`)
    assert.deepStrictEqual(yield* withEditor({ EDITOR: `${withFlag} --wait` }, "x"), Option.some("waited"))
  })

  it.live.each([
    ["without an editor", {}],
    ["where it cannot be started", { EDITOR: "/no/such/editor" }],
    ["where it fails", { EDITOR: "false" }]
  ] as const)("%s there is no text", ([, variables]) =>
    Effect.map(withEditor(variables, "x"), (text) => assert.isTrue(Option.isNone(text)))
  )
})
