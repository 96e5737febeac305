import { Clock, Effect, Option, Path, Ref } from "effect"
import { userSessions } from "../../../domain/session/SessionName.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { findSession } from "../../../services/runtime/SessionOpening.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import { orExit } from "../../output/RuntimeText.ts"
import { headingOf, sizeText } from "../../output/SessionTable.ts"
import { ago } from "../../output/TimeText.ts"
import { type ChatSession, type NextSession, say } from "./ChatSession.ts"
import { listSessions } from "./sessions.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** Lets the user choose a session of all that were saved; fails where no list can be shown. */
const chooseSession = Effect.fnUntraced(function* ({ id, terminal }: ChatSession) {
  const path = yield* Path.Path
  const store = yield* SessionStore
  const now = yield* Clock.currentTimeMillis
  const others = userSessions(yield* store.summaries).filter(
    (one) => one.id !== id && (one.title ?? one.firstPrompt ?? "") !== ""
  )
  return yield* terminal.choose(
    "Resume a session",
    others.map((one) => {
      const folder = one.cwd === undefined ? [] : [printableLine(path.basename(one.cwd))]
      const state = one.problem === undefined ? (one.holder === undefined ? [] : ["in use"]) : ["cannot be opened"]
      const about = [ago(one.updatedAt, now), ...folder, sizeText(one.bytes), ...state].join(" · ")
      return { value: one.id, label: headingOf(one), about }
    })
  )
})

/** `/resume [session]`: switches to another session if it can be opened; without an argument asks which. */
export const resume: SlashCommand = {
  name: "resume",
  usage: "[session]",
  help: "Switch to another session: latest, its number, title or id",
  leave: Effect.fnUntraced(function* (session, given) {
    const chosen = given === "" ? yield* Effect.option(chooseSession(session)) : Option.none()
    if (Option.isSome(chosen) && Option.isNone(chosen.value)) return undefined
    const name = Option.isSome(chosen) ? Option.getOrElse(chosen.value, () => "") : given
    if (name === "") {
      yield* listSessions(session)
      yield* say(session, "Which session? Type its number, its title or the beginning of its id.")
      yield* Ref.set(session.prefill, "/resume ")
      return undefined
    }
    const { holder, id } = yield* orExit(findSession(name))
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
