import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { root } from "../support/paths.ts"

const read = (...place: ReadonlyArray<string>): string => readFileSync(path.join(root, ...place), "utf8")
const rules: ReadonlyArray<{
  readonly name: string
  readonly off: ReadonlyArray<readonly [file: string, from: string]>
}> = JSON.parse(read("bench", "rules.json"))

it("each rule that `npm run bench:rules` switches off is in its source, once", () => {
  assert.isAbove(rules.length, 40)
  for (const { name, off } of rules)
    for (const [file, from] of off)
      assert.lengthOf(read("src", "domain", "compression", file).split(from), 2, `${name}: ${from}`)
})
