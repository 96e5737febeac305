import * as Prompt from "effect/ai/Prompt"

/**
 * What a provider takes for a legal prompt (law 5), and the least change that makes one legal: every call of a tool is
 * answered in the tool messages that follow it. Between a call and its answer may stand system messages and, as approvals
 * come and go, messages of decisions and further messages of the model; what the user says ends the wait.
 */

interface OpenCall {
  readonly id: string
  readonly name: string
  /** Somebody decided on it: `effect/ai` runs or refuses it before the next request. */
  readonly decided: boolean
}

/** How the calls of a prompt stand after some of its messages. */
export interface Standing {
  /** Calls that wait for their answers. */
  readonly open: ReadonlyArray<OpenCall>
  /** Approvals that were asked for, with the calls they are about. */
  readonly asked: ReadonlyMap<string, string>
  /** The calls have been answered in part: another message of the model begins another turn. */
  readonly answered: boolean
  /** Something stood where it should not: the prompt has to be looked at as a whole. */
  readonly suspect: boolean
}

/** Of an empty prompt. */
export const beginning: Standing = { open: [], asked: new Map(), answered: false, suspect: false }

const callsOf = (message: Prompt.AssistantMessage): ReadonlyArray<Prompt.ToolCallPart> =>
  message.content.filter((part) => part.type === "tool-call").filter((part) => !part.providerExecuted)

const isResult = (part: Prompt.ToolMessagePart): part is Prompt.ToolResultPart => part.type === "tool-result"

/** Of the calls that wait, the one with this id; -1 for none. */
const waiting = (open: ReadonlyArray<{ readonly id: string }>, id: string): number =>
  open.findIndex((call) => call.id === id)

const afterUser = (standing: Standing): Standing =>
  standing.open.length === 0 && !standing.answered
    ? standing
    : { ...standing, open: [], answered: false, suspect: standing.suspect || standing.open.length > 0 }

const afterAssistant = (standing: Standing, message: Prompt.AssistantMessage): Standing => {
  const before = standing.answered ? afterUser(standing) : standing
  const calls = callsOf(message)
  const requests = message.content.filter((part) => part.type === "tool-approval-request")
  if (calls.length === 0 && requests.length === 0) return before
  return {
    ...before,
    open: [...before.open, ...calls.map(({ id, name }) => ({ id, name, decided: false }))],
    asked:
      requests.length === 0
        ? before.asked
        : new Map([...before.asked, ...requests.map((part) => [part.approvalId, part.toolCallId] as const)])
  }
}

const afterTool = (standing: Standing, message: Prompt.ToolMessage): Standing => {
  let { answered, open, suspect } = standing
  for (const part of message.content) {
    if (isResult(part)) {
      const at = waiting(open, part.id)
      suspect ||= at < 0
      answered = true
      open = open.filter((_, index) => index !== at)
    } else {
      const id = standing.asked.get(part.approvalId)
      open = open.map((call) => (call.id === id ? { ...call, decided: true } : call))
    }
  }
  return { ...standing, answered, open, suspect }
}

/** How the calls stand after one more message. */
export const follow = (standing: Standing, message: Prompt.Message): Standing => {
  if (message.role === "system" || message.content.length === 0) return standing
  if (message.role === "user") return afterUser(standing)
  return message.role === "assistant" ? afterAssistant(standing, message) : afterTool(standing, message)
}

/** Whether a prompt that ends here may be sent as it is. Where not, `repaired` says what is to be sent. */
export const isLegal = ({ open, suspect }: Standing): boolean => !suspect && open.every(({ decided }) => decided)

/** What is said in the place of a result that never came. */
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
  /** The message that made it. */
  readonly at: number
  /** The turn it was made in, by the last message of the model there. */
  readonly turn: { last: number }
  /** It was answered where it should be. */
  answered: boolean
  decided: boolean
  /** An answer that came too late, and belongs behind its call. */
  late: Prompt.ToolResultPart | undefined
}

/** The calls of a prompt in their turns, with what answered them. */
const collect = (messages: ReadonlyArray<Prompt.Message>) => {
  const calls = new Map<string, Array<Call>>()
  const asked = new Map<string, string>()
  /** Answers that do not stay where they are, as `message:part`: they go to their calls, or the call has one already. */
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
        if (part.type === "tool-approval-request") asked.set(part.approvalId, part.toolCallId)
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
        const call = calls.get(asked.get(part.approvalId) ?? "")?.at(-1)
        if (call !== undefined) call.decided = true
        return
      }
      answered ||= turn !== undefined
      const made = calls.get(part.id) ?? []
      // The latest come first: of ids that begin anew each turn there may be many.
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

/** Whether `effect/ai` runs or refuses the call, as somebody decided, before it sends the prompt. */
const isAwaited = ({ answered, decided, late }: Call): boolean => decided && !answered && late === undefined

/** The first message that has to be sent with all that follow it, as `effect/ai` still has to do what was decided there. */
export const awaitedFrom = (messages: ReadonlyArray<Prompt.Message>): number =>
  collect(messages)
    .calls.filter(isAwaited)
    .reduce((first, { at }) => Math.min(first, at), messages.length)

/**
 * By message, what is to be sent in its place: itself, or with a message behind it that answers calls nothing answered,
 * or without answers that stood too late and were moved to their calls, or that are not the first of their call. A result
 * whose call is not there at all stays: it may belong to something the provider keeps itself. Of a legal prompt every
 * message stays.
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
