/** Folder trust: from an untrusted folder nothing is loaded that could instruct a model or run here. */

import { Context, type Effect, Schema } from "effect"

/** The user's answer about a folder. */
export const TrustAnswer = Schema.Literals(["trusted", "untrusted"])
export type TrustAnswer = typeof TrustAnswer.Type

/** The trust state of a folder. `unknown`: not asked yet; it counts as untrusted where no one can be asked. */
export type TrustState = TrustAnswer | "unknown"

/** An answer with its folder (absolute, links resolved). It applies to the folders below too. */
export const TrustEntry = Schema.Struct({ folder: Schema.String, answer: TrustAnswer })
export type TrustEntry = typeof TrustEntry.Type

/**
 * Answers cannot be read or stored, or the folder does not exist. One line that says what to do; nothing is trusted
 * then.
 */
export class TrustError extends Schema.TaggedError<TrustError>()("TrustError", { message: Schema.String }) {}

/** The user's answers. */
export class Trust extends Context.Service<
  Trust,
  {
    /** The state of a folder, by its own answer or that of the nearest folder above. */
    readonly of: (folder: string) => Effect.Effect<TrustState, TrustError>
    /**
     * Stores an answer or removes it; returns the folder it was stored for. See `isWide` for the home folder and the
     * root.
     */
    readonly set: (folder: string, answer: TrustAnswer | "forgotten") => Effect.Effect<string, TrustError>
    /** All answers by folder. */
    readonly list: Effect.Effect<ReadonlyArray<TrustEntry>, TrustError>
    /**
     * Whether the folder is or contains the user's home: trusting it would trust everything they ever download. Such a
     * folder is never suggested and must be named explicitly.
     */
    readonly isWide: (folder: string) => Effect.Effect<boolean>
  }
>()("palimpsest/services/workspace/Trust") {}

/**
 * The trust state from the answers for a folder and all folders above it, innermost first. A `wide` folder (the user's
 * home or above) is never trusted through a folder above it.
 */
export const standing = (
  answers: ReadonlyMap<string, TrustAnswer>,
  chain: ReadonlyArray<string>,
  isWide: boolean
): TrustState => {
  const at = chain.findIndex((folder) => answers.has(folder))
  const answer = answers.get(chain[at] ?? "") ?? "unknown"
  return isWide && at > 0 && answer === "trusted" ? "unknown" : answer
}

/** A folder and all folders above it, innermost first. */
export const withParents = (folder: string, parent: (folder: string) => string): ReadonlyArray<string> => {
  const chain = [folder]
  for (let at = folder, above = parent(at); above !== at; at = above, above = parent(at)) chain.push(above)
  return chain
}
