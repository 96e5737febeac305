import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "./Bytes.ts"
import {
  type HookEvent,
  type HookEventName,
  type HookFailure,
  type HookOutcome,
  type HookOutput,
  HookRequest
} from "./Hook.ts"

/** Whom an event concerns, what the answers of many come to, and what they change (spec 8). */

/** What a matcher is compared with; undefined: the event has nothing of the kind, and concerns all. */
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

const matchesTool = (matcher: string, tool: string): boolean => {
  const pattern = Result.try({ try: () => new RegExp(matcher), catch: () => undefined })
  return Result.isSuccess(pattern) ? pattern.success.test(tool) : matcher === tool
}

/**
 * Whether an event is one that a matcher means: none, an empty one and `*` mean all; tools are matched by a regular
 * expression, or by their very name where it is none; everything else by its very trigger, source, reason or kind.
 */
export const isMeant = (event: HookEvent, matcher: string | undefined): boolean => {
  const wanted = matcher?.trim() ?? ""
  if (wanted === "" || wanted === "*") return true
  if (event._tag === "BeforeTool" || event._tag === "AfterTool") return matchesTool(wanted, event.tool)
  const subject = subjectOf(event)
  return subject === undefined || subject === wanted
}

/** One hook's answer. */
export interface HookSaid {
  readonly hook: string
  readonly output: HookOutput
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields | undefined => (Predicate.isObject(value) ? value : undefined)
const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** How the answers to an event become one (spec 8). */
const rules: Readonly<Record<HookEventName, "any" | "replace" | "tools" | "last">> = {
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
  const said = texts.filter((text) => text !== undefined && text !== "")
  return said.length === 0 ? undefined : said.join("\n")
}

/** What those changed who were told one after the other: each saw what the one before made of it, so the changes add up. */
const changes = ["tool_input", "llm_request"]

const merged = (before: Fields, after: Fields, isChained: boolean): Fields => {
  const result: Record<string, unknown> = { ...before, ...after }
  if (!isChained) return result
  for (const key of changes) {
    const [first, second] = [fieldsOf(before[key]), fieldsOf(after[key])]
    if (first !== undefined && second !== undefined) result[key] = { ...first, ...second }
  }
  return result
}

interface Sum {
  readonly output: HookOutput
  readonly specific: Fields
}

/** Any of them may stop, block or ask; what they say is put together. */
const anyOf = (said: ReadonlyArray<HookSaid>, isChained: boolean): Sum => {
  const outputs = said.map(({ output }) => output)
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

/** The later replaces the earlier, field by field; `isShallow`: within `hookSpecificOutput` too. */
const lastOf = (said: ReadonlyArray<HookSaid>, isShallow: boolean, isChained: boolean): Sum =>
  said.reduce<Sum>(
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

/** Which tools a model may call. */
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

const toolsOf = (said: ReadonlyArray<HookSaid>): Sum => {
  const choices = said.flatMap(({ output }) => choiceOf(output.hookSpecificOutput?.["toolConfig"]) ?? [])
  if (choices.length === 0) return { output: {}, specific: {} }
  const mode = (["NONE", "ANY"] as const).find((one) => choices.some((choice) => choice.mode === one)) ?? "AUTO"
  const names = new Set(choices.flatMap((choice) => choice.allowedFunctionNames))
  const toolConfig: ToolChoice = { mode, allowedFunctionNames: mode === "NONE" ? [] : [...names].sort() }
  return { output: {}, specific: { toolConfig } }
}

/** Characters of a reason: it ends up in a conversation and on a terminal. */
const longestReason = 8_192

/** Without words of its own, who did it is all there is to say. */
const because = (
  done: string,
  said: ReadonlyArray<HookSaid>,
  did: (output: HookOutput) => boolean,
  ...reasons: ReadonlyArray<string | undefined>
): string => {
  const reason =
    reasons.find((one) => textOf(one) !== undefined) ??
    `${done} by the hook ${said.findLast(({ output }) => did(output))?.hook ?? ""}`.trim()
  return reason.length > longestReason ? `${firstUnits(reason, longestReason)}…` : reason
}

/**
 * What the answers of all hooks come to, which are given in the order in which the hooks count. What they tell the person
 * is never dropped, whoever spoke later. `isChained`: they were told one after the other, each with the changes of those before.
 */
export const outcomeOf = (
  event: HookEventName,
  said: ReadonlyArray<HookSaid>,
  failures: ReadonlyArray<HookFailure>,
  isChained = false
): HookOutcome => {
  const rule = rules[event]
  const { output, specific } =
    rule === "any"
      ? anyOf(said, isChained)
      : rule === "tools"
        ? toolsOf(said)
        : lastOf(said, rule === "replace", isChained)
  const notices = said.flatMap(({ hook, output: { systemMessage } }) => {
    const message = textOf(systemMessage)
    return message === undefined ? [] : [{ hook, message }]
  })
  const stops = (each: HookOutput): boolean => each.continue === false
  return {
    stopped: stops(output) ? because("stopped", said, stops, output.stopReason, output.reason) : undefined,
    blocked: isBlocking(output) ? because("refused", said, isBlocking, output.reason) : undefined,
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

/** A request with what hooks want changed of it; as it was where that makes no request. */
const requestWith = (request: HookRequest, changed: unknown): HookRequest =>
  Result.getOrElse(decodeRequest({ ...request, ...fieldsOf(changed) }), () => request)

/** The event that the next hook is told of after this one's answer (spec 8, sequential). */
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
