import { Clock, Effect, Option, Path } from "effect"
import { userSessions } from "../../../domain/session/SessionName.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import type { ChatTerminal } from "../../../services/terminal/ChatTerminal.ts"
import { sizeText } from "../../output/Output.ts"
import { headingOf } from "../../output/SessionTable.ts"
import { ago } from "../../output/TimeText.ts"

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
      const about = [...state, ago(one.updatedAt, now), ...folder, sizeText(one.bytes)].join(" · ")
      return { value: one.id, label: headingOf(one), about }
    })
  )
})
