import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import packageJson from "../package.json" with { type: "json" }
import { testTitles } from "../scripts/testTitles.ts"
import { parseSettings } from "../src/domain/settings/SettingsText.ts"
import { anchorsOf, blocks, linksOf, pages, withoutCode } from "./support/pages.ts"
import { root } from "./support/paths.ts"

/** What can be checked of the pages without running a command: files, links, scripts and settings that they name. */

it("README has at most 150 lines", () => {
  const readme = readFileSync(path.join(root, "README.md"), "utf8")
  assert.isAtMost(readme.trimEnd().split("\n").length, 150)
})

describe("docs/documents.md", () => {
  const page = readFileSync(path.join(root, "docs/documents.md"), "utf8")
  const rows = [...page.matchAll(/^\| ([\d–, ]+) \| .+ \| (.+) \| \[[^\]]+\]\(\.\.\/([^)]+)\) "(.+)" \|$/gm)]

  it("has each clause of each document once", () => {
    const found = page
      .split(/^## /m)
      .slice(1)
      .map((part) =>
        [...part.matchAll(/^\| ([\d–, ]+) \|/gm)]
          .flatMap(([, numbers = ""]) => numbers.split(", "))
          .flatMap((range) => {
            const [from = 0, to = from] = range.split("–").map(Number)
            return Array.from({ length: to - from + 1 }, (_, at) => from + at)
          })
          .sort((one, other) => one - other)
      )
    assert.deepStrictEqual(
      found,
      [69, 76, 38, 39, 25].map((count) => Array.from({ length: count }, (_, at) => at + 1))
    )
    assert.strictEqual(rows.length, [...page.matchAll(/^\| \d/gm)].length)
  })

  it("names a test for each, and a reason where something differs", () => {
    const titles = new Map<string, ReadonlyArray<string>>()
    const titlesOf = (file: string) => {
      const place = path.join(root, file)
      const found = titles.get(file) ?? (existsSync(place) ? Object.values(testTitles(place)).flat() : [])
      titles.set(file, found)
      return found
    }
    const missing = rows.flatMap(([, clauses, here = "", file = "", title = ""]) => {
      const isThere = titlesOf(file).some((one) => one.includes(title.replaceAll('\\"', '"')))
      return isThere && /^works|^differs: /.test(here) ? [] : [`${clauses}: ${file} ${title}`]
    })
    assert.deepStrictEqual(missing, [])
  })
})

describe.each([...pages])("$name", ({ name, text }) => {
  it("names files that exist", () => {
    const named = [...text.matchAll(/`((?:src|test|bench|examples|docs|scripts)\/[\w./-]+)`/g)].map(
      ([, file = ""]) => file
    )
    assert.deepStrictEqual(
      named.filter((file) => file !== "docs/api" && !existsSync(path.join(root, file))),
      []
    )
  })

  it("has working links", () => {
    const dead: Array<string> = []
    for (const [target, anchor] of linksOf(text)) {
      const file = target === "" ? name : path.posix.join(path.posix.dirname(name), target)
      const place = path.join(root, file)
      if (!existsSync(place)) dead.push(target)
      else if (anchor !== undefined && !anchorsOf(readFileSync(place, "utf8")).has(anchor)) {
        dead.push(`${target}#${anchor}`)
      }
    }
    assert.deepStrictEqual(dead, [])
  })

  it("names scripts of package.json", () => {
    const named = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, script = ""]) => script)
    assert.deepStrictEqual(
      named.filter((script) => script !== "--silent" && !(script in packageJson.scripts)),
      []
    )
  })

  it("lists existing settings in its tables of settings", () => {
    const within = name === "docs/serve.md" ? ["serve"] : name === "docs/gateway.md" ? ["gateway"] : []
    for (const [table] of withoutCode(text).matchAll(/^\| setting \|[^]*?(?=^[^|]|^$)/gm)) {
      const rows = table.trim().split("\n").slice(2)
      assert.isAbove(rows.length, 1)
      for (const row of rows) {
        for (const [, setting = ""] of (row.split("|")[1] ?? "").matchAll(/`([\w.]+)`/g)) {
          const keys = [...within, ...setting.split(".")]
          const json = keys.reduceRight<unknown>((value, key) => ({ [key]: value }), null)
          const read = parseSettings(JSON.stringify(json))
          // A setting that exists is refused for its value, which no setting may have.
          assert.isTrue(Result.isFailure(read), `${setting} is no setting`)
        }
      }
    }
  })

  it("names existing settings", () => {
    for (const block of blocks(text, "json settings")) {
      const read = Result.getOrThrow(parseSettings(block))
      assert.deepStrictEqual(read.unknown, [], block)
      assert.isAbove(Object.keys(read.settings).length, 0)
    }
  })
})
