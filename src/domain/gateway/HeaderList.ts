/** Headers as they are on the wire: names and values in turn, in their order and spelling. */
export type HeaderList = ReadonlyArray<string>

/** Returns the headers as pairs. */
export const headerPairs = (headers: HeaderList): ReadonlyArray<readonly [name: string, value: string]> =>
  headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ""] as const] : []))

/** Returns the value of the first header with this name, which is in lower case. */
export const headerOf = (headers: HeaderList, name: string): string | undefined =>
  headerPairs(headers).find(([each]) => each.toLowerCase() === name)?.[1]

/** Returns the headers without those named, in lower case. */
export const withoutHeaders = (headers: HeaderList, names: ReadonlyArray<string>): HeaderList =>
  headerPairs(headers)
    .filter(([name]) => !names.includes(name.toLowerCase()))
    .flat()

/** Headers that concern one connection only. */
const hopByHop = [
  "connection",
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
]

/**
 * Returns the headers that are passed on. Names in `connection` are not dropped as RFC 9110 asks: a client could name the headers that frame
 * its body or say who it is.
 */
export const endToEnd = (headers: HeaderList): HeaderList => withoutHeaders(headers, hopByHop)
