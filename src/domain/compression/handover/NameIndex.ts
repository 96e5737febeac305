/** The index of a snapshot: names that the agent is likely to need again. */

import { isHandle } from "../../content/Handle.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { relativePath } from "../../text/WorkspacePath.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import { type AnchorKind, anchorsOf } from "../Anchors.ts"
import type { Evidence } from "../evidence/Evidence.ts"
import { isStandardName, ownName } from "../evidence/StandardNames.ts"
import { isSectionName, type SnapshotItem, statement } from "../Snapshot.ts"
import { namesHeading } from "../SnapshotShorthand.ts"
import { sideBySide } from "./Budget.ts"

/** Matches a path of one segment without an extension: it is a closing tag (`/div`) or a slash command (`/help`). */
const tagLike = /^\/[A-Za-z][\w-]*$/

/** Matches words with a slash between them, which are seldom a folder or a branch: `design/spec`, `over/under-building`. */
const alternatives = /^[A-Z]?[a-z]+(?:[/-][A-Z]?[a-z]+)*\/[A-Z]?[a-z]+(?:[/-][A-Z]?[a-z]+)*$/
const alternativesWeight = 0.4

const pairsOf = (path: string): ReadonlyArray<string> => {
  const segments = path.split(/[/\\]/).filter(Boolean)
  return segments.slice(1).map((segment, index) => `${segments[index]}/${segment}`)
}

/** Returns the folders that stand in one another, of all paths that are no alternatives: `cli/strategy` of `cli/strategy/common.go`. */
function* foldersOf({ anchors, files }: Evidence): SlicedWork<ReadonlySet<string>> {
  const folders = new Set([...files.keys()].flatMap(pairsOf))
  for (const [name, { kind }] of anchors) {
    if (kind === "path" && !alternatives.test(name)) for (const pair of pairsOf(name)) folders.add(pair)
    yield
  }
  return folders
}

/** What only an output showed is seldom used later: the fields of an answer, a time of day. */
const shownWeight = 0.5

/** Matches what stands for a name: plurals of abbreviations (`IDs`), places (`N-1`), formats (`03d-%s.json`), and marks at an end (`d/-`). */
const placeholder = /^[A-Z]{2,5}s$|^[NMijkmnx]-\d+$|%[a-z](?![\da-f])|^[-+]+\/|\/[-+]+$/

/** Matches the parts of a replacement in a command (`s/paths`, `validation/g`), but no file of a folder `s`. */
const replacement = /^s\/[^.]*$|^[^/]+\/g$/

/** Matches the mark that replaces a secret. It is no name. */
const redacted = /REDACTED/

/** Variables whose names are the same in every program. */
const variable = /^(?:t|b|cmd|err|ctx|self|this|cls)\./

/** Files that a program made or fetched, those of temporary folders, and placeholders: nobody goes on from them. */
const transient =
  /(?:^|\/)(?:node_modules|\.git|coverage|__pycache__|\.venv)\/|^\/?(?:private\/)?(?:tmp|var|path\/to)\/|(?:^|\/)[0-9a-f]{8,}(?:[-/.]|$)|(?:^|\/)[0-9a-f]{2}\/[0-9a-f]{6,}\/|(?:^|\/)\.(?:gitignore|gitkeep|DS_Store|editorconfig)$|\.git$/

/** Whether nobody goes on from a file. */
export const isTransient = (path: string): boolean => transient.test(path)

/** Whether a name tells an agent nothing, whatever the conversation is about. */
const isMeaningless = (name: string): boolean =>
  isStandardName(name) || redacted.test(name) || tagLike.test(name) || name.endsWith("$")

