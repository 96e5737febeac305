/**
 * The folders of a PATH in which programs are searched. A relative part (`.`, an empty one, `node_modules/.bin`) denotes another folder
 * in every working folder, so the author of that folder would choose the program.
 */

const isAbsolute = (part: string): boolean => /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(part)

/** Returns the delimiter of PATH parts. Windows parts begin with a letter and a colon, so semicolons separate them. */
const delimiterOf = (separator: string): string => (separator === "\\" ? ";" : ":")

/** Returns the absolute parts of a PATH, each once. `separator` is that of the system's paths. */
export const absoluteParts = (searchPath: string, separator: string): ReadonlyArray<string> => [
  ...new Set(searchPath.split(delimiterOf(separator)).filter(isAbsolute))
]

/** Returns parts as a PATH. */
export const joinedParts = (parts: ReadonlyArray<string>, separator: string): string =>
  parts.join(delimiterOf(separator))

/** Used when a PATH has no absolute part: without any, shells would search the working folder. */
const systemParts = "/usr/bin:/bin"

/** Returns the variables with only the absolute parts of PATH. */
export const withAbsolutePath = (variables: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variables).map(([name, value]) => {
      if (name.toUpperCase() !== "PATH") return [name, value]
      // Where paths begin with a slash, a lone `;` is part of a folder's name.
      const separator = /(?:^|;)[A-Za-z]:[\\/]/.test(value) ? "\\" : "/"
      const parts = absoluteParts(value, separator)
      return [name, parts.length === 0 ? systemParts : joinedParts(parts, separator)]
    })
  )
