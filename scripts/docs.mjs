/**
 * `npm run docs`: the reference of the library, one Markdown page a module and an index, in docs/api. Signatures come from
 * the declarations the compiler writes, so they are what a program sees; docstrings, and the schemas behind types that the
 * compiler would write out over pages, come from the sources. The same sources give the same bytes.
 *
 * `npm run docs:check` lists what has no docstring: exports, and the members of services, classes and interfaces. A type
 * beside a schema of its name has the schema's, a case taken out of a union has the union's.
 *
 * Options: `--out DIR`, `--check`, `--sources DIR`, `--declarations DIR` (made anew when not given).
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { parseSync, Visitor } from "oxc-parser"
import { format } from "oxfmt"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const folders = ["domain", "services", "layers"]

// --- reading ----------------------------------------------------------------------------------------------------------

const parse = (file) => {
  const text = readFileSync(file, "utf8")
  const { comments, errors, program } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`)
  return { text, body: program.body, docs: comments.filter(({ type, value }) => type === "Block" && value[0] === "*") }
}

/** The text of a docstring without its frame. */
const plain = ({ value }) =>
  value
    .slice(1)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim()

/** The docstring right before a place. */
const docAt = ({ docs, text }, start) => {
  const found = docs.findLast(({ end }) => end <= start && text.slice(end, start).trim() === "")
  return found === undefined || /\n\s*\n/.test(text.slice(found.end, start)) ? undefined : plain(found)
}

/** The docstring of a module: the first of all, when a line is free behind it. */
const moduleDoc = ({ body, docs, text }) => {
  const [first] = docs
  if (first === undefined || !/^\s*\n\s*\n/.test(text.slice(first.end))) return undefined
  const code = body.find(({ type }) => type !== "ImportDeclaration")
  return code === undefined || first.end <= code.start ? plain(first) : undefined
}

/** Everything a module declares at its top, each name on its own: `export const { A, B } = C` are two. */
const declared = (parsed) =>
  parsed.body.flatMap((statement) => {
    const exported = statement.type === "ExportNamedDeclaration"
    const node = exported ? statement.declaration : statement
    const doc = docAt(parsed, statement.start)
    const one = (name, rest) => ({ name, exported, doc, statement, node, ...rest })
    if (node?.type !== "VariableDeclaration") return node?.id?.name === undefined ? [] : [one(node.id.name, {})]
    return node.declarations.flatMap(({ id, init }) => {
      if (id.type !== "ObjectPattern") return [one(id.name, { annotation: id.typeAnnotation?.typeAnnotation, init })]
      const from = parsed.text.slice(init.start, init.end)
      return id.properties.map(({ key }) => one(key.name, { from }))
    })
  })

/** What a module imports: local name to module and name there; `*` is the whole module. */
const imported = ({ body }, module) =>
  new Map(
    body
      .filter(({ source, type }) => type === "ImportDeclaration" && source.value.startsWith("."))
      .flatMap(({ source, specifiers }) => {
        const from = path.posix.join(path.posix.dirname(module), source.value).replace(/\.ts$/, "")
        return specifiers.map(({ imported, local }) => [local.name, { module: from, name: imported?.name ?? "*" }])
      })
  )

const isService = (base) => base?.startsWith("Context.ServiceClass<") === true
const isError = (base) => base?.includes("YieldableError") === true

/** The members of a service: of the last argument of its base. */
const shapeOf = (annotation) => annotation?.typeArguments?.params.findLast(({ type }) => type === "TSTypeLiteral")

const memberName = ({ key }) => key?.name ?? key?.value
const isPublic = ({ accessibility, key }) =>
  accessibility !== "private" && accessibility !== "protected" && key?.type !== "PrivateIdentifier"

const readModule = (module, { declarations, sources }) => {
  const source = parse(path.join(sources, `${module}.ts`))
  const types = parse(path.join(declarations, `${module}.d.ts`))
  const written = Map.groupBy(declared(source), ({ name }) => name)
  const all = declared(types)
  const base = new Map(all.filter(({ exported }) => !exported).map((one) => [one.name, one.annotation]))
  const names = [...new Set(all.filter(({ exported }) => exported).map(({ name }) => name))]
  return {
    module,
    source,
    types,
    written,
    doc: moduleDoc(source),
    imports: new Map([...imported(source, module), ...imported(types, module)]),
    exports: names.map((name) => ({ name, parts: all.filter((one) => one.name === name && one.exported), base }))
  }
}

