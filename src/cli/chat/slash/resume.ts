import { Effect, Option, Ref } from "effect"
import { userSessions } from "../../../domain/session/SessionName.ts"
import { findSession } from "../../../services/runtime/SessionOpening.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import { resumableName } from "../../flags/ImportedSession.ts"
import * as Output from "../../output/Output.ts"
import { orExit } from "../../output/RuntimeText.ts"
import { sessionTable } from "../../output/SessionTable.ts"
import { type ChatSession, type NextSession, openHandlers, say, tableColumns } from "./ChatSession.ts"
import { chooseSession } from "./SessionPicker.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash commands `/sessions` and `/resume`: list the saved sessions, and switch to another one. */

const maxListedSessions = 20

/** Writes the newest sessions as a table. */
const listSessions = Effect.fnUntraced(function* (session: ChatSession) {
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
export const sessions: SlashCommand = { name: "sessions", help: "List saved sessions", run: listSessions }

/** `/resume [session]`: switches to another session if it can be opened; without an argument asks which. */
export const resume: SlashCommand = {
  name: "resume",
  usage: "[session]",
  help: "Switch to another session: latest, its number, title or id",
  leave: Effect.fnUntraced(function* (session, argument) {
    const chosen = argument === "" ? yield* Effect.option(chooseSession(session.terminal, session.id)) : Option.none()
    if (Option.isSome(chosen) && Option.isNone(chosen.value)) return undefined
    const name = Option.isSome(chosen) ? Option.getOrElse(chosen.value, () => "") : argument
    if (name === "") {
      yield* listSessions(session)
      yield* say(session, "Which session? Type its number, its title or the beginning of its id.")
      yield* Ref.set(session.prefill, "/resume ")
      return undefined
    }
    const { holder, id } = yield* orExit(findSession(yield* resumableName(name, openHandlers(session.terminal))))
    if (id === session.id) {
      yield* say(session, "You are already in this session.")
      return undefined
    }
    if (holder !== undefined) {
      yield* say(
        session,
        `That session is in use by process ${holder.pid}. End that process, or choose another session.`
      )
      return undefined
    }
    return { _tag: "Switch", resume: id } satisfies NextSession
  })
}
