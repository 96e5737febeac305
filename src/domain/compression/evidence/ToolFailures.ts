/** Whether a call failed, what it was about, and the lines that say why. */

import type { Action, Command } from "../../actions/Action.ts"
import { subjectArguments } from "../../actions/AgentTools.ts"
import { scriptResult } from "../../actions/ExecScript.ts"
import { answerText, isSignalled, printedText } from "../../actions/ToolResults.ts"
import { isErrorResponse, type Part } from "../../content/Content.ts"
import { firstUnits } from "../../text/Bytes.ts"
import { visibleLine } from "../../text/InvisibleCharacters.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { UserReply } from "../../transcripts/voice/ResultVoice.ts"
import { spokenText } from "../../transcripts/voice/Voice.ts"
import { isEmptySearch, succeeded } from "./Commands.ts"
import { withoutPosing } from "./PosingText.ts"

const tellingWord =
  /error|exception|fail|panic|traceback|cannot|can't|undefined|not found|no such|denied|exited with code|invalid|unexpected|refused/i
/** The name of an error of the system, such as ENOENT. */
const errorName = /\bE[A-Z]{3,}\b/
const isTelling = (line: string): boolean => tellingWord.test(line) || errorName.test(line)

/** Matches a line of serialised JSON: in one that several line ends are escaped in, they are line ends of the output. */
const serialised = /^\s*[[{"].*\\n|(?:\\n.*){3}/

/** Returns a line with the lines that are escaped in it written out. */
const writtenOut = (line: string): ReadonlyArray<string> =>
  serialised.test(line)
    ? line
        .slice(0, 20_000)
        .replace(/(?:\\r)?\\n/g, "\n")
        .replace(/\\t/g, " ")
        .replace(/\\"/g, '"')
        .split("\n")
    : [line]

/** What tools write around an error. */
const errorTags = /<\/?(?:tool_use_error|error)>/g

const linesOf = (text: string): ReadonlyArray<string> => [
  ...new Set(
    text
      .replaceAll("\t", " ")
      .replace(errorTags, "")
      .split("\n")
      .flatMap(writtenOut)
      .map((line) => firstUnits(line.trim(), 240))
      .filter((line) => /[\p{L}\p{N}]/u.test(line) && !/^Exit code:? -?\d+$/i.test(line))
  )
]

/** Returns why a call was refused: the first lines of what the user or a hook said of it. */
export const reasonText = ({ because, refusedBy, words }: UserReply, answer: Part): string => {
  const said = words.map(([start, end]) => spokenText(answer).slice(start, end)).join("\n")
  // Who wrote a reason that only the result of a server has is not known.
  const reason = because === undefined ? said : `${refusedBy === "user" ? "the result says: " : ""}${because}`
  return linesOf(reason).slice(0, 4).join("\n")
}

/** Returns the lines of a failed response that state the reason, each once, as they were printed. */
export const failureText = (answer: string): string => {
  const text = withoutPosing(answer.slice(0, 200_000))
  const printed = linesOf(printedText(text))
  const lines = printed.length > 0 ? printed : linesOf(text)
  const best = lines.filter(isTelling).slice(0, 3)
  return (best.length > 0 ? best : lines.slice(0, 2)).join("\n")
}

/** Matches the answer to an edit that would change nothing (Claude Code, Gemini CLI): nothing is left to be done. */
const nothingToEdit = /\bold_string and new_string are (?:exactly the same|identical)/

const commandFailed = ({ command, exit, isExitHidden, output = "" }: Command): boolean =>
  exit !== undefined && (isExitHidden === true ? succeeded(command, exit, output, true) === false : exit !== 0)

/** Returns the command that decides how a call ended: the first that failed, else the first. */
export const decisiveCommand = (actions: ReadonlyArray<Action>): Command | undefined => {
  const commands = actions.filter((action) => action._tag === "Command")
  return commands.find(commandFailed) ?? commands[0]
}

/**
 * Whether a call failed: its response is an error, or its command ended by a signal or with an exit code other than 0. A
 * search that found nothing did not, nor an edit that had nothing to change.
 */
export const isFailure = (actions: ReadonlyArray<Action>, answer: Part): boolean => {
  const command = decisiveCommand(actions)
  if (command?.exit === 1 && isEmptySearch(command.command, 1, command.output ?? printedText(answerText(answer)))) {
    return false
  }
  if (isErrorResponse(answer)) return !nothingToEdit.test(answerText(answer))
  if (command?.exit !== undefined) return commandFailed(command)
  return scriptResult(answer)?.state === "failed" || (command !== undefined && isSignalled(answer))
}

/** Returns the subject of a call on one line: its command, its file or pattern, else its first text. */
export const subjectOf = (call: Part, actions: ReadonlyArray<Action>): string => {
  const command = decisiveCommand(actions)
  if (command !== undefined) return command.command
  const args = call.functionCall?.args
  const fields = typeof args === "object" && args !== null ? Object.entries(args) : []
  const mainValues = subjectArguments.flatMap((key) => fields.find(([field]) => field === key)?.[1] ?? [])
  const subject = [...mainValues, ...fields.map(([, value]) => value)].find(
    (value) => typeof value === "string" && value !== ""
  )
  return `${call.functionCall?.name ?? ""} ${String(subject ?? "")}`.trim()
}

/** Returns the form in which a snapshot names the subject of a failure. */
export const shortSubject = (subject: string): string => visibleLine(shortLine(subject, 100))
