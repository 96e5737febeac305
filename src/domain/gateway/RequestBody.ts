import { answerLength } from "../model/ModelLimits.ts"
import {
  afterSpace,
  containerSpans,
  type ContainerSpans,
  type ElementSpan,
  objectSpans,
  repeatsKey,
  type Span
} from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { declaresTools, type Dialect, isCompactedThere, isInstruction, type ValueAt } from "../wire/Dialect.ts"
import { foldedKey, isBackground, isStateful, namesAccountState } from "../wire/ProviderState.ts"
import type { RecallDeclaration } from "./RecallDeclaration.ts"
import type { Route } from "./Route.ts"
import { wire } from "./WireDialects.ts"

/** The text of a request's body, and where its messages and tools are. Only the necessary parts are parsed. */
export interface RequestBody {
  readonly dialect: Dialect
  readonly text: string
  /** The array of messages. */
  readonly array: Span
  /** Instructions at the beginning of the array. They count as part of the head. */
  readonly lead: ReadonlyArray<string>
  /** The messages of the conversation, exactly as they were received. */
  readonly messages: ReadonlyArray<string>
  readonly tools: ContainerSpans | undefined
  /** The index of the instruction that declares tools, where no others are declared. */
  readonly toolsLead: number | undefined
  readonly model: string
  /** The maximum length of an answer that the request sets. */
  readonly maxAnswer: number | undefined
  /** Whether the answer may call a tool that the client did not declare. */
  readonly canRecall: boolean
  /** Whether the provider stores the answer, so that later requests may refer to its items; undefined where none does. */
  readonly isStored: boolean | undefined
}

/** Whether a request refers to state on the provider's side. */
const refersToState = (text: string, members: ReadonlyMap<string, Span>): boolean =>
  [...members].some(([key, { end, start }]) => isStateful(key) && text.slice(start, end) !== "null")

const membersOf = (text: string, arrays: ReadonlyArray<string> = []) => objectSpans(text, afterSpace(text, 0), arrays)

/** The values of a body, each parsed when it is asked for. */
const valuesIn =
  (text: string, members: ReadonlyMap<string, Span> | undefined): ValueAt =>
  (key) => {
    const span = members?.get(key)
    return span === undefined ? undefined : parsedOrUndefined(text.slice(span.start, span.end))
  }

/**
 * Whether a request may refer to state that a provider keeps for the account of the key, whoever wrote it. True for a body that is no
 * plain object, whose keys a provider may read otherwise.
 */
export const mayNameState = (text: string): boolean => {
  const members = membersOf(text)
  const body = parsedOrUndefined(text)
  if (members === undefined || body === undefined) return true
  return (
    [...members.keys()].some((key) => key.includes("\\")) ||
    refersToState(text, members) ||
    namesAccountState(body) ||
    // Which of two values a provider takes is not known.
    repeatsKey(text, body)
  )
}

const notTrue: ReadonlySet<unknown> = new Set([undefined, null, false])

/** Whether a provider may go on with a request after its client has left, so that nobody counts the answer. */
export const mayGoOn = (text: string): boolean => {
  const members = membersOf(text)
  // A provider may take a key for the same that is written with escapes, or twice.
  if (members === undefined || [...members.keys()].some((key) => key.includes("\\"))) return /background|\\u/.test(text)
  const valueAt = valuesIn(text, members)
  // Servers in Python take "true" and 1 for true.
  return [...members.keys()].some((key) => isBackground(key) && !notTrue.has(valueAt(key)))
}

const toolsLeadOf = (lead: ReadonlyArray<string>): number | undefined => {
  const at = lead.findIndex((slice) => declaresTools(parsedOrUndefined(slice)))
  return at < 0 ? undefined : at
}

/**
 * Locates the messages of a request. Returns undefined for a body in an unknown form, without messages, with only a
 * part of the conversation, or with one that the provider compacts.
 */
export const readBody = ({ dialect, isArray, model }: Route, text: string): RequestBody | undefined => {
  const form = wire[dialect].request
  const members = membersOf(text, [form.messagesKey, "tools"])
  const array = members?.get(form.messagesKey)?.array
  if (members === undefined || array === undefined || array.elements.length === 0) return undefined
  if (refersToState(text, members)) return undefined
  const value = valuesIn(text, members)
  if (isCompactedThere(value)) return undefined
  const slices = array.elements.map(({ end, start }) => text.slice(start, end))
  const firstTurn = form.hasInstructions ? slices.findIndex((slice) => !isInstruction(parsedOrUndefined(slice))) : 0
  const leading = firstTurn < 0 ? slices.length : firstTurn
  const lead = slices.slice(0, leading)
  const tools = members.get("tools")
  const toolText = tools === undefined ? "" : text.slice(tools.start, tools.end)
  const modelInBody = value("model")
  const canRecall = !isArray && (tools === undefined || tools.array !== undefined) && form.allowsTools(value, toolText)
  return {
    dialect,
    text,
    array,
    lead,
    messages: slices.slice(leading),
    tools: tools?.array,
    toolsLead: (tools?.array?.elements.length ?? 0) > 0 ? undefined : toolsLeadOf(lead),
    model: model ?? (typeof modelInBody === "string" ? modelInBody : ""),
    maxAnswer: largestAt(text, members.values(), lengthKeys),
    canRecall,
    isStored: form.isStored?.(value)
  }
}

/** Returns the model of a request, also where its messages are not read; empty if it names none. */
export const modelOf = ({ model }: Route, text: string): string => {
  if (model !== undefined) return model
  const value = valuesIn(text, membersOf(text))("model")
  return typeof value === "string" ? value : ""
}

