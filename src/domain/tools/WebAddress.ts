/** Finds web page addresses in sentences, as models and users write them. */

/** Removes sentence ends and brackets that are not part of an address. A bracket that was opened within the address is part of it. */
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

/** Returns the raw file for the address of a file page on GitHub. */
const rawOnGitHub = (url: URL): URL => {
  const [, owner, repository, kind, ...rest] = url.pathname.split("/")
  if (url.protocol !== "https:" || url.hostname !== "github.com" || kind !== "blob" || rest.length < 2) return url
  return new URL(`https://raw.githubusercontent.com/${owner}/${repository}/${rest.join("/")}`)
}

/** Returns every http and https address of a text, each once, in order. */
export const webAddresses = (text: string): ReadonlyArray<URL> => {
  const addresses = new Map<string, URL>()
  for (const [address] of text.matchAll(/\bhttps?:\/\/[^\s<>"'`\\^|]+/gi)) {
    if (!URL.canParse(trimmed(address))) continue
    const url = rawOnGitHub(new URL(trimmed(address)))
    url.hash = ""
    addresses.set(url.href, url)
  }
  return [...addresses.values()]
}

/** Returns the host of an address, as grants and rate limits name it. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/\.$/, "")

/** Whether permission for one address covers the other: the same host, with or without `www`. */
export const isSameSite = (one: URL, other: URL): boolean =>
  hostOf(one).replace(/^www\./, "") === hostOf(other).replace(/^www\./, "")
