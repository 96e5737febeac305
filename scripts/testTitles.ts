import { readFileSync } from "node:fs"
import { type CallExpression, type Expression, type Node, parseSync, Visitor } from "oxc-parser"

/** Reads the titles of tests from their source. */

/** The text of a title. What a table of cases puts into it is shown as an ellipsis. */
const textOf = (node: Node | null | undefined): string | undefined => {
  const text =
    node?.type === "Literal"
      ? node.value
      : node?.type === "TemplateLiteral"
        ? node.quasis.map(({ value }) => value.cooked).join("…")
        : undefined
  return typeof text === "string" ? text.replace(/%[sdj]|\$\w+/g, "…").replaceAll("%%", "%") : undefined
}

/** Whether a call defines tests: `it(…)`, `describe(…)`, `it.effect(…)`, `it.effect.each(…)(…)`. */
const definesTests = ({ callee }: CallExpression): boolean => {
  let node: Expression = callee
  while (node.type === "MemberExpression" || node.type === "CallExpression") {
    node = node.type === "MemberExpression" ? node.object : node.callee
  }
  return node.type === "Identifier" && (node.name === "it" || node.name === "describe")
}

/** The titles of a file. */
export interface TestTitles {
  /** The titles of `it` and `describe`. */
  readonly tests: ReadonlyArray<string>
  /** The first cells of the rows of tables, which titles are made from. */
  readonly rows: ReadonlyArray<string>
}

/** Returns the titles in a file of tests. */
export const testTitles = (file: string): TestTitles => {
  const tests: Array<string> = []
  const rows: Array<string> = []
  const add = (titles: Array<string>, node: Node | null | undefined) => {
    const title = textOf(node)
    if (title !== undefined) titles.push(title)
  }
  new Visitor({
    CallExpression: (node) => {
      if (definesTests(node)) add(tests, node.arguments[0])
    },
    ArrayExpression: ({ elements }) => {
      for (const row of elements) if (row?.type === "ArrayExpression") add(rows, row.elements[0])
    }
  }).visit(parseSync(file, readFileSync(file, "utf8")).program)
  return { tests, rows }
}
