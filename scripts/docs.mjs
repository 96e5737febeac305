/**
 * `npm run docs`: writes the reference of the library to docs/api: an index of the package's entries with their namespaces, and a
 * Markdown page for each module that they export from. Signatures come from the declarations that the compiler writes, so they
 * are what a program sees. Docstrings come from the sources, as do schemas whose types the compiler would expand over pages. The
 * same sources give the same bytes.
 *
 * `npm run docs:check` lists exports, and members of services, classes and interfaces, without a docstring, and what the
 * package exports without `@category` and `@since`. A type with the same
 * name as a schema shares the schema's docstring; a case taken out of a union shares the union's.
 *
 * Options: `--out DIR`, `--check`, `--sources DIR`, `--declarations DIR` (generated when absent).
 *
 * One file: a script that runs without a build, whose parts share the parsed modules.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { parseSync, Visitor } from "oxc-parser"
import { format } from "oxfmt"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const folders = ["api", "domain", "services", "layers"]

// --- reading ----------------------------------------------------------------------------------------------------------

const parse = (file) => {
  const text = readFileSync(file, "utf8")
  const { comments, errors, program } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`)
  return { text, body: program.body, docs: comments.filter(({ type, value }) => type === "Block" && value[0] === "*") }
}

/** The text of a docstring without comment marks. */
const plain = ({ value }) =>
  value
    .slice(1)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .filter((line) => !/^\s*@(?:category|since)\b/.test(line))
    .join("\n")
    .trim()

/** The docstring directly before a position. */
const docAt = ({ docs, text }, start) => {
  const found = docs.findLast(({ end }) => end <= start && text.slice(end, start).trim() === "")
  return found === undefined || /\n\s*\n/.test(text.slice(found.end, start)) ? undefined : plain(found)
}

/** The docstring of a module: the first one, if an empty line follows it. */
const moduleDoc = ({ body, docs, text }) => {
  const [first] = docs
  if (first === undefined || !/^\s*\n\s*\n/.test(text.slice(first.end))) return undefined
  const code = body.find(({ type }) => type !== "ImportDeclaration")
  return code === undefined || first.end <= code.start ? plain(first) : undefined
}

/** All top-level declarations of a module, one per name: `export const { A, B } = C` is two. */
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

/** The imports of a module: local name to module and name there; `*` is the whole module. */
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

/** The members of a service, from the last argument of its base class. */
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
    .filter((folder) => existsSync(path.join(sources, folder)))
    .flatMap((folder) =>
      readdirSync(path.join(sources, folder), { recursive: true }).map((file) => `${folder}/${file}`)
    )
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -3))
    .sort()

// --- what the package exports -----------------------------------------------------------------------------------------

const entries = Object.keys(JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).exports)
  // A key that begins with a capital letter is a namespace of the index, as a module of its own.
  .filter((key) => key !== "./package.json" && !/^\.\/[A-Z]/.test(key))
  .map((key) => ({ name: key.replace(".", "palimpsest"), file: key === "." ? "index" : key.slice(2) }))

const exportsOf = (parsed, type) => parsed.body.filter((statement) => statement.type === type && statement.source)
const moduleIn = (file, { source }) => path.posix.join(path.posix.dirname(file), source.value).replace(/\.ts$/, "")
const specifierName = ({ name, value }) => name ?? value

/** The namespaces of an entry: each is a whole module, or a file in `api` that lists names of several modules, and may add its own. */
const namespacesOf = ({ file }, sources) =>
  exportsOf(parse(path.join(sources, `${file}.ts`)), "ExportAllDeclaration").map((statement) => {
    const name = specifierName(statement.exported)
    const module = moduleIn(file, statement)
    if (!module.startsWith("api/")) return { name, doc: undefined, parts: [{ module, names: undefined }] }
    const parsed = parse(path.join(sources, `${module}.ts`))
    const lists = exportsOf(parsed, "ExportNamedDeclaration").map((list) => ({
      module: moduleIn(module, list),
      names: list.specifiers.map(({ local }) => specifierName(local)),
      /** The names under which they are exported, by their own. */
      exported: new Map(list.specifiers.map(({ exported, local }) => [specifierName(local), specifierName(exported)]))
    }))
    const own = declared(parsed).filter(({ exported }) => exported)
    const parts = own.length === 0 ? lists : [{ module, names: own.map(({ name }) => name) }, ...lists]
    return { name, doc: parsed.docs[0] && plain(parsed.docs[0]), parts }
  })

