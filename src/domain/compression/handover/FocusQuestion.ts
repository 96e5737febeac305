/** What a conversation is about, as a list from which the user chooses what a compression keeps above all. */

import { isOpenTodo } from "../../actions/Action.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { Evidence } from "../evidence/Evidence.ts"

/** Choices of each kind, and characters of one. */
const maxChoices = 6
const maxChars = 100

/** Columns of a message that may say what the conversation is about: "hello there" does not. */
const minRequestColumns = 16

/** The columns of a text, about: characters that are not ASCII count twice. */
const columnsOf = (text: string): number => text.length + (text.match(/[^ -~]/g) ?? []).length

/** Returns a text as it stands in the list, and in a focus. */
export const choiceText = (text: string): string => shortLine(text, maxChars).replaceAll("; ", ", ")

/** Returns the open items, the files that were changed, and the latest requests, newest first. */
export const focusChoices = ({
  files,
  requests,
  todos
}: Pick<Evidence, "files" | "requests" | "todos">): ReadonlyArray<string> => {
  const open = (todos?.todos ?? []).filter(isOpenTodo)
  const changed = [...files].filter(([, { state }]) => state !== "read").map(([path]) => path)
  const asked = requests
    .filter(({ question }) => question === undefined)
    .map(({ text }) => text.trim())
    .filter((text) => columnsOf(text) >= minRequestColumns)
  const kinds = [open.map(({ text }) => text), changed.reverse(), asked.reverse()]
  return [...new Set(kinds.flatMap((kind) => kind.slice(0, maxChoices)).map(choiceText))].filter((text) => text !== "")
}

/**
 * Returns the focus for these numbers of the list, from 1: what is kept above all, and with a minus what may go. Undefined where
 * one is not on the list.
 */
export const chosenFocus = (choices: ReadonlyArray<string>, typed: string): string | undefined => {
  const words = typed.split(/[\s,]+/).filter((word) => word !== "")
  const chosen = words.map((word) => (/^-?\d+$/.test(word) ? choices[Math.abs(Number(word)) - 1] : undefined))
  if (chosen.length === 0 || chosen.includes(undefined)) return undefined
  const of = (goes: boolean) => chosen.filter((_, at) => words[at]?.startsWith("-") === goes).join("; ")
  return of(true) === "" ? of(false) : `${of(false)} (may go: ${of(true)})`.trim()
}

/** Returns what a focus keeps above all, and what it lets go: `the parser (may go: src/a.ts; src/b.ts)`. */
export const focusSides = (focus: string): { readonly kept: string; readonly goes: ReadonlyArray<string> } => {
  const [, kept = focus, goes] = /^(.*?) ?\(may go: (.+)\)$/s.exec(focus) ?? []
  return { kept, goes: goes?.split("; ") ?? [] }
}
