/** The names of a recording: what occurred, what a tool declares, and what was shown again after a compaction. */

import { Predicate } from "effect"
import { actionsOf } from "../actions/Actions.ts"
import { bodyArguments } from "../actions/AgentTools.ts"
import { simpleCommands } from "../actions/ShellLine.ts"
import { anchorKindOf, type AnchorKind, eachAnchor, eachText } from "../compression/Anchors.ts"
import { isCall, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { isStandardName } from "./StandardNames.ts"
import { comparable, relativeTo } from "./WholeWords.ts"

/** Calls `visit` with each text in a call's arguments, but for those under keys that `enters` refuses. */
const eachArgument = (value: unknown, enters: (key: string) => boolean, visit: (text: string) => void): void => {
  if (typeof value === "string") visit(value)
  else if (Array.isArray(value)) for (const each of value) eachArgument(each, enters, visit)
  else if (Predicate.isObject(value))
    for (const [key, field] of Object.entries(value)) if (enters(key)) eachArgument(field, enters, visit)
}

/** Calls `visit` with the texts of a call's arguments that refer to things: all but bodies. */
export const referringTexts = (args: unknown, visit: (text: string) => void): void =>
  eachArgument(args, (key) => !bodyArguments.has(key), visit)

/** Programs that every machine has. */
const everyday = new Set(
  "alias awk basename bash bunzip2 cat cd chmod chown cmp command cp curl cut date diff dirname do done du echo elif else env esac exit export false fi file find for function git grep gunzip gzip head id if in jobs kill ln local ls make mkdir mktemp more mv nohup node npm npx paste pgrep pkill printf ps pwd python python3 read return rg rm rmdir sed seq set sh sleep sort source split stat sudo tail tar tee test then time timeout touch tr trap true type uname uniq unset until unzip wait wc which while xargs yes zip".split(
    " "
  )
)

/** Returns the programs that a call of a shell runs and not every machine has. */
export const programsOf = (part: Part): ReadonlyArray<string> => {
  return actionsOf(part, undefined)
    .flatMap((action) => (action._tag === "Command" ? simpleCommands(action.command) : []))
    .flatMap(({ bare }) => bare.find((word) => !/^[A-Z_]+=/.test(word)) ?? [])
    .filter((program) => /^[a-z][\w.-]+$/.test(program) && !everyday.has(program))
}

/** Names of tools and of their parameters: every request declares them. */
export const declaredNames = (entries: Iterable<Entry>): ReadonlySet<string> => {
  const declared = new Set<string>()
  for (const part of [...entries].flatMap(({ content }) => content.parts)) {
    if (!isCall(part)) continue
    declared.add(part.functionCall.name)
    eachArgument(
      part.functionCall.args,
      (key) => declared.add(key).size > 0,
      () => {}
    )
  }
  return declared
}

/**
 * Returns the form in which a name is searched: a path in relative form, and of `state.filesTouched` what it says beyond the
 * variable. Undefined for a name that comes with a language.
 */
const searchedName = (name: string, kind: AnchorKind, relative: (text: string) => string): string | undefined => {
  if (isStandardName(name)) return undefined
  if (kind !== "symbol") return comparable(name, relative)
  const own = /^[a-z_$][\w$]*\./.test(name) ? name.slice(name.lastIndexOf(".") + 1) : name
  return own !== name && anchorKindOf(own) === "symbol" ? own : name
}

/** Calls `visit` with each name of a text, in the form in which it is searched. */
export const eachName = (
  text: string,
  relative: (text: string) => string,
  visit: (name: string, kind: AnchorKind) => void
): void =>
  eachAnchor(relative(text), (anchor, kind) => {
    const name = searchedName(anchor, kind, relative)
    if (name !== undefined) visit(name, kind)
  })

/** The names of an entry, with paths relative to some folders. */
export interface EntryNames {
  readonly roots: string
  /** All of them, and the programs that its commands run. */
  readonly all: ReadonlyArray<string>
  /** Those in what the agent wrote. */
  readonly written: ReadonlyMap<string, AnchorKind>
}

/** Finds the names of an entry. */
const findNames = (entry: Entry, relative: (text: string) => string): Omit<EntryNames, "roots"> => {
  const all = new Set<string>()
  const written = new Map<string, AnchorKind>()
  const [shownAnchors, ownAnchors] = [new Set<string>(), new Set<string>()]
  eachText(entry, (text, byAgent) => {
    const seen = byAgent ? ownAnchors : shownAnchors
    eachAnchor(relative(text), (anchor, kind) => {
      if (seen.has(anchor)) return
      seen.add(anchor)
      const name = searchedName(anchor, kind, relative)
      if (name === undefined) return
      all.add(name)
      if (byAgent) written.set(name, kind)
    })
  })
  for (const part of entry.content.parts) for (const program of programsOf(part)) all.add(program)
  return { all: [...all], written }
}

/** Every compaction of a conversation asks for the names of its entries. */
const namesOfEntries = new WeakMap<Entry, EntryNames>()

/** Returns a function that gives the names of an entry, with paths relative to these folders. */
export const namesBelow = (roots: ReadonlyArray<string>): ((entry: Entry) => EntryNames) => {
  const relative = relativeTo(roots)
  const key = roots.join("\n")
  return (entry) => {
    const known = namesOfEntries.get(entry)
    if (known?.roots === key) return known
    const names = { roots: key, ...findNames(entry, relative) }
    namesOfEntries.set(entry, names)
    return names
  }
}
