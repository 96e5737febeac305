import { Predicate } from "effect"
import { isCall, isMedia, isResponse, outputText, type Part } from "../../domain/content/Content.ts"
import { type Entry, type ShortenedPart, sourceOf } from "../../domain/conversation/Conversation.ts"
import { partKindOf } from "../../domain/evaluation/PartKind.ts"
import { clipped, firstUnits } from "../../domain/text/Bytes.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import { kindNames } from "../output/InspectReport.ts"
import { number, plural } from "../output/Output.ts"
import { swatch } from "./KindBars.ts"
import { type Html, markup, none, preformatted } from "./Markup.ts"
import { diffBlock, markdown, preformattedDiff } from "./RenderedText.ts"

/** The parts of a message on the page: their exact texts, and rendered forms of Markdown and edits. */

/** How parts are shown. */
export interface PartLook {
  /** The command that prints a full text when a handle is appended. */
  readonly recall: string
  /** Whether texts are left out, and their sizes shown instead. */
  readonly hidesTexts: boolean
  /** Whether texts are laid out. */
  readonly laysOut: boolean
}

/** A message, and its parts that the view shortens. */
interface ShownEntry {
  readonly entry: Entry
  readonly shortened: ReadonlyMap<number, ShortenedPart> | undefined
}

/** One text of a part. `name` says what it is; it is empty for plain text. */
export interface Piece {
  readonly name: string
  readonly text: string
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ""

const callPieces = (args: unknown, source: string | undefined): ReadonlyArray<Piece> => {
  if (source !== undefined) return [{ name: "as it was read", text: source }]
  if (!Predicate.isObject(args)) return args === undefined ? [] : [{ name: "", text: json(args) }]
  return Object.entries(args).map(([name, value]) => ({ name, text: typeof value === "string" ? value : json(value) }))
}

const mediaText = (part: Part): string => {
  const { fileData, inlineData } = part
  return inlineData === undefined
    ? `${fileData?.mimeType ?? ""} ${fileData?.fileUri ?? ""}`.trim()
    : `${inlineData.mimeType ?? "bytes"}, ${number(inlineData.data?.length ?? 0)} characters of base64 that are not shown here`
}

/** Returns the texts of a part. Text is kept exactly; arguments are listed one by one, other content as JSON. */
export const pieces = (entry: Entry, index: number, part: Part): ReadonlyArray<Piece> => {
  const source = sourceOf(entry, index)
  if (isCall(part)) return callPieces(part.functionCall.args, source)
  if (isResponse(part)) {
    const text = outputText(part)
    return text === undefined
      ? [
          {
            name: source === undefined ? "" : "as it was read",
            text: source ?? json(part.functionResponse.response ?? part)
          }
        ]
      : [{ name: "", text }]
  }
  if (isMedia(part)) return [{ name: "", text: mediaText(part) }]
  if (part.text !== undefined) return [{ name: "", text: part.text }]
  return [{ name: "", text: source ?? json(part) }]
}

/** Names of the old and the new text in the arguments of edit calls of different agents. */
const replacementNames = [
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["oldText", "newText"]
] as const
/** Longer texts are not compared. */
const maxComparedUnits = 20_000

/** Adds a final line break: agents pass parts of lines, whose missing line break means nothing. */
const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`)

/** The change that a call makes, as a diff; `none` for other calls. */
const change = (part: Part): Html => {
  const args = part.functionCall?.args
  if (!Predicate.isObject(args)) return none
  const texts: Readonly<Record<string, unknown>> = { ...args }
  for (const [before, after] of replacementNames) {
    const [old, fresh] = [texts[before], texts[after]]
    if (typeof old !== "string" || typeof fresh !== "string") continue
    if (old.length + fresh.length > maxComparedUnits || old.includes("\0") || fresh.includes("\0")) return none
    const path = texts["file_path"] ?? texts["path"]
    const name = typeof path === "string" ? path.replace(/^.*[\\/]/, "") : "text"
    const { diff } = fileDiff(name, ended(old), ended(fresh))
    return diff === "" ? none : diffBlock(diff)
  }
  return none
}

/** A rendered text with the exact text folded below it; the exact text alone where there is nothing to render. */
const laidOut = (shown: Html, exact: Html, name: string): Html =>
  shown === none
    ? exact
    : markup`${shown}<details class="exact"><summary class="plainly">${name}</summary>${exact}</details>`

/** Characters that a piece uses of its part's limit, including the markup of its name. */
export const roomOf = ({ name, text }: Piece): number => text.length + (name === "" ? 0 : 20 + name.length)
const lengthOf = (all: ReadonlyArray<Piece>): number => all.reduce((total, { text }) => total + text.length, 0)

const piece = ({ name, text }: Piece): Html =>
  markup`${name === "" ? none : markup`<p>${clipped(name, 200)}</p>`}${preformattedDiff(text) ?? preformatted(text)}`

/** Markup for a part, with at most `limit` characters of text. */
export const partMarkup = (
  { entry, shortened }: ShownEntry,
  index: number,
  part: Part,
  limit: number,
  { hidesTexts, laysOut, recall }: PartLook
): Html => {
  const kind = partKindOf(entry, part)
  const tool = part.functionCall?.name ?? part.functionResponse?.name
  const handle = entry.handles[index]
  const all = pieces(entry, index, part)
  let room = limit
  let more = lengthOf(all)
  const shown = all.flatMap((each) => {
    if (room <= 0) return []
    const text = firstUnits(each.text, room)
    room -= roomOf(each)
    more -= text.length
    return [piece({ name: each.name, text })]
  })
  const exact = markup`${shown}`
  const texts = !laysOut
    ? exact
    : isCall(part)
      ? laidOut(more > 0 ? none : change(part), exact, "exact arguments")
      : part.text === undefined
        ? exact
        : laidOut(markdown(firstUnits(part.text, limit)), exact, "exact text")
  const replaced = shortened?.get(index)
  const size = plural(entry.tokens[index] ?? 0, "token")
  const shortly = replaced === undefined ? "" : `, shortened to ${number(replaced.tokens)} in the view`
  const named = handle === undefined ? none : markup` · <code>${handle}</code>`
  const called = tool === undefined ? "" : ` ${clipped(tool, 200)}`
  const rest = handle === undefined ? none : markup`: <code>${recall} ${handle}</code>`
  return markup`<div class="part">
<p>${swatch(kind)}<b>${kindNames[kind]}${called}</b>, ${size}${shortly}${named}</p>
${
  hidesTexts
    ? markup`<p>${plural(lengthOf(all), "character")}, not shown</p>`
    : markup`${texts}${more > 0 ? markup`<p>… ${plural(more, "more character")}${rest}</p>` : none}`
}</div>
`
}
