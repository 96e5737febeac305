import { isIndex } from "../../src/domain/compression/handover/NameIndex.ts"
import type { Snapshot } from "../../src/domain/compression/Snapshot.ts"

/** Returns the names in the list of a snapshot, with the files above them. */
export const indexedNames = ({ key_knowledge }: Snapshot) =>
  key_knowledge.filter(isIndex).flatMap(({ text }) =>
    text
      .split("\n")
      .slice(1)
      .flatMap((line) => {
        const [, file = "", names = ""] = /^\s*([^:]+): (.*)$/.exec(line) ?? []
        return names.split(" ").map((name) => ({ name, file: file === "elsewhere" ? undefined : file }))
      })
  )
