import { Effect } from "effect"
import { definitions } from "../../output/Columns.ts"
import { toolRows } from "../../output/ToolList.ts"
import { type ChatSession, say, tableColumns } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** Writes a table of names and descriptions, or a line when there are none. */
export const writeRows = Effect.fnUntraced(function* (
  session: ChatSession,
  rows: ReadonlyArray<readonly [string, string]>,
  none: string
) {
  if (rows.length === 0) return yield* say(session, none)
  yield* session.terminal.write(`${definitions(rows, yield* tableColumns(session))}\n`)
})

/** `/tools`: lists the tools of the model, and which of them ask first. */
export const tools: SlashCommand = {
  name: "tools",
  usage: "",
  help: "List the model's tools, and which of them ask first",
  run: (session) =>
    Effect.flatMap(toolRows(session.agent), (rows) => writeRows(session, rows, "No tools are available in this chat."))
}
