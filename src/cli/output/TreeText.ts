/** Draws the tree of a session. A branch is indented only where the conversation went back. */

import type { EntryId } from "../../domain/conversation/Conversation.ts"
import type { NodeKind, SessionTree, TreeNode } from "../../domain/session/SessionTree.ts"
import { promptHeading } from "../../domain/transcripts/PromptTitle.ts"
import { truncate } from "./Columns.ts"
import * as Output from "./Output.ts"
import { ago } from "./TimeText.ts"

/** Kinds that are always drawn. Others are drawn if they have a label, begin or end a branch, or are the current end. */
const drawnKinds: ReadonlySet<NodeKind> = new Set(["user", "summary", "compression"])

const isDrawn = ({ children, kind, label }: TreeNode): boolean =>
  drawnKinds.has(kind) || label !== undefined || children.length !== 1

/** How the tree is drawn. */
export interface TreeLayout {
  readonly columns: number
  /** Milliseconds since 1970. */
  readonly now: number
  readonly style: Output.Style
  /** Whether messages of the model, results and what programs added are drawn, too. */
  readonly all: boolean
}

/** Minimum columns of a text, however far it is indented. */
const minTextColumns = 20

const lineOf = (node: TreeNode, isTip: boolean, indent: string, { columns, now, style }: TreeLayout): string => {
  const label = node.label === undefined ? "" : `  [${node.label}]`
  const age = node.at === undefined ? "" : `  ${ago(node.at, now)}`
  const here = isTip ? "  ← here" : ""
  const besides = Output.columnsOf(`${indent}${label}${age}${here}`)
  const text = truncate(
    `${node.id}  ${node.kind}: ${node.kind === "user" ? promptHeading(node.text) : node.text}`,
    Math.max(minTextColumns, columns - besides)
  )
  return `${style.dim(indent)}${node.isOnPath ? text : style.dim(text)}${style.bold(label)}${style.dim(age)}${style.bold(here)}`
}

/** Draws a tree, one entry a line, oldest first. */
export const treeText = (tree: SessionTree, layout: TreeLayout): string => {
  const { nodes, tip } = tree
  const lines: Array<string> = []
  const roots = [...nodes.values()].filter(({ parent }) => parent === null).map(({ id }) => id)
  interface Drawn {
    readonly id: EntryId
    /** The indentation of its line, and of those that follow. */
    readonly first: string
    readonly rest: string
  }
  const branches = (ids: ReadonlyArray<EntryId>, indent: string): ReadonlyArray<Drawn> => {
    const [only, ...others] = ids
    if (only !== undefined && others.length === 0) return [{ id: only, first: indent, rest: indent }]
    return ids.map((id, index) => {
      const isLast = index === ids.length - 1
      return { id, first: `${indent}${isLast ? "└ " : "├ "}`, rest: `${indent}${isLast ? "  " : "│ "}` }
    })
  }
  const open = [...branches(roots, "")].reverse()
  for (let drawn = open.pop(); drawn !== undefined; drawn = open.pop()) {
    const node = nodes.get(drawn.id)
    if (node === undefined) continue
    const isShown = layout.all || isDrawn(node) || node.id === tip
    if (isShown) lines.push(lineOf(node, node.id === tip, drawn.first, layout))
    const { first, rest } = drawn
    // The first line of a branch may belong to a later entry.
    const next = branches(node.children, rest)
    for (const each of next.map((each) => (isShown || next.length > 1 ? each : { ...each, first })).reverse())
      open.push(each)
  }
  return lines.join("\n")
}
