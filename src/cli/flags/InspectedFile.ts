/** Makes the report and the page of a conversation, for the commands that show one. */

import { Effect } from "effect"
import type { Decision, NoopReason, Plan } from "../../domain/compression/Compression.ts"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { empty as nothingSaid, view as conversationView } from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import type { Session } from "../../domain/session/Session.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import type { Prices } from "../../domain/tokens/Prices.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../../services/compression/Compression.ts"
import { snapshotByCode } from "../../services/evaluation/Evaluation.ts"
import { inspect } from "../../services/evaluation/Inspect.ts"
import { HandleIndex } from "../../services/session/EntryBuilder.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import type { Report } from "../output/InspectReport.ts"
import * as Output from "../output/Output.ts"
import { type Page, renderPage } from "../page/Page.ts"
import * as FileWindow from "./FileWindow.ts"
import * as ReportFlags from "./ReportFlags.ts"

const droppedRanges = (session: Session): Report["dropped"] =>
  PersistentList.toArray(session.ranges).flatMap(({ entries, handle }) => {
    const [first] = entries
    const last = entries.at(-1)
    return first === undefined || last === undefined
      ? []
      : [{ handle, messages: entries.length, from: first.id, to: last.id }]
  })

/** Plans a compression with the default policy in the window of the conversation's model. */
const nextCompression = Effect.fnUntraced(function* (session: Session, window: number) {
  const compression = yield* Compression
  const policy = { ...defaultPolicy, limit: TokenCount.make(window) }
  const request = { conversation: session.conversation, memory: freshMemory, policy, held: new HandleIndex() }
  const forced = yield* compression.plan({ ...request, forced: true })
  return {
    waits: waitsFor(forced, policy.threshold * policy.limit),
    forced: forced._tag === "Skip" ? null : { ...forced.plan, messages: summarised(session, forced.plan) }
  } satisfies Report["next"]
})

/** Returns why an automatic compression would not run, or null. From the threshold on it behaves like a forced one. */
export const waitsFor = (forced: Decision, due: number): NoopReason | null => {
  const reason = forced._tag === "Skip" ? forced.reason : null
  const before = forced._tag === "Skip" ? forced.before : forced.plan.before
  return before < due && reason !== "empty" ? "below threshold" : reason
}

const summarised = (session: Session, plan: Plan): number => {
  const layout = plan.steps.find((step) => step._tag === "Layout")
  const entries = conversationView(session.conversation).filter(({ entry }) => entry.author !== "environment")
  return layout === undefined ? 0 : entries.length - layout.kept.length
}

/** Inspects a conversation that was read from `file`, or from a session with this name. */
export const inspected = Effect.fnUntraced(function* (
  loaded: Loaded,
  { file, prices }: { readonly file: string; readonly prices: Prices }
) {
  const { long } = loaded
  const { started } = loaded.session
  const model = loaded.transcript?.model ?? started?.model ?? null
  const cwd = loaded.transcript?.cwd ?? started?.cwd ?? null
  const about = { model: model ?? undefined, cwd: cwd ?? undefined, prices }
  const { compactions, ...inspection } = yield* inspect(loaded.session.conversation, {
    ...about,
    events: loaded.events
  }).pipe(Output.progress(`measuring ${file}`))
  // Of a log that is too long for memory, this is the part that the model sees, unless that is too large as well.
  const session = long === undefined ? loaded.session : long.seen
  const window = FileWindow.windowOf(loaded, yield* FileWindow.settings, { asks: false, hint: "" })
  const report: Report = {
    file,
    format: loaded.format,
    bytes: loaded.bytes,
    session: loaded.transcript?.session ?? started?.session ?? null,
    model,
    cwd,
    ...inspection,
    // Facts are looked for in texts.
    compactions: long === undefined ? compactions : compactions.map((one) => ({ ...one, facts: null })),
    dropped: droppedRanges(loaded.session),
    skipped: loaded.skipped,
    ...(loaded.transcript?.unknown === undefined ? {} : { unknown: loaded.transcript.unknown }),
    next:
      session === undefined
        ? null
        : yield* nextCompression(session, yield* window).pipe(Output.progress("planning a compression")),
    torn: loaded.torn ?? null
  }
  const measured = long === undefined ? undefined : loaded.session.conversation
  return { report, conversation: session?.conversation ?? nothingSaid, measured, prices }
})

/** An inspected conversation: its report and the data for its page. */
export type Inspected = Effect.Success<ReturnType<typeof inspected>>

/** Writes the page of an inspected conversation. */
export const writePage = Effect.fnUntraced(function* (
  place: string,
  loaded: Loaded,
  one: Inspected,
  more: Pick<Page, "title" | "hidesTexts" | "beside"> = {}
) {
  const hasSummary = one.measured === undefined && one.report.compactions.length > 0
  const byCode = hasSummary ? yield* snapshotByCode(loaded) : undefined
  yield* ReportFlags.writePage(place, renderPage({ ...one, snapshotByCode: byCode, ...more }))
})
