import { assert, it } from "@effect/vitest"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { groundedEdits } from "../../../src/domain/evaluation/Edits.ts"
import { compactionOf, measured, ran, replacementOf } from "../../support/compactions.ts"

const handle = Handle.make("h_abcdefghij")
const file = "    1\tconst one = 1\n    2\tconst two = 2\n    3\tconst six = 6"
const read = ran("read", { file_path: "/work/project/src/a.ts" }, file)
const edit = (old_string: string) =>
  ran("edit", { file_path: "/work/project/src/a.ts", old_string, new_string: "const two = 3" }, "ok")

const rules: ReadonlyArray<
  readonly [rule: string, after: ReturnType<typeof edit>, context: string, expected: { part: number; whole: number }]
> = [
  ["path and text are there", edit("const two = 2"), "src/a.ts has const two = 2", { part: 1, whole: 1 }],
  ["only the path", edit("const two = 2"), "src/a.ts", { part: 0, whole: 1 }],
  ["the text behind a handle", edit("const one = 1\nconst two = 2\n"), `src/a.ts: ${handle}`, { part: 1, whole: 1 }],
  ["the text by a pattern of a word beside it", edit("const two = 2"), "src/a.ts const", { part: 1, whole: 1 }],
  ["a text that was read since", [...read, ...edit("const two = 2")], "", { part: 0, whole: 0 }],
  ["a text that never stood there", edit("const ten = 10"), "", { part: 0, whole: 0 }]
]

it.each(rules)("edits %s", (_, after, context, expected) => {
  const replacement = replacementOf(context, () => file)
  assert.deepStrictEqual(measured(groundedEdits, compactionOf(read, after), replacement).editsReachable, expected)
})
