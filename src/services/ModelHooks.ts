import { Effect, Option, Predicate, Schema } from "effect"
import { encode } from "../domain/Bytes.ts"
import { isText, type Part, plainText, text, user } from "../domain/Content.ts"
import { HookRequest } from "../domain/Hook.ts"
import { hookMessage } from "../domain/HookContext.ts"

import type { Hooked } from "./Hooked.ts"
import { Generation, type ModelChunk, type ModelRequest } from "./Model.ts"

/**
 * What hooks have to do with one request to the model and its answer (spec 8, BeforeModel, BeforeToolSelection, AfterModel).
 * They change this request alone: the conversation stays as it is.
 */

/** What became of a request or a piece of an answer. */
export type Passed<A> =
  | ({ readonly _tag: "Passed" } & A)
  /** The whole work has to stop. */
  | { readonly _tag: "Stopped"; readonly why: string }
  /** This must not go on its way; `answer` is what a hook answers in the model's place. */
  | { readonly _tag: "Blocked"; readonly why: string; readonly answer: string | undefined }

/** A request as it may leave. */
export interface Leaving {
  readonly request: ModelRequest
  /** Whether it is the one that was given: where it is not, nothing can be learned from what its provider counts. */
  readonly isSame: boolean
}

/** The texts of the messages that hold any: no other part has a form that hooks know. */
const messagesOf = ({ contents }: ModelRequest): HookRequest["messages"] =>
  contents.flatMap((content) => {
    const words = plainText(content)
    return words === "" ? [] : [{ role: content.role, content: words }]
  })

/** The settings of a request that hooks see and may change. */
const changeable = ["temperature", "topP", "topK", "maxOutputTokens"] as const

const toldOf = (request: ModelRequest): HookRequest => {
  const { generation = {}, mustCall, tools } = request
  const config = Object.fromEntries(
    changeable.flatMap((key) => (generation[key] === undefined ? [] : [[key, generation[key]]]))
  )
  return {
    model: request.model,
    messages: messagesOf(request),
    // Always there, as in Gemini CLI: scripts look into it without asking. What is not set is the provider's choice.
    config,
    ...(tools === undefined ? {} : { toolConfig: { mode: mustCall === true ? "ANY" : "AUTO" } })
  }
}

/** A request is told of at every piece of its answer, and made for that once. */
const told = new WeakMap<ModelRequest, HookRequest>()

