/**
 * `npm run build:lib`: builds the library into dist/lib: the modules that its entries use, and the declarations that theirs name. Comments stay in the declarations, where editors show
 * them; modules have none, which takes a quarter off the package. Bundlers may leave out each value that a program does not use.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseSync } from "oxc-parser"
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

/** Whether a bundler sees by itself that evaluating this does nothing else. */
const isInert = (node) =>
  node === null ||
  /^(?:Literal|Identifier|ArrowFunctionExpression|FunctionExpression)$/.test(node.type) ||
  (node.type === "TemplateLiteral" && node.expressions.length === 0)

const require = createRequire(import.meta.url)
const effectModules = path.dirname(require.resolve("effect"))
const exists = (module) => existsSync(path.join(effectModules, `${module}.js`))

/**
 * Where a name of an index of effect is from: a module by that name, or `Function` for the few functions of the root. From the index, esbuild takes a namespace as a whole.
 */
const direct = (source, name, local) => {
  const folder = source.replace(/^effect\/?/, "")
  const module = path.posix.join(folder, name)
  if (exists(module)) return `import * as ${local} from "effect/${module}";`
  if (folder === "") return `import { ${name === local ? name : `${name} as ${local}`} } from "effect/Function";`
  return undefined
}

/**
 * Marks what a module computes when it is loaded as free of side effects. A bundler that sees a call, a property or a base class at the top of a module keeps it with all that it refers to,
 * and `sideEffects: false` drops whole modules only.
 */
const marked = (code, file) => {
  const edits = []
  const edit = (from, to, text) => edits.push({ from, to, text })
  const pure = (from, to) => {
    edit(from, from, "/*#__PURE__*/ (() => (")
    edit(to, to, "))()")
  }
  for (const statement of parseSync(file, code).program.body) {
    const source = statement.type === "ImportDeclaration" ? statement.source.value : ""
    if (/^effect(?:\/[a-z-]+)*$/.test(source) && statement.specifiers.every(({ type }) => type === "ImportSpecifier")) {
      const lines = statement.specifiers.map(({ imported, local }) => direct(source, imported.name, local.name))
      if (lines.every((line) => line !== undefined)) edit(statement.start, statement.end, lines.join("\n"))
      continue
    }
    const isExport = statement.type === "ExportNamedDeclaration"
    const node = isExport ? statement.declaration : statement
    if (node?.type === "ClassDeclaration") {
      edit(node.start, node.start, `const ${node.id.name} = `)
      pure(node.start, node.end)
    }
    if (node?.type !== "VariableDeclaration") continue
    for (const { id, init } of node.declarations) {
      if (id.type === "Identifier" && !isInert(init)) pure(init.start, init.end)
      if (id.type !== "ObjectPattern") continue
      // Each name by itself: taking an object apart reads it.
      const whole = `(${code.slice(init.start, init.end)})`
      const names = id.properties.map(
        ({ key, value }) => `${value.name} = /*#__PURE__*/ (() => ${whole}.${key.name})()`
      )
      edit(id.start, init.end, names.join(", "))
    }
  }
  return edits
    .toReversed()
    .toSorted((a, b) => b.from - a.from)
    .reduce((text, { from, text: added, to }) => text.slice(0, from) + added + text.slice(to), code)
}

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
  writeFileSync(file, marked(code, file))
}
