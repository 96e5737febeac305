/** Goes back to an earlier message of a conversation, and gives messages labels. */

import { Clock, Effect, Ref, Schema } from "effect"
import { type Degraded, paidCalls } from "../../domain/compression/Compression.ts"
import { plainText, text as textPart, user } from "../../domain/content/Content.ts"
import { allEntries } from "../../domain/conversation/Branches.ts"
import { type Entry, type EntryId, entryId } from "../../domain/conversation/Conversation.ts"
import { secretsOf } from "../../domain/conversation/RedactedEntries.ts"
import type { Session } from "../../domain/session/Session.ts"
import { titleOf } from "../../domain/session/SessionHead.ts"
import { branchLeft, sessionTree } from "../../domain/session/SessionTree.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { type BranchSummaryRequest, branchSummary } from "../compression/summary/BranchSummary.ts"
import { makeEntry } from "../session/EntryBuilder.ts"
import type { ChatState } from "./ChatState.ts"
import { commit, readWhole } from "./Commit.ts"
import { policyFor } from "./CompressPolicy.ts"
import { summaryFamily, withOwnWindows } from "./RequestContext.ts"

/** The session has no such entry. */
export class UnknownEntry extends Schema.TaggedError<UnknownEntry>()("UnknownEntry", { id: Schema.String }) {
  override get message() {
    return `there is no message ${this.id} in this session; the session's tree lists them`
  }
}

/** Where a branch begins, and whether the branch that is left is summarised. */
export interface BranchOptions {
  /**
   * The entry to go to. For a message that the user typed, the conversation goes to just before it, so that the user
   * can rewrite it.
   */
  readonly to: EntryId
  /** Whether a summary of the left branch is appended (default false), and what it should focus on. */
  readonly summary?: boolean | { readonly focus: string } | undefined
  /** When this completes while the summary is being written, the conversation does not change. */
  readonly cancel?: Effect.Effect<unknown> | undefined
}

/** The outcome of going back. `text`: the message of the user to rewrite. */
export type BranchOutcome =
  | {
      readonly _tag: "Branched"
      readonly text: string | undefined
      /** Undefined: no summary was requested, or nothing was left behind. */
      readonly summary:
        | { readonly entry: Entry; readonly by: "model" | "extractive"; readonly degraded: Degraded | null }
        | undefined
    }
  /** The conversation was already at this entry. */
  | { readonly _tag: "Stayed"; readonly text: string | undefined }
  | { readonly _tag: "Cancelled" }

const summaryRequest = Effect.fnUntraced(function* (
  chat: ChatState,
  session: Session,
  entries: BranchSummaryRequest["entries"],
  summary: BranchOptions["summary"]
) {
  const { model, summarizer } = yield* policyFor(chat, {})
  const contents = allEntries(session.conversation).map(({ content }) => content)
  const request: BranchSummaryRequest = {
    entries,
    secrets: yield* Work.run(secretsOf(contents)),
    cwd: session.started?.cwd,
    focus: typeof summary === "object" ? summary.focus : undefined,
    by: summarizer,
    model,
    family: summaryFamily(session, yield* Ref.get(chat.settings))
  }
  return request
})

/** Writes the summary of a branch and makes its entry. The conversation does not change. */
const prepared = Effect.fnUntraced(function* (
  chat: ChatState,
  session: Session,
  left: BranchSummaryRequest["entries"],
  { summary: summarise }: BranchOptions
) {
  const request = yield* summaryRequest(chat, session, left, summarise)
  const { by, calls, degraded, text } = yield* withOwnWindows(chat, branchSummary(request))
  const at = yield* Clock.currentTimeMillis
  const draft = { content: user(textPart(text)), at, author: "summary" as const }
  const entry = yield* makeEntry(draft, entryId(session.conversation.next), chat.handles)
  return {
    event: { summary: entry, ...paidCalls(calls) },
    summary: { entry, by, degraded }
  }
})

/** Goes back to an entry. */
export const branch = Effect.fn("Chat.branch")(function* (chat: ChatState, options: BranchOptions) {
  const session = yield* readWhole(chat)
  const tree = sessionTree(session)
  const node = tree.nodes.get(options.to)
  if (node === undefined) return yield* new UnknownEntry({ id: options.to })
  const all = new Map(allEntries(session.conversation).map((entry) => [entry.id, entry]))
  const rewritten = node.kind === "user" ? all.get(node.id) : undefined
  const from = rewritten === undefined ? node.id : node.parent
  const text = rewritten === undefined ? undefined : plainText(rewritten.content)
  if (from === tree.tip) return { _tag: "Stayed", text } satisfies BranchOutcome
  const [first, ...rest] = branchLeft(tree, from).flatMap((id) => all.get(id) ?? [])
  const isSummarised = first !== undefined && options.summary !== undefined && options.summary !== false
  const work = isSummarised ? prepared(chat, session, [first, ...rest], options) : Effect.succeed(undefined)
  const { cancel } = options
  const made = yield* cancel === undefined ? work : Effect.raceFirst(work, Effect.as(cancel, "cancelled" as const))
  if (made === "cancelled") return { _tag: "Cancelled" } satisfies BranchOutcome
  yield* commit(chat, { _tag: "Branched", at: yield* Clock.currentTimeMillis, from, ...made?.event })
  return { _tag: "Branched", text, summary: made?.summary } satisfies BranchOutcome
})

/** Gives an entry a label of one line. A blank label removes it. */
export const label = Effect.fn("Chat.label")(function* (chat: ChatState, entry: EntryId, words: string) {
  if (!sessionTree(yield* readWhole(chat)).nodes.has(entry)) return yield* new UnknownEntry({ id: entry })
  const shown = titleOf(words)
  yield* commit(chat, {
    _tag: "Labelled",
    at: yield* Clock.currentTimeMillis,
    entry,
    label: shown === "" ? null : shown
  })
})
