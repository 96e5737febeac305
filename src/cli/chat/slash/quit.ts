import { Effect, Ref } from "effect"
import type { NextSession } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/quit`: leaves the chat. */
export const quit: SlashCommand = {
  name: "quit",
  aliases: ["exit"],
  usage: "",
  help: "Leave the chat",
  leave: ({ isUnanswered }) =>
    Effect.map(Ref.get(isUnanswered), (unanswered): NextSession => ({ _tag: "Leave", isUnanswered: unanswered }))
}
