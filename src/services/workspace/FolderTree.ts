/** Lists what a folder of the workspace holds, for the model and for completion. */

import { Effect, FileSystem, Path } from "effect"
import type { TreeEntry } from "../../domain/prompt/EnvironmentMessage.ts"
import { type FolderRules, type IgnoreChoice, rulesOf } from "./IgnoreRules.ts"
import { Workspace } from "./Workspace.ts"

/** Limits of a scan. */
interface TreeLimits {
  /** Most entries shown of all folders together (Gemini CLI: 200). */
  readonly items: number
  /** Entries examined in one folder; more are only counted. */
  readonly entries?: number | undefined
}

const defaultMaxEntries = 2_000

/** Time limit: a network folder that is gone may never answer. */
const scanTimeout = "2 seconds"

const choice: IgnoreChoice = { git: true, own: true, vendored: true }

/** Generated folders: shown but not entered. */
const generated = new Set(["dist", "build", "coverage", "__pycache__", ".vscode", ".idea"])

/** A folder while it is being read. */
interface Folder {
  readonly name: string
  entries: ReadonlyArray<Node>
  isRead: boolean
  more: number
}
type Node = Folder | string

const emptyFolder = (name: string): Folder => ({ name, entries: [], isRead: false, more: 0 })

const shown = (node: Node): TreeEntry =>
  typeof node === "string"
    ? { _tag: "File", name: node }
    : { _tag: "Folder", name: node.name, entries: node.isRead ? node.entries.map(shown) : undefined, more: node.more }

/** A folder that is to be read. */
interface Open {
  readonly node: Folder
  readonly place: string
  readonly rules: (holds: ReadonlySet<string> | undefined) => Effect.Effect<FolderRules>
}

/** Folders first, each kind by name. */
const byName = (one: FileSystem.DirectoryEntry, other: FileSystem.DirectoryEntry): number => {
  if (one.type === other.type) return one.name < other.name ? -1 : 1
  if (one.type === "Directory") return -1
  return other.type === "Directory" || one.name >= other.name ? 1 : -1
}

/**
 * Scans a workspace folder breadth first until enough entries are found.
 *
 * Ignored files are not shown; ignored folders are shown without their contents. Links are not followed. Reads at most
 * one folder for each one shown, and stops after two seconds with what it has found.
 */
export const scan = Effect.fn("FolderTree.scan")(function* (folder: string, limits: TreeLimits) {
  const { files } = yield* Workspace
  const fs = files(yield* FileSystem.FileSystem)
  const path = yield* Path.Path
  const maxEntries = limits.entries ?? defaultMaxEntries
  const top = emptyFolder(folder)

  const readOne = Effect.fnUntraced(function* ({ node, place, rules: enter }: Open, left: number) {
    const all = yield* Effect.option(fs.readDirectoryEntries(place))
    if (all._tag === "None") return []
    const looked = all.value.slice(0, maxEntries)
    const isAll = looked.length === all.value.length
    const rules = yield* enter(isAll ? new Set(looked.map(({ name }) => name)) : undefined)
    const deeper: Array<Open> = []
    const nodes: Array<Node> = []
    let more = all.value.length - looked.length
    for (const { name, type } of looked.toSorted(byName)) {
      yield* rules.pause
      const isFolder = type === "Directory"
      if (!isFolder && type !== "File" && type !== "SymbolicLink") continue
      const isIgnored = rules.ignores(name, isFolder)
      if (isIgnored && !isFolder) continue
      if (nodes.length >= left) {
        more += 1
        continue
      }
      const entry = isFolder ? emptyFolder(name) : name
      nodes.push(entry)
      if (typeof entry === "string" || isIgnored || generated.has(name)) continue
      deeper.push({ node: entry, place: path.join(place, name), rules: (holds) => rules.enter(name, holds) })
    }
    // Assigned at once: a timeout in between sees complete folders only.
    node.entries = nodes
    node.more = more
    node.isRead = true
    return deeper
  })

  yield* Effect.gen(function* () {
    const rules = yield* rulesOf(folder, choice)
    const queue: Array<Open> = [{ node: top, place: folder, rules: () => Effect.succeed(rules) }]
    let left = limits.items
    for (let next = 0; next < queue.length && left > 0; next += 1) {
      const open = queue[next]
      if (open === undefined) break
      for (const each of yield* readOne(open, left)) queue.push(each)
      left -= open.node.entries.length
    }
  }).pipe(Effect.timeoutOption(scanTimeout))

  return { folder, entries: top.isRead ? top.entries.map(shown) : undefined, more: top.more }
})

const pathsBelow = (entries: ReadonlyArray<TreeEntry>, above: string): ReadonlyArray<string> =>
  entries.flatMap((entry) =>
    entry._tag === "File"
      ? [`${above}${entry.name}`]
      : [`${above}${entry.name}/`, ...pathsBelow(entry.entries ?? [], `${above}${entry.name}/`)]
  )

/** Lists the files and folders that `scan` finds, relative to the folder; folders end in a slash. */
export const paths = Effect.fn("FolderTree.paths")(function* (folder: string, limits: TreeLimits) {
  const { entries } = yield* scan(folder, limits)
  return pathsBelow(entries ?? [], "")
})
