/** Finds anchors by their shape: facts that a snapshot must not lose because nothing can reconstruct them. */

import { callsIn } from "../actions/Actions.ts"
import { isCall, isText, isThought, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { isSecretValue } from "../text/ChildEnvironment.ts"
import { eachWord } from "./AnchorWords.ts"
import { isWindowsPath } from "./WindowsPaths.ts"

/** The kind of an anchor: a path, an address, a name, an id or a number. */
export type AnchorKind = "path" | "url" | "symbol" | "id" | "number"

const extension =
  /\.(?:[cm]?[jt]sx?|exs?|[lh]?eex|erl|py|rb|rs|go|java|kt|swift|c|h|cc|cpp|hpp|cs|php|sh|bash|zsh|sql|md|mdx|txt|json[cl]?|ya?ml|toml|lock|xml|html?|s?css|less|svg|png|jpe?g|gif|webp|pdf|csv|gd|tscn|ps[md]?1|bat|csproj|sln|xaml|env|conf|cfg|ini|log|proto|graphql|vue|svelte|ipynb|gradle|tf|diff|patch|zip|gz|tar|wasm|db|sqlite3?)$/i

const hexId = /^(?=.*\d)(?=.*[a-f])[0-9a-f]{7,64}$/i
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const ticket = /^(?:#\d+|[A-Za-z][A-Za-z0-9]*-(?:\d+|[a-z0-9]{2,6}\.\d+(?:\.\d+)*))$/
const mixedId = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_-]{12,}$/
const version = /^v?\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?$/
const number = /^\d{3,}(?:\.\d+)?$|^\d+\.\d+$/
const hump = /[a-z0-9][A-Z]|[A-Z]{2}[a-z]/
const snake = /[A-Za-z0-9]_[A-Za-z0-9]/
const dotted = /^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+[?!]?$/
const arity = /^[\w.?!]+\/\d+$/
const flag = /^--[a-z][\w-]+$/
const url = /^https?:\/\/./
const pathLike = /^(?:~|\.{1,2})?\/?[\w@.+-]+(?:\/[\w@.+-]+)+\/?$|^~?\/[\w@.+-]+\/?$/
/** Common dot files by name: other words with a leading dot (`.map`, `.length`) are methods. */
const dotFile =
  /^\.(?:\w+ignore|\w{2,}rc|git(?:attributes|modules|keep)|editorconfig|env|(?:bash_|z)?profile|bash_history|tool-versions)(?:\.\w+)*$/

/** Ordinary words, which are never anchors. */
const plainWord = /^[A-Z]?[a-z]+$/

const maxAnchorChars = 200

/** `and/or` and `Read/Write` are not paths: a lone slash needs an extension, a root, or lower case on both sides. */
const isPath = (word: string): boolean =>
  pathLike.test(word) &&
  /[A-Za-z]/.test(word) &&
  (/^[/~.]/.test(word) || extension.test(word) || word.indexOf("/") !== word.lastIndexOf("/") || !/[A-Z]/.test(word))

/** Shorter words are not treated as keys. */
const minKeyChars = 16

const classify = (word: string): AnchorKind | undefined => {
  if (word.length < 3 || word.length > maxAnchorChars) return undefined
  // A snapshot never quotes a key. The agent can read it where it is stored.
  if (word.length >= minKeyChars && isSecretValue(word)) return undefined
  if (isDigit(word.charCodeAt(0)) && number.test(word)) return "number"
  if (plainWord.test(word)) return undefined
  if (url.test(word)) return "url"
  if (uuid.test(word) || hexId.test(word) || ticket.test(word)) return "id"
  if (number.test(word) || version.test(word)) return "number"
  if (arity.test(word) && !word.startsWith("/")) return "symbol"
  if (word.includes("\\") || /^[A-Z]:\//.test(word)) return isWindowsPath(word) ? "path" : undefined
  if (word.includes("/")) return isPath(word) ? "path" : undefined
  if (word.startsWith(".") ? dotFile.test(word) : extension.test(word)) return "path"
  if (mixedId.test(word) && !hump.test(word.slice(0, 8))) return "id"
  if (flag.test(word)) return "symbol"
  if (dotted.test(word) && (word.match(/[A-Z_]/) !== null || word.split(".").length > 2 || word.length > 8))
    return "symbol"
  if (/^[@$]?[\w$]+[?!]?$/.test(word) && (hump.test(word) || snake.test(word))) return "symbol"
  return undefined
}

/** Caches the kind of each word, because the same names recur. Numbers rarely recur and are not cached. */
const kindCache = new Map<string, AnchorKind | undefined>()
const maxCachedKinds = 50_000

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Returns the kind of anchor that a word is, or undefined when it is none. */
export const anchorKindOf = (word: string): AnchorKind | undefined => {
  if (isDigit(word.charCodeAt(0)) && isDigit(word.charCodeAt(word.length - 1))) return classify(word)
  const kind = kindCache.get(word)
  if (kind !== undefined || kindCache.has(word)) return kind
  if (kindCache.size > maxCachedKinds) kindCache.clear()
  const classified = classify(word)
  kindCache.set(word, classified)
  return classified
}

/** What may stand before or after a name: the dot of a method, the mark of a question. */
const marks = /^[.@~](?=[\w])(?!\/)|(?<!\/)[/.:?!&=%+-]+$/g

/** Calls `visit` for every occurrence of an anchor in `text`, in order. `visit` may itself search for anchors. */
export const eachAnchor = (
  text: string,
  visit: (anchor: string, kind: AnchorKind, at: number) => void,
  isOnWindows = false
): void =>
  eachWord(
    text,
    (word, at, hasMark, isComposite) => {
      const kind = anchorKindOf(word)
      if (kind !== undefined) {
        visit(word, kind, at)
        return
      }
      const shorter = hasMark ? word.replace(marks, "") : word
      const otherKind = shorter === word ? undefined : anchorKindOf(shorter)
      if (otherKind !== undefined) {
        visit(shorter, otherKind, at)
        return
      }
      // The pieces of `path:12`, `Module:function` and `key=value` may be anchors.
      if (!isComposite) return
      for (const piece of word.split(/[:=&?%+]+/)) {
        const pieceKind = anchorKindOf(piece)
        if (pieceKind !== undefined) visit(piece, pieceKind, at)
      }
    },
    isOnWindows
  )

/** Returns the distinct anchors of a text. */
export const anchorsOf = (text: string): Map<string, AnchorKind> => {
  const anchors = new Map<string, AnchorKind>()
  eachAnchor(text, (anchor, kind) => anchors.set(anchor, kind))
  return anchors
}

/** Whether a value is the type of a block, which is a word of its protocol. */
const isBlockType = (value: unknown): boolean =>
  typeof value === "string" && /^(?:input|output|tool)_[a-z]+$/.test(value)

const strings = (value: unknown, visit: (text: string) => void): void => {
  if (typeof value === "string") visit(value)
  else if (typeof value === "number") visit(String(value))
  else if (Array.isArray(value)) for (const item of value) strings(item, visit)
  else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) if (key !== "type" || !isBlockType(item)) strings(item, visit)
  }
}