const readEntries = (sources) =>
  entries.map((entry) => {
    const [doc] = parse(path.join(sources, `${entry.file}.ts`)).docs
    return { ...entry, doc: doc && plain(doc), namespaces: namespacesOf(entry, sources) }
  })

/** For each module, the names that the package exports (undefined: all of them) and the lines that import them. */
const publicModules = (library) => {
  const modules = new Map()
  for (const { name: entry, namespaces } of library) {
    for (const { name, parts } of namespaces) {
      for (const { module, names } of parts) {
        const known = modules.get(module)
        modules.set(module, {
          names:
            names === undefined || (known !== undefined && known.names === undefined)
              ? undefined
              : [...(known?.names ?? []), ...names],
          imports: [...(known?.imports ?? []), `import { ${name} } from "${entry}"`]
        })
      }
    }
  }
  return modules
}

// --- missing docstrings -------------------------------------------------------------------------------------------------

const lineOf = ({ text }, start) => text.slice(0, start).split("\n").length

/** Members that can be called or awaited. Fields of records need a docstring only where their name is not enough. */
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

/** The members that a caller sees: the operations of a service, and of the values made with it. */
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

/** The schema that a type is derived from, as in `type A = typeof A.Type`. */
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

/** What the package exports without saying in which version it came, or what it is about. */
const untagged = (sources) => {
  const files = entries.map(({ file }) => file).filter((file) => existsSync(path.join(sources, `${file}.ts`)))
  const lists = modulesIn(sources).filter((module) => module.startsWith("api/"))
  return [...files, ...lists].flatMap((module) => {
    const parsed = parse(path.join(sources, `${module}.ts`))
    return parsed.body
      .filter(({ type }) => type.startsWith("Export"))
      .flatMap(({ start }) => {
        const doc = parsed.docs.findLast(({ end }) => end <= start && parsed.text.slice(end, start).trim() === "")
        const isTagged = /@category \w/.test(doc?.value) && /@since \d+\.\d+\.\d+/.test(doc?.value)
        return isTagged ? [] : [`src/${module}.ts:${lineOf(parsed, start)} without @category and @since`]
      })
  })
}

// --- signatures --------------------------------------------------------------------------------------------------------

const pretty = async (code) => {
  const options = { semi: false, printWidth: 100, trailingComma: "none" }
  const { code: text, errors } = await format("signature.ts", code, options)
  if (errors.length > 0) throw new Error(`${errors[0].message}: ${code}`)
  return text.trim()
}

