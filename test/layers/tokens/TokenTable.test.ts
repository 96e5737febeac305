import { assert, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { machine } from "../../../src/domain/tokens/TokenMachine.ts"
import { encoded, fileName, read } from "../../../src/layers/tokens/TokenTable.ts"

it("TokenTable reads the table that the build writes, and none where there is none", () => {
  const folder = mkdtempSync(join(tmpdir(), "palimpsest-tokens-"))
  const file = join(folder, fileName)
  assert.isUndefined(read(file))
  writeFileSync(file, encoded())
  const table = read(file)
  rmSync(folder, { recursive: true })
  assert.isTrue(table !== undefined && Buffer.from(encoded(table)).equals(encoded(machine())))
})
