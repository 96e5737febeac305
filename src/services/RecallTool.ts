import { Context, Effect, Schema } from "effect"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { Excerpt, Selection } from "../domain/Excerpt.ts"
import { type Handle, isHandle } from "../domain/Handle.ts"
import { markStart, redacting } from "../domain/Redaction.ts"
import * as Work from "../domain/Work.ts"
import * as PromptRecall from "./PromptRecall.ts"
import type { SessionStoreError } from "./SessionStore.ts"
import { type BadPattern, select, type TempStoreError } from "./TempStore.ts"

/** Reads what a compression took out of a prompt. */
export class Recall extends Context.Service<
  Recall,
  {
    /**
     * What a handle stands for in its conversation: exactly, or the wanted part of it. Over a `CompressedLanguageModel`
     * that is the prompt of the call for which a tool runs, else what `Recall.within` says, else the only conversation:
     * the one whose prompts each went on from the one before. Once a prompt did not, be it shorter only, outside of a call
     * nothing is found without `Recall.within`. A program with many conversations always names the one that it means: of
     * two that began alike nobody can tell, before they differ, that they are two.
     */
    readonly recall: (
      handle: Handle,
      selection?: Selection
    ) => Effect.Effect<Excerpt, TempStoreError | BadPattern | SessionStoreError>
  }
>()("palimpsest/services/RecallTool/Recall") {
  /**
   * Looks handles up in this history: for tools that are run outside of the model's call, and for programs that recall
   * for themselves. Give the whole history, as it is sent to the model.
   */
  static readonly within =
    (prompt: Prompt.RawInput) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.updateContext(effect, PromptRecall.within(Prompt.make(prompt)))
}

/** Tokens that one call of the tool gives at most, so that recalling does not fill the window again. */
const most = 4_000

/** The tool by which a model reads back what it sees only as a handle. */
export const recallTool = Tool.make("recall", {
  description:
    "Reads back exactly what left the conversation. Give a handle (h_…) as a snapshot or a shortened output shows it; of long texts ask for lines, or for lines that match.",
  parameters: Schema.Struct({
    handle: Schema.String.annotate({ description: "The handle, for example h_abcdefghij" }),
    from: Schema.optionalKey(Schema.Natural).annotate({ description: "The first line wanted, counted from 1" }),
    to: Schema.optionalKey(Schema.Natural).annotate({ description: "The last line wanted" }),
    grep: Schema.optionalKey(Schema.String).annotate({ description: "A regular expression that the lines match" })
  }),
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return"
})

/** The tool alone: `Toolkit.merge(mine, recallToolkit)` adds it to others. */
export const recallToolkit = Toolkit.make(recallTool)

/** Said behind a text in which secrets were left out. */
const secretsNote = "\n(secrets in this text are left out; the program that keeps it can read them)"

/**
 * Runs the tool by the `Recall` of whatever compresses: failures go to the model, as words. Secrets are left out of what the
 * model gets, unless `redactSecrets` is false; a program that calls `Recall` itself gets everything exactly.
 */
export const layerRecallToolWith = ({ redactSecrets }: { readonly redactSecrets: boolean }) =>
  recallToolkit.toLayer(
    Effect.map(Recall, (service) =>
      recallToolkit.of({
        recall: Effect.fnUntraced(function* ({ from, grep, handle, to }) {
          if (!isHandle(handle)) return yield* Effect.fail(`${handle} is no handle`)
          const selection: Selection = {
            maxTokens: most,
            ...(from === undefined && to === undefined ? {} : { lines: [from ?? 1, to ?? Number.MAX_SAFE_INTEGER] }),
            ...(grep === undefined ? {} : { grep })
          }
          const { omittedLines, text } = yield* Effect.gen(function* () {
            if (!redactSecrets) return yield* service.recall(handle, selection)
            // All of it is looked at: what is left out before would part secrets and their names.
            const whole = yield* service.recall(handle)
            return yield* select((yield* Work.run(redacting(whole.text))).text, selection)
          }).pipe(Effect.mapError((error) => error.message))
          const note = redactSecrets && text.includes(markStart) ? secretsNote : ""
          return omittedLines === 0
            ? `${text}${note}`
            : `${text}\n(${omittedLines} more lines; ask for them by number)${note}`
        })
      })
    )
  )

/** The tool with secrets left out of what it gives. */
export const layerRecallTool = layerRecallToolWith({ redactSecrets: true })