const textsOf = (value: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  strings(value, (text) => texts.push(text))
  return texts
}

/** Visits the texts that the agent wrote in a part: its text, its thoughts and the values of a call's arguments. */
export const agentTexts = (part: Part, visit: (text: string) => void): void => {
  if (isCall(part)) {
    // A script of Codex says what the calls in it say, where they can be read; the rest is the same code each time.
    const [call, ...inner] = callsIn(part).map(({ args }) => textsOf(args))
    for (const text of inner.length > 0 && inner.every(({ length }) => length > 0) ? inner.flat() : (call ?? []))
      visit(text)
  } else if ((isText(part) || isThought(part)) && part.text !== undefined) visit(part.text)
}

/** Visits the texts of a tool response. */
export const toolTexts = (part: Part, visit: (text: string) => void): void => {
  if (part.functionResponse !== undefined) strings(part.functionResponse.response, visit)
}

/** Calls `visit` with each text of an entry, and with whether the agent wrote it. */
export const eachText = (entry: Entry, visit: (text: string, byAgent: boolean) => void): void => {
  for (const part of entry.content.parts) {
    agentTexts(part, (text) => visit(text, entry.content.role === "model"))
    toolTexts(part, (text) => visit(text, false))
  }
}

/** Returns all text of an entry in which names are searched. */
export const entryText = (entry: Entry): string => {
  const texts: Array<string> = []
  eachText(entry, (text) => texts.push(text))
  return texts.join("\n")
}
