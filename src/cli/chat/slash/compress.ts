/** The slash commands `/compress`, `/undo`, `/redo`, `/rate` and `/pin`: compress the conversation, take that back, rate it, and say what it keeps. */

import { Effect, Ref } from "effect"
import { gatherEvidence } from "../../../domain/compression/evidence/Evidence.ts"
import { offeredThreshold } from "../../../domain/compression/HandCompressions.ts"
import { chosenFocus, focusChoices } from "../../../domain/compression/handover/FocusQuestion.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { parseRating, ratingLabel } from "../../../domain/session/Rating.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { pricesWith } from "../../../domain/tokens/Prices.ts"
import { definitions, truncate } from "../../output/Columns.ts"
import { outcomeSentence } from "../../output/OutcomeText.ts"
import * as Output from "../../output/Output.ts"
import { type ChatSession, nextPosition, say, type SlashCommand, tableColumns } from "./ChatSession.ts"

/** Lists what the conversation is about, or returns the focus for the numbers that the user chose from that list. */
const askedFocus = Effect.fnUntraced(function* (session: ChatSession, numbers: string) {
  const { conversation, started } = yield* session.chat.whole
  const own = entries(conversation).filter(({ author }) => author !== "environment")
  const choices = focusChoices(yield* Work.run(gatherEvidence(own, { cwd: started?.cwd })))
  const focus = chosenFocus(choices, numbers)
  if (focus !== undefined) return focus
  if (choices.length === 0) {
    yield* say(session, "There is nothing to choose from yet. /compress compresses.")
    return undefined
  }
  yield* say(session, numbers === "" ? "This conversation is about:" : "That is not on the list:")
  const rows = choices.map((choice, index) => [`${index + 1}`, printableLine(choice)] as const)
  yield* session.terminal.write(`${definitions(rows, yield* tableColumns(session))}\n`)
  yield* say(
    session,
    "Name what the snapshot keeps above all, and with a minus which files and items may go, for example: /compress ? 1 3 -2. Your messages stay."
  )
  return undefined
})

/** Offers a threshold once where the user compresses by hand again and again at about the same size. */
const offerThreshold = Effect.fnUntraced(function* (session: ChatSession, share: number, threshold: number) {
  const { handShares } = session
  const shares = yield* Ref.get(handShares)
  if (shares === undefined) return
  const all = [...shares, share]
  const offered = offeredThreshold(all, threshold)
  yield* Ref.set(handShares, offered === undefined ? all : undefined)
  if (offered === undefined) return
  yield* say(
    session,
    `You compressed at about this size several times. To do this automatically: palimpsest config set compressionThreshold ${offered}`
  )
})

/** The command `/compress [focus]`. `/compress ?` asks what it keeps above all. */
export const compress: SlashCommand = {
  name: "compress",
  aliases: ["compact", "summarize"],
  usage: "[focus|?]",
  help: "Compress the conversation now; what leaves the window stays recallable",
  run: Effect.fnUntraced(function* (session, typed) {
    const { chat, compressedAt, terminal } = session
    const focus = typed.startsWith("?") ? yield* askedFocus(session, typed.slice(1).trim()) : typed
    if (focus === undefined) return
    // A second call would pay a model for the same result.
    if (focus === "" && (yield* Ref.get(compressedAt)) === (yield* nextPosition(session))) {
      return yield* say(session, "Nothing to compress: no new messages since the last compression.")
    }
    const { limit, threshold, tokens } = yield* chat.usage
    const outcome = yield* terminal.during("compressing", (cancel) =>
      chat.compress({
        cancel,
        onNotice: (line) => say(session, Output.sentence(line)),
        ...(focus === "" ? {} : { focus })
      })
    )
    if (outcome._tag === "Compressed" || outcome._tag === "ContentTruncated") {
      yield* Ref.set(compressedAt, yield* nextPosition(session))
    }
    const prices = pricesWith((yield* chat.settings).models)
    yield* say(session, outcomeSentence(outcome, limit, prices, (yield* chat.usage).scale))
    if (outcome._tag === "Compressed") yield* offerThreshold(session, tokens / limit, threshold)
  })
}

const reversing = (name: "redo" | "undo", help: string): SlashCommand => ({
  name,
  help,
  run: Effect.fnUntraced(function* (session) {
    const { chat, compressedAt } = session
    const isUndo = name === "undo"
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
})

/** `/undo`: reverses the last compression. */
export const undo = reversing("undo", "Undo the last compression")

/** `/redo`: repeats the compression that `/undo` reversed. */
export const redo = reversing("redo", "Redo the compression that /undo reversed")

/** `/rate good|bad [why]`: rates the snapshot of the last compression. The rating is the snapshot's label, so the log keeps it. */
export const rate: SlashCommand = {
  name: "rate",
  usage: "good|bad [why]",
  help: "Rate the last compression; inspect, cost and /tree show it",
  run: Effect.fnUntraced(function* (session, argument) {
    const { chat } = session
    const rating = parseRating(argument)
    if (rating === undefined) {
      return yield* say(session, "Say good or bad, and why if you like, for example: /rate bad it lost the port")
    }
    const { nodes } = yield* chat.tree
    const snapshot = [...nodes.values()].findLast(({ isOnPath, kind }) => isOnPath && kind === "compression")
    if (snapshot === undefined) return yield* say(session, "There is no compression to rate.")
    yield* chat.label(snapshot.id, ratingLabel(rating))
    yield* say(session, `Rated ${rating.verdict} (${snapshot.id}).`)
  })
}

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
