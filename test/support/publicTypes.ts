import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSync } from "oxc-parser"

/** Finds the types that declarations of a package name, and that none of its entries exports: a program could not name them. */

/** A node of a syntax tree, as oxc has it. */
interface Syntax {
  readonly type: string
  readonly [key: string]: unknown
}

interface Name {
  readonly file: string
  readonly name: string
}

interface Declarations {
  readonly declared: Map<string, Array<Syntax>>
  readonly imported: Map<string, { readonly file: string | undefined; readonly name: string }>
  readonly exported: Map<string, Name & { readonly isOwn: boolean }>
  readonly namespaces: Map<string, string>
}

const isSyntax = (value: unknown): value is Syntax =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"
const syntaxAt = (node: Syntax, key: string): Syntax | undefined => {
  const value = node[key]
  return isSyntax(value) ? value : undefined
}
const listAt = (node: Syntax, key: string): ReadonlyArray<Syntax> => {
  const value = node[key]
  return Array.isArray(value) ? value.filter(isSyntax) : []
}
const textAt = (node: Syntax | undefined, key: string): string => {
  const value = node?.[key]
  return typeof value === "string" ? value : ""
}
const nameOf = (node: Syntax | undefined): string => textAt(node, "name") || textAt(node, "value")

/** The file of declarations that a relative import names. */
const fileOf = (from: string, specifier: string): string | undefined =>
  specifier.startsWith(".")
    ? path.join(path.dirname(from), specifier.replace(/\.mjs$/, ".d.mts").replace(/\.(?:js|ts)$/, ".d.ts"))
    : undefined

const namesIn = (declaration: Syntax): ReadonlyArray<string> =>
  declaration.type === "VariableDeclaration"
    ? listAt(declaration, "declarations").flatMap((one) => {
        const id = syntaxAt(one, "id")
        return id?.type === "ObjectPattern"
          ? listAt(id, "properties").map((property) => nameOf(syntaxAt(property, "value")))
          : [nameOf(id)]
      })
    : [nameOf(syntaxAt(declaration, "id"))]

const readDeclarations = (file: string): Declarations => {
  const program = JSON.parse(JSON.stringify(parseSync(file, readFileSync(file, "utf8")).program)) as Syntax
  const out: Declarations = { declared: new Map(), imported: new Map(), exported: new Map(), namespaces: new Map() }
  const declare = (declaration: Syntax, isExported: boolean) => {
    for (const name of namesIn(declaration)) {
      out.declared.set(name, [...(out.declared.get(name) ?? []), declaration])
      if (isExported) out.exported.set(name, { file, name, isOwn: true })
    }
  }
  for (const node of listAt(program, "body")) {
    const specifier = textAt(syntaxAt(node, "source"), "value")
    const target = fileOf(file, specifier)
    if (node.type === "ImportDeclaration") {
      for (const one of listAt(node, "specifiers")) {
        const isAll = one.type === "ImportNamespaceSpecifier"
        const name = isAll ? "*" : nameOf(syntaxAt(one, "imported"))
        out.imported.set(nameOf(syntaxAt(one, "local")), { file: target, name })
      }
    } else if (node.type === "ExportNamedDeclaration") {
      const declaration = syntaxAt(node, "declaration")
      if (declaration !== undefined) declare(declaration, true)
      for (const one of listAt(node, "specifiers")) {
        const name = nameOf(syntaxAt(one, "local"))
        if (specifier !== "" && target === undefined) continue
        out.exported.set(nameOf(syntaxAt(one, "exported")), { file: target ?? file, name, isOwn: target === undefined })
      }
    } else if (node.type === "ExportAllDeclaration") {
      const exported = syntaxAt(node, "exported")
      if (target !== undefined && exported !== undefined) out.namespaces.set(nameOf(exported), target)
    } else declare(node, false)
  }
  return out
}

