/**
 * Applies hooks to one model request and its answer (BeforeModel, BeforeToolSelection, AfterModel). Changes affect this
 * request only; the conversation stays as it is.
 */

import { Effect, Option, Predicate, Schema } from "effect"
import { isText, type Part, plainText, text, user } from "../../domain/content/Content.ts"
import { HookRequest } from "../../domain/hooks/Hook.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { Generation, type ModelChunk, type ModelRequest } from "../model/Model.ts"
import type { Hooked } from "./Hooked.ts"

/** The result for a request or a chunk. */
type HookVerdict<A> =
  | ({ readonly _tag: "Passed" } & A)
  /** The whole run must stop. */
  | { readonly _tag: "Stopped"; readonly why: string }
  /** It must not be sent. `answer` is the hook's answer in place of the model's. */
  | { readonly _tag: "Blocked"; readonly why: string; readonly answer: string | undefined }

/** A request ready to be sent. */
interface OutgoingRequest {
  readonly request: ModelRequest
  /** Whether it is the original request; token counts of a changed one say nothing about the original. */
  readonly isSame: boolean
}

/** The text of each message that has some; hooks have no form for other parts. */
const messagesOf = ({ contents }: ModelRequest): HookRequest["messages"] =>
  contents.flatMap((content) => {
    const words = plainText(content)
    return words === "" ? [] : [{ role: content.role, content: words }]
  })

/** Generation settings that hooks can see and change. */
const changeable = ["temperature", "topP", "topK", "maxOutputTokens"] as const

const toHookRequest = (request: ModelRequest): HookRequest => {
  const { generation = {}, mustCall, tools } = request
  const config = Object.fromEntries(
    changeable.flatMap((key) => (generation[key] === undefined ? [] : [[key, generation[key]]]))
  )
  return {
    model: request.model,
    messages: messagesOf(request),
    // Always present, as in Gemini CLI: scripts read it without a check. Unset fields are the provider's default.
    config,
    ...(tools === undefined ? {} : { toolConfig: { mode: mustCall === true ? "ANY" : "AUTO" } })
  }
}

/** Cached per request: the event for each chunk of an answer carries it. */
const hookRequests = new WeakMap<ModelRequest, HookRequest>()

