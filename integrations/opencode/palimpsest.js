import { spawn } from "node:child_process"

/**
 * opencode's compactions with exact facts: its summary is followed by a handover with handles, written by code from the session's
 * records. Asks the program `palimpsest`, which must be on the PATH; `PALIMPSEST_PROGRAM` names another. When it fails, opencode
 * compacts as it always does.
 */

const program = process.env.PALIMPSEST_PROGRAM ?? "palimpsest"
const timeLimitMillis = 60_000

/** Runs `palimpsest hook` with an input and returns its answer. */
const ask = (input) =>
  new Promise((resolve, reject) => {
    const options = { stdio: ["pipe", "pipe", "pipe"], timeout: timeLimitMillis }
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

export const PalimpsestPlugin = async ({ client }) => {
  /** The handover of each session that is compacted now, until its summary is complete. */
  const handovers = new Map()
  const tell = (error) =>
    client?.app
      ?.log({ body: { service: "palimpsest", level: "warn", message: `no handover: ${error.message}` } })
      .catch(() => {})
  return {
    "experimental.session.compacting": async ({ sessionID }, output) => {
      try {
        const { focus, handover } = await ask({
          hook_event_name: "experimental.session.compacting",
          session_id: sessionID
        })
        if (focus !== "") output.context.push(focus)
        handovers.set(sessionID, handover)
      } catch (error) {
        tell(error)
      }
    },
    "experimental.text.complete": async ({ sessionID }, output) => {
      const handover = handovers.get(sessionID)
      if (handover === undefined) return
      handovers.delete(sessionID)
      output.text = `${output.text}\n\n${handover}`
    },
    event: async ({ event }) => {
      const { sessionID } = event.properties ?? {}
      if (event.type === "session.error" || event.type === "session.idle") handovers.delete(sessionID)
    }
  }
}
