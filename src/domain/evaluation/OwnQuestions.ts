/** Questions that a user asks of each context: one JSON object a line. */

import { Result, Schema, SchemaIssue } from "effect"
import { eachAnchor } from "../compression/Anchors.ts"
import { EntryId, sequenceOf } from "../conversation/Conversation.ts"
import { ratingLabel } from "../session/Rating.ts"
import { faultIn } from "../text/JsonFault.ts"
import { parseJson } from "../text/JsonText.ts"
import { eachItem } from "../text/SlicedWork.ts"
import type { Compaction } from "./Compactions.ts"
import { type Measure, shareOf } from "./Measure.ts"
import { hasWords, plain, readContext } from "./Statements.ts"

const Words = Schema.String.check(Schema.isPattern(/\S/, { expected: "a text that is not empty" }))

/** A question of the user. */
export const OwnQuestion = Schema.Struct({
  /** Asked of compactions after this entry only. Absent: of all. */
  after: Schema.optionalKey(EntryId),
  question: Words,
  /** What has to be in the context, as whole words: all of them. */
  answer: Schema.Union([Words, Schema.NonEmptyArray(Words)]),
  /** What must not be in it, as whole words: any of them makes the answer wrong. */
  not: Schema.optionalKey(Schema.Array(Words))
})
export type OwnQuestion = typeof OwnQuestion.Type

/** Why a line of a questions file is not a question. */
export interface QuestionProblem {
  readonly line: number
  readonly message: string
}

const example = `{"question": "Which port?", "answer": "9090", "not": ["8080"]}`

const decode = Schema.decodeUnknownResult(OwnQuestion, { onExcessProperty: "error" })
const issues = SchemaIssue.makeFormatterStandardSchemaV1()

const expectations: Readonly<Record<string, string>> = {
  after: "the id of an entry, such as e120",
  question: "a text",
  answer: "a text or a list of texts, none of them empty",
  not: "a list of texts, none of them empty"
}

/** Reads one line. The failure is a message that says what is wrong with it. */
const readQuestion = (line: string): Result.Result<OwnQuestion, string> => {
  const json = parseJson(line)
  if (Result.isFailure(json)) {
    const fault = faultIn(line)
    const where = fault === undefined ? json.failure.message : `column ${fault.column} has to be ${fault.expected}`
    return Result.fail(`not JSON: ${where}; an example: ${example}`)
  }
  const decoded = decode(json.success)
  if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
  const step = issues(decoded.failure.issue).issues[0]?.path?.[0]
  const key = String(typeof step === "object" ? step.key : (step ?? ""))
  const expected = expectations[key]
  return Result.fail(
    key === ""
      ? `not an object; an example: ${example}`
      : expected === undefined
        ? `unknown key ${JSON.stringify(key)}; the keys are ${Object.keys(expectations).join(", ")}`
        : `${key} has to be ${expected}; an example: ${example}`
  )
}

/** Reads a questions file. Skips empty lines, and fails at the first line that is not a question. */
export const parseQuestions = (text: string): Result.Result<ReadonlyArray<OwnQuestion>, QuestionProblem> => {
  const questions: Array<OwnQuestion> = []
  for (const [index, line] of text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .entries()) {
    if (line.trim() === "") continue
    const read = readQuestion(line.trim())
    if (Result.isFailure(read)) return Result.fail({ line: index + 1, message: read.failure })
    questions.push(read.success)
  }
  return questions.length === 0
    ? Result.fail({ line: 1, message: `no question in the file; an example: ${example}` })
    : Result.succeed(questions)
}

/**
 * Makes a question of each rating whose reason names something: what the user missed, or was glad of, has to be in the contexts
 * from there on. Names are found by their shape, or stand in quotes.
 */
export const questionsOf = (compactions: ReadonlyArray<Compaction>): ReadonlyArray<OwnQuestion> =>
  compactions.flatMap(({ after, rating }) => {
    if (rating === null) return []
    const names = [...rating.why.matchAll(/["`\u201c]([^"`\u201d]+)["`\u201d]/g)].flatMap(([, quoted = ""]) =>
      /\S/.test(quoted) ? [quoted.trim()] : []
    )
    eachAnchor(rating.why, (name) => names.push(name))
    const [first, ...rest] = new Set(names)
    if (first === undefined) return []
    return [{ ...(after === null ? {} : { after }), question: ratingLabel(rating), answer: [first, ...rest] }]
  })

/** Answers a question from a text: `right`, `wrong` when it holds what it must not, `absent` otherwise. */
export const answerOwn = (
  { answer, not = [] }: OwnQuestion,
  context: string,
  folders: ReadonlyArray<string> = []
): "right" | "wrong" | "absent" => {
  const { flatText } = readContext(context, folders)
  const has = (words: string): boolean => hasWords(flatText, plain(words, folders))
  if (not.some(has)) return "wrong"
  return [answer].flat().every(has) ? "right" : "absent"
}

/** Measures the answers to a user's questions. `--json` also has a figure for each question: `question: TEXT`. */
export const ownQuestions = (questions: ReadonlyArray<OwnQuestion>): Measure => ({
  figures: [
    { key: "questionsRight", title: "questions", unit: "share" },
    { key: "questionsWrong", title: "wrong", unit: "share" }
  ],
  *prepare({ log, roots }) {
    const last = log.at(-1)
    const asked = questions.filter(
      ({ after }) => last !== undefined && (after === undefined || sequenceOf(after) <= sequenceOf(last.id))
    )
    return function* ({ context }) {
      return yield* eachItem(asked, (question) => {
        const verdict = answerOwn(question, context.original, roots)
        const right = shareOf(verdict === "right")
        return {
          questionsRight: right,
          questionsWrong: shareOf(verdict === "wrong"),
          [`question: ${question.question}`]: right
        }
      })
    }
  }
})
