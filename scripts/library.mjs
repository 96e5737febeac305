/**
 * `npm run build:lib`: builds the library into dist/lib: the modules that its entries use, and the declarations that theirs name. Comments stay in the declarations, where editors show
 * them; modules have none, which takes a quarter off the package.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { minifySync } from "rolldown/experimental"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const out = path.join(root, "dist", "lib")

rmSync(out, { recursive: true, force: true })
const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
execFileSync(process.execPath, [tsc, "-p", "tsconfig.lib.json"], { cwd: root, stdio: "inherit" })
/** The files that the entries refer to, and those that these refer to. A declaration refers to declarations. */
const used = new Set()
const use = (file) => {
  if (used.has(file)) return
  used.add(file)
  // Modules whose packages have types that the program cannot take are written in JavaScript.
  if (!existsSync(file)) copyFileSync(path.join(root, "src", path.relative(out, file)), file)
  const text = readFileSync(file, "utf8")
  for (const [, target] of text.matchAll(/(?:\bfrom |\bimport ?\(?)"(\.[^"]+)"/g)) {
    const name = file.endsWith(".d.ts") ? target.replace(/\.ts$/, ".d.ts").replace(/\.mjs$/, ".d.mts") : target
    use(path.join(path.dirname(file), name))
  }
}
for (const entry of globSync("*.{js,d.ts}", { cwd: out })) use(path.join(out, entry))

for (const name of globSync("**/*.{js,mjs,ts,mts}", { cwd: out })) {
  const file = path.join(out, name)
  if (!used.has(file)) rmSync(file)
  if (!used.has(file) || !name.endsWith("js")) continue
  const { code, errors } = minifySync(file, readFileSync(file, "utf8"), {
    compress: false,
    mangle: false,
    codegen: { removeWhitespace: false }
  })
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`)
  writeFileSync(file, code)
}
