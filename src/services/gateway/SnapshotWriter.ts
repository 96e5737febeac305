import { Context, Effect, Layer } from "effect"
import { isSnapshot, parseSnapshot } from "../../domain/compression/Snapshot.ts"
import { summaryInstruction, summaryRequest } from "../../domain/compression/SummaryPrompts.ts"
import { text, user } from "../../domain/content/Content.ts"
import { forms } from "../../domain/gateway/DialectForms.ts"
import { withMessages } from "../../domain/gateway/RequestBody.ts"
import { extractiveSummary, Summarizer, SummarizerError } from "../compression/summary/Summarizer.ts"
import type { AskUpstream, Preparable } from "./GatewayPlan.ts"

/** Snapshots of the gateway: written by code, or by the client's own model where one may be asked. */

/** How the model of this conversation is asked. Undefined: it is not. */
export const SnapshotAsk = Context.Reference<Effect.Effect<string> | undefined>(
  "palimpsest/services/gateway/SnapshotWriter/SnapshotAsk",
  { defaultValue: () => undefined }
)

const question = `The conversation up to here is a record now. Do not go on with it, and call no tool.\n\n${summaryInstruction}\n\n${summaryRequest("create")}`

/**
 * The question for a snapshot: the client's own request with one message more, so that the provider reads all before it from its
 * cache. Ends with the words of the answer.
 */
export const snapshotQuestion = (
  { body, declaration, rest, view }: Preparable,
  ask: AskUpstream
): Effect.Effect<string> => {
  const messages = [...(view?.sent ?? []), ...rest.map(({ json }) => json)]
  const asked = JSON.stringify(forms[body.dialect].write(user(text(question))))
  return Effect.map(ask(withMessages(body, [...messages, asked], declaration)), (answer) =>
    (answer?.visible ?? []).map((block) => (block.kind === "text" ? block.text : "")).join("")
  )
}

const unusable = (problem: string) =>
  new SummarizerError({
    reason: "InvalidOutputError",
    message: `the answer of the model is no snapshot: ${problem}`,
    cause: problem,
    calls: []
  })

/** Code writes snapshots, unless the policy wants one of a model and `SnapshotAsk` says how to ask it. */
export const layer: Layer.Layer<Summarizer> = Layer.succeed(Summarizer, {
  summarize: Effect.fn("SnapshotWriter.summarize")(function* (request) {
    const ask = yield* SnapshotAsk
    if (request.by === "extractive" || ask === undefined) return yield* extractiveSummary(request)
    const written = yield* ask
    const snapshot = parseSnapshot(written)
    return isSnapshot(snapshot) ? { text: written } : yield* unusable(snapshot)
  })
})
