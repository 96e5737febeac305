/** Which hooks an event concerns, how their answers merge, and what the merged answer changes. */

import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import {
  type HookEvent,
  type HookEventName,
  type HookFailure,
  type HookOutcome,
  type HookOutput,
  HookRequest
} from "./Hook.ts"

/** The text a matcher is compared with; undefined when the event has none and concerns all hooks. */
const subjectOf = (event: HookEvent): string | undefined => {
  switch (event._tag) {
    case "SessionStart":
      return event.source
    case "SessionEnd":
      return event.reason
    case "PreCompress":
    case "PostCompress":
      return event.trigger
    case "Notification":
      return event.kind
    default:
      return undefined
  }
}

/** A matcher without blanks around it; undefined when it matches everything. */
export const trimmedMatcher = (matcher: string | undefined): string | undefined => {
  const trimmed = matcher?.trim() ?? ""
  return trimmed === "" || trimmed === "*" ? undefined : trimmed
}

/** The tool that a matcher is compared with, as a regular expression; undefined for events that concern no tool. */
export const toolOf = (event: HookEvent): string | undefined =>
  event._tag === "BeforeTool" || event._tag === "AfterTool" ? event.tool : undefined

/**
 * Whether a matcher matches an event that concerns no tool: by the exact trigger, source, reason or kind. An absent or empty
 * matcher and `*` match everything.
 */
export const matchesEvent = (event: HookEvent, matcher: string | undefined): boolean => {
  const subject = subjectOf(event)
  const trimmed = trimmedMatcher(matcher)
  return trimmed === undefined || subject === undefined || subject === trimmed
}

