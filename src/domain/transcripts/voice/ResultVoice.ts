/**
 * What the user said in the result of a call: answers to questions, and why a call was refused. Agents record both as results, in
 * sentences of their own, of which this file has the table.
 *
 * A result can hold anything that a tool read. So words count as the user's only in the results of tools that ask, and in a result
 * that is nothing but the agent's sentence for a refusal, recorded as a failure.
 */

import { Predicate } from "effect"
import { toolKind } from "../../actions/AgentTools.ts"
import { isErrorResponse, isResponse, outputText, type Part } from "../../content/Content.ts"
import { responseText } from "../../content/MediaBlocks.ts"
import { isJson, jsonsAt } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"

/** What the user said in place of a call, or as its result. */
export interface UserReply {
  /** Absent: the call was allowed. */
  readonly refusedBy?: Refuser
  /** Why it was refused, in words that are a hook's, or may be a server's: its failure can read like a refusal. */
  readonly because?: string
  /** The user's words, by their places in the text of the result. */
  readonly words: ReadonlyArray<readonly [start: number, end: number]>
}

/** Who did not allow a call: the user, or a rule that was set before, of the user or somebody else. */
export type Refuser = "user" | "rule"

/** Names those who refuse calls. */
export const refusers: Readonly<Record<Refuser, string>> = { user: "the user", rule: "a rule" }

/** How Claude Code says that a hook refused a call. The hook's reason follows, if it gave one. */
const hookRefusal = /^(?:PreToolUse:\S+ hook error: (?:\[[^\]\n]*\]: )?|Hook PreToolUse:\S+ denied this tool\b[:.]?)/

