/**
 * Decides whether a provider accepts a prompt, and repairs it with the least change: every tool call must be answered in the tool messages that
 * follow it. System messages may stand between a call and its answer and, for approvals, messages with decisions and further messages of the model. A
 * user message ends the wait.
 */

import * as Prompt from "effect/ai/Prompt"

const callsOf = (message: Prompt.AssistantMessage): ReadonlyArray<Prompt.ToolCallPart> =>
  message.content.filter((part) => part.type === "tool-call").filter((part) => !part.providerExecuted)

const isResult = (part: Prompt.ToolMessagePart): part is Prompt.ToolResultPart => part.type === "tool-result"

/** The text in place of a result that never came. */
export const noResult = "no result: the call was interrupted before it was answered"

const missing = ({ id, name }: { readonly id: string; readonly name: string }): Prompt.ToolResultPart =>
  Prompt.toolResultPart({
    id,
    name,
    isFailure: true,
    result: { error: noResult },
    providerExecuted: false,
    options: {}
  })

interface Call {
  readonly id: string
  readonly name: string
  /** The message that made the call. */
  readonly at: number
  /** The turn that made the call, by the last model message of that turn. */
  readonly turn: { last: number }
  /** Whether it was answered in the right place. */
  answered: boolean
  decided: boolean
  /** An answer that came too late and belongs behind its call. */
  late: Prompt.ToolResultPart | undefined
}

/** Collects the calls of a prompt by turn, with their answers. */
const collect = (messages: ReadonlyArray<Prompt.Message>) => {
  const calls = new Map<string, Array<Call>>()
  const approvals = new Map<string, string>()
  /** Answers that do not stay in place, as `message:part`: they move to their calls, or the call already has an answer. */
  const gone = new Set<string>()
  let turn: { last: number } | undefined
  let answered = false
  messages.forEach((message, index) => {
    if (message.role === "system" || message.content.length === 0) return
    if (message.role === "user") {
      turn = undefined
      return
    }
    if (message.role === "assistant") {
      if (turn === undefined || answered) turn = { last: index }
      turn.last = index
      answered = false
      for (const part of message.content) {
        if (part.type === "tool-approval-request") approvals.set(part.approvalId, part.toolCallId)
      }
      for (const { id, name } of callsOf(message)) {
        const call: Call = { id, name, at: index, turn, answered: false, decided: false, late: undefined }
        const same = calls.get(id)
        if (same === undefined) calls.set(id, [call])
        else same.push(call)
      }
      return
    }
    message.content.forEach((part, at) => {
      if (!isResult(part)) {
        const call = calls.get(approvals.get(part.approvalId) ?? "")?.at(-1)
        if (call !== undefined) call.decided = true
        return
      }
      answered ||= turn !== undefined
      const made = calls.get(part.id) ?? []
      // Search from the end: some providers restart ids in each turn, so an id may occur many times.
      const call = made.findLast((each) => !each.answered && each.late === undefined)
      if (call !== undefined && call.turn === turn) {
        call.answered = true
        return
      }
      if (call !== undefined) call.late = part
      if (made.length > 0) gone.add(`${index}:${at}`)
    })
  })
  return { calls: [...calls.values()].flat(), gone }
}

/** Whether `effect/ai` will run or refuse the call, as decided, before it sends the prompt. */
const isAwaited = ({ answered, decided, late }: Call): boolean => decided && !answered && late === undefined

/** The first message that must be sent together with all later ones, because `effect/ai` still has to carry out a decision there. */
export const awaitedFrom = (messages: ReadonlyArray<Prompt.Message>): number =>
  collect(messages)
    .calls.filter(isAwaited)
    .reduce((first, { at }) => Math.min(first, at), messages.length)

/**
 * Returns for each message what to send in its place: the message itself; the message followed by answers to unanswered calls; or the message without
 * answers that came too late and moved to their calls, or that repeat an answer. A result without its call stays, because it may belong to something
 * the provider stores itself. Messages of a legal prompt are unchanged.
 */
export const repaired = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<ReadonlyArray<Prompt.Message>> => {
  const { calls, gone } = collect(messages)
  const owed = new Map<number, Array<Prompt.ToolResultPart>>()
  for (const call of calls) {
    if (call.answered || isAwaited(call)) continue
    owed.set(call.turn.last, [...(owed.get(call.turn.last) ?? []), call.late ?? missing(call)])
  }
  return messages.map((message, index) => {
    const results = owed.get(index)
    if (results !== undefined) return [message, Prompt.toolMessage({ content: results })]
    if (message.role !== "tool") return [message]
    const left = message.content.filter((_, at) => !gone.has(`${index}:${at}`))
    if (left.length === message.content.length) return [message]
    return left.length === 0 ? [] : [Prompt.toolMessage({ content: left, options: message.options })]
  })
}

/** The same messages if a provider accepts them; else what to send. */
export const legalPrompt = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> => {
  const sent = repaired(messages)
  return isUnchanged(sent, messages) ? messages : sent.flat()
}

/** Whether a repair changed nothing. */
export const isUnchanged = (
  sent: ReadonlyArray<ReadonlyArray<Prompt.Message>>,
  messages: ReadonlyArray<Prompt.Message>
): boolean => sent.every((each, at) => each.length === 1 && each[0] === messages[at])
