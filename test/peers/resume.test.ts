import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { program } from "../cli/program.ts"
import { newFolder } from "../support/paths.ts"
import { type SessionName, sessionText } from "../support/sessions.ts"
import { compare, type Source } from "./Compare.ts"
import { type FakeProviders, startFakeProviders } from "./FakeProviders.ts"
import { type Program, programs } from "./Programs.ts"

/**
 * Conversations that `compress --out FILE --to FORMAT` wrote, resumed in the programs whose formats they are: each sends
 * our view to its model, and one more prompt.
 */

interface Conversation {
  readonly name: string
  readonly source: Source
  readonly extension: string
  readonly text: () => string
}

const recorded = (name: SessionName, source: Source): Conversation => ({
  name,
  source,
  extension: ".jsonl",
  text: () => sessionText(name)
})

const fixture = (file: string, source: Source): Conversation => ({
  name: path.basename(file, path.extname(file)),
  source,
  extension: path.extname(file),
  text: () => readFileSync(path.join(import.meta.dirname, "..", "fixtures", file), "utf8")
})

/** Files of one's own, by the variable PALIMPSEST_PEERS_SESSIONS, in place of the fixtures. */
const own = (process.env["PALIMPSEST_PEERS_SESSIONS"] ?? "").split(path.delimiter).filter((file) => file !== "")

const sourceOf = (file: string): Source => (path.basename(file).startsWith("pi-") ? "pi" : "claude")

const conversations: ReadonlyArray<Conversation> =
  own.length > 0
    ? own.map((file) => ({
        name: path.basename(file, path.extname(file)),
        source: sourceOf(file),
        extension: path.extname(file),
        text: () => readFileSync(file, "utf8")
      }))
    : [
        recorded("claude-code-1512-lines", "claude"),
        recorded("claude-code-subagent", "claude"),
        recorded("claude-code-tools", "claude"),
        recorded("pi-1019-lines", "pi"),
        fixture("codex/codex-today.jsonl", "codex"),
        fixture("contents/gemini-parser-fix.json", "contents")
      ]

/** Compressed once more, whatever its size, or only carried over. */
const modes = { compressed: ["--force"], converted: ["--limit", "100m"] } as const
type Mode = keyof typeof modes

const folder = newFolder("peers-")
const { bundle } = await Effect.runPromise(program)

const compressed = (input: string, mode: Mode, out: string, format: string): void => {
  execFileSync(process.execPath, [bundle, "compress", input, ...modes[mode], "--out", out, "--to", format], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      PALIMPSEST_HOME: path.join(folder, "home"),
      GEMINI_CLI_HOME: folder
    }
  })
}

const written = new Map<string, string>()

/** A file of the conversation in a format, written once. */
const fileOf = ({ extension, name, text }: Conversation, mode: Mode, format: string): string => {
  const key = `${name}.${mode}.${format}`
  const known = written.get(key)
  if (known !== undefined) return known
  const input = path.join(folder, `${name}${extension}`)
  writeFileSync(input, text())
  const out = path.join(folder, `${key}.${format === "contents" ? "json" : "jsonl"}`)
  compressed(input, mode, out, format)
  written.set(key, out)
  return out
}

const viewOf = (conversation: Conversation, mode: Mode): unknown => {
  const value: unknown = JSON.parse(readFileSync(fileOf(conversation, mode, "contents"), "utf8"))
  return value
}

const prompt = "What did we do last, and what comes next?"

const rows: Array<ReadonlyArray<string>> = []

const table = (): string => {
  const all = [["conversation", "", "program", "items", "by a rule", "sends our view"], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: ReadonlyArray<string>) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  const same = rows.filter((row) => row[5] === "yes").length
  return `\n${all.map(line).join("\n")}\n\n${same} of ${rows.length} resumed with our view\n`
}

let server: FakeProviders

beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
  server = await startFakeProviders()
})

afterAll(async () => {
  await server.close()
  process.stdout.write(table())
  rmSync(folder, { recursive: true, force: true })
})

const check = async (program: Program, conversation: Conversation, mode: Mode): Promise<void> => {
  const file = fileOf(conversation, mode, program.name)
  const home = mkdtempSync(path.join(folder, `${program.name}-`))
  const ran = await program.resume(file, prompt, home, server)
  const view = viewOf(conversation, mode)
  const { difference, items, otherwise } = compare(program.name, conversation.source, view, ran.requests, prompt)
  const ended = ran.status === 0 ? undefined : `${program.title} ended with ${ran.status}: ${ran.output.slice(-500)}`
  const problem = ended ?? difference
  rows.push([conversation.name, mode, program.title, `${items}`, `${otherwise}`, problem === undefined ? "yes" : "no"])
  assert.isUndefined(problem)
}

for (const program of programs) {
  describe(`${program.title} resumes`, () => {
    for (const conversation of conversations)
      for (const mode of ["compressed", "converted"] as const)
        it(`${conversation.name}, ${mode}`, { timeout: 300_000 }, () => check(program, conversation, mode))
  })
}