/** Adds what a piece of syntax refers to: `Name`, `Namespace.Name`, or `@./file.js|Name` of an inline import. */
const addReferences = (node: unknown, out: Set<string>): void => {
  if (Array.isArray(node)) for (const one of node) addReferences(one, out)
  if (!isSyntax(node) || node["accessibility"] === "private") return
  const qualified = (left: Syntax | undefined, right: Syntax | undefined) => {
    let [head, member] = [left, nameOf(right)]
    while (head?.type === "TSQualifiedName") [head, member] = [syntaxAt(head, "left"), nameOf(syntaxAt(head, "right"))]
    out.add(`${nameOf(head)}.${member}`)
  }
  switch (node.type) {
    case "Identifier":
      if (node["typeAnnotation"] === null || node["typeAnnotation"] === undefined) out.add(nameOf(node))
      else addReferences(node["typeAnnotation"], out)
      return
    case "TSImportType": {
      let name = syntaxAt(node, "qualifier")
      while (name?.type === "TSQualifiedName") name = syntaxAt(name, "left")
      out.add(`@${textAt(syntaxAt(node, "source"), "value")}|${nameOf(name)}`)
      addReferences(node["typeArguments"], out)
      return
    }
    case "TSQualifiedName":
      return qualified(syntaxAt(node, "left"), syntaxAt(node, "right"))
    case "MemberExpression":
      return qualified(syntaxAt(node, "object"), syntaxAt(node, "property"))
  }
  const isMember = /^(?:TSPropertySignature|PropertyDefinition|TSMethodSignature|MethodDefinition)$/.test(node.type)
  for (const [key, value] of Object.entries(node)) {
    if (key === "key" && isMember && node["computed"] !== true) continue
    addReferences(value, out)
  }
}

/** The exported interfaces, classes and aliases that public declarations refer to and no entry exports, as `file#name`. */
export const unnamedTypes = (folder: string, entries: ReadonlyArray<string>): ReadonlyArray<string> => {
  const read = new Map<string, Declarations>()
  const of = (file: string): Declarations => {
    const known = read.get(file) ?? readDeclarations(file)
    read.set(file, known)
    return known
  }
  const origin = (file: string | undefined, name: string): Name | undefined => {
    if (file === undefined || !existsSync(file)) return undefined
    const { declared, exported, imported } = of(file)
    const found = exported.get(name)
    if (found === undefined) return undefined
    if (!found.isOwn) return origin(found.file, found.name)
    if (declared.has(found.name)) return { file, name: found.name }
    const through = imported.get(found.name)
    return through === undefined ? undefined : origin(through.file, through.name)
  }
  const keyOf = ({ file, name }: Name) => `${path.relative(folder, file).replaceAll("\\", "/")}#${name}`
  const named = new Map<string, Name>()
  const addEntry = (file: string): void => {
    for (const name of of(file).exported.keys()) {
      const found = origin(file, name)
      if (found !== undefined) named.set(keyOf(found), found)
    }
    for (const target of of(file).namespaces.values()) addEntry(target)
  }
  for (const entry of entries) addEntry(path.join(folder, `${entry}.d.ts`))
  const seen = new Set<string>()
  const unnamed = new Set<string>()
  const visit = (found: Name): void => {
    const key = keyOf(found)
    if (seen.has(key)) return
    seen.add(key)
    const { declared, exported, imported } = of(found.file)
    const nodes = declared.get(found.name) ?? []
    const isType = nodes.some(({ type }) => /^(?:TSInterface|TSTypeAlias|Class)/.test(type))
    // The compiler names what an alias of one name stands for.
    const isAlias = nodes.every((node) => syntaxAt(node, "typeAnnotation")?.type === "TSTypeReference")
    if (!named.has(key) && isType && !isAlias && exported.has(found.name)) unnamed.add(key)
    const references = new Set<string>()
    addReferences(nodes, references)
    for (const reference of references) {
      const [specifier = "", inline = ""] = reference.startsWith("@") ? reference.slice(1).split("|") : []
      const [head = "", member = ""] = reference.split(".")
      const through = imported.get(head)
      const next =
        specifier !== ""
          ? origin(fileOf(found.file, specifier), inline)
          : declared.has(head)
            ? { file: found.file, name: head }
            : through && origin(through.file, through.name === "*" ? member : through.name)
      if (next !== undefined) visit(next)
    }
  }
  for (const found of named.values()) visit(found)
  return [...unnamed].sort()
}
