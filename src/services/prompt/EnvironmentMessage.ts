/** Collects the environment of a conversation. */

import { Clock, Effect, FileSystem, Path } from "effect"
import { environmentMessage, type FolderTree, type Sandbox } from "../../domain/prompt/EnvironmentMessage.ts"
import { scan } from "../workspace/FolderTree.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** The inputs that are not detected. */
export interface EnvironmentOptions {
  /** The platform as Node names it: `linux`, `darwin`, `win32`. */
  readonly platform: string
  readonly sandbox: Sandbox
  /** Where long outputs are stored, for tools that read files. */
  readonly outputs?: string | undefined
  /** The plan approved last (`Plans.approved`). */
  readonly approvedPlan?: Effect.Effect<string | undefined> | undefined
  /** The full editor context (`IdeUpdates.full`). */
  readonly ide?: Effect.Effect<string | undefined> | undefined
  /** Whether folder trees are included, and most entries in all of them (setting `environment`). */
  readonly tree: boolean
  readonly items: number
  /** Time zone of the date. Default: the machine's. */
  readonly zone?: string | undefined
}

/** The Git repository that contains a folder: where `.git` is, as a folder or a file. */
export const repositoryOf = Effect.fn("EnvironmentMessage.repositoryOf")(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (let place = folder; ; place = path.dirname(place)) {
    if (yield* Effect.orElseSucceed(fs.exists(path.join(place, ".git")), () => false)) return place
    if (path.dirname(place) === place) return undefined
  }
})

/** Whether a folder is in a Git repository. */
export const isGit = (folder: string): Effect.Effect<boolean, never, FileSystem.FileSystem | Path.Path> =>
  Effect.map(repositoryOf(folder), (root) => root !== undefined)

/** Builds the environment message from the current state (the text is in `domain`). */
export const make = Effect.fn("EnvironmentMessage.make")(function* (options: EnvironmentOptions) {
  const { folders, root } = yield* Workspace
  const added = folders.filter((folder) => folder !== root)
  const trees: Array<FolderTree> = []
  if (options.tree && options.items > 0) {
    const items = Math.max(1, Math.floor(options.items / (added.length + 1)))
    for (const folder of [root, ...added]) trees.push(yield* scan(folder, { items }))
  }
  return environmentMessage({
    now: yield* Clock.currentTimeMillis,
    zone: options.zone,
    platform: options.platform,
    folders: [root, ...added],
    outputs: options.outputs,
    repository: yield* repositoryOf(root),
    sandbox: options.sandbox,
    approvedPlan: yield* options.approvedPlan ?? Effect.undefined,
    ide: yield* options.ide ?? Effect.undefined,
    trees
  })
})