const bare = (code) => code.replace(/\bimport\("[^"]+"\)\./g, "").replace(/^export (?:declare )?/, "")

/** A schema as written in its source, with the parts of it that the module does not export. */
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
 * The type of a function made by `Effect.fn`, as written in its source, because the compiler drops the names of types there.
 * Undefined where the source has no annotation.
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

/** The kind of an export, and the code that shows it. */
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

/** Gives headings the anchors that GitHub gives them: lower case, with a number after repeated names. */
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

/** The page that a name in this module's code links to. */
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

/** Links names in backticks to their pages. */
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

/** All our types that a piece of code mentions, each once. */
const named = (page, library, code, self) => {
  const found = new Map()
  const text = code.replace(/\/\*[^]*?\*\//g, "").replace(/"[^"\n]*"/g, "")
  for (const [, name, member] of text.matchAll(/(?<![\w.])([A-Za-z_$][\w$]*)(?:\.([A-Za-z_$][\w$]*))?(?!\??:)/g)) {
    const target = resolver(page, library)(name, member)
    if (target === undefined || (target.module === page.module && target.name === self)) continue
    // Lower-case names of this module are as often names of parameters.
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

/** Removes the parts that only make a declaration parse. */
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

const renderPage = async (page, library, imports) => {
  const { sections } = library.get(page.module)
  const contents = sections.map(({ doc, kind, name }) => {
    const what = doc === undefined ? "" : cell(linked(page, library, firstSentence(doc), name))
    return `| [\`${name}\`](#${library.get(page.module).anchors.get(name)}) | ${kind} | ${what} |`
  })
  const lines = [
    `# ${page.module}`,
    ...(page.doc === undefined ? [] : [linked(page, library, page.doc)]),
    fence(imports.join("\n")),
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

/** The index entry of a namespace that is one module: its docstring, else that of the export it is named after. */
const purpose = ({ doc, module }, { sections }) => {
  const named = (name) => sections.find((section) => section.name === name)?.doc
  return doc ?? named(path.posix.basename(module)) ?? named("layer") ?? sections[0]?.doc ?? ""
}

const renderIndex = (library, pages, sections) => {
  const parts = library.map(({ doc, name: entry, namespaces }) => {
    const rows = namespaces.map(({ doc, name, parts }) => {
      const links = parts.flatMap(({ exported, module, names }) =>
        [...sections.get(module).anchors]
          .filter(([item]) => names === undefined || names.includes(item))
          .map(([item, anchor]) => `[\`${exported?.get(item) ?? item}\`](${pageOf(module)}#${anchor})`)
      )
      const [{ module }] = parts
      return `| \`${name}\` | ${cell(firstSentence(doc ?? purpose(pages.get(module), sections.get(module))))} | ${links.join(" · ")} |`
    })
    return `## ${entry}\n\n${doc}\n\n| namespace | | exports |\n|---|---|---|\n${rows.join("\n")}`
  })
  return `# Reference\n\n\`npm run docs\` generates these pages from the docstrings.\n\n${parts.join("\n\n")}\n`
}

const compile = () => {
  const folder = mkdtempSync(path.join(tmpdir(), "palimpsest-docs-"))
  const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
  // `npm run types` checks the types.
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
  const read = (module) => readModule(module, { declarations, sources: values.sources })
  if (values.check) {
    const missing = [...modulesIn(values.sources).map(read).flatMap(undocumented), ...untagged(values.sources)]
    for (const line of missing) console.log(line)
    console.error(missing.length === 0 ? "everything has a docstring" : `${missing.length} without a docstring`)
    process.exitCode = missing.length === 0 ? 0 : 1
  } else {
    const library = readEntries(values.sources)
    const modules = publicModules(library)
    const pages = new Map(
      [...modules].map(([module, { names }]) => {
        const page = read(module)
        return [
          module,
          { ...page, exports: page.exports.filter(({ name }) => names === undefined || names.includes(name)) }
        ]
      })
    )
    const sections = new Map(
      [...pages].map(([module, page]) => [
        module,
        {
          sections: page.exports.map((one) => shown(page, one)),
          anchors: anchorsOf(page.exports.map(({ name }) => name))
        }
      ])
    )
    const out = values.out ?? path.join(root, "docs", "api")
    if (values.out === undefined) rmSync(out, { recursive: true, force: true })
    const write = (file, text) => {
      mkdirSync(path.dirname(path.join(out, file)), { recursive: true })
      writeFileSync(path.join(out, file), text)
    }
    for (const [module, page] of pages) {
      write(pageOf(module), await renderPage(page, sections, modules.get(module).imports))
    }
    write("README.md", renderIndex(library, pages, sections))
    console.error(`${pages.size} modules in ${path.relative(process.cwd(), out) || "."}`)
  }
} finally {
  if (values.declarations === undefined) rmSync(declarations, { recursive: true, force: true })
}
