import { Effect } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { isCall, plainText } from "../../../domain/content/Content.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { encode } from "../../../domain/text/Bytes.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The sequence that writes a text to the terminal's clipboard (OSC 52). */
const clipboardSequence = (base64: string): string => `\u001b]52;c;${base64}\u0007`
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
    const bytes = encode(plainText(answer.content))
    if (!terminal.isTerminal) {
      return yield* say(session, "Copying needs a terminal. Use /save to write the conversation to a file.")
    }
    if (bytes.length > maxClipboardBytes) {
      return yield* say(session, "The answer is too long for the clipboard. Use /save to write it to a file.")
    }
    yield* terminal.write(clipboardSequence(Base64.encode(bytes)))
    yield* say(session, "Sent the last answer to the terminal's clipboard.")
  })
}
