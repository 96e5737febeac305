/** Which summarizing models a session still asks. */

import { contextLength, failedModelsOf } from "../../domain/compression/Compression.ts"
import { modelNames } from "../../domain/compression/PolicyOptions.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import {
  defaultModelName,
  type FailureMemory,
  maxUnusable,
  usableModels
} from "../../domain/conversation/FailureMemory.ts"
import type { CompressionResult } from "./strategies/CompressRequest.ts"

/** The names of a policy's summarizing models. */
const namesOf = ({ model }: Pick<Policy, "model">): ReadonlyArray<string> =>
  model === undefined ? [defaultModelName] : modelNames(model)

/** Returns the policy without the models that gave nothing usable several times in a row. Where none is left, code writes the summary. */
export const withUsableModels = (policy: Policy, memory: FailureMemory): Policy => {
  if (policy.summarizer !== "model" || memory.unusable === undefined) return policy
  const names = namesOf(policy)
  const [first, ...others] = usableModels(memory, names)
  if (first === undefined) return { ...policy, summarizer: "extractive" }
  return others.length + 1 === names.length ? policy : { ...policy, model: [first, ...others] }
}

/** Returns the models of a policy that gave nothing usable in a compression. */
export const unusableIn = ({ outcome, unusable }: CompressionResult, policy: Policy): ReadonlyArray<string> => {
  if (unusable !== undefined) return unusable
  if (policy.summarizer !== "model") return []
  const isFailed =
    outcome._tag === "FailedEmptySummary" || (outcome._tag === "FailedSummarizer" && outcome.reason !== contextLength)
  return isFailed ? namesOf(policy) : failedModelsOf(outcome).map(({ model }) => model)
}

/** Says of which models of a compression no other is asked for. Undefined: of none. `after`: the memory with this compression. */
export const givenUpText = (after: FailureMemory, unusable: ReadonlyArray<string>): string | undefined => {
  const usable = usableModels(after, unusable)
  const given = unusable.filter((name) => !usable.includes(name))
  return given.length === 0
    ? undefined
    : `no usable summary from ${given.join(" and ")} ${maxUnusable} times in a row; not asked again in this session unless you choose another model`
}
