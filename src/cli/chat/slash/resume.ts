/** The slash commands `/sessions`, `/resume`, `/clear` and `/quit`: list the saved sessions, and end this one for another or for none. */

import { Clock, Effect, Option, Path, Ref } from "effect"
import { userSessions } from "../../../domain/session/SessionName.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { findSession } from "../../../services/runtime/SessionOpening.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import type { ChatTerminal } from "../../../services/terminal/ChatTerminal.ts"
import { resumableName } from "../../flags/ImportedSession.ts"
import * as Output from "../../output/Output.ts"
import { orExit } from "../../output/RuntimeText.ts"
import { headingOf, sessionTable } from "../../output/SessionTable.ts"
import { ago } from "../../output/TimeText.ts"
import {
  type ChatSession,
  type NextSession,
  openHandlers,
  say,
  type SlashCommand,
  tableColumns
} from "./ChatSession.ts"

/**
 * Lets the user choose one of the saved sessions other than the current one. Returns none when the user leaves the list. Fails where
 * no list can be shown.
 */
export const chooseSession = Effect.fnUntraced(function* (terminal: ChatTerminal["Service"], current?: string) {
  const path = yield* Path.Path
  const store = yield* SessionStore
  const now = yield* Clock.currentTimeMillis
  const others = userSessions(yield* store.summaries).filter(
    (one) => one.id !== current && (one.title ?? one.firstPrompt ?? "") !== ""
  )
  if (others.length === 0) {
    yield* terminal.note(
      "There are no other saved sessions. palimpsest find lists those of all agents; palimpsest -r ID continues one."
    )
    return Option.none<string>()
  }
  return yield* terminal.choose(
    "Resume a session",
    others.map((one) => {
      const folder = one.cwd === undefined ? [] : [printableLine(path.basename(one.cwd))]
      const state = one.problem === undefined ? (one.holder === undefined ? [] : ["in use"]) : ["cannot be opened"]
      const about = [...state, ago(one.updatedAt, now), ...folder, Output.sizeText(one.bytes)].join(" · ")
      return { value: one.id, label: headingOf(one), about }
    })
  )
})

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

/** `/clear`: starts a new session. */
export const clear: SlashCommand = {
  name: "clear",
  aliases: ["new"],
  help: "Start a new session; this one is kept",
  leave: () => Effect.succeed<NextSession>({ _tag: "Switch", resume: undefined })
}

/** `/quit`: leaves the chat. */
export const quit: SlashCommand = {
  name: "quit",
  aliases: ["exit"],
  help: "Leave the chat",
  leave: ({ isUnanswered }) =>
    Effect.map(Ref.get(isUnanswered), (unanswered): NextSession => ({ _tag: "Leave", isUnanswered: unanswered }))
}
