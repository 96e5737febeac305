/**
 * `npm run docs:rules`: writes the tables of rules in docs/strategies.md from the titles of the tests. A title names the
 * strategy, the rule, its source, and how ours differs, if it does:
 *
 *   "pi: the newest 20,000 tokens stay (Pi 0.73)"
 *   "pi: an empty answer is accepted (Pi 0.73; ours: a failure)"
 *   "pi: calls that wait for their results stay (ours)"
 *   "openclaw: changes nothing when it is asked again (ours: projections are stored)"
 *   "openclaw: bounds one result by 30 % of the window (OpenClaw 2026.9): window %s"
 *
 * With `--check`, which `npm run docs:check` uses, nothing is written: it fails when a table is not as the tests say. Both fail
 * when a title names no source, or a strategy has no table.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { strategies as registry } from "../src/domain/compression/strategies/Strategies.ts"
import { testTitles } from "./testTitles.ts"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const page = path.join(root, "docs", "strategies.md")
const strategies = registry.map(({ name }) => name)
const prefixed = new RegExp(`^(${strategies.join("|")}): (.+)$`, "s")

const titlesIn = (file) => testTitles(path.join(root, file)).tests.filter((title) => prefixed.test(title))

/** What the sources in titles are called on the page. */
const sourceNames = { ours: "—", seed: "design" }

const ruleOf = (file, title) => {
  const [, strategy, rest] = prefixed.exec(title)
  const [, rule, origin] = /^(.+) \(([^()]+)\)(?::.*)?$/s.exec(rest) ?? []
  if (origin === undefined) return { file, title }
  const [, source = "ours", ours = source === "ours" ? "only here" : "same"] =
    /^(?:(?!ours: )(.+?))?(?:(?:; |^)ours: (.+))?$/s.exec(origin)
  return { file, title, strategy, rule, source: sourceNames[source] ?? source, ours }
}

const files = globSync("test/**/*.test.ts", { cwd: root })
  .map((file) => file.replaceAll("\\", "/"))
  .sort()
const rules = files.flatMap((file) => titlesIn(file).map((title) => ruleOf(file, title)))

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("\n", " ")

const tableOf = (strategy) => {
  const rows = rules
    .filter((one) => one.strategy === strategy)
    .map(({ file, ours, rule, source }) => {
      const name = path.posix.basename(file).replace(/(?:\.e2e)?\.test\.ts$/, "")
      const folder = path.posix.basename(path.posix.dirname(file))
      return `| ${cell(rule)} | ${cell(source)} | ${cell(ours)} | [${folder}/${name}](../${file}) |`
    })
  return ["| rule | source | ours | test |", "|---|---|---|---|", ...rows].join("\n")
}

const withTables = (text) =>
  text.replace(/(<!-- rules: (\w+) -->\n)[^]*?(<!-- end -->)/g, (_, start, name, end) => {
    return `${start}\n${tableOf(name)}\n\n${end}`
  })

const { values } = parseArgs({ options: { check: { type: "boolean" } } })
const unsourced = rules.filter(({ source }) => source === undefined)
const text = readFileSync(page, "utf8")
const next = withTables(text)
for (const { file, title } of unsourced) console.error(`${file}: "${title}" names no source in parentheses at its end`)
const missing = strategies.filter((name) => !text.includes(`<!-- rules: ${name} -->\n`))
for (const name of missing) {
  console.error(`docs/strategies.md has no table of ${name}: a line <!-- rules: ${name} -->, and below it <!-- end -->`)
}
if (unsourced.length + missing.length > 0) process.exitCode = 1
else if (!values.check) writeFileSync(page, next)
else if (next !== text) {
  console.error("the tables in docs/strategies.md are not those of the tests; run: npm run docs:rules")
  process.exitCode = 1
} else console.error(`${rules.length} rules of strategies are in docs/strategies.md`)