/** A request as hooks see it: the texts of its messages, without the system instruction. */
const hookRequest = (request: ModelRequest): HookRequest => {
  const known = told.get(request) ?? toldOf(request)
  told.set(request, known)
  return known
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const decodeMessages = Schema.decodeUnknownOption(HookRequest.fields.messages)
const decodeGeneration = Schema.decodeUnknownOption(Generation)
const decodeToolConfig = Schema.decodeUnknownOption(Schema.Struct({ toolConfig: HookRequest.fields.toolConfig }))

/** What a hook wants changed, as far as it can be, and in words what cannot. */
class Changes {
  request: ModelRequest
  readonly problems: Array<string> = []
  private readonly seen: HookRequest
  private readonly spare: number

  constructor(request: ModelRequest, spare: number) {
    this.request = request
    this.seen = hookRequest(request)
    this.spare = spare
  }

  /** A model with a smaller window might not hold what was made to fit the other's (law 3). */
  model(name: unknown, hasRoom: boolean): void {
    if (name === undefined || name === this.seen.model) return
    if (typeof name !== "string" || name.trim() === "") this.problems.push("the model has to be a name")
    else if (!hasRoom) this.problems.push(`the request may not fit the window of ${name}`)
    else this.request = { ...this.request, model: name }
  }

  config(given: unknown): void {
    if (given === undefined) return
    if (!Predicate.isObject(given)) return void this.problems.push("the config has to be an object")
    const wanted = Object.entries(given).filter(([key, value]) => !isSame(value, this.seen.config?.[key]))
    const known = wanted.filter(([key]) => changeable.some((name) => name === key))
    const generation = Option.getOrUndefined(
      decodeGeneration({ ...this.request.generation, ...Object.fromEntries(known) })
    )
    if (generation === undefined)
      this.problems.push(`the config has a wrong value (${known.map(([key]) => key).join(", ")})`)
    else if (known.length > 0) this.request = { ...this.request, generation }
    const others = wanted.flatMap(([key]) => (known.some(([name]) => name === key) ? [] : [key]))
    if (others.length > 0) this.problems.push(`of the config only ${changeable.join(", ")} can be changed`)
  }

  /** Messages can be added at the end. Those before stand for more than their texts. */
  messages(given: unknown): void {
    if (given === undefined) return
    const messages = Option.getOrUndefined(decodeMessages(given))
    if (messages === undefined) return void this.problems.push("the messages have to be a list of role and content")
    const { messages: before } = this.seen
    if (!isSame(messages.slice(0, before.length), before)) {
      return void this.problems.push("messages can only be added at the end")
    }
    const added = messages.slice(before.length).filter(({ content }) => content.trim() !== "")
    if (added.length === 0) return
    if (added.some(({ role }) => role === "model"))
      return void this.problems.push("no message of the model can be added")
    const words = added.map(({ content }) => hookMessage(content))
    // No token is shorter than a byte.
    const size = words.reduce((sum, each) => sum + encode(each).length, 0)
    if (size > this.spare) this.problems.push("there is no room in the window for the messages that were added")
    else this.request = { ...this.request, contents: [...this.request.contents, user(...words.map(text))] }
  }

  /** None, or only some of the tools; whether one of them has to be called. */
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

/** The declarations of these tools; what declares no functions stays. */
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

/** The text of an answer as hooks write it: `text`, or the texts of the first candidate (spec 8, decoupled shape). */
const answerIn = (specific: Readonly<Record<string, unknown>>): string | undefined => {
  const given = specific["llm_response"]
  if (!Predicate.isObject(given)) return undefined
  if (typeof given["text"] === "string") return given["text"]
  const candidates = given["candidates"]
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
 * A request as hooks let it leave. They may name another model whose window is no smaller, set temperature, topP, topK and
 * maxOutputTokens, add messages at the end, which are marked as not the user's, and say which tools may be called. What else they
 * want changed is told to the person and stays as it was. `spare`: tokens that may surely be added (law 3).
 */
export const before = Effect.fn("ModelHooks.before")(function* (
  hooked: Hooked,
  request: ModelRequest,
  spare: number,
  /** Whether another model's window surely holds the request. */
  fits: (model: string) => Effect.Effect<boolean>
): Effect.fn.Return<Passed<Leaving>> {
  const changes = new Changes(request, spare)
  if (hooked.has("BeforeModel")) {
    const said = yield* hooked.fire({ _tag: "BeforeModel", request: hookRequest(request) })
    if (said.stopped !== undefined) return { _tag: "Stopped", why: said.stopped }
    const answer = answerIn(said.specific)
    if (said.blocked !== undefined) return { _tag: "Blocked", why: said.blocked, answer }
    // An answer alone says the same, as Gemini CLI documents it (its code also wants the decision).
    if (answer !== undefined) return { _tag: "Blocked", why: "a hook answered", answer }
    const wanted = said.specific["llm_request"]
    if (Predicate.isObject(wanted)) {
      const other = wanted["model"]
      const isOther = typeof other === "string" && other.trim() !== "" && other !== request.model
      changes.model(other, !isOther || (yield* fits(other)))
      changes.config(wanted["config"])
      changes.messages(wanted["messages"])
    }
  }
  if (hooked.has("BeforeToolSelection")) {
    const said = yield* hooked.fire({ _tag: "BeforeToolSelection", request: hookRequest(changes.request) })
    if (said.stopped !== undefined) return { _tag: "Stopped", why: said.stopped }
    const config = Option.getOrUndefined(decodeToolConfig({ toolConfig: said.specific["toolConfig"] }))?.toolConfig
    if (config !== undefined) changes.tools(config.mode, config.allowedFunctionNames ?? [])
    else if (said.specific["toolConfig"] !== undefined) changes.problems.push("the toolConfig has a wrong shape")
  }
  for (const problem of changes.problems) yield* hooked.say(`a hook's change of the request was left out: ${problem}`)
  return { _tag: "Passed", request: changes.request, isSame: changes.request === request }
})

/** A piece of an answer with another text: calls, thoughts and signatures stay where they are. */
const reworded = (chunk: ModelChunk, words: string): ModelChunk => {
  const first = chunk.parts.findIndex(isText)
  const parts = chunk.parts.flatMap((part, index): ReadonlyArray<Part> => {
    if (!isText(part)) return [part]
    const said = index === first ? words : ""
    return said === "" && Object.keys(part).length === 1 ? [] : [{ ...part, text: said }]
  })
  return { ...chunk, parts: first < 0 && words !== "" ? [text(words), ...parts] : parts }
}

/** A piece of an answer as hooks let it pass: they may put other words in the place of its text. */
export const after = Effect.fn("ModelHooks.after")(function* (
  hooked: Hooked,
  request: ModelRequest,
  chunk: ModelChunk
): Effect.fn.Return<Passed<{ readonly chunk: ModelChunk }>> {
  if (!hooked.has("AfterModel")) return { _tag: "Passed", chunk }
  const words = chunk.parts
    .filter(isText)
    .map((part) => part.text)
    .join("")
  const said = yield* hooked.fire({
    _tag: "AfterModel",
    request: hookRequest(request),
    text: words,
    finishReason: chunk.finishReason ?? null,
    ...(chunk.usage === undefined ? {} : { usage: chunk.usage })
  })
  if (said.stopped !== undefined) return { _tag: "Stopped", why: said.stopped }
  if (said.blocked !== undefined) return { _tag: "Blocked", why: said.blocked, answer: answerIn(said.specific) }
  const given = answerIn(said.specific)
  return { _tag: "Passed", chunk: given === undefined || given === words ? chunk : reworded(chunk, given) }
})
