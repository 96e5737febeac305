import { Effect } from "effect"
import { isCall, plainText } from "../../../domain/content/Content.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/copy`: copies the last answer to the clipboard. */
export const copy: SlashCommand = {
  name: "copy",
  help: "Copy the last answer to the clipboard",
  run: Effect.fnUntraced(function* (session) {
    const { chat, terminal } = session
    const { conversation } = yield* chat.whole
    const answer = entries(conversation).findLast(
      ({ content }) => content.role === "model" && !content.parts.some(isCall) && plainText(content) !== ""
    )
    if (answer === undefined) return yield* say(session, "There is no answer yet.")
    const text = plainText(answer.content)
    yield* say(
      session,
      (yield* terminal.copy(text))
        ? "Copied the last answer to the clipboard."
        : "Not copied: that needs a terminal or a clipboard program, and long answers need the latter. Use /export to write a file."
    )
  })
}
