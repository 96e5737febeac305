import path from "node:path"
import { parseSync } from "oxc-parser"

/** The files that a source imports, at once or later, except those of which it uses types only. */
const importsOf = (file: string, text: string): ReadonlySet<string> => {
  const { dynamicImports, staticExports, staticImports } = parseSync(file, text).module
  const names = [
    ...staticImports
      .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ isType, moduleRequest }) => (isType || moduleRequest === null ? [] : [moduleRequest.value]))
    ),
    ...dynamicImports.map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1))
  ]
  const own = names.filter((name) => name.startsWith("."))
  return new Set(own.map((name) => path.posix.join(path.posix.dirname(file), name)))
}

/** What imports each file, by the text of all files. */
export const importersOf = (
  sources: Iterable<readonly [file: string, text: string]>
): ReadonlyMap<string, ReadonlyArray<string>> => {
  const importers = new Map<string, Array<string>>()
  for (const [file, text] of sources) {
    for (const imported of importsOf(file, text)) importers.set(imported, [...(importers.get(imported) ?? []), file])
  }
  return importers
}

/** How many imports lie between a file and each file that reaches it. */
export const distancesTo = (
  target: string,
  importers: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyMap<string, number> => {
  const distances = new Map([[target, 0]])
  // A map is walked in the order of its growth: nearer files first.
  for (const [file, distance] of distances) {
    for (const importer of importers.get(file) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1)
    }
  }
  return distances
}
