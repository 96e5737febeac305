import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSettings } from "../src/domain/SettingsText.ts"
import { program, run } from "./cli/program.ts"
import { sessionFile } from "./support/sessions.ts"

/** The pages show real output: every command of their console blocks is run, and what it prints is what stands there. */

const root = path.dirname(import.meta.dirname)
const readme = readFileSync(path.join(root, "README.md"), "utf8")
const wishes = readFileSync(path.join(root, "docs", "seeds-wishes.md"), "utf8")

/** The blocks of a page in one language. */
const blocks = (page: string, language: string): ReadonlyArray<string> =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, block = ""]) => block)

/** The commands of a page with the lines shown under each. */
const shownOn = (page: string) =>
  blocks(page, "console").flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((piece) => {
        const [command = "", ...lines] = piece.trimEnd().split("\n")
        return { command, lines }
      })
  )

describe.each([
  { name: "README", page: readme, least: 15 },
  { name: "the page of wishes", page: wishes, least: 20 }
])("$name", ({ least, page }) => {
  it.effect("prints what it says", () =>
    Effect.gen(function* () {
      const { folder } = yield* program
      // Where the README writes, and what it unpacks, lies in the tests' own folder.
      const real = (word: string) =>
        word
          .replace("/tmp/", `${folder}/`)
          .replace("test/fixtures/sessions/claude-code-1512-lines.jsonl", sessionFile("claude-code-1512-lines"))
      let compared = 0
      for (const { command, lines } of shownOn(page)) {
        const words = /^npm start --silent -- (.+)$/.exec(command)?.[1]?.split(" ")
        if (words === undefined) {
          assert.match(command, /^gunzip /)
          continue
        }
        const { status, stdout } = yield* run(words.map(real), { cwd: root })
        assert.strictEqual(status, 0, command)
        const printed = String(stdout).split("\n")
        for (const [index, line] of lines.entries()) {
          const expected = real(line).replace(/…$/, "")
          assert.isTrue(printed[index]?.startsWith(expected) === true, `${command}\n${line}\n${printed[index]}`)
          compared += 1
        }
      }
      assert.isAbove(compared, least)
    })
  )
})

describe("README", () => {
  it("names the commands that CI runs", () => {
    const ci = readFileSync(path.join(root, ".ci", "run"), "utf8")
    assert.include(readme, "npm ci && npm test")
    assert.include(ci, "npm test")
  })
})

describe("the page of wishes", () => {
  it("names files that are there", () => {
    const named = [...wishes.matchAll(/`((?:src|test|bench|examples)\/[\w./-]+)`/g)].map(([, file = ""]) => file)
    assert.isAbove(named.length, 30)
    assert.deepStrictEqual(
      named.filter((file) => !existsSync(path.join(root, file))),
      []
    )
  })

  it("shows settings that are settings", () => {
    const shown = blocks(wishes, "json")
    assert.isAbove(shown.length, 5)
    for (const block of shown) {
      const read = Result.getOrThrow(parseSettings(block))
      assert.deepStrictEqual(read.unknown, [], block)
      assert.isAbove(Object.keys(read.settings).length, 0)
    }
  })

  it("answers every wish", () => {
    const answers = [...wishes.matchAll(/^\*\*[^*]+: (?:built(?:, by structure)?|in part|not)\.\*\*/gm)]
    assert.strictEqual(answers.length, [...wishes.matchAll(/^\*\*/gm)].length)
    assert.strictEqual(answers.length, 26)
  })
})