const modulesIn = (sources) =>
  folders
    .flatMap((folder) =>
      readdirSync(path.join(sources, folder), { recursive: true }).map((file) => `${folder}/${file}`)
    )
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -3))
    .sort()

// --- what has no docstring ---------------------------------------------------------------------------------------------

const lineOf = ({ text }, start) => text.slice(0, start).split("\n").length

/** What somebody can call or wait for. Fields of records say themselves what they are, or have a docstring where not. */
const does = ({ type, typeAnnotation, value }, { text }) => {
  const annotation = typeAnnotation?.typeAnnotation
  return (
    type === "MethodDefinition" ||
    type === "TSMethodSignature" ||
    annotation?.type === "TSFunctionType" ||
    (annotation?.type === "TSTypeReference" &&
      /^(?:Effect|Stream|Layer)\./.test(text.slice(annotation.start, annotation.end))) ||
    (value !== undefined && value !== null && value.type !== "NewExpression" && value.type !== "Literal")
  )
}

/** The members a caller sees: of a service what it does, and what is made with it. */
const membersOf = (node, source) => {
  // class X extends Context.Service<X, { … }>()("…")
  const service = node.superClass?.callee
  const shape = service?.typeArguments?.params.findLast(({ type }) => type === "TSTypeLiteral")
  const own = node.type === "ClassDeclaration" || node.type === "TSInterfaceDeclaration" ? node.body.body : []
  return [...(shape?.members ?? []), ...own].filter(
    (member) =>
      isPublic(member) &&
      member.override !== true &&
      member.kind !== "constructor" &&
      memberName(member) !== undefined &&
      does(member, source)
  )
}

