import { Effect, Ref } from "effect"
import { pricesWith } from "../../../domain/tokens/Prices.ts"
import { outcomeSentence } from "../../output/OutcomeText.ts"
import { nextPosition, say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/compress [focus]`: compresses the conversation whatever its size. */
export const compress: SlashCommand = {
  name: "compress",
  aliases: ["compact", "summarize"],
  usage: "[focus]",
  help: "Compress the conversation now; what leaves the window stays recallable",
  run: Effect.fnUntraced(function* (session, focus) {
    const { chat, compressedAt, terminal } = session
    // A second call would pay a model for the same result.
    if (focus === "" && (yield* Ref.get(compressedAt)) === (yield* nextPosition(session))) {
      return yield* say(session, "Nothing to compress: no new messages since the last compression.")
    }
    const { limit } = yield* chat.usage
    const outcome = yield* terminal.during("compressing", (cancel) =>
      chat.compress({ cancel, onNotice: (line) => say(session, line), ...(focus === "" ? {} : { focus }) })
    )
    if (outcome._tag === "Compressed" || outcome._tag === "ContentTruncated") {
      yield* Ref.set(compressedAt, yield* nextPosition(session))
    }
    const prices = pricesWith((yield* chat.settings).models)
    yield* say(session, outcomeSentence(outcome, limit, prices, (yield* chat.usage).scale))
  })
}
