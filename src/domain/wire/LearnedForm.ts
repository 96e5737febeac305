/** What servers turn out to refuse in requests of any dialect, and requests without it. */

import { text, user } from "../content/Content.ts"
import type { Json } from "../text/JsonObject.ts"
import { type DialogueRequest, toldCalls } from "./Dialogue.ts"
import { missingSignature } from "./ProviderFault.ts"
import { withToldSchema } from "./ResponseSchema.ts"

/** What servers want in the place of what they refuse, and their words for that. */
const needs = {
  /** The instructions in the user's first message: models such as Gemma, whose templates have no other place for them. */
  message:
    /system.? (?:role|message|prompt|instruction)s? (?:is |are )?not supported|not support(?:ed|s)?(?: (?:a|any|the))? .?system.? (?:role|message|prompt|instruction)s?(?! longer)/i,
  /** Reasoning, also with the calls of other models: DeepSeek and Kimi. */
  reasoning:
    /(?:reasoning_(?:content|text)|content\[\]\.thinking).{0,60}(?:missing|must be passed back)|missing.{0,12}reasoning_content/i,
  /** A signature, also of the calls of other models: Gemini behind Chat Completions. */
  signature: missingSignature,
  /** Declared tools, where the history has calls: LiteLLM, Bedrock, and earlier versions of Anthropic's API. */
  tools: /without `tools=`|toolConfig field must be defined|blocks must define tools/i,
  /** The schema of the answer in words: DeepSeek, Groq, and servers of earlier versions of Anthropic's API. */
  words:
    /(?:response[_ ]format|output_config|json_schema)\b.{0,60}(?:unavailable|not (?:supported|available|permitted))|not support.{0,40}(?:response[_ ]format|json_schema)/i
}

/** What a server wants in the place of what it refuses. */
export type Need = keyof typeof needs
const needNames: ReadonlyArray<Need> = ["message", "reasoning", "signature", "tools", "words"]

/** A refusal of what stands in a schema, which is the caller's, and not of schemas. */
const refusesSchema = /schema for response_format|json_schema\.schema|format\.schema|in context=|\$ref/i
/** The keys of bodies that hold the schema of the answer. */
const schemaKeys = ["response_format", "text", "output_config"]

/** What a server was found to refuse in requests to a model. They go out without it from then on. */
export interface LearnedForm {
  /** What it wants in the place of what it refused. */
  readonly needs: ReadonlySet<Need>
  /** Parameters that are left out, or have another name. */
  readonly parameters: ReadonlyMap<string, string | undefined>
  /** Parameters that are left out with one value, each with that value as JSON. With others they are sent. */
  readonly values: ReadonlySet<string>
}

/** That of a server which refused nothing. */
export const nothingLearned: LearnedForm = {
  needs: new Set(),
  parameters: new Map(),
  values: new Set()
}

const valued = (name: string, value: unknown): string => `${name} ${JSON.stringify(value)}`

/**
 * Parameters without which a request is still answered, with what its server does by itself; the limits of an answer are called otherwise by some
 * servers. A forced call is none of them: an answer without it is another one.
 */
const optionalParameters = ["stream_options", "temperature", "top_p", "reasoning_effort", "reasoning", "thinking"]
const limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"]

/** Whether a text refuses the value of a parameter, not the parameter. */
const refusesValue = (name: string, text: string): boolean =>
  new RegExp(
    `unsupported value\\W{1,4}${name}\\b|(?<![\\w.])${name}\\b\\W{0,3} ?(?:does not support\\b(?!.{0,12} parameter)|(?:is )?too large|(?:(?:input )?should|must) be (?:less|greater) than or equal|input tag|may only be|only .{0,12} is allowed)`,
    "i"
  ).test(text)

/** Whether a text refuses a parameter. It stands right beside the words that refuse it: elsewhere it may be quoted. */
const refusesName = (name: string, text: string): boolean =>
  new RegExp(
    [
      // These two are words of other failures, too.
      `\\b(?:unsupported|unrecognized|unknown|unexpected)\\b[a-z ]{0,30}${/^(?:reasoning|thinking)$/.test(name) ? "[^\\w\\s]\\W{0,3}" : "\\W{0,4}"}${name}\\b`,
      `(?<![\\w.])${name}\\b(?:\\.[\\w.]+)?\\W{0,3} ?(?:and \\w+ )?(?:(?:parameter|argument|field) )?(?:(?:is|are) )?(?:not (?:supported|permitted|allowed)|(?:no longer |un)supported|deprecated for|extra (?:inputs|fields))`,
      `(?<![\\w.])${name}\\b\\W{0,3} ?cannot both be`,
      `extra_forbidden\\W+loc\\W+body\\W+${name}\\b`
    ].join("|"),
    "i"
  ).test(text)

/** What a refusal tells of its server; undefined if it tells nothing new. `detail` is the server's text, `body` the request. */
export const learnedFrom = (known: LearnedForm, detail: string, body: Json): LearnedForm | undefined => {
  const need = needNames.find((name) => !known.needs.has(name) && needs[name].test(detail))
  const isMeant =
    need === "tools"
      ? !("tools" in body)
      : need !== "words" || (schemaKeys.some((key) => key in body) && !refusesSchema.test(detail))
  if (need !== undefined && isMeant) return { ...known, needs: new Set([...known.needs, need]) }
  // Behind this key, vLLM quotes the request.
  const [text = ""] = detail.split(/['"]input['"]:/)
  const sent = [...optionalParameters, ...limits].filter((name) => name in body)
  const refused = sent.find((name) => refusesValue(name, text))
  if (refused !== undefined) return { ...known, values: new Set([...known.values, valued(refused, body[refused])]) }
  const name = sent.find((each) => refusesName(each, text))
  if (name === undefined) return undefined
  // A name that was given instead of another one is refused, too: then none is known.
  const [first] = [...known.parameters].find(([, given]) => given === name) ?? []
  const instead = limits.includes(name)
    ? limits.find((each) => each !== name && new RegExp(`\\b${each}\\b`).test(text))
    : undefined
  return {
    ...known,
    parameters: new Map([...known.parameters, [first ?? name, first === undefined ? instead : undefined]])
  }
}

/**
 * The same of a server that fails where its template refuses, as llama.cpp. Other words of a failing server say nothing of what it takes: a proxy may
 * quote the request.
 */
export const learnedFromFailure = (known: LearnedForm, status: number, detail: string): LearnedForm | undefined =>
  status === 500 && !known.needs.has("message") && needs.message.test(detail)
    ? { ...known, needs: new Set([...known.needs, "message" as const]) }
    : undefined

/** A request whose server takes some of it in another form alone: instructions, its schema, and calls where it has no tools. */
export const formOf = <Request extends DialogueRequest>(given: Request, { needs }: LearnedForm): Request => {
  const request = needs.has("words") ? withToldSchema(given) : given
  const contents = needs.has("tools") && request.tools.length === 0 ? toldCalls(request.contents) : request.contents
  const { systemInstruction = "" } = request
  return needs.has("message") && systemInstruction.trim() !== ""
    ? { ...request, contents: [user(text(systemInstruction)), ...contents], systemInstruction: undefined }
    : { ...request, contents }
}

/** A body without the parameters and the values that its server refuses. */
export const withLearned = (body: Json, { parameters, values }: LearnedForm): Json =>
  parameters.size + values.size === 0
    ? body
    : Object.fromEntries(
        Object.entries(body).flatMap(([key, value]) => {
          const name = parameters.has(key) ? parameters.get(key) : key
          return name === undefined || values.has(valued(name, value)) ? [] : [[name, value]]
        })
      )
