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

/** The experiment that says when a conversation is compressed (spec 3.1 step 3). */
export const compressionThreshold = "compressionThreshold"
