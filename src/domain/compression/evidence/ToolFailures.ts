import { isErrorResponse, type Part } from "../../content/Content.ts"
import { firstUnits, lastUnits } from "../../text/Bytes.ts"
import { visibleLine } from "../../text/InvisibleCharacters.ts"
import { type Action, answerText, printedText } from "../ToolCalls.ts"
import { foundNothing } from "./Commands.ts"
import { withoutPosing } from "./PosingText.ts"

/** Whether a call failed, what it was about, and the lines that say why. */

const telling =
  /error|exception|fail|panic|traceback|cannot|can't|undefined|not found|no such|denied|invalid|unexpected|refused|\bE[A-Z]{3,}\b/i

/** Returns the lines of a failed response that state the reason, verbatim. */
export const failureText = (answer: string): string => {
  const linesOf = (text: string) =>
    text
      .replaceAll("\t", " ")
      .split("\n")
      .filter((line) => line.trim() !== "" && !/^Exit code:? -?\d+$/i.test(line.trim()))
  const text = withoutPosing(answer.slice(0, 200_000))
  const printed = linesOf(printedText(text))
  const lines = printed.length > 0 ? printed : linesOf(text)
  const best = lines.filter((line) => telling.test(line)).slice(0, 3)
  return (best.length > 0 ? best : lines.slice(0, 2)).map((line) => firstUnits(line.trim(), 240)).join("\n")
}

const signalled = /(?:^|\n)Signal: (?!\(none\))\S/

/**
 * Whether a call failed: its response is an error, or its command ended by a signal or with an exit code other than 0. A
 * search that found nothing did not.
 */
export const isFailure = (actions: ReadonlyArray<Action>, answer: Part): boolean => {
  const command = actions.find((action) => action._tag === "Command")
  if (command?.exit === 1 && foundNothing(command.command, 1, printedText(answerText(answer)))) return false
  if (isErrorResponse(answer)) return true
  if (command === undefined) return false
  return command.exit === undefined ? signalled.test(lastUnits(answerText(answer), 2_000)) : command.exit !== 0
}

const subjectKeys = [
  "file_path",
  "absolute_path",
  "path",
  "notebook_path",
  "filename",
  "file",
  "pattern",
  "query",
  "url"
]

/** Returns the subject of a call on one line: its command, its file or pattern, else its first text. */
export const subjectOf = (call: Part, actions: ReadonlyArray<Action>): string => {
  const command = actions.find((action) => action._tag === "Command")
  if (command !== undefined) return command.command
  const args = call.functionCall?.args
  const fields = typeof args === "object" && args !== null ? Object.entries(args) : []
  const named = subjectKeys.flatMap((key) => fields.find(([field]) => field === key)?.[1] ?? [])
  const subject = [...named, ...fields.map(([, value]) => value)].find(
    (value) => typeof value === "string" && value !== ""
  )
  return `${call.functionCall?.name ?? ""} ${String(subject ?? "")}`.trim()
}

/** Returns the form in which a snapshot names the subject of a failure. */
export const shortSubject = (subject: string): string => visibleLine(oneLine(subject, 100))

/** Returns a text on one line, clipped without splitting a character. */
export const oneLine = (text: string, length: number): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > length ? `${firstUnits(line, length)}…` : line
}
