import { acknowledgement } from "../../compression/strategies/gemini/Conclusion.ts"
import { type Part, plainText } from "../../content/Content.ts"
import { runtimeMark } from "../../text/RuntimeMark.ts"
import { geminiEnvironments } from "../voice/VoiceForms.ts"

/** Messages that Gemini CLI itself sends in the user's role: its environment and the snapshot of a compression. */

/** Whether a message in the user's role begins as the one in which Gemini CLI describes its environment. */
export const isEnvironment = (parts: ReadonlyArray<Part>): boolean => {
  const words = plainText({ role: "user", parts }).trimStart()
  return geminiEnvironments.some((mark) => words.startsWith(mark))
}

/** Returns the first folder that such a message names. */
export const folderIn = (parts: ReadonlyArray<Part>): string | undefined => {
  const [, first, only] = folders.exec(plainText({ role: "user", parts })) ?? []
  return (first ?? only)?.trim()
}
const folders =
  /(?:\*\*Workspace Directories:\*\*|working in the following directories:)\s*\n\s*- (.+)|working in the directory: (.+)/

const snapshotMark = "<state_snapshot>"

/**
 * The resemblance of a text to a snapshot: "marked" begins with the runtime's mark, "bare" is Gemini CLI's form (a
 * scratchpad may come first). A user can type either, so the look alone decides nothing: see `isSummary`.
 */
export type SnapshotLook = "marked" | "bare" | undefined

/** Returns how the beginning of a text looks. */
export const snapshotLook = (words: string): SnapshotLook => {
  if (!words.includes(snapshotMark)) return undefined
  if (words.startsWith(runtimeMark)) return "marked"
  return words.startsWith(snapshotMark) || words.startsWith("<scratchpad>") ? "bare" : undefined
}

/**
 * Whether a message in the user's role is the summary of a compression. Its place decides: a snapshot is the first message
 * in the user's role, and a bare one is followed by the fixed answer that Gemini CLI writes for the model.
 */
export const isSummary = (look: SnapshotLook, isFirst: boolean, answer: ReadonlyArray<Part> | undefined): boolean =>
  isFirst &&
  (look === "marked" || (look === "bare" && answer?.length === 1 && answer[0]?.text?.trim() === acknowledgement))
