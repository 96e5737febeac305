import type { HashText } from "../../domain/gateway/MessageChain.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import * as Calibration from "../../domain/tokens/Calibration.ts"
import type { CutPrompt } from "../../domain/tokens/CutPrompts.ts"
import {
  type Features,
  partFeatures,
  sumFeatures,
  textFeatures,
  totalTokens
} from "../../domain/tokens/TextFeatures.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"

/** Estimates the tokens of messages, once each, and learns from the providers' counts how far the estimates are off. */

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

/** Returns the tokens of one message, as they are counted in a conversation. */
const messageFeatures = (dialect: Dialect, json: string): Features => {
  const [group] = wire[dialect].messages.read([parsedOrUndefined(json)])
  const parts = group?.content.parts ?? [{ text: json }]
  const { frame, ...features } = sumFeatures(parts.map((part) => Work.runSync(partFeatures(part))))
  return { ...features, frame: frame + frameTokens }
}

/** Estimates messages and heads, and corrects the estimates for each model. Mutable. */
export class MessageCounts {
  private readonly counts = new BoundedMap<string, Features>(maxCounts)
  private readonly models = new BoundedMap<string, Learned>(maxModels)
  private readonly hash: HashText

  constructor(hash: HashText) {
    this.hash = hash
  }

  /** The tokens of a message. `key` names it; without one it is hashed. */
  message(dialect: Dialect, json: string, key = this.hash(json)): Features {
    return this.held(key, () => messageFeatures(dialect, json))
  }

  /** The tokens of a head, which clients repeat from request to request. */
  head(text: string): Features {
    return this.held(this.hash(text), () => Work.runSync(textFeatures(text)))
  }

  /** Returns the model's tokens for one estimated token of a request; without one, of those before it. */
  factor(model: string, request?: Features): number {
    const { calibration } = this.models.get(model) ?? nothingLearned
    const likely = request === undefined ? undefined : Calibration.expected(calibration, request)
    const factor =
      request === undefined || likely === undefined
        ? Calibration.usualFactor(calibration)
        : likely / Math.max(1, totalTokens(request))
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

  private held(key: string, count: () => Features): Features {
    const held = this.counts.get(key)
    if (held !== undefined) return held
    const features = count()
    this.counts.set(key, features)
    return features
  }
}
