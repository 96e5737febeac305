import { actionsOf } from "../actions/Actions.ts"
import type { Entry } from "../conversation/Conversation.ts"
import { answeredCalls } from "./AnsweredCalls.ts"

/** The files that were read and modified, carried in the summary from compaction to compaction. */
export interface FileLists {
  readonly read: ReadonlyArray<string>
  readonly modified: ReadonlyArray<string>
}

const listed = (text: string, tag: string): ReadonlyArray<string> => {
  const start = text.lastIndexOf(`<${tag}>\n`)
  const end = text.indexOf(`\n</${tag}>`, start)
  return start < 0 || end < 0
    ? []
    : text
        .slice(start + tag.length + 3, end)
        .split("\n")
        .filter((line) => line !== "")
}

/** Returns the files of these entries and of the earlier summary among them, sorted. Modified files count as such only. */
export const fileLists = (entries: ReadonlyArray<Entry>): FileLists => {
  const earlier = entries.flatMap(({ author, content }) => (author === "summary" ? content.parts : []))
  const carried = (tag: string) => earlier.flatMap(({ text = "" }) => listed(text, tag))
  const read = new Set(carried("read-files"))
  const modified = new Set(carried("modified-files"))
  for (const { answer, call } of answeredCalls(entries)) {
    for (const action of actionsOf(call, answer)) {
      if (action._tag === "Read") read.add(action.path)
      if (action._tag === "Edit" || action._tag === "Write") modified.add(action.path)
    }
  }
  return { read: [...read].filter((path) => !modified.has(path)).sort(), modified: [...modified].sort() }
}

/** Returns the lists as they stand at the end of a summary; empty when there are no files. */
export const fileListText = ({ modified, read }: FileLists): string =>
  [
    ...(read.length === 0 ? [] : [`<read-files>\n${read.join("\n")}\n</read-files>`]),
    ...(modified.length === 0 ? [] : [`<modified-files>\n${modified.join("\n")}\n</modified-files>`])
  ].join("\n\n")

/** Returns a summary without its lists: they are carried on separately. */
export const withoutFileLists = (text: string): string =>
  text.replace(/\n*<(read|modified)-files>\n[\s\S]*?\n<\/\1-files>/g, "").trim()
