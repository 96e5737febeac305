/**
 * Before `npm pack ./program`: builds the program into that folder, and puts the manual, the plugins and the licence beside it. Another folder that is
 * given becomes such a package, too.
 */
import { cpSync, mkdirSync, rmSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "./build.mjs"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const program = path.join(root, "program")
const [, , folder = program] = process.argv

mkdirSync(folder, { recursive: true })
if (folder !== program)
  for (const name of ["package.json", "README.md"]) cpSync(path.join(program, name), path.join(folder, name))
for (const name of ["parts", "docs", "integrations"]) rmSync(path.join(folder, name), { recursive: true, force: true })
for (const name of ["LICENSE", "CHANGELOG.md"]) cpSync(path.join(root, name), path.join(folder, name))
// The reference of the library is in its own package.
cpSync(path.join(root, "docs"), path.join(folder, "docs"), {
  recursive: true,
  filter: (source) => path.basename(source) !== "api"
})
cpSync(path.join(root, "integrations"), path.join(folder, "integrations"), { recursive: true })
await build(path.join(folder, "palimpsest.mjs"))
