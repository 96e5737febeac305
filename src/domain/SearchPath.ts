/**
 * Where programs are looked for. A relative part of PATH (`.`, an empty one, `node_modules/.bin`) means another folder wherever
 * one works, so whoever made that folder would choose the program.
 */

const isAbsolute = (part: string): boolean => /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(part)

/** Windows parts begin with a letter and a colon, so those of a PATH there are told apart by semicolons. */
const delimiterOf = (separator: string): string => (separator === "\\" ? ";" : ":")

/** The parts of a PATH that mean the same folder everywhere, each once. `separator` is that of the system's paths. */
export const absoluteParts = (searchPath: string, separator: string): ReadonlyArray<string> => [
  ...new Set(searchPath.split(delimiterOf(separator)).filter(isAbsolute))
]

/** Where a PATH has no absolute part: without any, shells would look in the folder that they work in. */
const systemParts = "/usr/bin:/bin"

/** Variables in which PATH has its absolute parts alone. */
export const withAbsolutePath = (variables: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(variables).map(([name, value]) => {
      if (name.toUpperCase() !== "PATH") return [name, value]
      // A lone `;` is part of a folder's name where paths begin with a slash.
      const separator = /(?:^|;)[A-Za-z]:[\\/]/.test(value) ? "\\" : "/"
      const parts = absoluteParts(value, separator)
      return [name, parts.length === 0 ? systemParts : parts.join(delimiterOf(separator))]
    })
  )
