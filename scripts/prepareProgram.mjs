/** Before `npm pack ./program`: builds the program into that folder, and puts the manual, the plugins and the licence beside it. */
import { copyFileSync, cpSync, rmSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "./build.mjs"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const program = path.join(root, "program")

for (const name of ["parts", "docs", "integrations"]) rmSync(path.join(program, name), { recursive: true, force: true })
await build(path.join(program, "palimpsest.mjs"))
for (const name of ["LICENSE", "CHANGELOG.md"]) copyFileSync(path.join(root, name), path.join(program, name))
// The reference of the library is in its own package.
cpSync(path.join(root, "docs"), path.join(program, "docs"), {
  recursive: true,
  filter: (source) => path.basename(source) !== "api"
})
cpSync(path.join(root, "integrations"), path.join(program, "integrations"), { recursive: true })
