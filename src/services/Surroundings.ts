import { Clock, Effect, FileSystem, Path } from "effect"
import { environmentMessage, type FolderTree, type Sandbox } from "../domain/EnvironmentMessage.ts"
import { scan } from "./FolderTree.ts"
import { Workspace } from "./Workspace.ts"

/** Where a conversation takes place, found out. */

/** What is not found out here. */
export interface SurroundingsOptions {
  /** As Node names it: `linux`, `darwin`, `win32`. */
  readonly platform: string
  readonly sandbox: Sandbox
  /** Where outputs are kept that were too long, if tools may read there. */
  readonly outputs?: string | undefined
  /** The plan that was approved last (`Plans.approved`). */
  readonly approvedPlan?: Effect.Effect<string | undefined> | undefined
  /** What the editor says, whole (`IdeNews.full`). */
  readonly ide?: Effect.Effect<string | undefined> | undefined
  /** Whether the folders' trees are told, and how many entries of all together (setting `environment`). */
  readonly tree: boolean
  readonly items: number
  /** The time zone of the day. Absent: this machine's. */
  readonly zone?: string | undefined
}

/** The folder of the git repository that this one lies in: where `.git` is, be it a folder or a file. */
export const repositoryOf = Effect.fn("Surroundings.repositoryOf")(function* (
  folder: string
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (let place = folder; ; place = path.dirname(place)) {
    if (yield* Effect.orElseSucceed(fs.exists(path.join(place, ".git")), () => false)) return place
    if (path.dirname(place) === place) return undefined
  }
})

/** Whether a folder lies in a git repository. */
export const isGit = (folder: string): Effect.Effect<boolean, never, FileSystem.FileSystem | Path.Path> =>
  Effect.map(repositoryOf(folder), (found) => found !== undefined)

/** The message that tells a model where it works, as things are now (domain/EnvironmentMessage.ts). */
export const make = Effect.fn("Surroundings.make")(function* (
  options: SurroundingsOptions
): Effect.fn.Return<string, never, FileSystem.FileSystem | Path.Path | Workspace> {
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
