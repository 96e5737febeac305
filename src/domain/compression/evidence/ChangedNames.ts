import { pathsIn, replacementsIn } from "../../actions/AgentTools.ts"
import type { Part } from "../../content/Content.ts"
import { eachAnchor } from "../Anchors.ts"
import { isStandardName, ownName } from "./StandardNames.ts"

/** Which functions, types and fields an edit added, changed or removed, read from the texts of the call. */

/** Words before the keyword of a definition. */
const modifiers =
  "(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|partial|override|async|suspend|unsafe|open|data|inline|const|pub(?:\\(\\w+\\))?|declare|readonly)\\s+)*"
const keywords =
  "function\\*?|class|interface|type|enum|struct|trait|impl|module|namespace|defmodule|defmacrop?|defp?|func|fn|fun|sub|record|object|protocol|extension"

/** Matches definitions in the common languages: the name is the first group. */
const definitions: ReadonlyArray<RegExp> = [
  new RegExp(
    `^[ \\t+]*${modifiers}(?:${keywords})\\s+(?:\\([^)\\n]*\\)\\s*|<[^>\\n]*>\\s*)?(?:self\\.)?([\\p{L}_$@][\\p{L}\\p{N}_.$?!]*)`,
    "gmu"
  ),
  new RegExp(`^[ \\t+]*${modifiers}(?:const|let|var|val)\\s+([\\p{L}_$][\\p{L}\\p{N}_$]*)\\s*(?::[^=\\n]*)?=`, "gmu"),
  /^[ \t+]*(?:describe|test|it)\(\s*["'`]([^"'`\n]{3,60})/gm,
  /\b(?:create\s+(?:or\s+replace\s+)?(?:(?:unique|temp|temporary|materialized)\s+)*(?:table|index|view|function|procedure|trigger|type)|add\s+column)\s+(?:if\s+not\s+exists\s+|concurrently\s+)?["`[]?([a-z_][\w.]*)/gi
]
/** Matches a function without a keyword, as in Java, C and a class of TypeScript: what stands before its name, and its name. */
const method =
  /^[ \t+]*((?:[\w<>[\],.?*&:]+[ \t]+){0,6})[*&]*([\p{L}_$][\p{L}\p{N}_$]*)(?:<[^>\n]*>)?[ \t]*\((?:[^()\n]|\([^()\n]*\))*\)[^\n(={;]*(?:\r?\n[ \t]*)?\{[ \t\r]*$/gmu
/** Words that stand before a bracket without defining anything. */
const control =
  /^(?:if|else|for|foreach|while|until|unless|switch|case|match|when|catch|return|await|new|throw|yield|guard|do|defer|go|in|of|with|using|lock|try|function|func|fn|synchronized|extends|implements|is|has|that|which)$/
const markdownHeading = /^#{1,6} +(.{3,60})/gm

const definedIn = (text: string, isMarkdown: boolean): ReadonlySet<string> => {
  const names = new Set<string>()
  const add = (name = "") => {
    if (name.length > 2 && !control.test(name)) names.add(name.trim())
  }
  const whole = text.slice(0, maxChars)
  if (isMarkdown) {
    for (const [, heading] of whole.matchAll(markdownHeading)) add(heading)
    return names
  }
  for (const form of definitions) for (const [, name] of whole.matchAll(form)) add(name)
  for (const [, before = "", name] of whole.matchAll(method)) {
    if (!before.split(/\s+/).some((word) => control.test(word))) add(name)
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

/** Each compression of a conversation asks for the same calls. */
const namesOfCalls = new WeakMap<Part, ReadonlyArray<string>>()

/** Returns the names that a call to an editing tool added (`+`), removed (`-`) or changed, the definitions first. */
export const changedNames = (call: Part): ReadonlyArray<string> => {
  const names = namesOfCalls.get(call) ?? namesChangedBy(call)
  namesOfCalls.set(call, names)
  return names
}

const namesChangedBy = (call: Part): ReadonlyArray<string> => {
  const names = new Set<string>()
  const args: unknown = call.functionCall?.args
  const isMarkdown = pathsIn(args).some((path) => /\.mdx?$/i.test(path))
  for (const [before, after] of replacementsIn(args)) {
    const [old, fresh] = [definedIn(before, isMarkdown), definedIn(after, isMarkdown)]
    for (const name of fresh) if (!old.has(name)) names.add(`+${name}`)
    for (const name of old) names.add(fresh.has(name) ? name : `-${name}`)
    if (names.size >= maxNames) break
    const known = symbolsIn(before)
    for (const name of symbolsIn(after))
      if (!known.has(name) && !names.has(`+${name}`) && !fresh.has(name)) names.add(name)
  }
  return [...names].slice(0, maxNames)
}
