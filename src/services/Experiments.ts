import { Context, Effect } from "effect"

/** Numbers that somebody else may set from afar, by name: experiments. Where nobody does, nothing is known. */
export interface ExperimentsShape {
  /** The number under this name; undefined: there is none. Never fails. */
  readonly number: (name: string) => Effect.Effect<number | undefined>
}

/** Where the runtime asks for experiments. By default there are none. */
export const Experiments = Context.Reference<ExperimentsShape>("palimpsest/services/Experiments", {
  defaultValue: () => ({ number: () => Effect.undefined })
})

/** The experiment that sets the share of the window at which a conversation is compressed, under Gemini CLI's name for it. */
export const compressionThreshold = "CONTEXT_COMPRESSION_THRESHOLD"

/**
 * Other keys an experiment may stand under, the first that is set counts: Gemini CLI's number for it, and the name that this
 * program gave it before.
 */
export const experimentKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  [compressionThreshold, ["45740197", "compressionThreshold"]]
])
