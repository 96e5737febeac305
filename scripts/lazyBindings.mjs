/**
 * Delays what a bundle computes as it loads: schemas, layers, classes and tables, of which a command uses a part. A constant of the
 * outermost level becomes a function that computes its value at the first use, and each use becomes a call of it. Functions,
 * literals and cheap calls stay as they are, and so do statements and whatever is assigned to.
 */

const functions = new Set(["ArrowFunctionExpression", "FunctionDeclaration", "FunctionExpression"])

/** The children of a node. */
const childrenOf = (node) => {
  const found = []
  for (const key in node) {
    const value = node[key]
    if (value === null || typeof value !== "object") continue
    if (Array.isArray(value)) found.push(...value.filter((one) => typeof one?.type === "string"))
    else if (typeof value.type === "string") found.push(value)
  }
  return found
}

/** The names that a pattern binds. */
const namesOf = (pattern) => {
  switch (pattern?.type) {
    case "Identifier":
      return [pattern.name]
    case "ObjectPattern":
      return pattern.properties.flatMap((one) => namesOf(one.type === "RestElement" ? one : one.value))
    case "ArrayPattern":
      return pattern.elements.flatMap(namesOf)
    case "AssignmentPattern":
      return namesOf(pattern.left)
    case "RestElement":
      return namesOf(pattern.argument)
    default:
      return []
  }
}

/** The names that `var` declares in a function, however deep in its blocks. */
const hoisted = (node) => {
  if (functions.has(node.type) || node.type === "ClassBody") return []
  const own =
    node.type === "VariableDeclaration" && node.kind === "var" ? node.declarations.flatMap(({ id }) => namesOf(id)) : []
  return [...own, ...childrenOf(node).flatMap(hoisted)]
}

/** The names that statements declare in their block. */
const declared = (statements) =>
  statements.flatMap((one) => {
    if (one.type === "VariableDeclaration") return one.declarations.flatMap(({ id }) => namesOf(id))
    return one.type === "FunctionDeclaration" || one.type === "ClassDeclaration" ? namesOf(one.id) : []
  })

/** The names that are visible only within a node. */
const scopeOf = (node) => {
  if (functions.has(node.type)) {
    const own = node.type === "FunctionExpression" ? namesOf(node.id) : []
    return [...own, ...node.params.flatMap(namesOf), ...hoisted(node.body), "arguments"]
  }
  switch (node.type) {
    case "BlockStatement":
    case "StaticBlock":
      return declared(node.body)
    case "SwitchStatement":
      return declared(node.cases.flatMap(({ consequent }) => consequent))
    case "ForStatement":
      return node.init === null ? [] : declared([node.init])
    case "ForInStatement":
    case "ForOfStatement":
      return declared([node.left])
    case "CatchClause":
      return namesOf(node.param)
    case "ClassExpression":
      return namesOf(node.id)
    default:
      return []
  }
}

/** Whether a child is a name that refers to nothing: a property, a label. */
const isLabel = (node, parent) => {
  switch (parent.type) {
    case "MemberExpression":
      return parent.property === node && !parent.computed
    case "Property":
      return parent.key === node && !parent.computed && !parent.shorthand
    case "MethodDefinition":
    case "PropertyDefinition":
      return parent.key === node && !parent.computed
    case "MetaProperty":
    case "LabeledStatement":
    case "BreakStatement":
    case "ContinueStatement":
    case "ExportSpecifier":
    case "ImportSpecifier":
      return true
    default:
      return false
  }
}

/**
 * Calls `visit` for each use of a name of the outermost level: with its node, the nodes around it, and whether it is assigned to.
 */
const eachUse = (tree, visit) => {
  const hidden = new Map()
  const change = (names, by) => {
    for (const name of names) hidden.set(name, (hidden.get(name) ?? 0) + by)
  }
  const go = (node, around, isTarget) => {
    const [parent] = around
    if (node.type === "Identifier") {
      if (!isLabel(node, parent) && !hidden.get(node.name)) visit(node, around, isTarget)
      return
    }
    if (node.type === "ImportDeclaration" || node.type === "ExportNamedDeclaration") return
    const scope = new Set(scopeOf(node))
    change(scope, 1)
    const within = [node, ...around]
    let last
    for (const child of childrenOf(node)) {
      // The key and the value of a shorthand are one text.
      if (node.type === "Property" && node.shorthand && child === node.key) continue
      last = child
      const isBound =
        (node.type === "VariableDeclarator" && child === node.id) ||
        (node.type === "AssignmentExpression" && child === node.left) ||
        (node.type === "UpdateExpression" && child === node.argument) ||
        ((node.type === "ForInStatement" || node.type === "ForOfStatement") && child === node.left) ||
        (functions.has(node.type) && child !== node.body) ||
        (node.type.startsWith("Class") && child === node.id)
      const isPattern = /Pattern$|^RestElement$|^Property$/.test(node.type)
      const isStill =
        isTarget && isPattern && !(node.type === "AssignmentPattern" && child === node.right) && child !== node.key
      go(child, within, isBound || isStill)
    }
    change(scope, -1)
    return last
  }
  for (const statement of tree.body) go(statement, [tree], false)
}

