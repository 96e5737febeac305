/** Hooks around one call of a tool: BeforeTool and AfterTool. */

import { Effect, Option, Predicate, Schema } from "effect"
import type { HookEvent, HookOutcome } from "../../domain/hooks/Hook.ts"
import { hookContext } from "../../domain/hooks/HookContext.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import type { Hooked } from "../hooks/Hooked.ts"
import { type CallAnswer, failedAnswer } from "./ToolAnswer.ts"

const decodeObject = Schema.decodeUnknownOption(fromJson(Schema.Record(Schema.String, Schema.Unknown)))

/** The arguments as an object. Models sometimes send them as JSON text. */
export const inputOf = (args: unknown): Readonly<Record<string, unknown>> => {
  if (typeof args === "string") return Option.getOrElse(decodeObject(args), () => ({}))
  return Predicate.isObject(args) ? { ...args } : {}
}

/** A call as hooks receive it. */
interface HookedToolCall {
  readonly tool: string
  readonly args: unknown
  /** The tool that the model called, if a hook runs this one after it. */
  readonly instead: string | undefined
}

const replacedTool = (instead: string | undefined) => (instead === undefined ? {} : { asked: instead })

/** The maximum number of argument names in a note, and characters of each. */
const maxNamedKeys = 10
const maxKeyChars = 40

/** The arguments of a call after the BeforeTool hooks. */
export interface BeforeCall {
  readonly args: unknown
  /** A note for the model: which arguments hooks changed. Undefined: none. */
  readonly note: string | undefined
  /** Whether the user must be asked, even if the call would not ask otherwise. */
  readonly asks: boolean
}

/** The arguments with the changes of the hooks. */
const adjusted = (args: unknown, { asks, specific }: HookOutcome): BeforeCall => {
  const given = specific["tool_input"]
  const before = inputOf(args)
  const changed = Predicate.isObject(given)
    ? Object.entries(given).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]))
    : []
  if (changed.length === 0) return { args, note: undefined, asks }
  const names = changed.slice(0, maxNamedKeys).map(([key]) => key.replace(/\s+/g, " ").slice(0, maxKeyChars))
  const more = changed.length > maxNamedKeys ? ` and ${changed.length - maxNamedKeys} more` : ""
  return {
    args: { ...before, ...Object.fromEntries(changed) },
    note: `[a hook changed the arguments of this call: ${names.join(", ")}${more}]`,
    asks
  }
}

const refusal = (message: string, display: CallAnswer["result"]): CallAnswer => ({
  ...failedAnswer("error", message),
  // Keeps the result that the user has already seen.
  result: display?.display === undefined ? undefined : { value: message, display: display.display }
})

const stopped = (why: string, result: CallAnswer["result"]): CallAnswer => ({
  ...refusal(`a hook stopped the run: ${why}`, result),
  stops: why
})

/** Runs the BeforeTool hooks of a valid call. Returns the answer if they do not let it run. */
export const before = Effect.fnUntraced(function* (hooked: Hooked, { args, instead, tool }: HookedToolCall) {
  if (!hooked.has("BeforeTool")) return { args, note: undefined, asks: false }
  const outcome = yield* hooked.fire({ _tag: "BeforeTool", tool, input: inputOf(args), ...replacedTool(instead) })
  if (outcome.stopped !== undefined) return { answer: stopped(outcome.stopped, undefined) }
  if (outcome.blocked !== undefined) {
    return { answer: refusal(`a hook blocked ${tool}: ${outcome.blocked}`, undefined) }
  }
  return adjusted(args, outcome)
})

/** Appends a text to an answer, wherever the answer's own text stands. */
export const withAddition = (answer: CallAnswer, addition: string): CallAnswer => {
  const { added, response } = answer
  const key = ["output", "error"].find((name) => typeof response[name] === "string")
  const all = added === undefined ? addition : `${added}\n\n${addition}`
  const more =
    key !== undefined
      ? { ...response, [key]: `${String(response[key])}\n\n${addition}` }
      : "hooks" in response
        ? { output: `${JSON.stringify(response)}\n\n${addition}` }
        : { ...response, hooks: addition }
  return { ...answer, response: more, added: all }
}

/** Another tool to run, whose result replaces the previous one. */
export interface FollowUpCall {
  readonly name: string
  readonly args: unknown
}

const tailOf = (specific: Readonly<Record<string, unknown>>): FollowUpCall | undefined => {
  const given = specific["tailToolCallRequest"]
  if (!Predicate.isObject(given) || typeof given["name"] !== "string") return undefined
  return { name: given["name"], args: given["args"] }
}

/** The AfterTool event of a call and its answer. */
export const afterEvent = (
  { args, instead, tool }: HookedToolCall,
  { response }: Pick<CallAnswer, "response">
): Extract<HookEvent, { readonly _tag: "AfterTool" }> => ({
  _tag: "AfterTool",
  tool,
  input: inputOf(args),
  response,
  ...replacedTool(instead)
})

/** Runs the AfterTool hooks of a finished call and applies their changes to its answer. */
export const after = Effect.fnUntraced(function* (hooked: Hooked, call: HookedToolCall, answer: CallAnswer) {
  const { result } = answer
  const outcome = yield* hooked.fire(afterEvent(call, answer))
  if (outcome.stopped !== undefined) return { answer: stopped(outcome.stopped, result) }
  if (outcome.blocked !== undefined) {
    return { answer: refusal(`a hook withheld the result of ${call.tool}: ${outcome.blocked}`, result) }
  }
  const { context } = outcome
  return {
    answer: context === undefined ? answer : withAddition(answer, hookContext(context)),
    tail: tailOf(outcome.specific)
  }
})
