/**
 * `npm run build:lib`: builds the library into dist/lib: one module for each source, and its declarations. Comments stay in the declarations, where editors show
 * them; modules have none, which takes a quarter off the package.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { minifySync } from "rolldown/experimental"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const out = path.join(root, "dist", "lib")

rmSync(out, { recursive: true, force: true })
const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
execFileSync(process.execPath, [tsc, "-p", "tsconfig.lib.json"], { cwd: root, stdio: "inherit" })
// Modules whose packages have types that the program cannot take are written in JavaScript.
for (const name of globSync("**/*.{mjs,d.mts}", { cwd: path.join(root, "src") })) {
  copyFileSync(path.join(root, "src", name), path.join(out, name))
}
for (const name of globSync("**/*.js", { cwd: out })) {
  const file = path.join(out, name)
  const { code, errors } = minifySync(file, readFileSync(file, "utf8"), {
    compress: false,
    mangle: false,
    codegen: { removeWhitespace: false }
  })
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`)
  writeFileSync(file, code)
}
