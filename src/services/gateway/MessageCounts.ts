import { outputText } from "../../domain/content/Content.ts"
import type { HashText } from "../../domain/gateway/MessageChain.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import {
  type CountHistory,
  type CutPrompt,
  isCut,
  isPlausibleCount,
  withCount
} from "../../domain/tokens/CutPrompts.ts"
import { estimateText, partTokens } from "../../domain/tokens/Tokens.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"

/** Counts the estimated tokens of messages, once each, and corrects estimates by the providers' counts. */

const maxCounts = 100_000
const maxModels = 128
/** Tokens of a message in addition to its parts. */
const frameTokens = 4
/** The bounds of the correction, and the weight of the newest count: what a model reads changes while the gateway runs. */
const factorBounds = { min: 0.8, max: 1.6 }
const newestWeight = 0.3

/** What is learned of a model. */
interface Learned {
  /** The model's tokens for one estimated token. */
  readonly factor: number
  readonly history: CountHistory
  /** Whether the operator was told that its server cuts prompts. */
  readonly isReported: boolean
}

const nothingLearned: Learned = { factor: 1, history: {}, isReported: false }

/** Returns the tokens of one message, as they are counted in a conversation. */
const messageTokens = (dialect: Dialect, json: string): number => {
  const [group] = wire[dialect].messages.read([parsedOrUndefined(json)])
  if (group === undefined) return frameTokens + estimateText(json)
  return group.content.parts.reduce((sum, part) => sum + Work.runSync(partTokens(part, outputText(part))), frameTokens)
}

/** Counts messages and heads, and corrects the estimates for each model. Mutable. */
export class MessageCounts {
  private readonly counts = new BoundedMap<string, number>(maxCounts)
  private readonly models = new BoundedMap<string, Learned>(maxModels)
  private readonly hash: HashText

  constructor(hash: HashText) {
    this.hash = hash
  }

  /** The tokens of a message. `key` names it; without one it is hashed. */
  message(dialect: Dialect, json: string, key = this.hash(json)): number {
    return this.held(key, () => messageTokens(dialect, json))
  }

  /** The tokens of a head, which clients repeat from request to request. */
  head(text: string): number {
    return this.held(this.hash(text), () => estimateText(text))
  }

  /** Returns the model's tokens for one estimated token. */
  factor(model: string): number {
    return (this.models.get(model) ?? nothingLearned).factor
  }

  /**
   * Learns from a provider's count of a request; an implausible one leaves the factor as it is. Returns the prompt if the server seems to have cut it: then
   * nothing is learned.
   */
  learn(model: string, estimated: number, counted: number): CutPrompt | undefined {
    if (estimated <= 0 || counted <= 0) return undefined
    const { factor, history, isReported } = this.models.get(model) ?? nothingLearned
    const cut = isCut(history, estimated, counted)
    const isPlausible = isPlausibleCount(counted, estimated)
    const seen = Math.min(factorBounds.max, Math.max(factorBounds.min, counted / estimated))
    // If a count of a cut prompt was plausible, then so were earlier ones, and what was learned is forgotten.
    const corrected = cut ? 1 : factor + (seen - factor) * newestWeight
    this.models.set(model, {
      factor: isPlausible ? corrected : factor,
      history: withCount(history, estimated, counted, cut),
      isReported: isReported || cut
    })
    return cut ? { model, estimated: Math.round(estimated), counted, isNew: !isReported } : undefined
  }

  private held(key: string, count: () => number): number {
    const held = this.counts.get(key)
    if (held !== undefined) return held
    const tokens = count()
    this.counts.set(key, tokens)
    return tokens
  }
}
