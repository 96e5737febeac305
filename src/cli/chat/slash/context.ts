import { Effect } from "effect"
import { inspect } from "../../../services/evaluation/Inspect.ts"
import { tableColumns } from "./ChatSession.ts"
import { contextTable } from "./ContextTable.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/context`: shows the use of the window by kind. */
export const context: SlashCommand = {
  name: "context",
  usage: "",
  help: "Show what fills the context window",
  run: Effect.fnUntraced(function* (session) {
    const { chat, terminal } = session
    const { limit, scale = 1, threshold, tokens } = yield* chat.usage
    const { conversation } = yield* chat.session
    const { kinds, tokens: estimated } = yield* inspect(conversation)
    const use = {
      kinds: kinds.map((kind) => ({ ...kind, view: Math.round(kind.view * scale) })),
      overhead: Math.max(0, Math.round(tokens - estimated.view * scale)),
      tokens,
      limit,
      threshold
    }
    yield* terminal.write(`${contextTable(use, yield* tableColumns(session))}\n`)
  })
}
