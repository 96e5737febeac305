import { Effect, Path } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { offersIn } from "../../services/runtime/FolderTrust.ts"
import { type ChatTerminal, Closed } from "../../services/terminal/ChatTerminal.ts"
import { offerText } from "../../services/workspace/FolderOffers.ts"
import { Trust } from "../../services/workspace/Trust.ts"
import * as Output from "../output/Output.ts"
import { yesNoInquiry } from "./Questions.ts"

const answers = {
  yes: "trust it and everything below it",
  no: "ignore these; palimpsest trust changes the answer later",
  hint: "Esc asks again next time"
}

/**
 * Asks once whether the user trusts the working folder, if the folder offers anything. Without a terminal nothing is asked,
 * and the folder stays untrusted. A user who leaves without an answer is asked again the next time.
 */
export const askOnce = Effect.fn("TrustPrompt.askOnce")(function* (terminal: ChatTerminal["Service"]) {
  if (!terminal.isTerminal) return
  const trust = yield* Trust
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const asking = Effect.gen(function* () {
    if ((yield* trust.of(folder)) !== "unknown" || (yield* trust.isWide(folder))) return
    const offers = yield* offersIn(folder)
    if (offers.length === 0) return
    const listed = offers.map((offer) => `  ${printableLine(offerText(offer))}\n`).join("")
    const head = `Do you trust ${printableLine(folder)}? These would instruct the model or run commands:\n${listed}`
    const style = terminal.canColor ? Output.coloured : Output.plain
    const answered = terminal.inquire(yesNoInquiry(head, answers, { prompt: "trust? ", style }))
    const isTrusted = yield* terminal.during("asking", (interrupted) =>
      Effect.raceFirst(answered, Effect.andThen(interrupted, new Closed()))
    )
    yield* trust.set(folder, isTrusted ? "trusted" : "untrusted")
  })
  yield* asking.pipe(
    Effect.catchTags({
      Closed: () => Effect.void,
      TrustError: ({ message }) => terminal.note(printableLine(message))
    })
  )
})
