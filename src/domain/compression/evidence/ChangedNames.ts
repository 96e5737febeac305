import { Predicate } from "effect"
import type { Part } from "../../content/Content.ts"
import { eachAnchor } from "../Anchors.ts"
import { isStandardName, ownName } from "./StandardNames.ts"

/** Which functions, types and fields an edit added, changed or removed, read from the texts of the call. */

/** Matches definitions in the common languages: the name is the first group that matched. */
const definition =
  /^[ \t+]*(?:(?:export|default|public|private|protected|internal|static|abstract|final|override|async|pub(?:\(\w+\))?|declare|readonly)\s+)*(?:(?:function\*?|class|interface|type|enum|struct|trait|impl|module|namespace|defmodule|defmacrop?|defp?|func|fn|fun|sub|record|object|protocol|extension)\s+(?:\([^)\n]*\)\s*)?([\w.$?!]+)|(?:const|let|var|val)\s+([\w$]+)\s*(?::[^=\n]*)?=|(?:describe|test|it)\(\s*["'`]([^"'`\n]{3,60}))/gm

const definedIn = (text: string): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, one, two] of text.slice(0, maxChars).matchAll(definition)) {
    const name = one ?? two
    if (name !== undefined && name.length > 2) names.add(name)
  }
  return names
}

/** Only this many characters of one text are read. */
const maxChars = 60_000
/** Names of one edit. */
const maxNames = 8

const symbolsIn = (text: string): ReadonlySet<string> => {
  const names = new Set<string>()
  eachAnchor(text.slice(0, maxChars), (name, kind) => {
    const own = kind === "symbol" && !name.includes("/") ? ownName(name) : undefined
    if (own !== undefined && !isStandardName(own)) names.add(own)
  })
  return names
}

/** Returns the texts that a call replaces, with what stands in their place. */
export const replacements = (call: Part): ReadonlyArray<readonly [before: string, after: string]> =>
  replaced(call.functionCall?.args)

const replaced = (args: unknown): ReadonlyArray<readonly [before: string, after: string]> => {
  if (!Predicate.isObject(args)) return []
  const text = (value: unknown) => (typeof value === "string" ? value : "")
  const own =
    ["old_string", "old_str", "oldText", "old_text"].map((key) => text(args[key])).find((each) => each !== "") ?? ""
  const made =
    ["new_string", "new_str", "newText", "new_text", "content", "file_text", "new_source"]
      .map((key) => text(args[key]))
      .find((each) => each !== "") ?? ""
  const several = args.edits
  return [
    ...(own === "" && made === "" ? [] : [[own, made] as const]),
    ...(Array.isArray(several) ? several.flatMap(replaced) : [])
  ]
}

/** Returns the names that a call to an editing tool added (`+`), removed (`-`) or changed, the definitions first. */
export const changedNames = (call: Part): ReadonlyArray<string> => {
  const names = new Set<string>()
  for (const [before, after] of replacements(call)) {
    const [old, fresh] = [definedIn(before), definedIn(after)]
    for (const name of fresh) if (!old.has(name)) names.add(`+${name}`)
    for (const name of old) names.add(fresh.has(name) ? name : `-${name}`)
    if (names.size >= maxNames) break
    const known = symbolsIn(before)
    for (const name of symbolsIn(after))
      if (!known.has(name) && !names.has(`+${name}`) && !fresh.has(name)) names.add(name)
  }
  return [...names].slice(0, maxNames)
}
