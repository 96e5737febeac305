import { Effect } from "effect"
import { isHandle } from "../../../domain/content/Handle.ts"
import { visibleBlock } from "../../../domain/text/InvisibleCharacters.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash command `/recall`: shows what left the window, or where a pattern occurs in it. */

const maxTokens = 4_000

/** The command `/recall <handle or pattern>`. */
export const recall: SlashCommand = {
  name: "recall",
  usage: "<handle|pattern>",
  help: "Show what left the window, by handle or by pattern",
  run: Effect.fnUntraced(function* (session, handleOrPattern) {
    const { chat, terminal } = session
    if (handleOrPattern === "") return yield* say(session, "Give a handle or a pattern, for example: /recall timeout")
    // The user may see secrets, as with `palimpsest recall`.
    const { text } = isHandle(handleOrPattern)
      ? yield* chat.recall(handleOrPattern, { maxTokens })
      : yield* chat.search({ pattern: handleOrPattern, maxTokens, isRedacted: false })
    yield* terminal.write(`${visibleBlock(text)}\n`)
  })
}
