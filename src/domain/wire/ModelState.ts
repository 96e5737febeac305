/**
 * State that a model added to its answer and expects back: thinking, signatures, fields of its server, what its server compacted. It is carried in the
 * signature of a part, where the Gemini API has its own, and stands before that part. It goes back unchanged to the model at the server that wrote it, and
 * to nobody else: others refuse it. Nobody is shown it.
 */

import { Result } from "effect"
import type { Content, Part } from "../content/Content.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { parseJson } from "../text/JsonText.ts"
import type { Dialect } from "./Dialect.ts"

/** Who reads a request, or wrote an answer. */
export interface Target {
  readonly dialect: Dialect
  /** The host of the server, with its port where it has one. */
  readonly server: string
  readonly model: string
}

/** The word before a state. That of the Responses API is older than the other dialect of OpenAI. */
const prefixOf = (dialect: Dialect): string => (dialect === "responses" ? "openai" : dialect)

/** The signature that carries a state of this model. */
export const carriedState = ({ dialect, model, server }: Target, state: unknown): string =>
  `${prefixOf(dialect)} ${JSON.stringify({ server, model, state })}`

/** Whether a signature carries a state. Those of the Gemini API itself have no blanks. */
export const isCarried = (signature: string): boolean => /^[a-z]+ \{/.test(signature)

/**
 * Whether a state stands for what a server compacted, such as Anthropic's `compaction` block and the `compaction` item of OpenAI. It is opaque, and goes
 * back as it came: the provider then leaves out what stands before it.
 */
export const isCompaction = (state: unknown): boolean =>
  isJson(state) && typeof state["type"] === "string" && /^compaction(?:_|$)/.test(state["type"])

/** What a signature carries, whoever wrote it. */
const carriedIn = (signature: string, dialect: Dialect): Json | undefined => {
  const prefix = prefixOf(dialect)
  if (!signature.startsWith(`${prefix} {`)) return undefined
  const carried = Result.getOrElse(parseJson(signature.slice(prefix.length + 1)), () => undefined)
  return isJson(carried) ? carried : undefined
}

/**
 * The state that a signature carries for a model. Undefined for any other signature. What a server compacted is for all its models; states written before
 * models were noted are for all models of their dialect.
 */
export const stateFor = (signature: string, { dialect, model, server }: Target): unknown => {
  const carried = carriedIn(signature, dialect)
  if (carried === undefined || !("state" in carried && "server" in carried)) return carried
  const { state } = carried
  return carried["server"] === server && (carried["model"] === model || isCompaction(state)) ? state : undefined
}

const nativePart = (part: Part): Part => {
  const signature = carriedIn(part.thoughtSignature ?? "", "gemini")?.["state"]
  return typeof signature === "string" ? { ...part, thoughtSignature: signature } : part
}

/** A content for other programs: with the signatures of the Gemini API as it wrote them. */
export const nativeContent = (content: Content): Content =>
  content.parts.some(({ thoughtSignature = "" }) => thoughtSignature.startsWith(prefixOf("gemini")))
    ? { ...content, parts: content.parts.map(nativePart) }
    : content
