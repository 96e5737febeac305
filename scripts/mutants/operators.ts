import { type Node, parseSync, Visitor } from "oxc-parser"

/** One small fault: the text from `start` to `end` is replaced with `after`. */
export interface Mutant {
  readonly file: string
  readonly line: number
  readonly operator: string
  readonly start: number
  readonly end: number
  readonly before: string
  readonly after: string
  /** The expression that the fault changes: where the compiler objects to it, no test needs to see the fault. */
  readonly within: readonly [start: number, end: number]
}

/** What is easily taken for another, in pairs. */
const pairs = {
  boundary: "< <= > >=",
  equality: "=== !==",
  logic: "&& ||",
  arithmetic: "+ - += -=",
  twin: "some every min max find findLast findIndex findLastIndex indexOf lastIndexOf floor ceil"
}
const swapped = new Map(
  Object.entries(pairs).flatMap(([operator, listed]) => {
    const names = listed.split(" ")
    return names.map((name, index) => [name, { operator, other: names[index ^ 1] ?? name }] as const)
  })
)

const names = (listed: string) => new Set(listed.split(" "))
/** Methods whose result can take the place of their object. */
const links = names(
  "filter trim trimStart trimEnd sort toSorted reverse toReversed slice subarray concat toLowerCase toUpperCase replace " +
    "replaceAll normalize flat padStart padEnd"
)
/** Functions whose result can take the place of one argument: wrappers, and steps of a pipe. */
const wrappers = names("uninterruptible interruptible scoped cached")
const steps = names(
  "filter take takeWhile takeUntil drop dropWhile changes concat sort reverse dedupe ensuring onExit onError onInterrupt " +
    "tap tapError tapCause retry timeout timeoutOrElse catch catchIf catchTag catchTags catchCause catchReason catchDefect " +
    "orElseSucceed interruptWhen provideService provideContext provide forkScoped forkIn when whenOr tag tags withPermits"
)
/** Declarations of schemas and of the command line; names of spans, logs and errors: what types and readers see. */
const declaration =
  /^(?:(?:Schema\.(?!(?:de|en)code|transform|make)|(?:Flag|Argument|Command|Config|Metric|Context)\.)\w+(?:<.*>\([^()]*\))?|Effect\.(?:log|annotate|withSpan|die)\w*|.*\.annotate|.*Error(?:\.make)?)$/s
/** Keys of text for readers. */
const textKeys = names("message description hint title usage help")
/** Larger numbers are sizes and times: a test that sees one more or less repeats the number. */
const largestCount = 1_024

const isText = (node: Node): boolean =>
  node.type === "TemplateLiteral" ||
  (node.type === "Literal" && typeof node.value === "string") ||
  (node.type === "BinaryExpression" && (isText(node.left) || isText(node.right)))

const leaves = (node: Node | undefined): boolean =>
  node?.type === "BlockStatement"
    ? leaves(node.body.at(-1))
    : ["ReturnStatement", "ContinueStatement", "BreakStatement"].includes(node?.type ?? "")

