import { mkdirSync } from "node:fs"
import path from "node:path"

/** A database as opencode keeps it. */

const at = (minute: number): number => 1_760_000_000_000 + minute * 60_000

/** A session of opencode: its row, and its messages with their parts. */
export interface OpencodeSession {
  readonly session: Readonly<Record<string, string | number | null>>
  readonly messages: ReadonlyArray<{
    readonly id: string
    readonly data: object
    readonly parts: ReadonlyArray<object>
  }>
}

const model = { providerID: "anthropic", modelID: "claude-sonnet-4-5" }
const tokens = { input: 5, output: 7, reasoning: 2, cache: { read: 90, write: 0 } }

const user = (id: string, ...parts: ReadonlyArray<object>) => ({
  id,
  data: { role: "user", agent: "build", model },
  parts
})

const assistant = (id: string, parentID: string, keys: object, ...parts: ReadonlyArray<object>) => ({
  id,
  data: { role: "assistant", parentID, ...model, finish: "stop", tokens, cost: 0.25, ...keys },
  parts: [{ type: "step-start" }, ...parts, { type: "step-finish", reason: "stop", cost: 0, tokens }]
})

const tool = (callID: string, name: string, state: object) => ({ type: "tool", callID, tool: name, state })
const text = (words: string, keys: object = {}) => ({ type: "text", text: words, ...keys })

/** A session with every kind of part, a compaction that kept the last exchange, and a message that was taken back. */
export const tides: OpencodeSession = {
  session: { id: "ses_1", parent_id: null, directory: "/p/tides", title: "Tides", revert: '{"messageID":"msg_9"}' },
  messages: [
    user("msg_1", text("Never touch the file keys.txt. When is high water?"), {
      type: "file",
      mime: "image/png",
      filename: "chart.png",
      url: "data:image/png;base64,aGVsbG8="
    }),
    assistant(
      "msg_2",
      "msg_1",
      {},
      { type: "reasoning", text: "The table says it." },
      text("I look it up."),
      tool("call_1", "bash", { status: "completed", input: { command: "cat tide.csv" }, output: "12:10 high" }),
      tool("call_2", "read", { status: "error", input: { filePath: "/p/none" }, error: "no such file" }),
      text("At 12:10.")
    ),
    user("msg_3", text("Write it down."), text("Called the Read tool", { synthetic: true })),
    assistant("msg_4", "msg_3", {}, text("Written to /p/tides/high.txt.")),
    user("msg_5", { type: "compaction", auto: true, tail_start_id: "msg_3" }),
    assistant("msg_6", "msg_5", { summary: true }, text("The user asked about tides.")),
    user("msg_7", text("Continue if you have next steps", { synthetic: true })),
    assistant("msg_8", "msg_7", {}, tool("call_3", "bash", { status: "running", input: { command: "sleep 9" } })),
    user("msg_9", text("forget this"))
  ]
}

/** Writes a database of sessions into a folder, which is made. Returns its path. */
export const opencodeDatabase = (folder: string, ...sessions: ReadonlyArray<OpencodeSession>): string => {
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, "opencode.db")
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite")
  const database = new DatabaseSync(file)
  database.exec(`
    create table session (id text primary key, project_id text, parent_id text, directory text, title text, revert text, time_created int, time_updated int);
    create table message (id text primary key, session_id text, time_created int, time_updated int, data text);
    create table part (id text primary key, message_id text, session_id text, time_created int, time_updated int, data text);
  `)
  const addSession = database.prepare("insert into session values (?, 'p', ?, ?, ?, ?, ?, ?)")
  const addMessage = database.prepare("insert into message values (?, ?, ?, ?, ?)")
  const addPart = database.prepare("insert into part values (?, ?, ?, ?, ?, ?)")
  for (const { messages, session } of sessions) {
    const { directory = "", id = "", parent_id = null, revert = null, title = "" } = session
    addSession.run(id, parent_id, directory, title, revert, at(0), at(messages.length))
    for (const [minute, message] of messages.entries()) {
      addMessage.run(message.id, id, at(minute), at(minute), JSON.stringify(message.data))
      for (const [index, part] of message.parts.entries()) {
        addPart.run(
          `${message.id}_${String(index).padStart(4, "0")}`,
          message.id,
          id,
          at(minute),
          at(minute),
          JSON.stringify(part)
        )
      }
    }
  }
  database.close()
  return file
}

/** The document that `opencode export` writes of a session. */
export const opencodeExport = ({ messages, session }: OpencodeSession): string =>
  JSON.stringify(
    {
      info: { ...session, revert: JSON.parse(String(session["revert"] ?? "null")) },
      messages: messages.map(({ data, id, parts }, minute) => ({
        info: { ...data, id, sessionID: session["id"], time: { created: at(minute) } },
        parts: parts.map((part) => ({ ...part, messageID: id, sessionID: session["id"] }))
      }))
    },
    undefined,
    2
  )