/** The members that a pattern takes from an object, by the text that chooses each, if it does nothing else. */
const membersOf = ({ properties, type }) => {
  if (type !== "ObjectPattern") return undefined
  const isPlain = properties.every(
    ({ computed, key, type, value }) =>
      type === "Property" && !computed && key.type === "Identifier" && value.type === "Identifier"
  )
  return isPlain ? properties.map(({ key, value }) => [`.${key.name}`, value.name]) : undefined
}

const isFunction = ({ type }) => functions.has(type)

/** Whether an expression is computed in no time, and uses nothing that comes later. */
const isCheap = (node, isLazy) => {
  switch (node?.type) {
    case "Identifier":
      return !isLazy(node.name)
    case "Literal":
      // V8 looks up the properties of characters as it reads an expression with sets of them.
      return node.regex?.flags.includes("v") !== true
    case "TemplateLiteral":
    case "ArrayExpression":
      return (node.expressions ?? node.elements).every((one) => isCheap(one, isLazy))
    case "ObjectExpression":
      return node.properties.every((one) => one.type === "Property" && !one.computed && isCheap(one.value, isLazy))
    case "UnaryExpression":
      return isCheap(node.argument, isLazy)
    // A function with a form for data first and one for data last, and an operator of the like.
    case "CallExpression":
      return (
        node.callee.type === "Identifier" &&
        !isLazy(node.callee.name) &&
        node.arguments.length > 0 &&
        isFunction(node.arguments.at(-1)) &&
        node.arguments.every((one) => isFunction(one) || one.type === "Literal")
      )
    default:
      return node !== null && node !== undefined && isFunction(node)
  }
}

/**
 * The replacements that delay the constants of a module, what to declare before it, and the names of those that are functions now.
 * `imported` has the names that were delayed in other modules. Without `isDelayed`, only their uses change.
 */
export const delayed = (code, tree, { imported, isDelayed }) => {
  const uses = []
  const names = new Set()
  const fixed = new Set()
  eachUse(tree, (node, around, isTarget) => {
    names.add(node.name)
    const [parent, , top] = around
    const isDeclared = parent.type === "VariableDeclarator" && parent.id === node && top?.type === "Program"
    if (isDeclared) return
    if (isTarget) fixed.add(node.name)
    else uses.push({ node, around })
  })
  const lazy = new Set(imported)
  const isLazy = (name) => lazy.has(name)
  const replacements = []
  const values = []
  for (const { declarations, end, kind, start, type } of tree.body) {
    if (!isDelayed || type !== "VariableDeclaration" || kind === "let") continue
    let at = start
    for (const { end: after, id, init, start: before } of declarations) {
      const by = at === start ? "" : ";"
      const members = kind === "const" ? membersOf(id) : undefined
      const [name] = members === undefined ? namesOf(id) : [`${namesOf(id)[0]}$o`]
      if (
        init === null ||
        fixed.has(name) ||
        isCheap(init, isLazy) ||
        (members === undefined && id.type !== "Identifier")
      ) {
        replacements.push({ start: at, end: before, by: `${by}${kind} ` })
      } else {
        const rest = (members ?? []).map(([key, local]) => `function ${local}(){return ${name}()${key}}`)
        for (const local of namesOf(id)) lazy.add(local)
        values.push(`${name}$v`)
        replacements.push({ start: at, end: init.start, by: `${by}function ${name}(){return ${name}$v??=` })
        replacements.push({ start: after, end: after, by: `}${rest.join("")}` })
      }
      at = after
    }
    replacements.push({ start: at, end, by: ";" })
  }
  for (const { around, node } of uses) {
    if (!lazy.has(node.name)) continue
    const [parent] = around
    const isShort = parent.type === "Property" && parent.shorthand
    // `new a().b()` would call `new a()`.
    const isMade = around.some(
      ({ callee, type }) => type === "NewExpression" && callee.start <= node.start && node.end <= callee.end
    )
    const call = isMade ? `(${node.name}())` : `${node.name}()`
    replacements.push({ start: node.start, end: node.end, by: isShort ? `${node.name}:${call}` : call })
  }
  const clash = values.find((name) => code.includes(name))
  if (clash !== undefined) throw new Error(`the name ${clash} is used`)
  return { replacements, before: values.length === 0 ? "" : `let ${values.join()};`, lazy }
}
