/** Writes the snapshots of the gateway: by code, or by the client's own model if that is allowed. */

import { Context, Effect, Layer } from "effect"
import { isSnapshot, parseSnapshot } from "../../domain/compression/Snapshot.ts"
import { summaryInstruction, summaryRequest } from "../../domain/compression/SummaryPrompts.ts"
import { text, user } from "../../domain/content/Content.ts"
import { withMessages } from "../../domain/gateway/RequestBody.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { extractiveSummary, Summarizer, SummarizerError } from "../compression/summary/Summarizer.ts"
import type { AskUpstream, Preparable } from "./GatewayPlan.ts"

/** Asks the model of this conversation. Undefined when it may not be asked. */
export const SnapshotAsk = Context.Reference<Effect.Effect<string> | undefined>(
  "palimpsest/services/gateway/SnapshotWriter/SnapshotAsk",
  { defaultValue: () => undefined }
)

const question = `The conversation above is now a record. Do not continue it, and call no tools.\n\n${summaryInstruction}\n\n${summaryRequest("create")}`

/**
 * Writes the question for a snapshot: the client's own request with one more message, so that the provider reads
 * everything before it from its cache.
 */
export const snapshotQuestion = ({ body, declaration, rest, view }: Preparable, ask: AskUpstream) => {
  const messages = [...(view?.sent ?? []), ...rest.map(({ json }) => json)]
  const questionJson = JSON.stringify(wire[body.dialect].messages.write(user(text(question))))
  return Effect.map(ask(withMessages(body, [...messages, questionJson], declaration)), (answer) =>
    (answer?.visible ?? []).map((block) => (block.kind === "text" ? block.text : "")).join("")
  )
}

const unusable = (problem: string) =>
  new SummarizerError({
    reason: "InvalidOutputError",
    message: `the model's answer is not a snapshot: ${problem}`,
    cause: problem,
    calls: []
  })

/** Provides snapshots written by code, unless the policy asks for one by a model and `SnapshotAsk` is set. */
export const layer: Layer.Layer<Summarizer> = Layer.succeed(Summarizer, {
  limitsItself: true,
  summarize: Effect.fn("SnapshotWriter.summarize")(function* (request) {
    const ask = yield* SnapshotAsk
    if (request.by === "extractive" || ask === undefined) return yield* extractiveSummary(request)
    const written = yield* ask
    const snapshot = parseSnapshot(written)
    return isSnapshot(snapshot) ? { text: written } : yield* unusable(snapshot)
  })
})
