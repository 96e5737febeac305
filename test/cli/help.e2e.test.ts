import { globSync, readFileSync } from "node:fs"
import path from "node:path"
import { stripVTControlCharacters } from "node:util"
import { maxHelpColumns } from "../../src/cli/output/HelpText.ts"
import { needs } from "../support/machine.ts"
import { assert, it } from "../support/vitest.ts"
import { program } from "./program.ts"
import * as Tmux from "./tmux.ts"

it.effect("--help fits every command's page into 100 columns and describes the command", function* () {
  const { bundle } = yield* program
  // codeCache.e2e.test.ts compares saved pages with what the program prints.
  const [saved = ""] = globSync("parts/*/help.json", { cwd: path.dirname(bundle) })
  const pages: Readonly<Record<string, string>> = JSON.parse(
    readFileSync(path.join(path.dirname(bundle), saved), "utf8")
  )
  assert.isAtLeast(Object.keys(pages).length, 30)
  for (const [command, coloured] of Object.entries(pages)) {
    const page = stripVTControlCharacters(coloured)
    assert.match(page, /^[A-Z][^\n]+\n\nUSAGE\n/, command)
    assert.notInclude(page, "--wizard", command)
    for (const line of page.split("\n")) assert.isAtMost(line.length, maxHelpColumns, `${command}: ${line}`)
  }
})

needs("tmux")("a command line that is not understood", () => {
  it.live("is answered in lines of the terminal's width, between words", function* () {
    const { bundle } = yield* program
    const screen = yield* Tmux.start({ command: [process.execPath, bundle, "nonsense"], width: 40 })
    const answer = yield* screen.until(/--help"/)
    assert.include(answer, "palimpsest: there is no command\n  nonsense; to ask a question:")
  })
})
