/** The `ask_user` tool: puts questions of the model to the user. */

import { Effect, Schema, Semaphore } from "effect"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"
import { UserPrompt, type UserQuestion } from "../UserPrompt.ts"

/** Maximum number of questions per call: more would be a form. */
const maxQuestions = 4

const AskedQuestion = Schema.Struct({
  question: Schema.String.annotate({ description: "The question, complete and self-contained" }),
  header: Schema.optionalKey(Schema.String.annotate({ description: "Its topic, in a word or two" })),
  type: Schema.optionalKey(
    Schema.Literals(["choice", "text", "yesno"]).annotate({
      description:
        "How it is answered: with one of the options, as text, or with yes or no. Default: options if there are any"
    })
  ),
  options: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        label: Schema.String.annotate({ description: "The answer, in a few words" }),
        description: Schema.optionalKey(Schema.String.annotate({ description: "What this answer means" }))
      })
    ).annotate({ description: "Suggested answers; the user may always answer freely" })
  ),
  multiSelect: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether several options may be chosen" }))
})

const questionOf = ({
  header,
  multiSelect = false,
  options = [],
  question,
  type
}: typeof AskedQuestion.Type): UserQuestion => ({
  text: question,
  header,
  choices:
    type === "yesno"
      ? [
          { label: "Yes", description: undefined },
          { label: "No", description: undefined }
        ]
      : type === "text"
        ? []
        : options.map(({ description, label }) => ({ label, description })),
  several: multiSelect && type !== "yesno"
})

/** What is wrong with the questions. Undefined: nothing. */
const wrong = (questions: ReadonlyArray<typeof AskedQuestion.Type>): string | undefined => {
  if (questions.length === 0) return "there is no question; give at least one"
  if (questions.length > maxQuestions) {
    return `these are ${questions.length} questions, and at most ${maxQuestions} are asked at once; ask the most important ones`
  }
  const blank = questions.findIndex(({ question }) => question.trim() === "")
  if (blank >= 0) return `question ${blank + 1} is empty; say what you want to know`
  const bare = questions.findIndex(({ options = [], type }) => type === "choice" && options.length < 2)
  return bare < 0 ? undefined : `question ${bare + 1} is a choice without options; give at least two`
}

/** The `ask_user` tool. The time that the user takes counts against no limit. */
export const askUser: Effect.Effect<Tool, never, UserPrompt> = Effect.gen(function* () {
  const person = yield* UserPrompt
  // Calls that only read run in parallel; questions to the user come one at a time.
  const one = yield* Semaphore.make(1)
  return make({
    name: "ask_user",
    description:
      "Asks the user one or more questions and waits for the answers. Use it for what only the user can decide or know, not for permission to use a tool, which the program requests itself.",
    parameters: Schema.Struct({
      questions: Schema.Array(AskedQuestion).annotate({ description: "One to four questions" })
    }),
    result: Schema.Struct({
      answers: Schema.Array(Schema.Struct({ question: Schema.String, answer: Schema.String }))
    }),
    kind: "read",
    keeps: true,
    timeout: "Infinity",
    title: ({ questions }) => questions[0]?.question ?? "",
    run: ({ questions }, { waiting }) =>
      Effect.gen(function* () {
        const problem = wrong(questions)
        if (problem !== undefined) {
          return yield* new ToolFailure({ message: problem, type: "invalid_tool_params" })
        }
        const answers = yield* waiting(
          one.withPermit(
            Effect.forEach(questions, (question) =>
              Effect.map(person.ask(questionOf(question)), (answer) => ({ question: question.question, answer }))
            )
          )
        )
        return {
          value: { answers },
          display: textDisplay(
            answers.map(({ answer, question }) => (answers.length === 1 ? answer : `${question} ${answer}`)).join("\n")
          )
        }
      })
  })
})
