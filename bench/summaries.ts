import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { requestSpans, witnessOf } from "../src/domain/compression/evidence/UserRequests.ts"
import {
  compressionInstruction,
  critiqueRequest,
  snapshotRequest
} from "../src/domain/compression/strategies/gemini/Prompts.ts"
import { type Content, model, plainText, text, user } from "../src/domain/content/Content.ts"
import { type Entry, viewItem } from "../src/domain/conversation/Conversation.ts"
import { projectItems } from "../src/domain/conversation/Projection.ts"
import * as PersistentList from "../src/domain/text/PersistentList.ts"
import { estimateText } from "../src/domain/tokens/Tokens.ts"
import * as MemoryCalibrations from "../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../src/layers/testing/MemoryTempStore.ts"
import * as ScriptedModel from "../src/layers/testing/ScriptedModel.ts"
import * as ModelSummarizer from "../src/services/compression/summary/ModelSummarizer.ts"
import { Summarizer, type SummaryRequest } from "../src/services/compression/summary/Summarizer.ts"
import { estimateContents } from "../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../src/services/tokens/TokenCounter.ts"
import { load } from "../src/services/transcripts/Transcripts.ts"

/**
 * `npm run bench:summaries -- FILE…`: the estimated tokens that a summarizing model is sent and returns at each compaction that was
 * recorded in the files, in two calls, without a network. Before: the whole history in both calls, and the whole snapshot in
 * both answers. Now: what `ModelSummarizer` sends. The recorded summary stands for the whole snapshot, and those of its sections
 * that state intent, errors, problems, the present work and the next step for the part that a model writes now.
 */

const name = "gemini-2.5-pro"

interface Traffic {
  readonly sent: number
  readonly received: number
}

const judgement = /intent|error|problem|pending|current|next|decision|goal|progress/i

/** Returns the sections of a recorded summary that need judgement, or all of it if it has no sections. */
const judged = (summary: string): string => {
  const sections = summary.split(/\n(?=\d+\. \S|#+ )/)
  return sections.length < 3
    ? summary
    : sections.filter((section) => judgement.test(section.split("\n")[0] ?? "")).join("\n")
}

const asSnapshot = (summary: string): string =>
  `<state_snapshot><key_knowledge>\n${summary.replace(/</g, "&lt;")}\n</key_knowledge></state_snapshot>`

const sentTokens = (system: string, contents: ReadonlyArray<Content>) =>
  Effect.map(estimateContents({ model: name, contents }), (tokens) => tokens + estimateText(system))

const whole = Effect.fnUntraced(function* (dropped: ReadonlyArray<Entry>, summary: string) {
  const history = projectItems(dropped.map(viewItem)).map(({ content }) => content)
  const first = yield* sentTokens(compressionInstruction, [...history, user(text(snapshotRequest("create")))])
  const second = yield* sentTokens(compressionInstruction, [
    ...history,
    model(text(summary)),
    user(text(critiqueRequest))
  ])
  return { sent: first + second, received: 2 * estimateText(summary) }
})

const now = Effect.fnUntraced(function* (dropped: ReadonlyArray<Entry>, summary: string, cwd: string | undefined) {
  const spans = dropped.flatMap((each) => requestSpans(each))
  const request: SummaryRequest = {
    entries: dropped,
    kept: [],
    budget: 8_000,
    focus: undefined,
    cwd,
    pins: { original: spans[0], latest: spans.at(-1) },
    userWords: witnessOf(dropped),
    verify: true,
    by: "model",
    fallback: false,
    model: name,
    family: undefined
  }
  const answers = [asSnapshot(judged(summary)), "none"]
  return yield* Effect.gen(function* () {
    const summarizer = yield* Summarizer
    yield* summarizer.summarize(request)
    const script = yield* ScriptedModel.Script
    let sent = 0
    for (const call of yield* script.calls) {
      if (call.method !== "generate") continue
      sent += yield* sentTokens(call.request.systemInstruction ?? "", call.request.contents)
    }
    return { sent, received: answers.reduce((sum, answer) => sum + estimateText(answer), 0) }
  }).pipe(
    Effect.provide(
      ModelSummarizer.layer.pipe(
        Layer.provideMerge(Layer.merge(ScriptedModel.layer(answers), MemoryCalibrations.layer))
      )
    )
  )
})

const services = Layer.merge(MemoryTempStore.layer, TokenCounter.layerEstimate).pipe(
  Layer.provideMerge(NodeServices.layer)
)

const rows: Array<{ readonly before: Traffic; readonly after: Traffic }> = []
for (const file of process.argv.slice(2)) {
  const { session } = await Effect.runPromise(load(file).pipe(Effect.provide(services)))
  for (const layer of PersistentList.toArray(session.conversation.undoable)) {
    const view = PersistentList.toArray(layer.before).map(({ entry }) => entry)
    const last = view.findIndex(({ id }) => id === layer.patch.drop?.to)
    const dropped = view.slice(0, last + 1).filter(({ author }) => author !== "environment")
    const summary = layer.patch.insert.map(({ content }) => plainText(content)).join("\n")
    if (dropped.length === 0 || summary === "") continue
    rows.push({
      before: await Effect.runPromise(whole(dropped, summary)),
      after: await Effect.runPromise(now(dropped, summary, session.started?.cwd))
    })
  }
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const line = (what: string, of: (row: (typeof rows)[number]) => Traffic): string => {
  const sent = rows.map((row) => of(row).sent)
  const received = rows.map((row) => of(row).received)
  const cells = [median(sent), Math.max(...sent), median(received), Math.max(...received)]
  return `| ${what} | ${cells.map((tokens) => tokens.toLocaleString("en")).join(" | ")} |`
}
console.log(`| ${rows.length} compactions | sent, median | sent, largest | received, median | received, largest |`)
console.log("|---|---:|---:|---:|---:|")
console.log(line("the whole history in both calls", ({ before }) => before))
console.log(line("the digest, then corrections", ({ after }) => after))
if (process.env["EACH"] !== undefined) for (const row of rows) console.log(JSON.stringify(row))