/** How agents say that a call was refused. What follows `said` is the user's, up to `ends`. */
const refusals: ReadonlyArray<{ readonly opens: RegExp; readonly said?: RegExp; readonly ends?: RegExp }> = [
  // Claude Code: asked by the main agent, and by a subagent.
  {
    opens: /^(?:The user doesn't want to proceed with this tool use|Permission for this tool use was denied)\./,
    said: /^[^\n]*\b[Tt]he user said:\n/,
    ends: /\n\nNote: The user's next message may contain a correction or preference\b/
  },
  { opens: /^The agent proposed a plan that was rejected by the user\./ },
  // A command alone has several lines.
  {
    opens:
      /^Permission to use (?:\S+(?: with [^\n]*)?|(?:Bash|PowerShell) with command [^]*?) has been (?:auto-)?denied\b/
  },
  // A classifier decides in auto mode, or did not answer; a hook decides; nobody is there to be asked.
  { opens: /^Permission for this action (?:was|has been) denied\b/ },
  {
    opens:
      /^(?:The server-side auto mode classifier gave no verdict|\S+ is temporarily unavailable\b[^\n]{0,80}, so auto mode cannot determine the safety of|Auto mode (?:could not evaluate this action|classifier transcript exceeded))\b/
  },
  { opens: hookRefusal },
  { opens: /^Claude requested permissions? to [^\n]* but you haven't granted it yet\b/ },
  {
    opens:
      /^This (?:command requires approval\b|\w+ command contains multiple operations\. The following parts? requires? approval:)/
  },
  // opencode
  {
    opens:
      /^(?:Error: )?The user (?:rejected permission to use this specific tool call|has specified a rule which prevents you from using this specific tool call|has specifically restricted access to this command|dismissed this question)\b/,
    said: /^[^\n]* with the following feedback: /
  },
  // Gemini CLI, and agents made from it
  {
    opens:
      /^(?:(?:\[Operation Cancelled\] Reason: )?User (?:did not allow tool call|denied execution|rejected this operation)\b|Tool execution (?:for "[^"]*" )?denied by policy\b)/
  },
  {
    opens: /^Plan rejected\. /,
    said: /^Plan rejected\. User feedback: /,
    ends: /\n\nThe plan is stored at: /
  },
  // Codex of 2026, which ran nothing. What is not the user's is a rule's, with its reason.
  { opens: /^exec_command failed(?: for `[^]*`)?: CreateProcess \{ message: "Rejected\(\\?"(?:rejected by user)?/ },
  // Pi's extension for dangerous commands
  { opens: /^Blocked by user\.?$/ },
  // This program
  { opens: /^the user denied this call of \S+;/ }
]

/** Codex says so in results that are no failures, and nothing else, and so does Gemini CLI of a question. */
const plainRefusal =
  /^(?:(?:exec command|patch|MCP tool call|user) (?:rejected|cancelled) (?:by user|MCP tool call)|User dismissed ask_user dialog without answering|patch rejected: [^\n]*rejected by user approval settings|`[^]*` rejected: (?:blocked by policy|policy forbids commands starting with [^\n]*))\.?$/

const maxPlainChars = 400

/** The reason that a rule of Codex gives. */
const ruleReason = /` rejected: ([^]*?)\\?"\)" \}\s*$/

/** What Codex writes before the error that ended a script: its head, and what it printed. */
const scriptHead = /^Script failed\n[^]*?\nScript error:\n/

/** Matches the sentences above that tell of a rule. A command that they quote may hold any word. */
const byRule =
  /^(?:(?:Error: )?The user has specifi|Permission to use |Permission for this action |Claude requested |This |The server-side |Auto mode |\S+ is temporarily |(?:Hook )?PreToolUse:)|Rejected\(\\?"$|\bpolicy(?: forbids [^]*)?\.?$|approval settings\.?$/

const kindOf = (part: Part) => toolKind(part.functionResponse?.name ?? "")

/** Claude Code puts answers into the reason of a refusal, when the user wants to talk about the questions first. */
const clarifies = /\bthe user said:\nThe user wants to clarify these questions\./
const clarified = /^ {2}(?:Answer|User notes): ([^\n]+)$/gm

const refusalIn = (text: string, part: Part): UserReply | undefined => {
  // Where a plan was not approved, Gemini CLI's answer is no failure.
  const isRead = isErrorResponse(part) || kindOf(part) === "approve"
  const own = text.replace(scriptHead, "")
  const form = isRead ? refusals.find(({ opens }) => opens.test(own)) : undefined
  const refusal = (plainRefusal.exec(own) ?? form?.opens.exec(own))?.[0]
  if (refusal === undefined) return undefined
  const refusedBy = byRule.test(refusal) ? "rule" : "user"
  if (form === undefined) return { refusedBy, words: [] }
  if (form.opens === hookRefusal) return { refusedBy, because: text.slice(refusal.length).trim(), words: [] }
  if (clarifies.test(text)) return { refusedBy, words: placesOf(text, clarified) }
  const start = form.said?.exec(text)?.[0].length
  if (start === undefined) {
    const because = ruleReason.exec(own)?.[1]
    return { refusedBy, ...(because === undefined ? {} : { because }), words: [] }
  }
  const found = form.ends === undefined ? -1 : text.slice(start).search(form.ends)
  const end = found < 0 ? text.length : start + found
  return /^mcp__(?!acp__)/i.test(part.functionResponse?.name ?? "")
    ? { refusedBy, because: text.slice(start, end).trim(), words: [] }
    : { refusedBy, words: [[start, end]] }
}

/** Claude Code's and opencode's answers, in a sentence: `"question"="answer"`, with notes. */
const sentence = /^(?:User has answered your questions|Your questions have been answered): /
const pair = /"="([^]*?)"(?=, "[^]*?"=|\. You can now continue| selected preview:| (?:user )?notes:|\.?\s*$)/g
/** Notes follow an answer or the preview of its option: an answer can have the word too. */
const note =
  /(?:"(?: selected preview:(?:(?!, "[^"]*"=)[^])*?)?|=\(no option selected\)) (?:user )?notes: ([^]*?)(?=, "[^]*?"=|\. You can now continue|$)/g
/** An answer in the user's own words. */
const responded = /^The user responded: ([^]+)$/g
/** Pi's answers, a line each. */
const line = /^(?:[^\n:]*: )?user (?:wrote: |selected: (?:\d+\. )?)([^\n]+)$/gim
const unanswered = "Unanswered"

/** Returns the texts of answers in JSON: `{answers: {id: {answers: [text]}}}`, `{answers: {"0": text}}`, `{answers: [{question, answer}]}`. */
const answersIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(answersIn)
  if (!Predicate.isObject(value)) return []
  return answersIn(value.answers ?? value.answer ?? ("question" in value ? [] : Object.values(value)))
}

const placesOf = (text: string, pattern: RegExp): ReadonlyArray<readonly [number, number]> =>
  [...text.matchAll(pattern)].flatMap((match) => {
    const words = match[1] ?? ""
    const start = match.index + match[0].lastIndexOf(words)
    return words.trim() === "" || words === unanswered ? [] : [[start, start + words.length] as const]
  })

const answerIn = (text: string): UserReply | undefined => {
  const json = text.startsWith("{") ? parsedOrUndefined(text) : undefined
  if (Predicate.isObject(json) && json.answers !== undefined) {
    let from = 0
    const words = answersIn(json.answers).flatMap((answer): ReadonlyArray<readonly [number, number]> => {
      const own = answer.replace(/^user_note: /, "")
      const written = JSON.stringify(own).slice(1, -1)
      const start = text.indexOf(written, from)
      if (own.trim() === "" || start < 0) return []
      from = start + written.length
      return [[start, from]]
    })
    return { words }
  }
  if (sentence.test(text)) {
    const words = [...placesOf(text, pair), ...placesOf(text, note)].sort(([one], [other]) => one - other)
    return { words }
  }
  const words = [...placesOf(text, responded), ...placesOf(text, line)]
  return words.length === 0 ? undefined : { words }
}

/** What stands between a question and its answer, in each of the forms above. */
const asked = [
  /"([^"]*)"="$/,
  /^([^\n:]*): user (?:wrote: |selected: (?:\d+\. )?)$/im,
  /"question":\s*"((?:[^"\\]|\\.)*)"[^{}]*$/,
  /^- "([^\n]*)"\n(?: {2}Answer: [^\n]*\n)? {2}(?:Answer|User notes): $/m
]

/** Returns the question that the user answers with the words from this place on; empty where the result does not have it. */
export const questionBefore = (text: string, start: number): string => {
  const before = text.slice(Math.max(0, start - 2_000), start)
  return asked.map((form) => form.exec(before)?.[1] ?? "").find((question) => question.trim() !== "") ?? ""
}

/**
 * Returns the question of a call that the user answers in its result with the words from this place on. The result has the question
 * itself, which can hold quotes, its id or number (Codex, Gemini CLI), or nothing of it, where it is the only one (Pi).
 */
export const questionOf = (args: unknown, text: string, start: number): string => {
  const listed = isJson(args) ? jsonsAt(args, "questions") : []
  const questions = listed.length === 0 && isJson(args) ? [args] : listed
  const before = text.slice(0, start)
  const places = questions.map(({ id, question }, number) =>
    Math.max(
      before.lastIndexOf(`${JSON.stringify(id ?? String(number))}:`),
      before.lastIndexOf(`"${String(question)}"`)
    )
  )
  const last = questions.length === 1 ? 0 : places.indexOf(Math.max(0, ...places))
  const { question } = questions[last] ?? {}
  return typeof question === "string" ? question : ""
}

/** Whether a command is the one that a call was refused for: of several in a script, the one that the refusal quotes. */
export const isRefusedCommand = (
  reply: UserReply | undefined,
  answer: Part,
  command: string,
  isOnly: boolean
): boolean => reply?.refusedBy !== undefined && (isOnly || responseText(answer).includes(command))

/** Returns what the user said in the result of a call; undefined for the result of a tool. */
export const userReply = (part: Part): UserReply | undefined => {
  if (!isResponse(part)) return undefined
  const kind = kindOf(part)
  // Most results are long, and no tool's that asks.
  const isShort = isErrorResponse(part) || (outputText(part)?.length ?? Infinity) <= maxPlainChars
  if (kind !== "ask" && kind !== "approve" && !isShort) return undefined
  const text = responseText(part)
  return refusalIn(text, part) ?? (kind === "ask" ? answerIn(text) : undefined)
}
