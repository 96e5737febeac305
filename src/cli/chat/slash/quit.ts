import { Effect, Ref } from "effect"
import type { NextSession } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash commands `/clear` and `/quit`, which end the session of the chat. */

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