/** The schema whose values a type names, as `type A = typeof A.Type` does. */
const schemaOf = ({ node }, { text }) =>
  node.type === "TSTypeAliasDeclaration"
    ? /^\(?typeof (\w+)\b/.exec(text.slice(node.typeAnnotation.start, node.typeAnnotation.end))?.[1]
    : undefined

const undocumented = ({ module, source, written }) =>
  [...written.values()].flat().flatMap((one) => {
    if (!one.exported) return []
    const at = (start, name) => `src/${module}.ts:${lineOf(source, start)} ${name}`
    const origin = one.from?.split(".")[0] ?? schemaOf(one, source)
    const inherits = written.get(origin)?.some(({ doc }) => doc !== undefined)
    const self = one.doc !== undefined || inherits ? [] : [at(one.statement.start, one.name)]
    const members = membersOf(one.node, source).filter((member) => docAt(source, member.start) === undefined)
    return [...self, ...members.map((member) => at(member.start, `${one.name}.${memberName(member)}`))]
  })

// --- signatures --------------------------------------------------------------------------------------------------------

const pretty = async (code) => {
  const options = { semi: false, printWidth: 100, trailingComma: "none" }
  const { code: text, errors } = await format("signature.ts", code, options)
  if (errors.length > 0) throw new Error(`${errors[0].message}: ${code}`)
  return text.trim()
}

const bare = (code) => code.replace(/\bimport\("[^"]+"\)\./g, "").replace(/^export (?:declare )?/, "")

/** A schema as it is written, with the pieces of it that the module keeps to itself. */
const asWritten = ({ source, written }, { init, name }) => {
  const seen = new Set()
  const pieces = []
  const collect = (node) => {
    new Visitor({
      Identifier: ({ name: used }) => {
        const [local] = written.get(used) ?? []
        if (local?.init === undefined || local.exported || seen.has(used)) return
        seen.add(used)
        collect(local.init)
        pieces.push(source.text.slice(local.statement.start, local.statement.end))
      }
    }).visit({ type: "Program", body: [{ type: "ExpressionStatement", expression: node }], sourceType: "module" })
  }
  collect(init)
  return [...pieces, `const ${name} = ${source.text.slice(init.start, init.end)}`].join("\n\n")
}

/**
 * The type of a function made by `Effect.fn` as its source says it: the compiler forgets the names of types there. None
 * where the source leaves it to the compiler.
 */
const effectFunction = ({ source }, init) => {
  const made = init?.type === "CallExpression" ? init.arguments.find(({ generator }) => generator === true) : undefined
  const text = ({ end, start }) => source.text.slice(start, end)
  const returned = made?.returnType && text(made.returnType.typeAnnotation)
  if (!returned?.startsWith("Effect.fn.Return<")) return undefined
  const parameters = made.params
    .filter(({ name }) => name !== "this")
    .map((parameter) => {
      const { left, right } = parameter.type === "AssignmentPattern" ? parameter : { left: parameter }
      const type = left.typeAnnotation && text(left.typeAnnotation.typeAnnotation)
      return type && `${left.name ?? "options"}${right === undefined && !left.optional ? "" : "?"}: ${type}`
    })
  if (parameters.includes(undefined)) return undefined
  const generics = made.typeParameters === null ? "" : text(made.typeParameters)
  return `${generics}(${parameters.join(", ")}) => ${returned.replace("Effect.fn.Return", "Effect.Effect")}`
}

const longest = 8

/** What an export is, and the code that shows it. */
const shown = (page, { base, name, parts }) => {
  const { source, types, written } = page
  const code = ({ end, start }) => types.text.slice(start, end)
  const blocks = []
  const members = []
  let kind
  for (const part of parts) {
    const { annotation, node } = part
    const text = annotation === undefined ? undefined : bare(code(annotation))
    const own = written.get(name)?.find((one) => one.exported && one.node.type === node.type)
    if (node.type === "ClassDeclaration") {
      const parent = base.get(node.superClass?.name)
      const parentText = parent === undefined ? undefined : bare(code(parent))
      kind ??= isService(parentText) ? "service" : isError(parentText) ? "error" : "class"
      const extended = own?.node.superClass
      if (kind === "service") blocks.push(`declare class ${name} extends Context.Service {}`)
      else if (extended)
        blocks.push(`declare class ${name} extends ${source.text.slice(extended.start, extended.end)} {}`)
      else blocks.push(`declare class ${name} {}`)
      const shape = shapeOf(parent)
      const same = shape === undefined ? undefined : code(shape).replace(/\s+/g, " ")
      for (const member of [...(kind === "service" ? (shape?.members ?? []) : []), ...node.body.body]) {
        if (
          !isPublic(member) ||
          member.kind === "constructor" ||
          (kind === "error" && memberName(member) === "message")
        ) {
          continue
        }
        const written = bare(code(member)).replace(/\s+/g, " ")
        const inSource = own?.node.body?.body.find((one) => memberName(one) === memberName(member))
        const asFunction = effectFunction(page, inSource?.value)
        const head = `${member.static === true ? "static " : ""}readonly ${memberName(member)}`
        members.push({
          name: memberName(member),
          // A static that makes the service would repeat all of it.
          code:
            asFunction !== undefined
              ? `${head}: ${asFunction}`
              : same === undefined
                ? bare(code(member))
                : written.replace(same, `${name}["Service"]`),
          doc: docAt(types, member.start)
        })
      }
    } else if (node.type === "VariableDeclaration") {
      if (own?.from !== undefined) {
        kind ??= "schema"
        blocks.push(`const ${name} = ${own.from}.${name}`)
        continue
      }
      const isSchema = text?.startsWith("Schema.") === true
      kind ??= isSchema
        ? "schema"
        : /^(?:\([^]*=> )?Layer\.Layer</.test(text ?? "")
          ? "layer"
          : annotation?.type === "TSFunctionType"
            ? "function"
            : "value"
      if (isSchema && own?.init && text.split("\n").length > longest) blocks.push(asWritten(page, own))
      else blocks.push(`declare const ${name}: ${effectFunction(page, own?.init) ?? text ?? "unknown"}`)
    } else {
      kind ??=
        node.type === "TSInterfaceDeclaration"
          ? "interface"
          : node.type === "TSTypeAliasDeclaration"
            ? "type"
            : "function"
      const text = bare(code(part.statement))
      blocks.push(kind === "function" ? `declare ${text}` : text)
    }
  }
  const doc = (written.get(name) ?? [])
    .filter(({ exported }) => exported)
    .map((one) => one.doc)
    .find(Boolean)
  const union =
    parts[0].node.type === "VariableDeclaration" && written.get(name)?.find(({ from }) => from !== undefined)
  return { name, kind, blocks, members, doc: doc ?? (union ? `A case of \`${union.from.split(".")[0]}\`.` : undefined) }
}

// --- pages -------------------------------------------------------------------------------------------------------------

const pageOf = (module) => `${module}.md`
const linkFrom = (module, target) => path.posix.relative(path.posix.dirname(pageOf(module)), target)

/** Headings get the anchors that GitHub gives them: lower case, and a number where another had the same. */
const anchorsOf = (names) => {
  const used = new Map()
  return new Map(
    names.map((name) => {
      const slug = name.toLowerCase()
      const times = used.get(slug) ?? 0
      used.set(slug, times + 1)
      return [name, times === 0 ? slug : `${slug}-${times}`]
    })
  )
}

/** Where a name of this module's code leads. */
const resolver = (page, library) => (name, member) => {
  const here = library.get(page.module)
  if (here.anchors.has(name)) return { module: page.module, name }
  const known = page.imports.get(name)
  const target = known?.name === "*" ? { module: known.module, name: member } : known
  return target !== undefined && library.get(target.module)?.anchors.has(target.name) ? target : undefined
}

const linkTo = (page, library, { module, name }) => {
  const anchor = `#${library.get(module).anchors.get(name)}`
  return module === page.module ? anchor : `${linkFrom(page.module, pageOf(module))}${anchor}`
}

/** Names in backticks lead to what they name. */
const linked = (page, library, text, self) =>
  text
    .split(/(```[^]*?```)/)
    .map((piece, index) =>
      index % 2 === 1
        ? piece
        : piece.replace(/`(\w+)(?:\.(\w+))?`/g, (all, name, member) => {
            const target = resolver(page, library)(name, member)
            return target === undefined || target.name === self ? all : `[${all}](${linkTo(page, library, target)})`
          })
    )
    .join("")

/** Everything of ours that some code names, each once. */
const named = (page, library, code, self) => {
  const found = new Map()
  const text = code.replace(/\/\*[^]*?\*\//g, "").replace(/"[^"\n]*"/g, "")
  for (const [, name, member] of text.matchAll(/(?<![\w.])([A-Za-z_$][\w$]*)(?:\.([A-Za-z_$][\w$]*))?(?!\??:)/g)) {
    const target = resolver(page, library)(name, member)
    if (target === undefined || (target.module === page.module && target.name === self)) continue
    // Lower-case names of this module are as often those of parameters.
    if (target.module === page.module && /^[a-z]/.test(target.name)) continue
    found.set(`${target.module} ${target.name}`, `[\`${target.name}\`](${linkTo(page, library, target)})`)
  }
  return [...found.values()]
}

const fence = (code) => `\`\`\`ts\n${code}\n\`\`\``

const firstSentence = (text) => {
  const line = text.split("\n\n")[0].replace(/\s+/g, " ")
  return /^.*?[.!?](?= [A-Z`]|$)/.exec(line)?.[0] ?? line
}

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ")

/** Without what only makes it a declaration that can be parsed. */
const undeclared = (code) => code.replace(/^declare (?=const|class|function)/, "").replace(/^(class [^]*) \{\}$/, "$1")

const memberSection = async (page, library, owner, { code, doc, name }) => {
  const isStatic = code.startsWith("static ")
  const printed = await pretty(isStatic ? `declare class X { ${code} }` : `interface X { ${code} }`)
  const body = printed
    .split("\n")
    .slice(1, -1)
    .map((line) => line.slice(2))
    .join("\n")
  const links = named(page, library, code, owner)
  return [
    `#### ${owner}.${name}`,
    fence(body),
    ...(doc === undefined ? [] : [linked(page, library, doc, owner)]),
    ...(links.length === 0 ? [] : [`<sub>${links.join(" · ")}</sub>`])
  ]
}

const importLine = (module, aliases) => {
  const names = [`palimpsest/${module}`, ...(aliases.get(module) ?? [])]
  return fence(names.map((name) => `import * as ${path.posix.basename(module)} from "${name}"`).join("\n"))
}

const renderPage = async (page, library, aliases) => {
  const { sections } = library.get(page.module)
  const contents = sections.map(({ doc, kind, name }) => {
    const what = doc === undefined ? "" : cell(linked(page, library, firstSentence(doc), name))
    return `| [\`${name}\`](#${library.get(page.module).anchors.get(name)}) | ${kind} | ${what} |`
  })
  const lines = [
    `# ${page.module}`,
    ...(page.doc === undefined ? [] : [linked(page, library, page.doc)]),
    importLine(page.module, aliases),
    ...(contents.length === 0 ? [] : [["| export | kind | |", "|---|---|---|", ...contents].join("\n")])
  ]
  for (const { blocks, doc, kind, members, name } of sections) {
    const code = []
    for (const block of blocks) code.push(undeclared(await pretty(block)))
    const links = named(page, library, blocks.join("\n"), name)
    lines.push(`## ${name}`, `*${kind}*`)
    if (doc !== undefined) lines.push(linked(page, library, doc, name))
    lines.push(fence(code.join("\n\n")))
    if (links.length > 0) lines.push(`<sub>${links.join(" · ")}</sub>`)
    for (const member of members) lines.push(...(await memberSection(page, library, name, member)))
  }
  return `${lines.join("\n\n")}\n`
}

/** What an index says of a module: its own docstring, else that of the export it is named after. */
const purpose = ({ doc, module }, { sections }) => {
  const named = (name) => sections.find((section) => section.name === name)?.doc
  const text = doc ?? named(path.posix.basename(module)) ?? named("layer") ?? sections[0]?.doc
  return text === undefined ? "" : cell(firstSentence(text))
}

const folderTexts = {
  domain: "Schemas and pure functions over them. They need `effect` and nothing else.",
  services: "Contracts, their errors, and the workflows that need only other services.",
  layers: "What touches a disk, a network or a vendor, and what stands in for it in memory and in tests."
}

const renderIndex = (pages, library) => {
  const parts = folders.map((folder) => {
    const rows = pages
      .filter(({ module }) => module.startsWith(`${folder}/`))
      .map((page) => {
        const name = page.module.slice(folder.length + 1)
        return `| [${name}](${pageOf(page.module)}) | ${purpose(page, library.get(page.module))} |`
      })
    return `## ${folder}\n\n${folderTexts[folder]}\n\n| module | |\n|---|---|\n${rows.join("\n")}`
  })
  const opening =
    "Every module is imported by its own name, as `palimpsest/services/Chat`. These pages are generated from the docstrings by `npm run docs`."
  return `# Reference\n\n${opening}\n\n${parts.join("\n\n")}\n`
}

/** Other names under which the package gives a module: `testing/Offline` for `layers/Offline`. */
const aliasesOf = () => {
  const { exports } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
  const entries = Object.entries(exports).flatMap(([name, target]) => {
    const module = /^\.\/dist\/lib\/(.*)\.js$/.exec(target.default ?? "")?.[1]
    return module === undefined || module.includes("*") ? [] : [[module, `palimpsest/${name.slice(2)}`]]
  })
  return new Map(
    [...Map.groupBy(entries, ([module]) => module)].map(([module, all]) => [module, all.map(([, name]) => name)])
  )
}

const compile = () => {
  const folder = mkdtempSync(path.join(tmpdir(), "palimpsest-docs-"))
  const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
  // Whether the types hold is what `npm run types` says.
  const args = [
    "-p",
    "tsconfig.lib.json",
    "--emitDeclarationOnly",
    "--declarationMap",
    "false",
    "--noCheck",
    "--outDir",
    folder
  ]
  execFileSync(process.execPath, [tsc, ...args], { cwd: root, stdio: "inherit" })
  return folder
}

const { values } = parseArgs({
  options: {
    check: { type: "boolean" },
    out: { type: "string" },
    sources: { type: "string", default: path.join(root, "src") },
    declarations: { type: "string" }
  }
})

const declarations = values.declarations ?? compile()
try {
  const pages = modulesIn(values.sources).map((module) => readModule(module, { declarations, sources: values.sources }))
  if (values.check) {
    const found = pages.flatMap(undocumented)
    for (const line of found) console.log(line)
    console.error(found.length === 0 ? "everything has a docstring" : `${found.length} without a docstring`)
    process.exitCode = found.length === 0 ? 0 : 1
  } else {
    const library = new Map(
      pages.map((page) => [
        page.module,
        {
          sections: page.exports.map((one) => shown(page, one)),
          anchors: anchorsOf(page.exports.map(({ name }) => name))
        }
      ])
    )
    const aliases = aliasesOf()
    const out = values.out ?? path.join(root, "docs", "api")
    if (values.out === undefined) rmSync(out, { recursive: true, force: true })
    const write = (file, text) => {
      mkdirSync(path.dirname(path.join(out, file)), { recursive: true })
      writeFileSync(path.join(out, file), text)
    }
    for (const page of pages) write(pageOf(page.module), await renderPage(page, library, aliases))
    write("README.md", renderIndex(pages, library))
    console.error(`${pages.length} modules in ${path.relative(process.cwd(), out) || "."}`)
  }
} finally {
  if (values.declarations === undefined) rmSync(declarations, { recursive: true, force: true })
}
