/**
 * Decides whose words are whose. Agents record in the user's role what programs and other agents wrote, too: as messages of their
 * own, which readers recognise by flags and give an author, and as elements and passages within a text. `VoiceForms.ts` lists
 * these; everything else in the user's role is the user's.
 *
 * The rule, for a text in the user's role:
 *
 * - An element of the list is not the user's, with its tags and its content. Its name may have any case, its tags attributes over
 *   several lines. It ends at its own closing tag: elements of the same name within it are part of it, and so is what its content
 *   closes too early. One that begins a line and is never closed reaches to the end of the text.
 * - Tags in backticks, and elements within a closed block of code, are quotations by the user. So is a tag within a line that is not
 *   closed: "what does <system-reminder> do?"
 * - Names that ordinary text uses, such as `file`, count only where the text begins or with what people do not write.
 * - A passage begins with its fixed words, where the text begins or after other forms there.
 * - Lines that announce an element or explain it belong to it.
 */

import { isMedia, isResponse, isText, type Part } from "../../content/Content.ts"
import { responseText } from "../../content/MediaBlocks.ts"
import type { Author, Draft } from "../../conversation/Conversation.ts"
import { userReply } from "./ResultVoice.ts"
import { type ElementForm, type PassageForm, voiceForms, type VoiceForms } from "./VoiceForms.ts"

/** Who speaks. */
export type Speaker = "user" | "model" | "program" | "agent"

/** A stretch of a text, from character `start` to `end`, and who speaks there. The blanks around it belong to no stretch. */
export interface Voice {
  readonly speaker: Speaker
  readonly start: number
  readonly end: number
  /** A program's record of a command that the user gave to it. */
  readonly isCommand?: true
}

/** The forms of some agents, ready to be looked up. */
interface FormTable {
  readonly formsOf: (name: string) => ReadonlyArray<ElementForm>
  /** The beginning of a tag of one of the elements. */
  readonly tagStart: RegExp
  readonly passages: ReadonlyArray<PassageForm>
  readonly announcing: ReadonlyArray<RegExp>
  readonly explaining: ReadonlyArray<RegExp>
}

const tableOf = (agents: ReadonlyArray<VoiceForms>): FormTable => {
  const byName = new Map<string, Array<ElementForm>>()
  for (const form of agents.flatMap(({ elements }) => elements)) {
    for (const name of form.names) byName.set(name, [...(byName.get(name) ?? []), form])
  }
  const beginnings = [...byName].flatMap(([name, forms]) =>
    name.endsWith("*") ? [[name.slice(0, -1), forms] as const] : []
  )
  return {
    formsOf: (name) => byName.get(name) ?? beginnings.find(([beginning]) => name.startsWith(beginning))?.[1] ?? [],
    tagStart: new RegExp(`<(/?)(${[...byName.keys()].join("|").replaceAll("*", "\\w*")})(?=[\\s/>])`, "gi"),
    passages: agents.flatMap((forms) => forms.passages),
    announcing: agents.flatMap(({ announces = [] }) => announces),
    explaining: agents.flatMap(({ explains = [] }) => explains)
  }
}

/** A conversation may have come from one agent to another. */
const allForms = tableOf(Object.values(voiceForms))
const codexForms = tableOf([voiceForms.codex])

// --- tags ---------------------------------------------------------------------------------------------------------------

/** A tag with a name of the list. */
interface Tag {
  readonly name: string
  readonly opens: boolean
  readonly start: number
  readonly end: number
  /** The beginning of its line. */
  readonly line: number
  /** What follows its name. */
  readonly rest: string
}

