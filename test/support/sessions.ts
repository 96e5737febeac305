import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { gunzipSync } from "node:zlib"

/** The recorded conversations of the tests, unpacked (see fixtures/sessions/LICENSE.md). */
export const sessionNames = [
  "claude-code-1512-lines",
  "claude-code-short",
  "claude-code-subagent",
  "claude-code-tools",
  "pi-1019-lines"
] as const
export type SessionName = (typeof sessionNames)[number]

const packed = (name: SessionName): string =>
  path.join(import.meta.dirname, "..", "fixtures", "sessions", `${name}.jsonl.gz`)

/** The file's text. */
export const sessionText = (name: SessionName): string => gunzipSync(readFileSync(packed(name))).toString("utf8")

/** The file, written once into a folder of its own: other tests may be reading it. */
export const sessionFile = (name: SessionName): string => {
  const folder = path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "sessions")
  const file = path.join(folder, `${name}.jsonl`)
  if (existsSync(file)) return file
  mkdirSync(folder, { recursive: true })
  const fresh = `${file}.${randomUUID()}`
  writeFileSync(fresh, sessionText(name))
  renameSync(fresh, file)
  return file
}

const strings = (value: unknown, visit: (text: string) => void): void => {
  if (typeof value === "string") visit(value)
  else if (Array.isArray(value)) for (const item of value) strings(item, visit)
  else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) strings(item, visit)
}

/** Every string in the file's records: an exact recall of a text must be one of them. */
export const rawStrings = (name: SessionName): ReadonlySet<string> => {
  const found = new Set<string>()
  for (const line of sessionText(name).split("\n"))
    if (line !== "") strings(JSON.parse(line), (text) => found.add(text))
  return found
}
