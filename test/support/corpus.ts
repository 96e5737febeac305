import { readFileSync } from "node:fs"
import path from "node:path"
import { root } from "./paths.ts"

/** The rows of a collection in `test/fixtures`, which has one JSON value a line. */
export const corpus = <Row>(name: string): ReadonlyArray<Row> =>
  readFileSync(path.join(root, `test/fixtures/${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line): Row => JSON.parse(line))
