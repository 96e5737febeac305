/** The contract of experiments: numbers set remotely, and the keys that name them. */

import { Context, Effect } from "effect"

/** The source of experiments. Default: none. */
export const Experiments = Context.Reference<{
  /** The number of this name; undefined when there is none. Never fails. */
  readonly number: (name: string) => Effect.Effect<number | undefined>
}>("palimpsest/services/settings/Experiments", {
  defaultValue: () => ({ number: () => Effect.undefined })
})

/** The experiment that sets the compression threshold as a share of the window, under Gemini CLI's name. */
export const compressionThreshold = "CONTEXT_COMPRESSION_THRESHOLD"

/** Other keys of an experiment; the first that is set counts: Gemini CLI's flag number, and an older name of ours. */
export const experimentKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  [compressionThreshold, ["45740197", "compressionThreshold"]]
])
