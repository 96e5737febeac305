/** Whether the working folder may configure and instruct an agent, and what it offers. */

import { Effect, type FileSystem, type Path } from "effect"
import { withDefaults } from "../../domain/settings/Settings.ts"
import { Settings } from "../settings/Settings.ts"
import { offersOf } from "../workspace/FolderOffers.ts"
import { Trust } from "../workspace/Trust.ts"
import type { RuntimeNotice } from "./RuntimeNotice.ts"

/** Checks whether a folder is trusted. A folder without an answer is not, and none is while the answers cannot be read. */
export const isTrusted: Effect.Effect<(folder: string) => Effect.Effect<boolean>, never, Trust> = Effect.map(
  Trust,
  (trust) => (folder) =>
    Effect.match(trust.of(folder), { onFailure: () => false, onSuccess: (standing) => standing === "trusted" })
)

/**
 * What a folder offers an agent: settings, hooks, agents, skills, and memory under the names that the settings give; under the
 * default names when the settings cannot be read.
 */
export const offersIn = (folder: string) =>
  Settings.use(({ read }) => read).pipe(
    Effect.map(({ settings }) => withDefaults(settings).memory.fileNames),
    Effect.orElseSucceed(() => undefined),
    Effect.flatMap((names) => offersOf(folder, names))
  )

/** Files that a notice names one by one. */
const maxNamedFiles = 5

/**
 * The notice about what is not loaded from a folder whose trust was never decided. Undefined when nothing is left out, or when
 * reading the settings has reported it already.
 */
export const untrustedNotice = Effect.fn("FolderTrust.untrustedNotice")(function* (
  folder: string
): Effect.fn.Return<RuntimeNotice | undefined, never, FileSystem.FileSystem | Path.Path | Settings | Trust> {
  const trust = yield* Trust
  const standing = yield* Effect.orElseSucceed(trust.of(folder), () => "unknown" as const)
  if (standing !== "unknown") return undefined
  const offers = yield* offersIn(folder)
  if (offers.length === 0 || offers.some(({ kind }) => kind === "settings" || kind === "unreadable")) return undefined
  const files = [...new Set(offers.map(({ file }) => file))]
  return {
    _tag: "UntrustedFolder",
    files: files.slice(0, maxNamedFiles),
    more: Math.max(0, files.length - maxNamedFiles)
  }
})