/** Whether a name tells an agent something in an index. */
const isTelling = (name: string, kind: AnchorKind, used: boolean, declared: ReadonlySet<string>): boolean => {
  if (kind === "number") return used && /^v?\d+\.\d+\.\d/.test(name)
  if (declared.has(name) || isMeaningless(name)) return false
  if (kind === "url" || /(?:^|\/)node_modules\//.test(name)) return used
  if (placeholder.test(name) || replacement.test(name)) return false
  // Numbers, and sizes such as `62KB`.
  return !/^[\d_.,:/-]+(?:[KMGTkmgt]i?[Bb])?$/.test(name)
}

/** Some of many names that differ in their numbers alone (`/items/1`, `/items/2`), or in a folder that a tool listed (`deps/a/mix.exs`), tell of all. */
const maxAlike = 4

/** Returns a path without `./` before it, and without a slash or the number of a line (`common.go-117` of `grep -C`) after it, where it is a path without them. */
const plainPath = (path: string): string => {
  const plain = path.replace(/^\.\//, "").replace(/\/+$|(?<=\.[a-z]{1,5})-\d{1,6}$/, "")
  return plain.includes("/") ? plain : path
}

/**
 * Returns the names of the evidence, best first. `isWanted`: whether the user's focus mentions a name. On recorded conversations, how
 * often a name is used again grows with the square root of its weight, and with each call that aimed at it.
 */
export function* rankedNames(
  evidence: Evidence,
  isWanted: (name: string) => boolean,
  cwd?: string | undefined
): SlicedWork<ReadonlyArray<string>> {
  const weights = new Map<string, { kind: AnchorKind; weight: number; aimed: number; isShownOnly: boolean }>()
  // A name ends at a blank: of a folder with one, names have the rest alone.
  const rest = cwd === undefined || !/\s/.test(cwd) ? undefined : /\S*$/.exec(cwd)?.[0]
  const folders = yield* foldersOf(evidence)
  for (const [whole, { aimed, kind, used, weight }] of evidence.anchors) {
    yield
    const name =
      kind === "symbol"
        ? (ownName(whole) ?? whole)
        : kind === "path"
          ? plainPath(relativePath(relativePath(whole, cwd), rest))
          : whole
    // Handles and section tags come from earlier snapshots and are no names.
    if (isHandle(name) || isSectionName(name) || name === cwd || name === rest) continue
    // Skip members of a library's module (`fmt.Errorf`); a member of a variable (`err.Code`) may be the project's.
    if (kind === "symbol" && name !== whole && isStandardName(whole) && !variable.test(whole)) continue
    if (!isTelling(name, kind, used, evidence.declared)) continue
    // In an output they are words, unless a path or the user's focus has them.
    if (!used && alternatives.test(name) && !isWanted(name) && !pairsOf(name).some((pair) => folders.has(pair)))
      continue
    const known = weights.get(name)
    weights.set(name, {
      kind,
      weight: weight + (known?.weight ?? 0),
      aimed: aimed + (known?.aimed ?? 0),
      isShownOnly: !used && (known?.isShownOnly ?? true)
    })
  }
  const scores: Array<readonly [name: string, score: number]> = []
  for (const [name, { aimed, isShownOnly, kind, weight }] of weights) {
    yield
    const factor =
      (alternatives.test(name) ? alternativesWeight : 1) *
      (isShownOnly && kind === "symbol" ? shownWeight : 1) *
      (isWanted(name) ? 20 : 1)
    scores.push([name, (Math.sqrt(weight) * (1 + aimed) * factor) / (estimateText(name) + 1)])
  }
  const forms = new Map<string, number>()
  return scores
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .map(([name]) => name)
    .filter((name) => {
      const { isShownOnly, kind } = weights.get(name) ?? {}
      const listed = kind === "path" && isShownOnly === true ? name.replace(/[^/]+(?=\/[^/]+$)/, "0") : name
      const form = kind === "id" ? name : listed.replace(/\d+/g, "0")
      forms.set(form, (forms.get(form) ?? 0) + 1)
      return (forms.get(form) ?? 0) <= maxAlike || isWanted(name)
    })
}

const indexKey = "names"
const heading = namesHeading.slice(2)

/** Whether an item of an earlier snapshot is its index. */
export const isIndex = ({ text }: SnapshotItem): boolean =>
  text.startsWith(namesHeading) || /^- names (?:used|shown by tools)|^- names, by the file/.test(text)

/** Returns the names of an index. */
export const indexedNames = ({ text }: SnapshotItem): ReadonlyArray<string> =>
  text
    .split("\n")
    .slice(1)
    .flatMap((line) => line.trim().split(" "))

/** Returns the folder of a path, with its slash; empty for any other name. */
const parentOf = (name: string): string => (name.includes(":") ? "" : name.slice(0, name.lastIndexOf("/") + 1))

/** Returns the item of the index: the paths, and all other names; none for no names. */
export const indexItems = (names: ReadonlyArray<string>): ReadonlyArray<SnapshotItem> => {
  if (names.length === 0) return []
  const paths = sideBySide(
    names.filter((name) => parentOf(name) !== ""),
    parentOf
  )
  const others = names.filter((name) => parentOf(name) === "")
  return [
    statement(
      indexKey,
      heading,
      [paths, others].map((line) => line.join(" "))
    )
  ]
}

/** Returns the names of a text, and what they show besides: a path its folders and its file, a field its own name. */
export const namesIn = (text: string): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const name of anchorsOf(text).keys()) {
    names.add(name)
    const separator = name.includes("\\") ? "\\" : name.includes("/") ? "/" : "."
    const pieces = name.split(separator)
    for (let at = 1; at < pieces.length; at += 1) {
      names.add(pieces.slice(0, at).join(separator))
      names.add(pieces.slice(at).join(separator))
    }
  }
  return names
}

/** Names among which paths are looked for. */
const maxPathNames = 4_000

/** Matches the path of a file with an extension. A first segment with a dot is a host (`github.com/…`). */
const filePath = /^(?!https?:|[\w-]+\.\w+\/)(?:~?\/[\w.@+-]+\/|\.{0,2}\/?)[\w@+-][\w.@+-]*(?:\/[\w.@+-]+)+\.\w{1,8}$/

/** Returns the shorter paths that are the ends of a path. */
const endsOf = (path: string): ReadonlyArray<string> =>
  [...path.matchAll(/(?<=.)\//g)].map(({ index }) => path.slice(index + 1))

/** Returns the paths that were named, best first, without files that a tool read or changed. */
export const namedPaths = ({ anchors, files }: Evidence, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const known = new Set([...files.keys()].flatMap((path) => [path, ...endsOf(path)]))
  // Of an agent that does not record its folder, calls name a file by the end of the path that results show.
  const isKnown = (path: string) =>
    known.has(path) || (path.startsWith("/") && endsOf(path).some((end) => files.has(end)))
  /** Whether it is a file of a diff, with one of the folders that git writes before it. */
  const isOfDiff = (path: string) => /^[ab]\//.test(path) && (isKnown(path.slice(2)) || anchors.has(path.slice(2)))
  return names
    .slice(0, maxPathNames)
    .filter(
      (name) =>
        anchors.get(name)?.kind === "path" &&
        filePath.test(name) &&
        !isKnown(name) &&
        !isOfDiff(name) &&
        !isTransient(name)
    )
}
