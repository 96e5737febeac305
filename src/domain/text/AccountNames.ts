/** Finds names of accounts by their home folders, and where these names and folders stand in a text. */

import type { Finding } from "./Finding.ts"

const homes = /(?:\/home\/|\/Users\/|[A-Za-z]:(?:\\{1,2}|\/)Users(?:\\{1,2}|\/))([A-Za-z0-9_][\w.-]{1,63})/g
/** Names of accounts that belong to nobody. */
const nobody = new Set(
  (
    "user username users you me name root admin administrator ubuntu debian alpine centos fedora ec2-user azureuser vagrant runner " +
    "runneradmin circleci jenkins travis gitpod codespace vscode node python postgres git www-data nobody app dev work workspace " +
    "home test guest shared public default linuxbrew agent assistant developer function claude codex gemini model system tool auto manual summary"
  ).split(" ")
)
/** Shorter names are not looked for. */
export const minAccountChars = 3

/** Whether a name is that of an account of one person. */
const isOwnAccount = (name: string): boolean =>
  name.length >= minAccountChars && /[a-z]{2}/i.test(name) && !nobody.has(name.toLowerCase())

/** Returns the names of the accounts whose home folders a text names. */
export const accountNamesIn = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(homes)].flatMap(([, name = ""]) => {
      const bare = name.replace(/[.-]+$/, "")
      return isOwnAccount(bare) ? [bare] : []
    })
  )

/** Returns the names of the account that runs this program, by its environment variables. */
export const accountOf = (variables: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  [variables["USER"], variables["LOGNAME"], variables["USERNAME"]].flatMap((name = "") =>
    isOwnAccount(name) ? [name] : []
  )

/** Returns a function that finds these names as whole words in any case, each with the home folder that it ends. */
export const accountFinder = (names: ReadonlyArray<string>): ((text: string) => ReadonlyArray<Finding>) => {
  if (names.length === 0) return () => []
  const words = names.map((name) => name.replace(/[.*+?^${}()|[\]\\-]/g, "\\$&")).join("|")
  const pattern = new RegExp(
    `(?:/home/|/Users/|[A-Za-z]:(?:\\\\{1,2}|/)Users(?:\\\\{1,2}|/))?(?<![A-Za-z0-9])(?:${words})(?![A-Za-z0-9])`,
    "gi"
  )
  return (text) =>
    [...text.matchAll(pattern)].map(({ 0: whole, index: start }) => ({
      start,
      end: start + whole.length,
      kind: /[\\/]/.test(whole) ? "home folder" : "account"
    }))
}
