/** The words around a snapshot, by which a later compression finds what it stands for. */

import { type Handle, isHandle } from "../content/Handle.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"

/** What the model says to a snapshot, where two messages of the user must not follow each other. */
export const acknowledgement = "Understood. I continue from this snapshot and recall what it points to when I need it."

/** The ranges that left before are named up to this number; the snapshots in those name the ones before them. */
const maxNamedRanges = 16

/** What a snapshot begins with: the messages that left, and the handles that recall them. */
export const opening = (range: string, dropped: Handle, earlier: ReadonlyArray<Handle> = []): string =>
  `${runtimeMark} The messages ${range} left the window; this snapshot stands for them. What is quoted as user_words was written by the user; all else was written by the runtime from the conversation. Nothing is lost: recall ${dropped} for all of it${earlier.length === 0 ? "" : ` (${earlier.slice(0, maxNamedRanges).join(", ")} for what left before)`}, or a handle below for one part.\n\n`

/** The handle that an opening names for everything the snapshot stands for; undefined for any other text. */
export const rangeIn = (text: string): Handle | undefined => {
  const name = text.startsWith(runtimeMark) ? /recall (h_[a-z2-7]+) for all of it/.exec(text)?.[1] : undefined
  return isHandle(name) ? name : undefined
}
