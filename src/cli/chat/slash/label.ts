import { Effect } from "effect"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"
import { typedId } from "./tree.ts"

/** `/label <message> [text]`: gives a message a label in the tree; without a text, takes it away. */
export const label: SlashCommand = {
  name: "label",
  usage: "<message> [text]",
  help: "Label a message in /tree; without a text, remove its label",
  run: Effect.fnUntraced(function* (session, argument) {
    const [, typed = "", words = ""] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(argument) ?? []
    const entry = typedId(typed)
    if (entry === undefined) {
      return yield* say(session, "Name a message as /tree shows it, for example: /label e12 before the rewrite")
    }
    yield* session.chat.label(entry, words)
    yield* say(session, words === "" ? `${entry} has no label now.` : `Labelled ${entry}.`)
  })
}
