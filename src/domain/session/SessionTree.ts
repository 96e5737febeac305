/** The tree of a session: every message and every compression, each after the one that it followed. */

import { isCall, isMedia, isResponse, plainText } from "../content/Content.ts"
import { segments, tipOf } from "../conversation/Branches.ts"
import { type Entry, type EntryId, inserted } from "../conversation/Conversation.ts"
import { firstUnits } from "../text/Bytes.ts"
import { printableLine } from "../text/InvisibleCharacters.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import type { Session } from "./Session.ts"

/** What a node of the tree stands for. `results`: of tools; `program`: text that a program added; `compression`: its snapshot. */
export type NodeKind = "user" | "model" | "results" | "program" | "summary" | "environment" | "compression"

/** A message or a compression in the tree. */
export interface TreeNode {
  readonly id: EntryId
  /** The entry that it followed; null for the first one. */
  readonly parent: EntryId | null
  /** The entries that followed it, oldest first. More than one: the conversation went back to it. */
  readonly children: ReadonlyArray<EntryId>
  readonly kind: NodeKind
  /** The beginning of its text, in one line. */
  readonly text: string
  /** Milliseconds since 1970. */
  readonly at: number | undefined
  readonly label: string | undefined
  /** Whether the current path leads over it. */
  readonly isOnPath: boolean
}

/** The tree of a session. */
export interface SessionTree {
  /** By id, in the order in which they were added. */
  readonly nodes: ReadonlyMap<EntryId, TreeNode>
  /** The node at the end of the current path; null when there is none. */
  readonly tip: EntryId | null
}

const maxTextChars = 200

const kindOf = ({ author, content }: Entry): NodeKind =>
  content.role === "model" ? "model" : (author ?? (content.parts.some(isResponse) ? "results" : "user"))

/** Returns the first line of an entry: its words, else what it calls, returns or shows. */
const firstLine = ({ content }: Entry): string => {
  const whole = plainText(content)
  const words = (whole.startsWith(runtimeMark) ? whole.slice(runtimeMark.length) : whole).trim()
  const things = content.parts.flatMap((part) =>
    isCall(part)
      ? [part.functionCall.name]
      : isResponse(part)
        ? [part.functionResponse.name ?? "a tool"]
        : isMedia(part)
          ? ["media"]
          : []
  )
  return firstUnits(printableLine(words === "" ? things.join(", ") : firstUnits(words, maxTextChars * 8)), maxTextChars)
}

/** Returns the tree of a whole session. */
export const sessionTree = ({ conversation, labels }: Session): SessionTree => {
  const labelOf = new Map(
    PersistentList.toArray(labels).map(({ entry, label }) => [entry, label === null ? undefined : printableLine(label)])
  )
  const nodes = new Map<EntryId, TreeNode & { children: Array<EntryId>; isOnPath: boolean }>()
  const add = (entry: Entry, id: EntryId, parent: EntryId | null, kind: NodeKind) => {
    const label = labelOf.get(id)
    nodes.set(id, { id, parent, children: [], kind, text: firstLine(entry), at: entry.at, label, isOnPath: false })
    if (parent !== null) nodes.get(parent)?.children.push(id)
  }
  const snapshots = new Map(inserted(conversation).map((entry) => [entry.id, entry]))
  let end: EntryId | null = null
  for (const { after, appended } of segments(conversation)) {
    const snapshot = after === null || nodes.has(after) ? undefined : snapshots.get(after)
    if (after !== null && snapshot !== undefined) add(snapshot, after, end, "compression")
    end = after
    for (const entry of appended) {
      add(entry, entry.id, end, kindOf(entry))
      end = entry.id
    }
  }
  const tip = tipOf(conversation)
  for (let id = tip; id !== null;) {
    const node = nodes.get(id)
    if (node === undefined) break
    node.isOnPath = true
    id = node.parent
  }
  return { nodes, tip }
}

/** Returns what going to an entry leaves: from the end of the current path back to the last entry that both paths share, oldest first. */
export const branchLeft = ({ nodes, tip }: SessionTree, to: EntryId | null): ReadonlyArray<EntryId> => {
  const shared = new Set<EntryId | null>([null])
  for (let id = to; id !== null; id = nodes.get(id)?.parent ?? null) shared.add(id)
  const left: Array<EntryId> = []
  for (let id = tip; id !== null && !shared.has(id); id = nodes.get(id)?.parent ?? null) left.push(id)
  return left.reverse()
}
