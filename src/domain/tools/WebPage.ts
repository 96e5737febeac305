import { Result } from "effect"
import { protect } from "../text/UntrustedText.ts"

/** What a web server says about a page, and how its text is read and shown to a model. */

/** A page whose text was read. */
interface WebPage {
  readonly url: URL
  readonly type: string
  readonly text: string
  readonly note: string
}

/** A media type (RFC 6838). */
const typeName = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/

const textTypes = /^text\/|[/+](?:json|xml|yaml|toml|javascript|ecmascript|x-sh|x-ndjson|sql|graphql|rtf)$/

/** Returns the media type of a `Content-Type` header, and how pages of it are read. A page without a type is text. */
export const mediaType = (
  contentType: string
): { readonly type: string; readonly kind: "html" | "text" | "other" | "invalid" } => {
  const type = (contentType.split(";")[0] ?? "").trim().toLowerCase()
  if (type === "") return { type, kind: "text" }
  if (!typeName.test(type)) return { type, kind: "invalid" }
  if (type === "text/html" || type === "application/xhtml+xml") return { type, kind: "html" }
  return { type, kind: textTypes.test(type) ? "text" : "other" }
}

/** Decodes a page in the encoding that the server names, or else the page itself. An unknown encoding is read as UTF-8. */
export const decodePage = (bytes: Uint8Array, contentType: string): string => {
  const beginning = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024))
  const label =
    /charset\s*=\s*["']?([\w-]+)/i.exec(contentType)?.[1] ??
    /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(beginning)?.[1]
  const decoder = Result.try(() => new TextDecoder(label ?? "utf-8"))
  return Result.getOrElse(decoder, () => new TextDecoder("utf-8")).decode(bytes)
}

/** Returns the element that marks a page as untrusted. Nothing in the page can close it or open another. */
export const pageElement = ({ note, text, type, url }: WebPage): string =>
  [
    `<web_page url=${JSON.stringify(url.href)} type=${JSON.stringify(type)}>`,
    protect(text),
    `</web_page>${note === "" ? "" : `\n(${note})`}`
  ].join("\n")
