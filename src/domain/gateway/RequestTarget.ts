/**
 * The target of a request, in one form. What is decided for a path and what is sent are the same text: servers take
 * `//v1/messages`, `/v1/messages/`, `/v1/%6Dessages` and `http://any/v1/messages` for one address.
 */

/** A parameter of the query: its decoded name and value, and its text in the target. */
export interface QueryParameter {
  readonly name: string
  readonly value: string
  readonly text: string
}

/** A path without empty or dotted segments, whose escapes are those that a path needs; and the query as it was sent. */
export interface RequestTarget {
  readonly path: string
  readonly query: ReadonlyArray<QueryParameter>
}

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The escapes of characters that RFC 3986 allows in a segment as they are. */
const needless = /%(?:24|26|2B|2C|3A|3B|3D|40)/g

const encodedSegment = (text: string): string => encodeURIComponent(text).replace(needless, decodeURIComponent)

const pathOf = (text: string): string | undefined => {
  const segments: Array<string> = []
  for (const part of text.split("/")) {
    const segment = decoded(part)
    if (segment === undefined) return undefined
    if (segment === "..") segments.pop()
    else if (segment !== "" && segment !== ".") segments.push(encodedSegment(segment))
  }
  return `/${segments.join("/")}`
}

const parameterOf = (text: string): QueryParameter | undefined => {
  const [before = "", ...after] = text.split("=")
  const name = decoded(before.replaceAll("+", " "))
  const value = decoded(after.join("=").replaceAll("+", " "))
  return name === undefined || value === undefined ? undefined : { name, value, text }
}

/**
 * Reads the target of a request: a path with its query, or an absolute address, whose host is dropped. Returns undefined for anything
 * else, for invalid escapes, a fragment, and characters beyond ASCII.
 */
export const requestTarget = (target: string): RequestTarget | undefined => {
  const [whole = "", ...search] = target.replace(/^https?:\/\/[^/?#]*/i, "").split("?")
  if (!/^[!"$-~]*$/.test(target) || !(whole === "" ? /^http/i.test(target) : whole.startsWith("/"))) return undefined
  const path = pathOf(whole)
  const query = search
    .join("?")
    .split("&")
    .filter((text) => text !== "")
    .map(parameterOf)
  if (path === undefined || query.includes(undefined)) return undefined
  return { path, query: query.filter((parameter) => parameter !== undefined) }
}

/** Writes a target as it is sent. */
export const targetText = ({ path, query }: RequestTarget): string =>
  query.length === 0 ? path : `${path}?${query.map(({ text }) => text).join("&")}`
