import { spawn } from "node:child_process"

/**
 * Pi's compaction by code: an exact handover with handles in place of the summary that a model would write. Asks the program
 * `palimpsest`; `PALIMPSEST_PROGRAM` names another. When it fails, Pi compacts as it always does.
 */

/** The program and its first arguments. `palimpsest install` writes absolute paths here where the PATH does not lead to it. */
const command = ["palimpsest"]
const own = process.env.PALIMPSEST_PROGRAM
const [program, ...first] = own === undefined ? command : [own]
/** On Windows, only a shell starts the script that stands for a program on the PATH. */
const isShim = process.platform === "win32" && first.length === 0
const timeLimitMillis = 60_000

/** Runs `palimpsest hook` with an input and returns its answer. */
const ask = (input, signal) =>
  new Promise((resolve, reject) => {
    const options = { stdio: ["pipe", "pipe", "pipe"], signal, timeout: timeLimitMillis }
    const child = spawn(program, [...first, "hook"], { ...options, shell: isShim })
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

export default (pi) => {
  pi.on("session_before_compact", async ({ branchEntries, preparation, signal }, ctx) => {
    try {
      const { summary } = await ask(
        {
          hook_event_name: "session_before_compact",
          transcript_path: ctx.sessionManager.getSessionFile() ?? null,
          cwd: ctx.cwd,
          entries: branchEntries,
          first_kept_entry_id: preparation.firstKeptEntryId
        },
        signal
      )
      const { firstKeptEntryId, tokensBefore } = preparation
      return { compaction: { summary, firstKeptEntryId, tokensBefore } }
    } catch (error) {
      if (!signal.aborted) ctx.ui.notify(`palimpsest: ${error.message}; Pi writes the summary`, "warning")
      return undefined
    }
  })
}
