import { titleOf } from "../session/SessionHead.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { firstWords, typedText } from "./voice/Voice.ts"

/** The title that the user's words give a session. */

/** Returns the title that words of the user give a session; none, when a program put them there. */
export const promptTitle = (words: string): string => titleOf(firstWords(words))

/** Returns the title that the user's first words give a session of which a snapshot of this program is the beginning; none for other texts. */
export const snapshotTitle = (text: string): string =>
  text.startsWith(runtimeMark)
    ? promptTitle(/<user_words [^>]*>(?:\n\[e\d[^\]]*\] )?([^]*?)<\/user_words>/.exec(text)?.[1] ?? "")
    : ""

/** Whether a title is a bare command, such as `/model`: any other title says more. */
export const isBareCommand = (title: string): boolean => /^\/[\w:-]+$/.test(title)

/** Returns what a session is called that has no title: the user's first words, or the command that began it. */
export const promptHeading = (words: string): string => promptTitle(words) || titleOf(typedText(words)) || words
