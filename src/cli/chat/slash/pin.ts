import { Effect, Ref } from "effect"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { truncate } from "../../output/Columns.ts"
import { nextPosition, say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash command `/pin`: keeps a text, or the user's last message, word for word in every snapshot. */

const maxQuoteColumns = 40

/** The command `/pin [text]`. */
export const pin: SlashCommand = {
  name: "pin",
  usage: "[text]",
  help: "Keep a text, or your last message, word for word in every snapshot",
  run: Effect.fnUntraced(function* (session, text) {
    const { chat, compressedAt } = session
    const before = yield* nextPosition(session)
    const pinned = yield* chat.pin(text === "" ? undefined : text)
    if (pinned === undefined) {
      return yield* say(
        session,
        text === "" ? "There is no message to pin yet." : "Give a text to keep, for example: /pin always use tabs"
      )
    }
    const entry = entries(yield* chat.conversation).find(({ id }) => id === pinned.entry)
    const shown = entry?.content.parts[pinned.part]?.text?.slice(pinned.start, pinned.end) ?? text
    // The next snapshot differs, so another compression is worth its cost.
    yield* Ref.set(compressedAt, -1)
    const isNewMessage = before !== (yield* nextPosition(session))
    yield* say(
      session,
      `Pinned "${truncate(printableLine(shown), maxQuoteColumns)}"${isNewMessage ? " as a message of yours; the model reads it with your next one" : ""}: every snapshot keeps it word for word.`
    )
  })
}
