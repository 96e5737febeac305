/** Addresses of web pages as models and people write them into sentences. */

/** Ends of sentences and brackets that are not part of an address. A bracket that was opened in it is. */
const trimmed = (address: string): string => {
  let end = address.length
  for (; end > 0; end -= 1) {
    const char = address[end - 1] ?? ""
    if (".,;:!?*_".includes(char)) continue
    const opens = { ")": "(", "]": "[", "}": "{" }[char]
    if (opens === undefined || address.slice(0, end - 1).includes(opens)) break
  }
  return address.slice(0, end)
}

/** A file on GitHub as it is, where a page about it is named (spec 14). */
const rawOnGitHub = (url: URL): URL => {
  const [, owner, repository, kind, ...rest] = url.pathname.split("/")
  if (url.protocol !== "https:" || url.hostname !== "github.com" || kind !== "blob" || rest.length < 2) return url
  return new URL(`https://raw.githubusercontent.com/${owner}/${repository}/${rest.join("/")}`)
}

/** Every http and https address of a text, each once, in the order in which they come. */
export const webAddresses = (text: string): ReadonlyArray<URL> => {
  const found = new Map<string, URL>()
  for (const [address] of text.matchAll(/\bhttps?:\/\/[^\s<>"'`\\^|]+/gi)) {
    if (!URL.canParse(trimmed(address))) continue
    const url = rawOnGitHub(new URL(trimmed(address)))
    url.hash = ""
    found.set(url.href, url)
  }
  return [...found.values()]
}
