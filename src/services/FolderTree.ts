import { Effect, FileSystem, Path } from "effect"
import type { FolderTree, TreeEntry } from "../domain/EnvironmentMessage.ts"
import { type FolderRules, type IgnoreChoice, rulesOf } from "./IgnoreRules.ts"
import { Workspace } from "./Workspace.ts"

/** How much is looked at. */
export interface TreeLimits {
  /** Entries that are shown, of all folders together (spec 10: 200). */
  readonly items: number
  /** Entries of one folder that are looked at; the others are counted only. */
  readonly entries?: number | undefined
}

const usualEntries = 2_000

/** Longer nobody waits for it: a folder of a network that is gone may answer never. */
const patience = "2 seconds"

const choice: IgnoreChoice = { git: true, own: true, usual: true }

/** Folders that programs fill: shown, and never looked into (spec 13, the usual excludes). */
const generated = new Set(["dist", "build", "coverage", "__pycache__", ".vscode", ".idea"])

/** A folder while it is looked for what is in it. */
interface Folder {
  readonly name: string
  entries: ReadonlyArray<Node>
  isRead: boolean
  more: number
}
type Node = Folder | string

const begun = (name: string): Folder => ({ name, entries: [], isRead: false, more: 0 })

const shown = (node: Node): TreeEntry =>
  typeof node === "string"
    ? { _tag: "File", name: node }
    : { _tag: "Folder", name: node.name, entries: node.isRead ? node.entries.map(shown) : undefined, more: node.more }

/** Folders first, each kind by its name. */
const byName = (one: FileSystem.DirectoryEntry, other: FileSystem.DirectoryEntry): number => {
  if (one.type === other.type) return one.name < other.name ? -1 : 1
  if (one.type === "Directory") return -1
  return other.type === "Directory" || one.name >= other.name ? 1 : -1
}

/**
 * What lies in a folder of the workspace, one level after the other, until enough is found. Files that the ignore rules leave
 * out are not shown; folders that they leave out are, without what is in them. Links are not followed. At most one folder is
 * read for each that is shown, and there is an end to it after two seconds, with what was found until then.
 */
export const scan = Effect.fn("FolderTree.scan")(function* (
  folder: string,
  limits: TreeLimits
): Effect.fn.Return<FolderTree, never, FileSystem.FileSystem | Path.Path | Workspace> {
  const { files } = yield* Workspace
  const fs = files(yield* FileSystem.FileSystem)
  const path = yield* Path.Path
  const mostEntries = limits.entries ?? usualEntries
  const top = begun(folder)

  interface Open {
    readonly node: Folder
    readonly place: string
    readonly rules: (holds: ReadonlySet<string> | undefined) => Effect.Effect<FolderRules>
  }

  const readOne = Effect.fnUntraced(function* ({ node, place, rules: enter }: Open, left: number) {
    const all = yield* Effect.option(fs.readDirectoryEntries(place))
    if (all._tag === "None") return []
    const looked = all.value.slice(0, mostEntries)
    const isAll = looked.length === all.value.length
    const rules = yield* enter(isAll ? new Set(looked.map(({ name }) => name)) : undefined)
    const deeper: Array<Open> = []
    const found: Array<Node> = []
    let more = all.value.length - looked.length
    for (const { name, type } of looked.toSorted(byName)) {
      yield* rules.pause
      const isFolder = type === "Directory"
      if (!isFolder && type !== "File" && type !== "SymbolicLink") continue
      const isIgnored = rules.ignores(name, isFolder)
      if (isIgnored && !isFolder) continue
      if (found.length >= left) {
        more += 1
        continue
      }
      const entry = isFolder ? begun(name) : name
      found.push(entry)
      if (typeof entry === "string" || isIgnored || generated.has(name)) continue
      deeper.push({ node: entry, place: path.join(place, name), rules: (holds) => rules.enter(name, holds) })
    }
    // All at once: who is out of patience in between sees what was whole.
    node.entries = found
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
      queue.push(...(yield* readOne(open, left)))
      left -= open.node.entries.length
    }
  }).pipe(Effect.timeoutOption(patience))

  return { folder, entries: top.isRead ? top.entries.map(shown) : undefined, more: top.more }
})