const tagRest = /^(?:[^>"']|"[^"]*"|'[^']*')*>/
/** A longer tag is none, and a longer line is read by its end. */
const maxTagChars = 4_096

const tagsIn = (text: string, tagStart: RegExp): ReadonlyArray<Tag> => {
  const tags: Array<Tag> = []
  let read = 0
  let line = 0
  /** Whether an odd number of backticks stands before this place in its line. */
  let isQuoted = false
  for (const { 0: match, 1: slash, 2: name = "", index } of text.matchAll(tagStart)) {
    for (const { 0: found, index: at } of text.slice(read, index).matchAll(/[\n`]/g)) {
      isQuoted = found === "`" && !isQuoted
      if (found === "\n") line = read + at + 1
    }
    read = index
    const after = text.slice(index + match.length, index + match.length + maxTagChars)
    const length = tagRest.exec(after)?.[0].length ?? after.indexOf(">") + 1
    if (length === 0 || isQuoted) continue
    const end = index + match.length + length
    tags.push({ name: name.toLowerCase(), opens: slash === "", start: index, end, line, rest: after.slice(0, length) })
  }
  return tags
}

/** A block of code: from its first fence to the end of its last. */
type Block = readonly [start: number, end: number]

/** Returns the closed blocks of code of a text. */
const blocksOfCode = (text: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let open: { readonly fence: string; readonly start: number } | undefined
  for (const { 0: line, 1: fence = "", index } of text.matchAll(/^ {0,3}(`{3,}|~{3,})[^\n]*/gm)) {
    if (open === undefined) open = { fence, start: index }
    else if (fence.startsWith(open.fence)) {
      blocks.push([open.start, index + line.length])
      open = undefined
    }
  }
  return blocks
}

/**
 * Returns the tags of one name without those that a block of code quotes. Tags of an element that only begins or only ends in a
 * block stay: the element holds a part of the block, and is no quotation in it.
 */
const unquoted = (own: ReadonlyArray<Tag>, blocks: ReadonlyArray<Block>): ReadonlyArray<Tag> => {
  const kept: Array<Tag> = []
  let at = 0
  for (const [start, end] of blocks) {
    for (let tag = own[at]; tag !== undefined && tag.start < start; tag = own[(at += 1)]) kept.push(tag)
    const from = at
    let depth = 0
    let isBegunBefore = false
    for (let tag = own[at]; tag !== undefined && tag.start < end; tag = own[(at += 1)]) {
      depth += tag.opens ? 1 : -1
      isBegunBefore ||= depth < 0
    }
    if (isBegunBefore || (depth > 0 && own[at]?.opens === false)) for (const tag of own.slice(from, at)) kept.push(tag)
  }
  return [...kept, ...own.slice(at)]
}

// --- stretches ----------------------------------------------------------------------------------------------------------

const blanks = /\s*/y
const afterBlanks = (text: string, from: number): number => {
  blanks.lastIndex = from
  return from + (blanks.exec(text)?.[0].length ?? 0)
}

const passageAt = (passages: FormTable["passages"], text: string, place: number): PassageForm | undefined =>
  passages.find(({ opens }) => {
    if (typeof opens === "string") return text.startsWith(opens, place)
    opens.lastIndex = place
    return opens.test(text)
  })

/** Returns the place after the first match of a pattern from a place on; undefined when there is none. */
const endOf = (text: string, from: number, pattern: RegExp): number | undefined => {
  const match = pattern.exec(text.slice(from))
  return match === null ? undefined : from + match.index + match[0].length
}

/** Reads the stretches of a text in the user's role, from its beginning to its end. */
class Reading {
  readonly voices: Array<Voice> = []
  /** A passage that goes on in the next part of the message. */
  open: PassageForm | undefined
  private readonly text: string
  private readonly forms: FormTable
  /** The tags by name, in order. */
  private readonly tags = new Map<string, ReadonlyArray<Tag>>()
  /** The place of a tag among those of its name. */
  private readonly places = new Map<Tag, number>()
  /** All tags, in order. */
  private readonly inOrder: ReadonlyArray<Tag>
  private nextTag = 0
  /** The beginnings of passages that may reach over several parts. */
  private readonly overParts: ReadonlyArray<{ readonly form: PassageForm; readonly start: number }>
  /** The end of the last stretch. */
  private at = 0
  /** Whether nothing but forms was read. */
  private isAtStart = true

  constructor(text: string, open: PassageForm | undefined, forms: FormTable) {
    this.text = text
    this.forms = forms
    const tags = tagsIn(text, forms.tagStart)
    const blocks = tags.length === 0 ? [] : blocksOfCode(text)
    for (const name of new Set(tags.map((tag) => tag.name))) {
      const own = unquoted(
        tags.filter((tag) => tag.name === name),
        blocks
      )
      this.tags.set(name, own)
      for (const [place, tag] of own.entries()) this.places.set(tag, place)
    }
    this.inOrder = [...this.tags.values()].flat().sort((a, b) => a.start - b.start)
    this.overParts = forms.passages.flatMap((form) =>
      form.overParts === undefined
        ? []
        : [...text.matchAll(form.overParts)].map(({ index }) => ({ form, start: index }))
    )
    if (open !== undefined) this.passage(open, 0)
    while (this.at < text.length) this.step()
  }

  /** Reads up to the end of the next form, or of the text. */
  private step(): void {
    const start = afterBlanks(this.text, this.at)
    const passage = this.isAtStart ? passageAt(this.forms.passages, this.text, start) : undefined
    if (passage !== undefined) return this.passage(passage, start)
    const element = this.nextElement(start)
    const over = this.overParts.find((one) => one.start >= start)
    if (over !== undefined && over.start < (element?.start ?? this.text.length))
      return this.passage(over.form, over.start)
    if (element !== undefined) return this.form(element)
    this.words(this.text.length)
    this.at = this.text.length
  }

  /** Adds the user's words up to a place. */
  private words(to: number): void {
    const start = afterBlanks(this.text, this.at)
    const end = start + this.text.slice(start, to).trimEnd().length
    if (end <= start || start >= to) return
    this.voices.push({ speaker: "user", start, end })
    this.isAtStart = false
  }

  /** Adds a form, with the line before it that announces it and the paragraphs after it that explain it. */
  private form(form: Voice): void {
    const start = this.announced(form.start)
    this.words(start)
    let { end } = form
    for (let next = afterBlanks(this.text, end); this.explains(next); next = afterBlanks(this.text, end)) {
      end = endOf(this.text, next, /[^]*?(?=\n[ \t]*\n|$)/) ?? this.text.length
    }
    this.voices.push({ ...form, start, end })
    this.at = end
  }

  private explains(place: number): boolean {
    const words = this.text.slice(place, place + maxTagChars)
    return words !== "" && this.forms.explaining.some((form) => form.test(words))
  }

  private announced(start: number): number {
    const from = Math.max(this.at, start - maxTagChars)
    const before = this.text.slice(from, start).trimEnd()
    const line = before.lastIndexOf("\n") + 1
    return this.forms.announcing.some((form) => form.test(before.slice(line))) ? from + line : start
  }

  private passage(form: PassageForm, start: number): void {
    const end =
      form.until === undefined
        ? undefined
        : form.until === "next element"
          ? this.nextElement(start, true)?.end
          : endOf(this.text, start, form.until)
    this.open = end === undefined && form.overParts !== undefined ? form : undefined
    this.form({ speaker: form.speaker, start, end: end ?? this.text.length })
  }

  /** Returns the first element from a place on; `isAhead` looks without moving on, and only at the beginnings of lines. */
  private nextElement(from: number, isAhead = false): Voice | undefined {
    for (let next = this.nextTag; ; next += 1) {
      const tag = this.inOrder[next]
      if (!isAhead) this.nextTag = next
      if (tag === undefined) return undefined
      if (tag.start < from) continue
      const form = this.forms.formsOf(tag.name).find(({ after, at, mark }) => {
        const isHere = at === undefined || (this.isAtStart && (isAhead || tag.start === from))
        const isAfter =
          after === undefined || after.test(this.text.slice(Math.max(0, tag.start - maxTagChars), tag.start))
        return isHere && isAfter && (mark === undefined || mark.test(tag.rest))
      })
      if (form === undefined) continue
      const command = form.isCommand === true ? { isCommand: form.isCommand } : {}
      // The tags are the program's, the words between them are the user's.
      if (form.speaker === "quotes") return { speaker: "program", start: tag.start, end: tag.end, ...command }
      const isLine = afterBlanks(this.text, Math.max(this.at, tag.line)) >= tag.start
      const isElement = tag.opens && (isLine || form.mark === undefined)
      const end = isElement ? this.elementEnd(tag, isLine) : undefined
      if (end !== undefined) return { speaker: form.speaker, start: tag.start, end, ...command }
    }
  }

  /** Returns the end of the element that a tag begins; undefined when it begins none. */
  private elementEnd(tag: Tag, isLine: boolean): number | undefined {
    if (tag.rest.endsWith("/>")) return tag.end
    const own = this.tags.get(tag.name) ?? []
    const at = this.places.get(tag) ?? 0
    // Within a line, the next tag must be its closing one.
    if (!isLine && own[at + 1]?.opens !== false) return undefined
    let depth = 1
    let end: number | undefined
    for (let next = at + 1; next < own.length; next += 1) {
      const { end: closed, opens } = own[next] ?? tag
      if (opens && depth <= 0) break
      depth += opens ? 1 : -1
      if (!opens) end = closed
    }
    return end ?? this.text.length
  }
}

/** Returns who speaks where in the parts of a message in the user's role that names no author. */
const voicesInParts = (parts: ReadonlyArray<Part>, forms: FormTable): ReadonlyArray<ReadonlyArray<Voice>> => {
  let open: PassageForm | undefined
  return parts.map((part) => {
    if (!isText(part)) return (userReply(part)?.words ?? []).map(([start, end]) => ({ speaker: "user", start, end }))
    const reading = new Reading(part.text, open, forms)
    open = reading.open
    return reading.voices
  })
}

/**
 * Returns who speaks where in each part of a message, in order: in its text, and in a result where the user speaks (`spokenText` has
 * the places). A role or an author speaks all of a message; without an author, the texts in the user's role decide.
 */
export const voicesOf = ({
  author,
  content: { parts, role }
}: Pick<Draft, "author" | "content">): ReadonlyArray<ReadonlyArray<Voice>> => {
  const speaker = role === "model" ? "model" : author === undefined ? undefined : "program"
  return speaker === undefined
    ? voicesInParts(parts, allForms)
    : parts.map((part) =>
        isText(part) && part.text.trim() !== "" ? [{ speaker, start: 0, end: part.text.length }] : []
      )
}

/** Returns the text of a part in which `voicesOf` says who speaks. */
export const spokenText = (part: Part | undefined): string =>
  part === undefined ? "" : (part.text ?? (isResponse(part) ? responseText(part) : ""))

const authorBy = (parts: ReadonlyArray<Part>, forms: FormTable): Author | undefined => {
  if (parts.length === 0 || !parts.every(isText)) return undefined
  const voices = voicesInParts(parts, forms).flat()
  const isUsers = voices.some(({ isCommand, speaker }) => speaker === "user" || isCommand === true)
  return voices.length === 0 || isUsers ? undefined : "program"
}

/** Returns the author of a message in the user's role that has only texts, with no word or command of the user; else undefined. */
export const authorOf = (parts: ReadonlyArray<Part>): Author | undefined => authorBy(parts, allForms)

/** Returns the author of such a message as Codex itself knows it, which takes other agents' forms for the user's words. */
export const authorInCodex = (parts: ReadonlyArray<Part>): Author | undefined => authorBy(parts, codexForms)

/** Whether a message is a prompt: the user begins a turn with words, which may be those after a command, or with media, which are not those of a result. */
export const isPrompt = (message: Pick<Draft, "author" | "content">): boolean => {
  const { author, content } = message
  if (content.role !== "user" || author !== undefined) return false
  const voices = voicesOf(message)
  const isAnswer = content.parts.some(isResponse)
  return content.parts.some(
    (part, at) =>
      (isMedia(part) && !isAnswer) || (isText(part) && (voices[at] ?? []).some(({ speaker }) => speaker === "user"))
  )
}

/** Returns the user's first words in a text in the user's role; none in the record of a command. */
export const firstWords = (text: string): string => {
  const { voices } = new Reading(text, undefined, allForms)
  const first = voices.some(({ isCommand }) => isCommand === true)
    ? undefined
    : voices.find(({ speaker }) => speaker === "user")
  return first === undefined ? "" : text.slice(first.start, first.end)
}

/** Returns what the user typed for a text in the user's role: `/name words` for the record of a command, and nothing of what programs added. */
export const typedText = (text: string): string => {
  const { voices } = new Reading(text, undefined, allForms)
  const typed = voices.filter(({ isCommand, speaker }) => speaker === "user" || isCommand === true)
  const wordsOf = (some: ReadonlyArray<Voice>) => some.map(({ end, start }) => text.slice(start, end)).join("\n")
  // The user wrote about tags.
  if (typed[0]?.isCommand !== true) return wordsOf(typed)
  const tagged = (name: string) => new RegExp(`<${name}>([^]*?)(?:</${name}>|$)`).exec(text)?.[1]?.trim() ?? ""
  const name = (tagged("command-name") || tagged("command-message")).replace(/^\//, "")
  const words = wordsOf(typed.filter(({ speaker }) => speaker === "user")) || tagged("command-args")
  const command = tagged("bash-input")
  return `${name === "" ? (command === "" ? "" : `!${command}`) : `/${name}`} ${words}`.trim()
}