/** All mutants of a source, in the order of their places. */
export const mutantsOf = (file: string, text: string): ReadonlyArray<Mutant> => {
  const found: Array<Mutant> = []
  const skipped: Array<readonly [start: number, end: number]> = []
  const textOf = (node: Node) => text.slice(node.start, node.end)
  const skip = (node: Node) => void skipped.push([node.start, node.end])
  const add = (operator: string, node: Node, start: number, end: number, after: string) =>
    void found.push({
      file,
      line: text.slice(0, start).split("\n").length,
      operator,
      start,
      end,
      before: text.slice(start, end),
      after,
      within: [node.start, node.end]
    })
  const replace = (operator: string, node: Node, after: string) => add(operator, node, node.start, node.end, after)
  /** Leaves out one item of a list, with the comma that belongs to it. */
  const omit = (operator: string, list: Node, items: ReadonlyArray<Node | null>, index: number) => {
    const [before, item, next] = [items[index - 1], items[index], items[index + 1]]
    if (item == null) return
    if (next != null) add(operator, list, item.start, next.start, "")
    else add(operator, list, before?.end ?? item.start, item.end, "")
  }
  const swap = (node: Node & { readonly left: Node; readonly operator: string; readonly right: Node }) => {
    const { operator, other } = swapped.get(node.operator) ?? {}
    if (operator === undefined || other === undefined) return
    if (operator === "arithmetic" && (isText(node.left) || isText(node.right))) return
    const start = text.indexOf(node.operator, node.left.end)
    add(operator, node, start, start + node.operator.length, other)
  }

  new Visitor({
    ImportDeclaration: skip,
    ExportAllDeclaration: skip,
    ImportExpression: skip,
    TSLiteralType: skip,
    ThrowStatement: skip,
    AssignmentExpression: swap,
    BinaryExpression: (node) => {
      swap(node)
      if (!["*", "/", "%"].includes(node.operator)) return
      if (node.operator === "*" && node.left.type === "Literal") replace("factor", node, textOf(node.right))
      else replace("factor", node, textOf(node.left))
    },
    LogicalExpression: (node) => {
      swap(node)
      const operator = node.operator === "??" ? "default" : "half"
      replace(operator, node, textOf(node.left))
      replace(operator, node, textOf(node.right))
    },
    ConditionalExpression: (node) => {
      const { alternate, consequent } = node
      add("arms", node, consequent.start, alternate.end, `(${textOf(alternate)}) : (${textOf(consequent)})`)
    },
    IfStatement: (node) => {
      const { test } = node
      if (test.type === "UnaryExpression" && test.operator === "!") replace("negation", test, textOf(test.argument))
      else if (test.type !== "BinaryExpression") replace("negation", test, `!(${textOf(test)})`)
      if (node.alternate === null && leaves(node.consequent)) replace("guard", node, ";")
    },
    Literal: (node) => {
      const { value } = node
      if (typeof value === "number" && value <= largestCount) {
        replace("number", node, String(value + 1))
        if (value > 0) replace("number", node, String(value - 1))
      }
      if (typeof value === "string" && /^\S+$/.test(value)) replace("string", node, '""')
    },
    ObjectExpression: (node) => {
      node.properties.forEach((property, index) => {
        if (property.type === "Property" && !property.computed) {
          if (property.key.type === "Literal") skip(property.key)
          if (property.key.type === "Identifier" && textKeys.has(property.key.name)) return skip(property)
        }
        omit("property", node, node.properties, index)
      })
    },
    ArrayExpression: (node) => node.elements.forEach((_, index) => omit("element", node, node.elements, index)),
    SwitchStatement: (node) => {
      for (const one of node.cases) if (one.test !== null) add("case", node, one.start, one.end, "")
    },
    ExpressionStatement: (node) => {
      const { expression } = node
      if (expression.type !== "Literal" && !/\bEffect\.(?:log|annotate)|\bsuper\(/.test(textOf(node))) {
        replace("statement", node, ";")
      }
    },
    CallExpression: (node) => {
      const { arguments: given, callee } = node
      if (declaration.test(textOf(callee))) return skip(node)
      const [first] = given
      if (/\bEffect\.fn$/.test(textOf(callee)) && first?.type === "Literal") skip(first)
      const isStep = (argument: Node): boolean => {
        const made = argument.type === "CallExpression" ? argument.callee : argument
        if (made.type !== "MemberExpression" || made.property.type !== "Identifier") return false
        return steps.has(made.property.name) || wrappers.has(made.property.name)
      }
      if (/(?:^|\.)pipe$/.test(textOf(callee))) {
        given.forEach((argument, index) => isStep(argument) && omit("step", node, given, index))
      }
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return
      const { object, property } = callee
      const isModule = object.type === "Identifier" && /^[A-Z]/.test(object.name)
      if (!isModule && links.has(property.name)) add("link", node, object.end, node.end, "")
      if (isModule && first !== undefined && isStep(node) && (given.length > 1 || wrappers.has(property.name))) {
        replace("wrapper", node, textOf(first))
      }
      const { operator, other } = swapped.get(property.name) ?? {}
      if (operator !== undefined && other !== undefined) replace(operator, property, other)
      if (/^(?:slice|substring|subarray|at|charAt|charCodeAt)$/.test(property.name)) {
        for (const argument of given) {
          if (argument.type !== "Literal") replace("slice", argument, `${textOf(argument)} + 1`)
        }
      }
    },
    NewExpression: (node) => {
      if (textOf(node.callee).endsWith("Error")) skip(node)
    }
  }).visit(parseSync(file, text).program)

  return found
    .filter(({ end, start }) => !skipped.some(([from, to]) => from <= start && end <= to))
    .sort((one, other) => one.start - other.start)
}

/** The source with a fault in it, in as many lines as before. */
export const applied = (text: string, { after, before, end, start }: Mutant): string => {
  const lines = before.split("\n").length - after.split("\n").length
  return text.slice(0, start) + after + "\n".repeat(Math.max(0, lines)) + text.slice(end)
}

/** Numbers from 0 to 1, the same for a seed (Mulberry32). */
const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}

/** Draws mutants, at most one a line, none inside another. Operators take turns: rare faults are drawn as often as common ones. */
export const drawn = (mutants: ReadonlyArray<Mutant>, count: number, seed: number): ReadonlyArray<Mutant> => {
  const random = randomFrom(seed)
  const turns = new Map<string, number>()
  const inTurn = mutants
    .map((mutant) => ({ mutant, key: random() }))
    .sort((one, other) => one.key - other.key)
    .map(({ key, mutant }) => {
      const turn = turns.get(mutant.operator) ?? 0
      turns.set(mutant.operator, turn + 1)
      return { mutant, key: turn + key }
    })
    .sort((one, other) => one.key - other.key)
  const taken: Array<Mutant> = []
  for (const { mutant } of inTurn) {
    if (taken.length === count) break
    const isTaken = taken.some(
      ({ end, file, line, start }) =>
        file === mutant.file && (line === mutant.line || (start < mutant.end && mutant.start < end))
    )
    if (!isTaken) taken.push(mutant)
  }
  return taken
}
