/** The questions of turns that clients answer: calls of the product's own tools, and calls that need approval. */

import { Equal, Schema } from "effect"
import { CallStatus } from "../chat/ChatEvent.ts"
import { EntryId } from "../conversation/Conversation.ts"
import { isTooDeep } from "../text/JsonText.ts"

/** Maximum nesting depth of a result: the log and requests to models hold it some levels deep. */
const maxResultDepth = 500

/** What a client answers. */
export const ClientAnswer = Schema.Union([
  /** The result of a call of the client's own tool. */
  Schema.Struct({
    result: Schema.Json.check(
      Schema.makeFilter((result) => !isTooDeep(result, maxResultDepth), {
        expected: `a result of at most ${maxResultDepth} levels`
      })
    )
  }),
  /** Why a call of the client's own tool has no result, in words for the model. */
  Schema.Struct({ error: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(10_000)) }),
  /** Whether a call may run. `reason`: words for the model with a denial. */
  Schema.Struct({
    decision: Schema.Literals(["allow", "deny"]),
    reason: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(10_000)))
  })
])
export type ClientAnswer = typeof ClientAnswer.Type

/** A question that a turn waits with. */
export const CallQuestion = Schema.Struct({
  /** The id of the call, under which it is answered. */
  call: Schema.String,
  /** `tool`: the client carries the call out, and answers its result. `approval`: the client decides whether the server does. */
  kind: Schema.Literals(["tool", "approval"]),
  name: Schema.String,
  args: Schema.Json,
  /** The call on one line. */
  title: Schema.String,
  /** What an approved call will do: its diff or command. Null for a tool of the client. */
  detail: Schema.NullOr(Schema.String),
  /** When the turn goes on without an answer, in milliseconds since 1970. */
  deadline: Schema.Finite
})
export type CallQuestion = typeof CallQuestion.Type

const ignorable = Schema.Literal(true)
/** The message of the model that holds the call. */
const entry = EntryId

/** A turn asked a client. These events do not change the conversation; programs that do not know them skip them. */
export const QuestionAsked = Schema.TaggedStruct("QuestionAsked", {
  at: Schema.Finite,
  entry,
  question: CallQuestion,
  ignorable
})

/** A client answered; null: its time passed without an answer. */
export const QuestionAnswered = Schema.TaggedStruct("QuestionAnswered", {
  at: Schema.Finite,
  entry,
  call: Schema.String,
  answer: Schema.NullOr(ClientAnswer),
  ignorable
})

/** A call began that a client had approved: whoever takes the turn up cannot know what it did. */
export const CallBegan = Schema.TaggedStruct("CallBegan", { at: Schema.Finite, entry, call: Schema.String, ignorable })

/** A call that changes something ended, while others of its message have not: its result is recorded with theirs. */
export const CallEnded = Schema.TaggedStruct("CallEnded", {
  at: Schema.Finite,
  entry,
  call: Schema.String,
  status: CallStatus,
  response: Schema.Record(Schema.String, Schema.Unknown),
  ignorable
})
export type CallEnded = typeof CallEnded.Type

/** An event of a question, or of a call beside one. */
export type QuestionEvent = typeof QuestionAsked.Type | typeof QuestionAnswered.Type | typeof CallBegan.Type | CallEnded

/** A question and what became of it. */
export interface AskedQuestion {
  readonly entry: EntryId
  readonly question: CallQuestion
  /** Undefined: nobody has answered. Null: its time has passed. */
  readonly answer: ClientAnswer | null | undefined
  /** Whether the approved call began. */
  readonly hasBegun: boolean
}

/** The questions of a session, oldest first. */
export const questionsIn = (events: ReadonlyArray<QuestionEvent>): ReadonlyArray<AskedQuestion> => {
  const asked = new Map<string, AskedQuestion>()
  for (const event of events) {
    if (event._tag === "CallEnded") continue
    const key = `${event.entry} ${event._tag === "QuestionAsked" ? event.question.call : event.call}`
    const before = asked.get(key)
    if (event._tag === "QuestionAsked") {
      const { entry, question } = event
      if (before === undefined) asked.set(key, { entry, question, answer: undefined, hasBegun: false })
    } else if (before !== undefined) {
      // The first answer counts.
      const answer = event._tag === "QuestionAnswered" && before.answer === undefined ? event.answer : before.answer
      asked.set(key, { ...before, answer, hasBegun: before.hasBegun || event._tag === "CallBegan" })
    }
  }
  return [...asked.values()]
}

/** Whether two answers say the same. */
export const isSameAnswer = (one: ClientAnswer, other: ClientAnswer): boolean => Equal.equals(one, other)

/** Whether an answer is of the kind that a question asks for. */
export const fits = ({ kind }: CallQuestion, answer: ClientAnswer): boolean =>
  (kind === "approval") === "decision" in answer