/** A request as hooks see it: message texts without the system instruction. */
const hookRequest = (request: ModelRequest): HookRequest => {
  const hookView = hookRequests.get(request) ?? toHookRequest(request)
  hookRequests.set(request, hookView)
  return hookView
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const decodeMessages = Schema.decodeUnknownOption(HookRequest.fields.messages)
const decodeGeneration = Schema.decodeUnknownOption(Generation)
const decodeToolConfig = Schema.decodeUnknownOption(Schema.Struct({ toolConfig: HookRequest.fields.toolConfig }))

/** Collects a hook's changes to a request, and the reasons why others are rejected. */
class RequestChanges {
  request: ModelRequest
  readonly problems: Array<string> = []
  private readonly original: ModelRequest
  private readonly spare: number

  constructor(request: ModelRequest, spare: number) {
    this.request = request
    this.original = request
    this.spare = spare
  }

  /** The request as hooks see it. It is built only when there are hooks. */
  private get view(): HookRequest {
    return hookRequest(this.original)
  }

  /** Rejects a model whose window may not hold the request: a request must always fit its model's window. */
  model(name: unknown, hasRoom: boolean): void {
    if (name === undefined || name === this.view.model) return
    if (typeof name !== "string" || name.trim() === "") this.problems.push("the model has to be a name")
    else if (!hasRoom) this.problems.push(`the request may not fit the window of ${name}`)
    else this.request = { ...this.request, model: name }
  }

  config(value: unknown): void {
    if (value === undefined) return
    if (!Predicate.isObject(value)) return void this.problems.push("the config has to be an object")
    const changes = Object.entries(value).filter(([key, value]) => !isSame(value, this.view.config?.[key]))
    const permitted = changes.filter(([key]) => changeable.some((name) => name === key))
    const generation = Option.getOrUndefined(
      decodeGeneration({ ...this.request.generation, ...Object.fromEntries(permitted) })
    )
    if (generation === undefined)
      this.problems.push(`the config has a wrong value (${permitted.map(([key]) => key).join(", ")})`)
    else if (permitted.length > 0) this.request = { ...this.request, generation }
    const others = changes.flatMap(([key]) => (permitted.some(([name]) => name === key) ? [] : [key]))
    if (others.length > 0) this.problems.push(`of the config only ${changeable.join(", ")} can be changed`)
  }

  /** Messages can only be appended, because earlier ones contain more than their texts. */
  messages(value: unknown): void {
    if (value === undefined) return
    const messages = Option.getOrUndefined(decodeMessages(value))
    if (messages === undefined) return void this.problems.push("the messages have to be a list of role and content")
    const { messages: before } = this.view
    if (!isSame(messages.slice(0, before.length), before)) {
      return void this.problems.push("messages can only be added at the end")
    }
    const added = messages.slice(before.length).filter(({ content }) => content.trim() !== "")
    if (added.length === 0) return
    if (added.some(({ role }) => role === "model"))
      return void this.problems.push("no message of the model can be added")
    const words = added.map(({ content }) => hookMessage(content))
    // A token has at least one byte.
    const size = words.reduce((sum, each) => sum + encode(each).length, 0)
    if (size > this.spare) this.problems.push("the window has no room for the added messages")
    else this.request = { ...this.request, contents: [...this.request.contents, user(...words.map(text))] }
  }

  /** Allows none or some of the tools, or requires a call. */
  tools(mode: string | undefined, names: ReadonlyArray<string>): void {
    const { tools } = this.request
    if (tools === undefined) return
    const allowed = mode === "NONE" ? [] : names.length === 0 ? tools : selected(tools, new Set(names))
    const mustCall = mode === "ANY" && allowed.length > 0
    if (allowed === tools && !mustCall) return
    const { mustCall: _mustCall, tools: _tools, ...rest } = this.request
    this.request = {
      ...rest,
      ...(allowed.length === 0 ? {} : { tools: allowed }),
      ...(mustCall ? { mustCall } : {})
    }
  }
}

const declaredIn = (tool: Readonly<Record<string, unknown>>): ReadonlyArray<unknown> => {
  const { functionDeclarations: declared } = tool
  return Array.isArray(declared) ? declared : []
}

/** The names of the functions that a request declares. */
export const declaredNames = ({ tools = [] }: Pick<ModelRequest, "tools">): ReadonlyArray<string> =>
  tools
    .flatMap(declaredIn)
    .flatMap((one) => (Predicate.isObject(one) && typeof one["name"] === "string" ? [one["name"]] : []))

/** The declarations of these tools. Entries that declare no functions stay. */
const selected = (
  tools: NonNullable<ModelRequest["tools"]>,
  names: ReadonlySet<string>
): NonNullable<ModelRequest["tools"]> =>
  tools.flatMap((tool) => {
    const { functionDeclarations: declared, ...rest } = tool
    if (!Array.isArray(declared)) return [tool]
    const kept = declared.filter(
      (one: unknown) => Predicate.isObject(one) && typeof one["name"] === "string" && names.has(one["name"])
    )
    if (kept.length === declared.length) return [tool]
    const others = Object.keys(rest).length > 0
    return kept.length > 0 ? [{ ...rest, functionDeclarations: kept }] : others ? [rest] : []
  })

/** The declarations of tools without these. */
export const withoutTools = (
  tools: NonNullable<ModelRequest["tools"]>,
  names: ReadonlySet<string>
): NonNullable<ModelRequest["tools"]> =>
  names.size === 0 ? tools : selected(tools, new Set(declaredNames({ tools }).filter((name) => !names.has(name))))

/** The text of a hook's answer: `text`, or the texts of the first candidate. */
const answerIn = (specific: Readonly<Record<string, unknown>>): string | undefined => {
  const response = specific["llm_response"]
  if (!Predicate.isObject(response)) return undefined
  if (typeof response["text"] === "string") return response["text"]
  const candidates = response["candidates"]
  const first: unknown = Array.isArray(candidates) ? candidates[0] : undefined
  const content = Predicate.isObject(first) ? first["content"] : undefined
  const parts = Predicate.isObject(content) ? content["parts"] : undefined
  if (!Array.isArray(parts)) return undefined
  return parts
    .map((part: unknown) => {
      const words = Predicate.isObject(part) ? part["text"] : part
      return typeof words === "string" ? words : ""
    })
    .join("")
}

/**
 * Applies hooks to a request.
 *
 * Hooks may choose a model with a window that is no smaller, set temperature, topP, topK and maxOutputTokens, append
 * messages (marked as not the user's), and choose which tools may be called. Other changes are rejected and reported to
 * the user. `spare`: tokens that may safely be added.
 */
export const before = Effect.fn("ModelHooks.before")(function* (
  hooked: Hooked,
  request: ModelRequest,
  spare: number,
  /** Whether another model's window holds the request. */
  fits: (model: string) => Effect.Effect<boolean>
): Effect.fn.Return<HookVerdict<OutgoingRequest>> {
  const changes = new RequestChanges(request, spare)
  if (hooked.has("BeforeModel")) {
    const outcome = yield* hooked.fire({ _tag: "BeforeModel", request: hookRequest(request) })
    if (outcome.stopped !== undefined) return { _tag: "Stopped", why: outcome.stopped }
    const answer = answerIn(outcome.specific)
    if (outcome.blocked !== undefined) return { _tag: "Blocked", why: outcome.blocked, answer }
    // An answer alone is enough, as Gemini CLI documents (its code also requires the decision).
    if (answer !== undefined) return { _tag: "Blocked", why: "a hook answered", answer }
    const requested = outcome.specific["llm_request"]
    if (Predicate.isObject(requested)) {
      const other = requested["model"]
      const isOther = typeof other === "string" && other.trim() !== "" && other !== request.model
      changes.model(other, !isOther || (yield* fits(other)))
      changes.config(requested["config"])
      changes.messages(requested["messages"])
    }
  }
  if (hooked.has("BeforeToolSelection")) {
    const selection = yield* hooked.fire({ _tag: "BeforeToolSelection", request: hookRequest(changes.request) })
    if (selection.stopped !== undefined) return { _tag: "Stopped", why: selection.stopped }
    const config = Option.getOrUndefined(decodeToolConfig({ toolConfig: selection.specific["toolConfig"] }))?.toolConfig
    if (config !== undefined) changes.tools(config.mode, config.allowedFunctionNames ?? [])
    else if (selection.specific["toolConfig"] !== undefined) changes.problems.push("the toolConfig has a wrong shape")
  }
  for (const problem of changes.problems) yield* hooked.say(`a hook's change of the request is ignored: ${problem}`)
  return { _tag: "Passed", request: changes.request, isSame: changes.request === request }
})

/** A chunk with another text. Calls, thoughts and signatures stay in place. */
const reworded = (chunk: ModelChunk, words: string): ModelChunk => {
  const first = chunk.parts.findIndex(isText)
  const parts = chunk.parts.flatMap((part, index): ReadonlyArray<Part> => {
    if (!isText(part)) return [part]
    const newText = index === first ? words : ""
    return newText === "" && Object.keys(part).length === 1 ? [] : [{ ...part, text: newText }]
  })
  return { ...chunk, parts: first < 0 && words !== "" ? [text(words), ...parts] : parts }
}

/** Fires AfterModel for a request that got no answer: it failed or was cancelled. */
export const unanswered = (hooked: Hooked, request: ModelRequest): Effect.Effect<void> =>
  hooked.has("BeforeModel")
    ? hooked.fireAside({ _tag: "AfterModel", request: hookRequest(request), text: "", finishReason: null })
    : Effect.void

/** Applies hooks to a chunk of the answer; they may replace its text. */
export const after = Effect.fn("ModelHooks.after")(function* (
  hooked: Hooked,
  request: ModelRequest,
  chunk: ModelChunk
): Effect.fn.Return<HookVerdict<{ readonly chunk: ModelChunk }>> {
  if (!hooked.has("AfterModel")) return { _tag: "Passed", chunk }
  const words = chunk.parts
    .filter(isText)
    .map((part) => part.text)
    .join("")
  const outcome = yield* hooked.fire({
    _tag: "AfterModel",
    request: hookRequest(request),
    text: words,
    finishReason: chunk.finishReason ?? null,
    ...(chunk.usage === undefined ? {} : { usage: chunk.usage })
  })
  if (outcome.stopped !== undefined) return { _tag: "Stopped", why: outcome.stopped }
  if (outcome.blocked !== undefined)
    return { _tag: "Blocked", why: outcome.blocked, answer: answerIn(outcome.specific) }
  const newWords = answerIn(outcome.specific)
  return { _tag: "Passed", chunk: newWords === undefined || newWords === words ? chunk : reworded(chunk, newWords) }
})
