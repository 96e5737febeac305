import { Result } from "effect"
import { parseJson } from "../text/JsonText.ts"

/**
 * Carries the thinking of other providers, and what their servers compacted, in the signature of a part, where the Gemini API has its own. The thinking stands before the part. A
 * conversation keeps signatures from answer to request, sends them only to the provider they came from, and shows them to nobody.
 */

/** The signature for a block of a provider's thinking, whatever its shape. */
export const signatureOf = (provider: string, block: unknown): string => `${provider} ${JSON.stringify(block)}`

/** Whether `signatureOf` wrote a signature, for any provider. Those of the Gemini API have no blanks. */
export const isCarried = (signature: string): boolean => /^[a-z]+ \{/.test(signature)

/** The block that `signatureOf` wrote for this provider. Undefined for any other signature. */
export const thinkingOf = (signature: string, provider: string): unknown => {
  if (!signature.startsWith(`${provider} {`)) return undefined
  return Result.getOrElse(parseJson(signature.slice(provider.length + 1)), () => undefined)
}

/**
 * Whether a block stands for what a provider's server compacted, such as Anthropic's `compaction` block and the `compaction` item of OpenAI.
 * It is opaque, and goes back as it came: the provider then leaves out what stands before it.
 */
export const isCompaction = (block: unknown): boolean =>
  typeof block === "object" &&
  block !== null &&
  "type" in block &&
  typeof block.type === "string" &&
  /^compaction(?:_|$)/.test(block.type)
