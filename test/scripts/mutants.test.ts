import { assert, describe, it } from "@effect/vitest"
import { distancesTo, importersOf } from "../../scripts/mutants/graph.ts"
import { applied, drawn, mutantsOf } from "../../scripts/mutants/operators.ts"

/** The faulty forms of a source, by the operator that makes them. */
const faultsOf = (text: string, operator: string): ReadonlyArray<string> =>
  mutantsOf("a.ts", text)
    .filter((mutant) => mutant.operator === operator)
    .map((mutant) => applied(text, mutant))

describe("a mutant", () => {
  const cases: ReadonlyArray<readonly [operator: string, text: string, ...faults: ReadonlyArray<string>]> = [
    ["boundary", "a < b", "a <= b"],
    ["equality", "a /* = */ === b", "a /* = */ !== b"],
    ["logic", "a && b", "a || b"],
    ["half", "a && b", "a", "b"],
    ["negation", "if (!a) b()\nif (c) d()", "if (a) b()\nif (c) d()", "if (!a) b()\nif (!(c)) d()"],
    ["arithmetic", "a - b", "a + b"],
    ["arithmetic", "a + 'text'"],
    ["number", "f(1, 9_999)", "f(2, 9_999)", "f(0, 9_999)"],
    ["string", 'f("data", "for readers")', 'f("", "for readers")'],
    ["property", "f({ a, b })", "f({ b })", "f({ a })"],
    ["slice", "a.slice(b)", "a.slice(b + 1)"],
    ["link", "a.trim().at(b)", "a.at(b)"],
    ["step", "a.pipe(Effect.map(b), Effect.uninterruptible)", "a.pipe(Effect.map(b))"],
    ["wrapper", "Effect.ensuring(a, b)", "a"],
    ["default", "a ?? b", "a", "b"],
    ["arms", "a ? b : c", "a ? (c) : (b)"],
    ["guard", "() => { if (a) { return }\nif (b) {} }", "() => { ;\nif (b) {} }"],
    ["factor", "4 * a", "a"],
    ["case", "switch (a) { case b: c() }", "switch (a) {  }"],
    ["element", "[...a, b]", "[b]", "[...a]"],
    ["statement", "a = b", ";"],
    ["twin", "a.find(b)", "a.findLast(b)"]
  ]
  for (const [operator, text, ...faults] of cases) {
    it(`${operator}: ${text.replaceAll("\n", " ")}`, () => assert.deepStrictEqual(faultsOf(text, operator), faults))
  }

  it("leaves imports, types, names and messages alone, and the number of lines", () => {
    const quiet = [
      'import a from "b"',
      'const c: "d" = e',
      "const f = Schema.Struct({ g: Schema.Literal(1) })",
      'class m extends Schema.Class<m>("m")({ n: Schema.String }) {}',
      'class o extends Schema.TaggedError<o>()("o", { p: Schema.String }) {}',
      'throw new Refusal({ reason: "h" })',
      'const i = j(k, new LateError({ l: 2 }), { message: "m" })'
    ]
    assert.deepStrictEqual(mutantsOf("a.ts", quiet.join("\n")), [])
    assert.deepStrictEqual(faultsOf("a\n  .sort()\n  .at(b)", "link"), ["a\n\n  .at(b)"])
  })
})

describe("a sample", () => {
  const mutants = mutantsOf("a.ts", Array.from({ length: 40 }, (_, line) => `f(${line} < a, a && b, c)`).join("\n"))

  it("is the same for a seed, has one mutant a line, and its operators take turns", () => {
    const sample = drawn(mutants, 20, 1)
    assert.deepStrictEqual(drawn(mutants, 20, 1), sample)
    assert.notDeepEqual(drawn(mutants, 20, 2), sample)
    assert.strictEqual(new Set(sample.map(({ line }) => line)).size, 20)
    assert.strictEqual(drawn(mutants, 1_000, 1).length, 40)
    assert.isAbove(sample.filter(({ operator }) => operator === "boundary").length, 1)
  })
})

it("the distance of a test is the length of the shortest way of imports, without those of types", () => {
  const importers = importersOf([
    ["src/a.ts", ""],
    ["src/b.ts", 'export { a } from "./a.ts"\nimport { type d } from "./d.ts"'],
    ["src/c.ts", 'const b = import("./b.ts")'],
    ["test/c.test.ts", 'import "vitest"\nimport "../src/c.ts"'],
    ["test/b.test.ts", 'import { b } from "../src/b.ts"\nimport "./c.test.ts"'],
    ["test/d.test.ts", 'import type { a } from "../src/a.ts"']
  ])
  assert.deepStrictEqual(
    [...distancesTo("src/a.ts", importers)],
    [
      ["src/a.ts", 0],
      ["src/b.ts", 1],
      ["src/c.ts", 2],
      ["test/b.test.ts", 2],
      ["test/c.test.ts", 3]
    ]
  )
  assert.deepStrictEqual([...distancesTo("src/d.ts", importers).keys()], ["src/d.ts"])
})
