import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { EntryId, entryId } from "../../../src/domain/conversation/Conversation.ts"
import type { Replacement } from "../../../src/domain/evaluation/OneRecall.ts"
import {
  answerOwn,
  type OwnQuestion,
  ownQuestions,
  parseQuestions
} from "../../../src/domain/evaluation/OwnQuestions.ts"
import { SearchableText } from "../../../src/domain/evaluation/WholeWords.ts"
import { measured } from "../../support/compactions.ts"

const port: OwnQuestion = { question: "Which port?", answer: "9090", not: ["8080"] }
const names: OwnQuestion = { after: EntryId.make("e120"), question: "Which names?", answer: ["src/a.ts", "resolve"] }

describe("a questions file", () => {
  it("has one question a line, and empty lines", () => {
    const text = `\uFEFF${JSON.stringify(port)}\r\n \n  ${JSON.stringify(names)}\n`
    assert.deepStrictEqual(Result.getOrThrow(parseQuestions(text)), [port, names])
  })

  const problems: ReadonlyArray<readonly [text: string, line: number, message: RegExp]> = [
    ["", 1, /no question in the file; an example: \{"question"/],
    [`${JSON.stringify(port)}\n{"question": "a" "answer": "b"}`, 2, /^not JSON: column 18 has to be "," or "}"/],
    ["[]", 1, /^not an object/],
    ['"text"', 1, /^not an object/],
    ['{"answer": "b"}', 1, /^question has to be a text;/],
    ['{"question": "a"}', 1, /^answer has to be a text or a list of texts/],
    ['{"question": "a", "answer": []}', 1, /^answer has to be/],
    ['{"question": "a", "answer": " "}', 1, /^answer has to be/],
    ['{"question": "a", "answer": ["b", 1]}', 1, /^answer has to be/],
    ['{"question": "a", "answer": "b", "not": "c"}', 1, /^not has to be a list/],
    ['{"question": "a", "answer": "b", "after": "120"}', 1, /^after has to be the id of an entry, such as e120/],
    ['{"question": "a", "answer": "b", "anwser": "c"}', 1, /^unknown key "anwser"; the keys are after, question/]
  ]
  for (const [text, line, message] of problems) {
    it(`is refused: ${JSON.stringify(text.slice(-40))}`, () => {
      const read = parseQuestions(text)
      if (Result.isSuccess(read)) return assert.fail("it was read")
      assert.strictEqual(read.failure.line, line)
      assert.match(read.failure.message, message)
    })
  }
})

describe("a question of the user", () => {
  const cases: ReadonlyArray<readonly [question: OwnQuestion, context: string, verdict: string]> = [
    [port, "- the port is `9090`.", "right"],
    [port, "- the port is 90901", "absent"],
    [port, "- the port went from 8080 to 9090", "wrong"],
    [names, "- /work/src/a.ts: modified (1 change: +resolve/2)", "right"],
    [names, "- src/a.tsx: modified (1 change: +resolve/2)", "absent"],
    [names, "- src/a.ts", "absent"],
    [{ question: "What did the user say?", answer: "Never touch\nit" }, "Never  touch it", "right"]
  ]
  for (const [question, context, verdict] of cases) {
    it(`is ${verdict} in ${JSON.stringify(context)}`, () =>
      assert.strictEqual(answerOwn(question, context, ["/work"]), verdict))
  }

  it("is asked after its entry only", () => {
    const said = new SearchableText("port 9090", (text) => text)
    const replacement: Replacement = { snapshot: said, context: said, recall: () => undefined }
    const figuresAfter = (sequence: number) => {
      const entry = { id: entryId(sequence), content: { role: "user" as const, parts: [] }, tokens: [], handles: [] }
      return measured(ownQuestions([port, names]), { log: [entry], before: [entry], after: [], roots: [] }, replacement)
    }
    assert.deepStrictEqual(figuresAfter(119)["questionsRight"], { part: 1, whole: 1 })
    assert.deepStrictEqual(figuresAfter(120)["questionsRight"], { part: 1, whole: 2 })
    assert.deepStrictEqual(figuresAfter(120)["question: Which names?"], { part: 0, whole: 1 })
  })
})
