/**
 * `npm run docs:kinds`: writes the table of the kinds of records in docs/formats.md from the decoders. With `--check`, which
 * `npm run docs:check` uses, nothing is written: it fails when the table is another one.
 */
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import * as claude from "../src/domain/transcripts/claude/Record.ts"
import { readItemKinds } from "../src/domain/transcripts/codex/Items.ts"
import * as codex from "../src/domain/transcripts/codex/Record.ts"
import * as gemini from "../src/domain/transcripts/gemini/Record.ts"
import * as opencode from "../src/domain/transcripts/opencode/Record.ts"
import * as pi from "../src/domain/transcripts/pi/Record.ts"

/** The kinds of records of an agent. */
interface AgentKinds {
  readonly agent: string
  /** The versions whose recorded sessions were read, and the one whose program names the newest kinds. */
  readonly versions: string
  readonly read: ReadonlyArray<string>
  /** Known, and no part of the conversation: they are counted, and stay in a file that is compressed in place. */
  readonly skipped: ReadonlySet<string>
}

/** What this program knows of the records of each agent. Any other kind is new to it, and `inspect` says so. */
export const recordKinds: ReadonlyArray<AgentKinds> = [
  {
    agent: "Claude Code",
    versions: "1.0 to 2.1.219, kinds of 2.1.332",
    read: claude.readKinds,
    skipped: claude.ignoredKinds
  },
  {
    agent: "Codex",
    versions: "2025 to 0.144, kinds of 0.171",
    read: [...codex.readKinds, ...readItemKinds],
    skipped: codex.ignoredKinds
  },
  { agent: "Gemini CLI", versions: "2025 and 2026", read: gemini.readKinds, skipped: gemini.ignoredKinds },
  { agent: "Pi", versions: "sessions of version 1 to 3", read: pi.readKinds, skipped: pi.ignoredKinds },
  { agent: "opencode", versions: "1.18", read: opencode.readKinds, skipped: opencode.ignoredKinds }
]

const table = [
  "| agent | read | known, and skipped |",
  "|---|---|---|",
  ...recordKinds.map(
    ({ agent, read, skipped, versions }) =>
      `| ${agent} (${versions}) | ${read.join(", ")} | ${[...skipped].filter((kind) => !read.includes(kind)).join(", ")} |`
  )
].join("\n")

const script = fileURLToPath(import.meta.url)
if (process.argv[1] === script) {
  const page = path.join(path.dirname(path.dirname(script)), "docs", "formats.md")
  const text = readFileSync(page, "utf8")
  const place = /(<!-- kinds -->\n)[^]*?(<!-- end -->)/
  if (!place.test(text)) throw new Error("docs/formats.md has no <!-- kinds --> and <!-- end -->")
  const next = text.replace(place, (_, start, end) => `${start}\n${table}\n\n${end}`)
  if (!process.argv.includes("--check")) writeFileSync(page, next)
  else if (next !== text) {
    console.error("the table of kinds in docs/formats.md is not that of the decoders; run: npm run docs:kinds")
    process.exitCode = 1
  }
}
