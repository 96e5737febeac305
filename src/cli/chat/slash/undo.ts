import { Effect, Ref } from "effect"
import * as Output from "../../output/Output.ts"
import { type ChatSession, say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash commands `/undo` and `/redo`: reverse the last compression, and repeat it. */

/** Reverses the last compression, or repeats it. */
export const changeCompression = Effect.fnUntraced(function* (session: ChatSession, what: "redo" | "undo") {
  const { chat, compressedAt } = session
  const isUndo = what === "undo"
  const before = yield* chat.usage
  const done = yield* isUndo ? chat.undo : chat.redo
  if (!done) {
    return yield* say(
      session,
      isUndo ? "There is no compression to undo. /rewind takes messages and files back." : "There is nothing to redo."
    )
  }
  yield* Ref.set(compressedAt, -1)
  const { limit, tokens } = yield* chat.usage
  yield* say(
    session,
    `${isUndo ? "Undid the last compression" : "Redid the compression"}: from ${Output.number(before.tokens)} to ${Output.number(tokens)} tokens (${Output.share(tokens, limit)} of the window). /${isUndo ? "redo" : "undo"} reverses it.`
  )
})

/** `/undo`: reverses the last compression. */
export const undo: SlashCommand = {
  name: "undo",
  help: "Undo the last compression",
  run: (session) => changeCompression(session, "undo")
}

/** `/redo`: repeats the compression that `/undo` reversed. */
export const redo: SlashCommand = {
  name: "redo",
  help: "Redo the compression that /undo reversed",
  run: (session) => changeCompression(session, "redo")
}
