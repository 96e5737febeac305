/** Estimates the tokens of messages, once each, and learns from the providers' counts how far the estimates are off. */

import type { Part } from "../../domain/content/Content.ts"
import { hashText } from "../../domain/gateway/MessageChain.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import * as Calibration from "../../domain/tokens/Calibration.ts"
import type { CutPrompt } from "../../domain/tokens/CutPrompts.ts"
import { type Features, partFeatures, sumFeatures, totalTokens } from "../../domain/tokens/TextFeatures.ts"
import { partTokens } from "../../domain/tokens/Tokens.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"

const maxCounts = 50_000
const maxModels = 128
/** Tokens of a message in addition to its parts. */
const frameTokens = 4
/** The bounds of the correction: any client may name any model, and any server count for it. */
const factorBounds = { min: 0.8, max: 1.6 }
/** For the same reasons no count tells more than that, and the last twenty or so count: what a model's name stands for changes while the gateway runs. */
const trust: Calibration.Trust = { kept: 0.95, most: factorBounds.max }

/** What is learned of a model. */
interface Learned {
  readonly calibration: Calibration.Calibration
  /** Whether the operator was told that its server cuts prompts. */
  readonly isReported: boolean
}

const nothingLearned: Learned = { calibration: Calibration.uncalibrated, isReported: false }

/** The estimated tokens of a text. */
interface Count {
  readonly tokens: number
  /** Those of each of its parts. */
  readonly parts: ReadonlyArray<number>
  /** The same by class. Undefined until it is needed: it takes three times as long. */
  features?: Features
}

/** A text of a request, with what is known of its tokens. */
export interface CountedText {
  readonly count: Count
  /** Tokens in addition to its parts. */
  readonly frame: number
  /** Reads its parts. */
  readonly parts: () => ReadonlyArray<Part>
}

function* featuresOf({ frame, parts }: CountedText): Work.SlicedWork<Features> {
  const features: Array<Features> = []
  for (const part of parts()) features.push(yield* partFeatures(part))
  const sum = sumFeatures(features)
  return { ...sum, frame: sum.frame + frame }
}

/** The estimated tokens of a request. A plan needs their number; by class they are learned from, when the answer has begun. Mutable. */
export class RequestTokens {
  readonly total: number
  private texts: ReadonlyArray<CountedText>
  private all: Features | undefined

  constructor(texts: ReadonlyArray<CountedText>) {
    this.texts = texts
    this.total = texts.reduce((sum, { count }) => sum + count.tokens, 0)
  }

  /** The tokens of these texts and of more. */
  and(texts: ReadonlyArray<CountedText>): RequestTokens {
    return new RequestTokens([...this.texts, ...texts])
  }

  /** The tokens by class of the texts that were in earlier requests. */
  get known(): Features {
    return this.all ?? sumFeatures(this.texts.flatMap(({ count }) => count.features ?? []))
  }

  /** All tokens by class. Lets the texts go. */
  *features(): Work.SlicedWork<Features> {
    for (const text of this.texts) text.count.features ??= yield* featuresOf(text)
    this.all ??= this.known
    this.texts = []
    return this.all
  }
}

/** Estimates messages and heads, and corrects the estimates for each model. Mutable. */
export class MessageCounts {
  private readonly counts = new BoundedMap<string, Count>(maxCounts)
  private readonly models = new BoundedMap<string, Learned>(maxModels)

  /** A message with its tokens. `key` names it; without one it is hashed. */
  message(dialect: Dialect, json: string, key = hashText(json)): CountedText {
    return this.counted(key, frameTokens, () => {
      const [group] = wire[dialect].messages.read([parsedOrUndefined(json)])
      return group?.content.parts ?? [{ text: json }]
    })
  }

  /** A head with its tokens. Clients repeat it from request to request. */
  head(text: string): CountedText {
    return this.counted(hashText(text), 0, () => [{ text }])
  }

  /** Returns the model's tokens for one estimated token of a request; without one, of those before it. What nobody knows the classes of counts as those do. */
  factor(model: string, request?: RequestTokens): number {
    const { calibration } = this.models.get(model) ?? nothingLearned
    const usual = Calibration.usualFactor(calibration)
    const known = request?.known ?? sumFeatures([])
    const total = request?.total ?? 0
    const knownTotal = totalTokens(known)
    const likely = (Calibration.expected(calibration, known) ?? knownTotal) + usual * (total - knownTotal)
    const factor = total === 0 ? usual : likely / total
    return Math.min(factorBounds.max, Math.max(factorBounds.min, factor))
  }

  /** Learns from a provider's count of a request. Returns the prompt if the server seems to have cut it: then nothing is learned. */
  learn(model: string, request: Features, counted: number): CutPrompt | undefined {
    const { calibration, isReported } = this.models.get(model) ?? nothingLearned
    const isCut = Calibration.isCutCount(calibration, request, counted, false)
    const learned = isCut
      ? Calibration.doubted(calibration, request, counted)
      : Calibration.observe(calibration, request, counted, trust)
    this.models.set(model, { calibration: learned, isReported: isReported || isCut })
    const estimated = Math.round(totalTokens(request))
    return isCut ? { model, estimated, counted, isNew: !isReported } : undefined
  }

  private counted(key: string, frame: number, parts: () => ReadonlyArray<Part>): CountedText {
    const held = this.counts.get(key)
    if (held !== undefined) return { count: held, frame, parts }
    const ofParts = parts().map((part) => Work.runSync(partTokens(part)))
    const count: Count = { tokens: ofParts.reduce((sum, tokens) => sum + tokens, frame), parts: ofParts }
    this.counts.set(key, count)
    return { count, frame, parts }
  }
}