/** One hook's answer. */
export interface HookReply {
  readonly hook: string
  readonly output: HookOutput
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields | undefined => (Predicate.isObject(value) ? value : undefined)
const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** How the answers to each event merge. */
const mergeRules: Readonly<Record<HookEventName, "any" | "replace" | "tools" | "last">> = {
  BeforeTool: "any",
  AfterTool: "any",
  BeforeAgent: "any",
  AfterAgent: "any",
  SessionStart: "any",
  BeforeModel: "replace",
  AfterModel: "replace",
  BeforeToolSelection: "tools",
  PreCompress: "last",
  PostCompress: "last",
  Notification: "last",
  SessionEnd: "last"
}

const isBlocking = ({ decision }: HookOutput): boolean => decision === "block" || decision === "deny"

const joined = (texts: ReadonlyArray<string | undefined>): string | undefined => {
  const nonEmpty = texts.filter((text) => text !== undefined && text !== "")
  return nonEmpty.length === 0 ? undefined : nonEmpty.join("\n")
}

/** Fields that accumulate in a sequence: each hook saw the changes of the one before. */
const chainedKeys = ["tool_input", "llm_request"]

const merged = (before: Fields, after: Fields, isChained: boolean): Fields => {
  const result: Record<string, unknown> = { ...before, ...after }
  if (!isChained) return result
  for (const key of chainedKeys) {
    const [first, second] = [fieldsOf(before[key]), fieldsOf(after[key])]
    if (first !== undefined && second !== undefined) result[key] = { ...first, ...second }
  }
  return result
}

interface MergedOutput {
  readonly output: HookOutput
  readonly specific: Fields
}

/** Any hook may stop, block or ask; their texts are joined. */
const mergeAll = (replies: ReadonlyArray<HookReply>, isChained: boolean): MergedOutput => {
  const outputs = replies.map(({ output }) => output)
  const blocking = outputs.findLast(isBlocking)
  const stops = outputs.some((output) => output.continue === false)
  const stopReason = joined(outputs.flatMap((output) => (output.continue === false ? [output.stopReason] : [])))
  const reason = joined(outputs.map((output) => output.reason))
  const decision = blocking?.decision ?? (outputs.some((output) => output.decision === "ask") ? "ask" : undefined)
  const specifics = outputs.map(({ hookSpecificOutput = {} }) => hookSpecificOutput)
  const context = joined(specifics.map((specific) => textOf(specific["additionalContext"])))
  const last = specifics.reduce((before, after) => merged(before, after, isChained), {})
  return {
    output: {
      ...(stops ? { continue: false } : {}),
      ...(stopReason === undefined ? {} : { stopReason }),
      ...(reason === undefined ? {} : { reason }),
      ...(decision === undefined ? {} : { decision }),
      ...(outputs.some(({ suppressOutput }) => suppressOutput === true) ? { suppressOutput: true } : {})
    },
    specific: {
      ...last,
      ...(context === undefined ? {} : { additionalContext: context }),
      ...(specifics.some((specific) => specific["clearContext"] === true) ? { clearContext: true } : {})
    }
  }
}

/** Later answers replace earlier ones field by field. `isShallow` applies this within `hookSpecificOutput` too. */
const mergeReplacing = (replies: ReadonlyArray<HookReply>, isShallow: boolean, isChained: boolean): MergedOutput =>
  replies.reduce<MergedOutput>(
    (before, { output }) => ({
      output: { ...before.output, ...output },
      specific:
        output.hookSpecificOutput === undefined
          ? before.specific
          : isShallow
            ? merged(before.specific, output.hookSpecificOutput, isChained)
            : output.hookSpecificOutput
    }),
    { output: {}, specific: {} }
  )

/** Which tools the model may call. */
interface ToolChoice {
  readonly mode: "AUTO" | "ANY" | "NONE"
  readonly allowedFunctionNames: ReadonlyArray<string>
}

const choiceOf = (value: unknown): ToolChoice | undefined => {
  const config = fieldsOf(value)
  if (config === undefined) return undefined
  const { allowedFunctionNames: names, mode } = config
  return {
    mode: mode === "NONE" || mode === "ANY" ? mode : "AUTO",
    allowedFunctionNames: Array.isArray(names) ? names.filter((name) => typeof name === "string") : []
  }
}

const mergeToolChoices = (replies: ReadonlyArray<HookReply>): MergedOutput => {
  const choices = replies.flatMap(({ output }) => choiceOf(output.hookSpecificOutput?.["toolConfig"]) ?? [])
  if (choices.length === 0) return { output: {}, specific: {} }
  const mode = (["NONE", "ANY"] as const).find((one) => choices.some((choice) => choice.mode === one)) ?? "AUTO"
  const names = new Set(choices.flatMap((choice) => choice.allowedFunctionNames))
  const toolConfig: ToolChoice = { mode, allowedFunctionNames: mode === "NONE" ? [] : [...names].sort() }
  return { output: {}, specific: { toolConfig } }
}

/** Longest reason in characters: it is stored in the conversation and shown on a terminal. */
const maxReasonChars = 8_192

/** The reason a hook gave, or a sentence that names the hook when it gave none. */
const reasonOf = (
  done: string,
  replies: ReadonlyArray<HookReply>,
  did: (output: HookOutput) => boolean,
  ...reasons: ReadonlyArray<string | undefined>
): string => {
  const reason =
    reasons.find((one) => textOf(one) !== undefined) ??
    `${done} by the hook ${replies.findLast(({ output }) => did(output))?.hook ?? ""}`.trim()
  return reason.length > maxReasonChars ? `${firstUnits(reason, maxReasonChars)}…` : reason
}

/**
 * Merges the answers of all hooks, given in priority order. Messages to the user are never dropped. `isChained`: the
 * hooks ran in sequence, each with the changes of those before.
 */
export const outcomeOf = (
  event: HookEventName,
  replies: ReadonlyArray<HookReply>,
  failures: ReadonlyArray<HookFailure>,
  isChained = false
): HookOutcome => {
  const rule = mergeRules[event]
  const { output, specific } =
    rule === "any"
      ? mergeAll(replies, isChained)
      : rule === "tools"
        ? mergeToolChoices(replies)
        : mergeReplacing(replies, rule === "replace", isChained)
  const notices = replies.flatMap(({ hook, output: { systemMessage } }) => {
    const message = textOf(systemMessage)
    return message === undefined ? [] : [{ hook, message }]
  })
  const stops = (each: HookOutput): boolean => each.continue === false
  return {
    stopped: stops(output) ? reasonOf("stopped", replies, stops, output.stopReason, output.reason) : undefined,
    blocked: isBlocking(output) ? reasonOf("refused", replies, isBlocking, output.reason) : undefined,
    asks: output.decision === "ask",
    context: textOf(specific["additionalContext"]),
    messages: notices.map(({ message }) => message),
    notices,
    suppressed: output.suppressOutput === true,
    clears: specific["clearContext"] === true,
    specific,
    failures
  }
}

const decodeRequest = Schema.decodeUnknownResult(HookRequest)

/** The request with a hook's changes; unchanged when the result is not a valid request. */
const requestWith = (request: HookRequest, changed: unknown): HookRequest =>
  Result.getOrElse(decodeRequest({ ...request, ...fieldsOf(changed) }), () => request)

/** The event as the next hook of a sequence receives it, with the changes of the hook before. */
export const changedBy = (event: HookEvent, { hookSpecificOutput: specific = {} }: HookOutput): HookEvent => {
  switch (event._tag) {
    case "BeforeAgent": {
      const context = textOf(specific["additionalContext"])
      return context === undefined ? event : { ...event, prompt: `${event.prompt}\n\n${context}` }
    }
    case "BeforeModel":
      return { ...event, request: requestWith(event.request, specific["llm_request"]) }
    case "BeforeTool": {
      const changed = fieldsOf(specific["tool_input"])
      return changed === undefined ? event : { ...event, input: { ...fieldsOf(event.input), ...changed } }
    }
    default:
      return event
  }
}
