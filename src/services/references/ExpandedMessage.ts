/** The result of expanding a message's references, and how it is reported. */

import { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import type { Part } from "../../domain/content/Content.ts"
import { sum } from "../../domain/conversation/Conversation.ts"
import { fairShare } from "../../domain/conversation/ToolOutputBound.ts"
import { plural } from "../../domain/text/NumberText.ts"
import { textDisplay } from "../../domain/tools/ToolResult.ts"

/** A file that was read. */
export interface AtFile {
  /** The path as shown. */
  readonly shown: string
  readonly kind: "text" | "image" | "PDF" | "audio" | "video"
  /** Size on disk in bytes. */
  readonly bytes: number
  /** Tokens of the part that is sent. */
  readonly tokens: number
  /** Index of its content among the parts; undefined when it is empty. */
  readonly part: number | undefined
  /** The lines sent; undefined when all are. */
  readonly extent: string | undefined
}

/** One sentence for the user about a reference. */
export interface AtNote {
  /** Nothing of that name exists, it was left out, it was read in part, or it was read with a remark. */
  readonly kind: "missing" | "skipped" | "partly" | "remark"
  readonly text: string
  /** The number of references or files concerned, when more than one. */
  readonly count?: number
}

/** A message with its expanded references. */
export interface Expanded {
  /** The user's message. Only references to files found elsewhere are rewritten. */
  readonly text: string
  /** The runtime's message with the files; empty when nothing was read, and `text` is then unchanged. */
  readonly parts: ReadonlyArray<Part>
  readonly files: ReadonlyArray<AtFile>
  /** What was not read as intended: about references first, then about files. */
  readonly notes: ReadonlyArray<AtNote>
  /** The agents mentioned. */
  readonly agents: ReadonlyArray<string>
  /** The references in one line; empty when there are none. */
  readonly title: string
  /** Tokens of `parts`. */
  readonly tokens: number
  /** Duration in milliseconds. */
  readonly duration: number
}

/** A message without references. */
export const unexpanded = (text: string): Expanded => ({
  text,
  parts: [],
  files: [],
  notes: [],
  agents: [],
  title: "",
  tokens: 0,
  duration: 0
})

/** A note that something was left out. */
export const leftOut = (shown: string, why: string, count = 1): AtNote => ({
  kind: "skipped",
  text: `${shown} ${count === 1 ? "was" : "were"} left out: ${why}`,
  count
})

/** Removes duplicate notes: two references to one folder give the same ones. */
export const uniqueNotes = (notes: ReadonlyArray<AtNote>): ReadonlyArray<AtNote> => [
  ...new Map(notes.map((note) => [note.text, note])).values()
]

/** Most files named in a list of sizes. */
const maxNamed = 5

/** Describes files that do not fit before a message is sent: their sizes, and how much could be shown. */
export const sizesText = (expanded: Expanded, room: number): string => {
  const { files, tokens } = expanded
  const count = (number: number) => number.toLocaleString("en-US")
  const sizes = files.map((file) => file.tokens)
  // As a message is bounded that does not fit: small files fit whole, and the others have equal shares.
  const share = Math.floor(fairShare(sizes, Math.max(0, room - (tokens - sum(sizes)))))
  const cut = files.filter((file) => file.tokens > share).sort((one, other) => other.tokens - one.tokens)
  const listed = cut
    .slice(0, maxNamed)
    .map(
      (file) =>
        `${file.shown} (${file.extent === undefined ? "" : `${file.extent}: `}${count(file.tokens)}, of which ${count(share)} would fit)`
    )
  const more = cut.length > maxNamed ? [`${cut.length - maxNamed} more`] : []
  const head = `${plural(files.length, "file", "files")}, ${plural(tokens, "token", "tokens")}, ${count(Math.max(0, room))} remain`
  return cut.length === 0 ? head : `${head}: ${[...listed, ...more].join(", ")}`
}

/** Most files named in a report. */
const maxListed = 10

/** Summarizes the result in a few words. */
const summary = ({ files, notes, tokens }: Expanded): string => {
  const amount = (kind: AtNote["kind"]) => sum(notes.flatMap((note) => (note.kind === kind ? [note.count ?? 1] : [])))
  const kindCount = (
    [
      ["missing", "not found"],
      ["skipped", "left out"],
      ["partly", "in part"]
    ] as const
  ).flatMap(([kind, words]) => (amount(kind) === 0 ? [] : [`${amount(kind).toLocaleString("en-US")} ${words}`]))
  const read =
    files.length === 0 ? [] : [`${plural(files.length, "file", "files")}, ${plural(tokens, "token", "tokens")}`]
  return [...read, ...kindCount].join("; ")
}

/**
 * The expansion as events of a tool call, for display only; none without references. It is not part of the
 * conversation. The last line is the summary; the lines before it list the files when the references do not name them.
 */
export const events = (expanded: Expanded, id: string): ReadonlyArray<ChatEvent> => {
  const { duration, files, notes, title } = expanded
  if (files.length === 0 && notes.length === 0) return []
  const name = "read_many_files"
  const names = files.map(({ shown }) => shown)
  const isInTitle = names.every((shown) => title.includes(shown))
  const listed = isInTitle ? [] : names.slice(0, maxListed)
  const more =
    isInTitle || names.length <= maxListed ? [] : [`… and ${(names.length - maxListed).toLocaleString("en-US")} more`]
  const summaryLine = summary(expanded)
  const isRead = files.length > 0
  return [
    ChatEvent.cases.ToolCallStarted.make({ id, name, title }),
    ChatEvent.cases.ToolCallResponse.make({
      id,
      name,
      status: isRead ? "success" : "error",
      display: textDisplay([...listed, ...more, summaryLine].join("\n")),
      message: isRead ? null : summaryLine,
      duration
    })
  ]
}
