import { clipped } from "../../domain/text/Bytes.ts"
import { InvalidResponseError, ModelError, type ModelErrorReason } from "../../services/model/Model.ts"

/** Error handling that all providers share. */

/** A `ModelError` for a reason. */
export const failed = (reason: ModelErrorReason) => new ModelError({ reason })

/** A text of the server in one line, cut to what fits an error message. */
export const clip = (text: string): string => clipped(text.trim().replace(/\s+/g, " "), 500)

/** The error of an answer that cannot be used. */
export const unusable = (detail: string) => failed(new InvalidResponseError({ detail: clip(detail) }))

/** The shortest key that is hidden. Local servers are given keys such as `x` or `none`, whose letters are in every message. */
const minHiddenKey = 8

/** Returns a function that removes the key from a text of the server. */
export const hideKey =
  ({ key }: { readonly key: string | undefined }) =>
  (text: string): string =>
    key === undefined || key.length < minHiddenKey ? text : text.replaceAll(key, "<key>")
