import { spawn } from "node:child_process"

/**
 * opencode's compactions with exact facts: its summary is followed by a handover with handles, written by code from the session's
 * records. Asks the program `palimpsest`; `PALIMPSEST_PROGRAM` names another. When it fails, opencode compacts as it always does.
 */

/** The program and its first arguments. `palimpsest install` writes absolute paths here where the PATH does not lead to it. */
const command = ["palimpsest"]
const own = process.env.PALIMPSEST_PROGRAM
const [program, ...first] = own === undefined ? command : [own]
/** On Windows, only a shell starts the script that stands for a program on the PATH. */
const isShim = process.platform === "win32" && first.length === 0
const timeLimitMillis = 60_000

/** Runs `palimpsest hook` with an input and returns its answer. */
const ask = (input) =>
  new Promise((resolve, reject) => {
    const options = { stdio: ["pipe", "pipe", "pipe"], timeout: timeLimitMillis }
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
