import { Context, type Effect, Schema } from "effect"

/** Which folders a person trusts: from any other nothing is taken that could steer a model or run here (spec 7, 8 and 15). */

/** What a person said of a folder. */
export const TrustAnswer = Schema.Literals(["trusted", "untrusted"])
export type TrustAnswer = typeof TrustAnswer.Type

/** How it stands with a folder; `unknown`: nobody was asked yet, which counts as untrusted where nobody can be. */
export type Standing = TrustAnswer | "unknown"

/** One answer, and the folder it was given for: absolute, links followed. It counts for what lies below too. */
export const TrustEntry = Schema.Struct({ folder: Schema.String, answer: TrustAnswer })
export type TrustEntry = typeof TrustEntry.Type

/** The answers cannot be read or kept, or the folder is none. One line that says what to do; nothing is trusted then. */
export class TrustError extends Schema.TaggedError<TrustError>()("TrustError", { message: Schema.String }) {}

/** A person's answers. */
export class Trust extends Context.Service<
  Trust,
  {
    /** How it stands with a folder, by its own answer or else by that of the nearest folder above it. */
    readonly of: (folder: string) => Effect.Effect<Standing, TrustError>
    /** Keeps an answer, or takes it back; gives the folder it was kept for. Home and root are wide: see `isWide`. */
    readonly set: (folder: string, answer: TrustAnswer | "forgotten") => Effect.Effect<string, TrustError>
    /** All answers, by folder. */
    readonly list: Effect.Effect<ReadonlyArray<TrustEntry>, TrustError>
    /**
     * Whether the person's home lies in this folder, or is it: all they ever download would be trusted with it. Nobody is
     * asked for such a folder, it has to be named.
     */
    readonly isWide: (folder: string) => Effect.Effect<boolean>
  }
>()("palimpsest/services/Trust") {}

/**
 * What answers mean for a folder, given with all that lie above it, the innermost first. A folder is `wide` that holds the
 * person's home or is it: it is never trusted because of one above it.
 */
export const standing = (
  answers: ReadonlyMap<string, TrustAnswer>,
  chain: ReadonlyArray<string>,
  isWide: boolean
): Standing => {
  const at = chain.findIndex((folder) => answers.has(folder))
  const answer = answers.get(chain[at] ?? "") ?? "unknown"
  return isWide && at > 0 && answer === "trusted" ? "unknown" : answer
}

/** A folder and all above it, the innermost first. */
export const withParents = (folder: string, parent: (folder: string) => string): ReadonlyArray<string> => {
  const chain = [folder]
  for (let at = folder, above = parent(at); above !== at; at = above, above = parent(at)) chain.push(above)
  return chain
}
