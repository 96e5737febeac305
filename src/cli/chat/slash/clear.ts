import { Effect } from "effect"
import type { NextSession } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/clear`: starts a new session. */
export const clear: SlashCommand = {
  name: "clear",
  aliases: ["new"],
  usage: "",
  help: "Start a new session; this one is kept",
  leave: () => Effect.succeed<NextSession>({ _tag: "Switch", resume: undefined })
}