/** Keys of the maximum length of an answer, and of the number of answers, without marks and capitals. */
const lengthKeys: ReadonlySet<string> = new Set(["maxtokens", "maxcompletiontokens", "maxoutputtokens"])
/** Keys of the tokens that an answer may cost. Thinking between calls may cost more than the maximum length, and takes no room of the window. */
const costKeys: ReadonlySet<string> = new Set([...lengthKeys, "budgettokens", "thinkingbudget"])
const countKeys: ReadonlySet<string> = new Set(["n", "bestof", "candidatecount"])
/** Keys of objects that have some of them. */
const configKeys: ReadonlySet<string> = new Set(["generationconfig", "thinkingconfig", "thinking", "reasoning"])
/** How deep such objects stand in one another. */
const configLevels = 2

/**
 * Returns the largest number that a request has under one of these keys, however often, at its top or in a configuration of the answer.
 * Undefined where there is none: local servers take -1 for no limit.
 */
const largestAt = (
  text: string,
  members: Iterable<ElementSpan>,
  keys: ReadonlySet<string>,
  levels = configLevels
): number | undefined => {
  let largest: number | undefined
  for (const { end, key, start } of members) {
    const name = foldedKey(String(parsedOrUndefined(`"${key}"`)))
    const value =
      levels > 0 && configKeys.has(name)
        ? largestAt(text, containerSpans(text, start)?.elements ?? [], keys, levels - 1)
        : keys.has(name)
          ? parsedOrUndefined(text.slice(start, end))
          : undefined
    // Servers in Python take "8" for 8.
    const number = typeof value === "string" ? Number(value) : value
    if (typeof number === "number" && number > (largest ?? 0)) largest = number
  }
  return largest
}

/** Bytes of a request that are a token, as a rule. */
const bytesPerToken = 4

/** Returns the tokens that a request of so many bytes may cost: its own, and those of the longest answers that it allows. */
export const likelyCost = (route: Route, bytes: number, text = ""): number => {
  // Servers in Python skip a byte order mark.
  const members = containerSpans(text, afterSpace(text, text.startsWith("\ufeff") ? 1 : 0))?.elements ?? []
  const length = largestAt(text, members, costKeys) ?? answerLength(modelOf(route, text))
  return Math.ceil(bytes / bytesPerToken) + (largestAt(text, members, countKeys) ?? 1) * length
}

/** Whether the provider stores the answer to a request, so that later ones may refer to its items; undefined where none does. */
export const isStored = ({ dialect }: Route, text: string): boolean | undefined => {
  const { isStored } = wire[dialect].request
  const members = isStored && membersOf(text)
  return members && isStored?.(valuesIn(text, members))
}

/** Returns the JSON of the client's tools; empty if it declares none. */
export const toolsOf = ({ lead, text, tools, toolsLead }: RequestBody): string =>
  toolsLead === undefined ? (tools === undefined ? "" : text.slice(tools.start, tools.end)) : (lead[toolsLead] ?? "")

/** Returns the text of a request without its messages: instructions, tools and options. */
export const headOf = ({ array, lead, text }: RequestBody): string =>
  text.slice(0, array.start) + lead.join() + text.slice(array.end)

/** A replacement for a part of a text that begins at `start`. */
interface Edit extends Span {
  readonly by: string
}

const edited = (text: string, edits: ReadonlyArray<Edit>): string => {
  let written = ""
  let from = 0
  for (const { by, end, start } of edits.toSorted((one, other) => one.start - other.start)) {
    written += text.slice(from, start) + by
    from = end
  }
  return written + text.slice(from)
}

/** Returns the edit that appends an element to an array. */
const appending = ({ elements, end, start }: ContainerSpans, element: string): Edit => {
  const last = elements.at(-1)
  return last === undefined
    ? { start: start + 1, end: end - 1, by: element }
    : { start: last.end, end: last.end, by: `,${element}` }
}

/** Returns the edit that adds the tool's declaration after the client's tools, always in the same place. */
const declaring = ({ dialect, text, tools }: RequestBody, { inDialect, plain }: RecallDeclaration): Edit => {
  if (tools === undefined) {
    const at = text.indexOf("{") + 1
    return { start: at, end: at, by: `"tools":[${inDialect}],` }
  }
  const { functionsKeys } = wire[dialect].request
  for (const { start } of functionsKeys.length === 0 ? [] : tools.elements) {
    const members = objectSpans(text, start, functionsKeys)
    const functions = functionsKeys.map((key) => members?.get(key)?.array).find((array) => array !== undefined)
    if (functions !== undefined) return appending(functions, plain)
  }
  return appending(tools, inDialect)
}

/** The instructions with the tool's declaration after the client's tools, where they stand there. */
const leadWith = ({ lead, toolsLead }: RequestBody, { inDialect }: RecallDeclaration): ReadonlyArray<string> =>
  lead.map((slice, at) => {
    const tools = at === toolsLead ? objectSpans(slice, 0, ["tools"])?.get("tools")?.array : undefined
    return tools === undefined ? slice : edited(slice, [appending(tools, inDialect)])
  })

/**
 * Writes the request with other messages, and with the declaration if there is one. Everything else stays as
 * received.
 */
export const withMessages = (
  body: RequestBody,
  messages: ReadonlyArray<string>,
  declaration: RecallDeclaration | undefined
): string => {
  const lead = declaration === undefined ? body.lead : leadWith(body, declaration)
  const isDeclared = declaration === undefined || body.toolsLead !== undefined
  return edited(body.text, [
    { ...body.array, by: `[${[...lead, ...messages].join()}]` },
    ...(isDeclared ? [] : [declaring(body, declaration)])
  ])
}
