/** The slash commands `/tree` and `/label`: show the session as a tree, go to a message in it, and label messages. */

import { Clock, Effect, Ref, Result, Schema } from "effect"
import { EntryId } from "../../../domain/conversation/Conversation.ts"
import type { BranchOutcome } from "../../../services/chat/Branch.ts"
import { treeText } from "../../output/TreeText.ts"
import { type ChatSession, say, type SlashCommand, tableColumns } from "./ChatSession.ts"

const decodeId = Schema.decodeUnknownResult(EntryId)

/** Returns the id that a user typed; undefined when it is not an id. */
export const typedId = (typed: string): EntryId | undefined => Result.getOrUndefined(decodeId(typed.toLowerCase()))

const show = Effect.fnUntraced(function* (session: ChatSession, all: boolean) {
  const { chat, style, terminal } = session
  const tree = yield* chat.tree
  if (tree.nodes.size === 0) return yield* say(session, "There are no messages yet.")
  const layout = { columns: yield* tableColumns(session), now: yield* Clock.currentTimeMillis, style, all }
  yield* terminal.write(`${treeText(tree, layout)}\n`)
})

const outcomeText = (outcome: BranchOutcome, to: EntryId, before: EntryId | null): string => {
  switch (outcome._tag) {
    case "Cancelled":
      return "Cancelled. The conversation is where it was."
    case "Stayed":
      return outcome.text === undefined ? `You are at ${to} already.` : `You are before ${to} already.`
    case "Branched": {
      const { summary, text } = outcome
      const where = text === undefined ? `Went to ${to}.` : `Went to before ${to}; its text is in the input line.`
      const reason = summary?.degraded?.message
      const by =
        summary === undefined
          ? ""
          : summary.by === "model"
            ? ` ${summary.entry.id} is a summary of what you left.`
            : ` ${summary.entry.id} has excerpts of what you left${reason === undefined ? "" : `, because the summary failed: ${reason}`}.`
      return `${where}${by}${before === null ? "" : ` /tree ${before} goes back.`}`
    }
  }
}

/** `/tree [message] [--summary]`: shows the session as a tree, or goes to one of its messages. */
export const tree: SlashCommand = {
  name: "tree",
  usage: "[message [--summary]]",
  help: "Show the session as a tree, or go back to one of its messages (/tree e12) and continue from there",
  run: Effect.fnUntraced(function* (session, argument) {
    const { chat, compressedAt, prefill, terminal } = session
    if (argument === "" || argument === "all") return yield* show(session, argument === "all")
    const [, typed = "", summaryFlag, focus = ""] = /^(\S+)(?:\s+(--summary)(?:\s+([\s\S]+))?)?$/.exec(argument) ?? []
    const to = typedId(typed)
    if (to === undefined) {
      return yield* say(session, "Name a message as /tree shows it, for example: /tree e12, or /tree e12 --summary")
    }
    const { tip: before } = yield* chat.tree
    const outcome = yield* summaryFlag === undefined
      ? chat.branch({ to })
      : terminal.during("summarizing", (cancel) =>
          chat.branch({ to, cancel, summary: focus === "" ? true : { focus } })
        )
    yield* Ref.set(compressedAt, -1)
    if (outcome._tag !== "Cancelled" && outcome.text !== undefined) yield* Ref.set(prefill, outcome.text)
    yield* say(session, outcomeText(outcome, to, before))
  })
}

/** `/label <message> [text]`: gives a message a label in the tree; without a text, takes it away. */
export const label: SlashCommand = {
  name: "label",
  usage: "<message> [text]",
  help: "Label a message in /tree; without a text, remove its label",
  run: Effect.fnUntraced(function* (session, argument) {
    const [, typed = "", words = ""] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(argument) ?? []
    const entry = typedId(typed)
    if (entry === undefined) {
      return yield* say(session, "Name a message as /tree shows it, for example: /label e12 before the rewrite")
    }
    yield* session.chat.label(entry, words)
    yield* say(session, words === "" ? `${entry} has no label now.` : `Labelled ${entry}.`)
  })
}
