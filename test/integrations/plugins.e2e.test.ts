import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { root } from "../support/paths.ts"

/** Our plugins for other agents, with the input and output that these agents document, and a program that answers with its input. */

type Handler = (...given: ReadonlyArray<unknown>) => Promise<unknown>

const folder = mkdtempSync(path.join(tmpdir(), "plugins-"))
const before = process.env["PALIMPSEST_PROGRAM"]

const program = `#!${process.execPath}
let text = ""
process.stdin.on("data", (chunk) => (text += chunk)).on("end", () => {
  const input = JSON.parse(text)
  if (input.session_id === "broken") { process.stderr.write("palimpsest: no such session\\n"); process.exit(1) }
  process.stdout.write(JSON.stringify({ summary: "HANDOVER " + text, focus: "FOCUS", handover: "HANDOVER" }))
})
`

beforeAll(() => {
  const file = path.join(folder, "palimpsest")
  writeFileSync(file, program)
  chmodSync(file, 0o755)
  process.env["PALIMPSEST_PROGRAM"] = file
})

afterAll(() => {
  if (before === undefined) delete process.env["PALIMPSEST_PROGRAM"]
  else process.env["PALIMPSEST_PROGRAM"] = before
  rmSync(folder, { recursive: true })
})

const missing: Handler = () => assert.fail("not exported")

const plugin = async (file: string): Promise<Record<string, Handler>> =>
  import(pathToFileURL(path.join(root, "integrations", file)).href)

it("the plugin for opencode gives a focus before the summary, and follows it with the handover once", async () => {
  const { PalimpsestPlugin: start = missing } = await plugin("opencode/palimpsest.js")
  const logged: Array<unknown> = []
  const log = async (entry: unknown) => void logged.push(entry)
  const hooks = Object(await start({ client: { app: { log } } }))
  const compacting: Handler = hooks["experimental.session.compacting"]
  const complete: Handler = hooks["experimental.text.complete"]

  const compaction = { context: new Array<string>() }
  await compacting({ sessionID: "ses_1" }, compaction)
  assert.deepStrictEqual(compaction, { context: ["FOCUS"] })
  const other = { text: "of another session" }
  await complete({ sessionID: "ses_2", messageID: "m", partID: "p" }, other)
  assert.strictEqual(other.text, "of another session")
  for (const expected of ["Summary.\n\nHANDOVER", "Summary."]) {
    const output = { text: "Summary." }
    await complete({ sessionID: "ses_1", messageID: "m", partID: "p" }, output)
    assert.strictEqual(output.text, expected)
  }

  await compacting({ sessionID: "ses_1" }, { context: [] })
  await hooks.event({ event: { type: "session.error", properties: { sessionID: "ses_1" } } })
  const later = { text: "Later." }
  await complete({ sessionID: "ses_1", messageID: "m", partID: "p" }, later)
  assert.strictEqual(later.text, "Later.", "the compaction failed")

  const broken = { context: new Array<string>() }
  await compacting({ sessionID: "broken" }, broken)
  assert.deepStrictEqual(broken.context, [])
  assert.include(JSON.stringify(logged), "no such session")
})

it("the plugin for OpenClaw registers a provider that summarizes the messages that it gets", async () => {
  const { default: register = missing } = await plugin("openclaw/index.js")
  const providers: Array<{ id: string; summarize: Handler }> = []
  await register({ registerCompactionProvider: (provider: (typeof providers)[number]) => providers.push(provider) })
  const [provider] = providers
  assert.strictEqual(provider?.id, "palimpsest")
  const messages = [{ role: "user", content: "Rename tide to swell." }]
  const summary = String(await provider?.summarize({ messages, previousSummary: "EARLIER" }))
  const input = JSON.parse(summary.replace("HANDOVER ", ""))
  assert.strictEqual(input.hook_event_name, "session_before_compact")
  assert.deepStrictEqual(
    input.entries.map(({ id, message, parentId }: Record<string, { role?: string }>) => [id, parentId, message?.role]),
    [
      ["m0", null, "user"],
      ["m1", "m0", "user"]
    ]
  )
})
