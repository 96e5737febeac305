import { Effect, Option, Predicate, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import type { HookOutcome } from "../domain/Hook.ts"
import { hookContext } from "../domain/HookContext.ts"
import { errorResponse } from "../domain/ToolResult.ts"
import type { Hooked } from "./Hooked.ts"
import type { Answered } from "./ToolAnswer.ts"

/** What hooks make of one call of a tool, before it and after it (spec 8, BeforeTool and AfterTool). */

const decodeObject = Schema.decodeUnknownOption(fromJson(Schema.Record(Schema.String, Schema.Unknown)))

/** The arguments as an object: models now and then send them as its text. */
const inputOf = (args: unknown): Readonly<Record<string, unknown>> => {
  if (typeof args === "string") return Option.getOrElse(decodeObject(args), () => ({}))
  return Predicate.isObject(args) ? { ...args } : {}
}

/** A call as hooks are told of it. */
interface Told {
  readonly tool: string
  readonly args: unknown
  /** The tool that the model called, where a hook has this one run after it. */
  readonly instead: string | undefined
}

const asked = (instead: string | undefined) => (instead === undefined ? {} : { asked: instead })

/** Names of arguments that a note tells at most, and characters of each. */
const mostNames = 10
const longestName = 40

/** What a call is to run with after hooks looked at it. */
export interface Adjusted {
  readonly args: unknown
  /** For the model: which arguments are not its own. Undefined: all are. */
  readonly note: string | undefined
  /** A person has to be asked, even where they would not be. */
  readonly asks: boolean
}

/** The arguments with those that hooks put in their place. */
const adjusted = (args: unknown, { asks, specific }: HookOutcome): Adjusted => {
  const given = specific["tool_input"]
  const before = inputOf(args)
  const changed = Predicate.isObject(given)
    ? Object.entries(given).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]))
    : []
  if (changed.length === 0) return { args, note: undefined, asks }
  const names = changed.slice(0, mostNames).map(([key]) => key.replace(/\s+/g, " ").slice(0, longestName))
  const more = changed.length > mostNames ? ` and ${changed.length - mostNames} more` : ""
  return {
    args: { ...before, ...Object.fromEntries(changed) },
    note: `[a hook changed what this was called with: ${names.join(", ")}${more}]`,
    asks
  }
}

const refusal = (message: string, display: Answered["result"]): Answered => ({
  status: "error",
  response: errorResponse(message),
  // What was shown to the person did happen.
  result: display?.display === undefined ? undefined : { value: message, display: display.display }
})

const stopped = (why: string, result: Answered["result"]): Answered => ({
  ...refusal(`a hook stopped the work: ${why}`, result),
  stops: why
})

/** Tells hooks of a call that was understood; answers it where they do not let it run. */
export const before = Effect.fnUntraced(function* (
  hooked: Hooked,
  { args, instead, tool }: Told
): Effect.fn.Return<Adjusted | { readonly answer: Answered }> {
  if (!hooked.has("BeforeTool")) return { args, note: undefined, asks: false }
  const said = yield* hooked.fire({ _tag: "BeforeTool", tool, input: inputOf(args), ...asked(instead) })
  if (said.stopped !== undefined) return { answer: stopped(said.stopped, undefined) }
  if (said.blocked !== undefined) {
    return { answer: refusal(`a hook did not let ${tool} run: ${said.blocked}`, undefined) }
  }
  return adjusted(args, said)
})

/** An answer with a text behind it, wherever its own text stands. */
export const withAddition = (answer: Answered, addition: string): Answered => {
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

/** Another tool that is to run, and whose result takes the place of the one before. */
export interface Tail {
  readonly name: string
  readonly args: unknown
}

const tailOf = (specific: Readonly<Record<string, unknown>>): Tail | undefined => {
  const given = specific["tailToolCallRequest"]
  if (!Predicate.isObject(given) || typeof given["name"] !== "string") return undefined
  return { name: given["name"], args: given["args"] }
}

/** Tells hooks what came of a call that ran, and makes of it what they want. */
export const after = Effect.fnUntraced(function* (
  hooked: Hooked,
  { args, instead, tool }: Told,
  answer: Answered
): Effect.fn.Return<{ readonly answer: Answered; readonly tail?: Tail | undefined }> {
  const { response, result } = answer
  const said = yield* hooked.fire({ _tag: "AfterTool", tool, input: inputOf(args), response, ...asked(instead) })
  if (said.stopped !== undefined) return { answer: stopped(said.stopped, result) }
  if (said.blocked !== undefined) {
    return { answer: refusal(`a hook withheld the result of ${tool}: ${said.blocked}`, result) }
  }
  const { context } = said
  return {
    answer: context === undefined ? answer : withAddition(answer, hookContext(context)),
    tail: tailOf(said.specific)
  }
})
