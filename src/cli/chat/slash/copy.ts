import { Effect } from "effect"
import { isCall, plainText } from "../../../domain/content/Content.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { encode } from "../../../domain/text/Bytes.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** Most terminals refuse more than 100,000 characters of Base64. */
const maxClipboardBytes = 74_000

/** `/copy`: copies the last answer to the clipboard. */
export const copy: SlashCommand = {
  name: "copy",
  usage: "",
  help: "Copy the last answer to the clipboard",
  run: Effect.fnUntraced(function* (session) {
    const { chat, terminal } = session
    const { conversation } = yield* chat.whole
    const answer = entries(conversation).findLast(
      ({ content }) => content.role === "model" && !content.parts.some(isCall) && plainText(content) !== ""
    )
    if (answer === undefined) return yield* say(session, "There is no answer yet.")
    const text = plainText(answer.content)
    if (encode(text).length > maxClipboardBytes) {
      return yield* say(session, "The answer is too long for the clipboard. Use /save to write it to a file.")
    }
    yield* say(
      session,
      (yield* terminal.copy(text))
        ? "Copied the last answer to the clipboard."
        : "Copying needs a terminal. Use /save to write the conversation to a file."
    )
  })
}
