import { Effect } from "effect"
import { userSessions } from "../../../domain/session/SessionName.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import * as Output from "../../output/Output.ts"
import { sessionTable } from "../../output/SessionTable.ts"
import { type ChatSession, say, tableColumns } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

const maxListedSessions = 20

/** Writes the newest sessions as a table. */
export const listSessions = Effect.fnUntraced(function* (session: ChatSession) {
  const { id, style, terminal } = session
  const store = yield* SessionStore
  const all = userSessions(yield* store.summaries)
  const shown = all.slice(0, maxListedSessions)
  yield* terminal.write(`${yield* sessionTable(shown, yield* tableColumns(session), style, id)}\n`)
  if (all.length > maxListedSessions) {
    yield* say(session, `${Output.number(all.length - maxListedSessions)} more: palimpsest sessions list.`)
  }
})

/** `/sessions`: lists the saved sessions. */
export const sessions: SlashCommand = { name: "sessions", usage: "", help: "List saved sessions", run: listSessions }
