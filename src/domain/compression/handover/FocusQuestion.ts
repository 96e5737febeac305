import { isOpenTodo } from "../../actions/Action.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { Evidence } from "../evidence/Evidence.ts"

/** What a conversation is about, as a list from which the user chooses what a compression keeps above all. */

/** Choices of each kind, and characters of one. */
const maxChoices = 6
const maxChars = 100

/** Returns the open items, the files that were changed, and the latest requests, newest first. */
export const focusChoices = ({
  files,
  requests,
  todos
}: Pick<Evidence, "files" | "requests" | "todos">): ReadonlyArray<string> => {
  const open = (todos?.todos ?? []).filter(isOpenTodo)
  const changed = [...files].filter(([, { state }]) => state !== "read").map(([path]) => path)
  const asked = requests.filter(({ question }) => question === undefined).map(({ text }) => text)
  const kinds = [open.map(({ text }) => text), changed.reverse(), asked.reverse()]
  return [
    ...new Set(kinds.flatMap((kind) => kind.slice(0, maxChoices)).map((text) => shortLine(text, maxChars)))
  ].filter((text) => text !== "")
}

/** Returns the focus for these numbers of the list, from 1; undefined where one is not on it. */
export const chosenFocus = (choices: ReadonlyArray<string>, typed: string): string | undefined => {
  const chosen = typed
    .split(/[\s,]+/)
    .filter((word) => word !== "")
    .map((word) => (/^\d+$/.test(word) ? choices[Number(word) - 1] : undefined))
  return chosen.length === 0 || chosen.includes(undefined) ? undefined : chosen.join("; ")
}
