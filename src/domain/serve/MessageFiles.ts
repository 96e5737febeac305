/** The files of a message that a client sends. */

import { Result } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { type Part, text } from "../content/Content.ts"

/** A file, as base64. */
interface SentFile {
  readonly mimeType: string
  readonly data: string
  readonly name?: string | undefined
}

/** Whether a model takes the bytes of a file as they are. Others are sent as text. */
export const isBinary = ({ mimeType }: SentFile): boolean =>
  /^(?:image|audio|video)\//.test(mimeType) || mimeType === "application/pdf"

/** The text of a file; undefined when its bytes are none. */
export const textOf = ({ data }: SentFile): string | undefined =>
  Result.getOrUndefined(
    Result.flatMap(Base64.decode(data), (bytes) =>
      Result.try(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    )
  )

/** The part of a message that holds a file. A file of text begins with a line that names it. */
export const filePart = (file: SentFile): Part => {
  const { data, mimeType, name } = file
  if (isBinary(file)) return { inlineData: { mimeType, data } }
  return text(`[file ${name ?? mimeType}]\n${textOf(file) ?? ""}`)
}
