/** The title that the user's words give a session. */

import { titleOf } from "../session/SessionHead.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { firstWords, typedText } from "./voice/Voice.ts"

/** Returns the title that words of the user give a session; none, when a program put them there. */
export const promptTitle = (words: string): string => titleOf(firstWords(words))

/** Returns the title that the user's first words give a session of which a snapshot of this program is the beginning; none for other texts. */
export const snapshotTitle = (text: string): string => {
  const opening = text.startsWith(runtimeMark) ? text.indexOf("<user_words ") : -1
  const from = opening < 0 ? -1 : text.indexOf(">", opening)
  const end = from < 0 ? -1 : text.indexOf("</user_words>", from)
  return end < 0 ? "" : promptTitle(text.slice(from + 1, end).replace(/^\n\[e\d[^\]]*\] /, ""))
}

/** Whether a title is a bare command, such as `/model`: any other title says more. */
export const isBareCommand = (title: string): boolean => /^\/[\w:-]+$/.test(title)

/** Returns the title that words of the user give a session, or the command that has them. */
export const typedTitle = (words: string): string => promptTitle(words) || titleOf(typedText(words))

/** Returns what a session is called that has no title: the user's first words, or the command that began it. */
export const promptHeading = (words: string): string => typedTitle(words) || words
