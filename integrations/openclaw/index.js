import { spawn } from "node:child_process"

/**
 * OpenClaw's compaction by code: an exact handover in place of the summary that a model would write. Asks the program
 * `palimpsest`, which must be on the PATH; `PALIMPSEST_PROGRAM` names another. When it fails, OpenClaw's own summary follows.
 */

const program = process.env.PALIMPSEST_PROGRAM ?? "palimpsest"
const timeLimitMillis = 60_000

/** Runs `palimpsest hook` with an input and returns its answer. */
const ask = (input, signal) =>
  new Promise((resolve, reject) => {
    const options = { stdio: ["pipe", "pipe", "pipe"], signal, timeout: timeLimitMillis }
    const child = spawn(program, ["hook"], { ...options, shell: process.platform === "win32" })
    const output = { out: "", error: "" }
    child.stdout.setEncoding("utf8").on("data", (text) => (output.out += text))
    child.stderr.setEncoding("utf8").on("data", (text) => (output.error += text))
    child.on("error", reject)
    child.on("close", (status) =>
      status === 0 ? resolve(JSON.parse(output.out)) : reject(new Error(output.error.trim() || `status ${status}`))
    )
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(input))
  })

/** The messages as entries of a session of Pi, whose format OpenClaw uses; the earlier summary begins them. */
const entriesOf = (messages, previousSummary) => {
  const timestamp = new Date().toISOString()
  const earlier = previousSummary ? [{ role: "user", content: [{ type: "text", text: previousSummary }] }] : []
  return [...earlier, ...messages].map((message, index) => ({
    type: "message",
    id: `m${index}`,
    parentId: index === 0 ? null : `m${index - 1}`,
    timestamp,
    message
  }))
}

export default (api) => {
  api.registerCompactionProvider({
    id: "palimpsest",
    label: "palimpsest: by code, with exact facts",
    summarize: async ({ messages, previousSummary, signal }) => {
      const entries = entriesOf(messages, previousSummary)
      const { summary } = await ask(
        { hook_event_name: "session_before_compact", transcript_path: null, entries },
        signal
      )
      return summary
    }
  })
}
