import { readFileSync } from "node:fs"
import path from "node:path"
import { program, run } from "./cli/program.ts"
import { commandsOn, pages } from "./support/pages.ts"
import { root } from "./support/paths.ts"
import { assert, describe, it } from "./support/vitest.ts"

/** The pages show real output: every command of their console blocks is run, and must begin with the lines shown. */

const withCommands = pages.filter(({ text }) => commandsOn(text).length > 0)

describe.each(withCommands)("$name", ({ name, text }) => {
  it.effect("prints the documented output", function* () {
    const { folder } = yield* program
    const real = (word: string) => word.replace("/tmp/", `${folder}/`)
    for (const { command, lines } of commandsOn(text)) {
      const words = /^npm start --silent -- (.+)$/.exec(command)?.[1]?.split(" ")
      assert.isDefined(words, `${name}: ${command} is not a command of the program`)
      const { status, stdout } = yield* run(words.map(real), { cwd: root })
      assert.strictEqual(status, 0, command)
      const printed = String(stdout).split("\n")
      const isCut = lines.at(-1) === "…"
      const shown = isCut ? lines.slice(0, -1) : lines
      // A block of the first page is the whole output, or says that it is cut.
      if (name === "README.md") {
        const { length } = String(stdout).trimEnd().split("\n")
        assert.strictEqual(isCut, length > shown.length, `${command}: ${length} lines`)
      }
      for (const [index, line] of shown.entries()) {
        const expected = real(line).replace(/…$/, "")
        assert.isTrue(printed[index]?.startsWith(expected) === true, `${command}\n${line}\n${printed[index]}`)
      }
    }
  })
})

describe("the pages", () => {
  it("show enough commands", () => {
    const count = (name: string) => withCommands.find((page) => page.name === name)?.text ?? ""
    assert.isAtLeast(commandsOn(count("README.md")).length, 4)
    assert.isAtLeast(commandsOn(count("docs/compress.md")).length, 4)
  })

  it("name the commands that CI runs", () => {
    const readme = readFileSync(path.join(root, "README.md"), "utf8")
    const ci = readFileSync(path.join(root, ".ci", "run"), "utf8")
    assert.include(readme, "npm ci && npm test")
    assert.include(ci, "npm test")
  })
})
