/**
 * The questions of a session's turn that a client answers. A question and its answer are in the log before anyone hears of them: after a crash,
 * whoever takes the turn up finds both, asks an open question again, and asks no answered one.
 */

import { Clock, Deferred, Duration, Effect, Option, Schema, Semaphore } from "effect"
import { mainAgent } from "../../domain/agent/AgentPlace.ts"
import type { EntryId } from "../../domain/conversation/Conversation.ts"
import { type ClientTool, defaultDeadline, type SessionRecord } from "../../domain/serve/SessionRecord.ts"
import {
  type AskedQuestion,
  type CallEnded,
  type CallQuestion,
  type ClientAnswer,
  fits,
  isSameAnswer,
  type QuestionEvent,
  questionsIn
} from "../../domain/session/CallQuestions.ts"
import type { Session } from "../../domain/session/Session.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import type { Answer } from "../../domain/tools/Approval.ts"
import { callsOf } from "../agent/AgentConversation.ts"
import type { LastingCalls } from "../agent/AgentRun.ts"
import { groupsOf } from "../agent/AnswerCalls.ts"
import { abandonedAnswer, type CallAnswer } from "../agent/ToolAnswer.ts"
import type { Chat } from "../chat/Chat.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { ApprovalQuestion } from "../tools/Approval.ts"
import { type Tool, ToolFailure } from "../tools/Tool.ts"
import { storeError } from "./Failures.ts"
import { BadRequest, Conflict, NotFound, type ServeError } from "./ServeErrors.ts"

/** How long the title of a call may be, in characters. */
const maxTitleChars = 160

/** The events of questions, oldest first. Each one makes a new list, so an array that is kept for each would fill the memory. */
const eventsOf = ({ questions }: Session): ReadonlyArray<QuestionEvent> =>
  PersistentList.drop<QuestionEvent>(questions, 0)

/** The questions of a session that the log has, oldest first. */
const questionsOf = (session: Session): ReadonlyArray<AskedQuestion> => questionsIn(eventsOf(session))

const lastEntry = ({ conversation }: Session): EntryId | undefined => conversation.view?.value.entry.id

/** The questions of the last message. */
const questionsOfLast = (session: Session): ReadonlyArray<AskedQuestion> =>
  questionsOf(session).filter(({ entry }) => entry === lastEntry(session))

/**
 * The id of the question about a call of the last message: that of the call, with a number where an earlier message had a call of this id. A late
 * answer to the earlier one is none to this.
 */
const questionId = (session: Session, call: string): string => {
  const last = lastEntry(session)
  const taken = new Set(questionsOf(session).flatMap(({ entry, question }) => (entry === last ? [] : [question.call])))
  let id = call
  // Calls that hooks add to this one are called `${call}.1` and so on.
  for (let count = 2; taken.has(id); count += 1) id = `${call}~${count}`
  return id
}

/** Whether the turn can still use an answer: the call is one of the last message, and has no result yet. */
const isOpen = (session: Session, { answer, entry }: AskedQuestion): boolean =>
  answer === undefined && lastEntry(session) === entry

/** How a call of the last message ended, if that was recorded before the results of all. */
const endedCall = (session: Session, call: string): CallEnded | undefined =>
  eventsOf(session).findLast(
    (event): event is CallEnded =>
      event._tag === "CallEnded" && event.call === call && event.entry === lastEntry(session)
  )

/** The questions of a session that wait for an answer. */
export const openQuestions = (session: Session): ReadonlyArray<CallQuestion> =>
  questionsOf(session).flatMap((asked) => (isOpen(session, asked) ? [asked.question] : []))

/** Shows a question to the clients. `call`: the call of this run of the turn that it is about; undefined where clients know of it. */
type Publish = (question: CallQuestion, call: string | undefined) => void

const no = (words: string): Answer => ({ _tag: "No", words })
const once: Answer = { _tag: "Once" }
const lostCall = "the server stopped while this call may have been running; check what it did before you repeat it"

/** The questions of an open session. Mutable: its turn and all requests share it. */
export class TurnQuestions {
  /** Questions that wait, by their ids. `isRunning`: the call that asks has started. */
  private readonly asking = new Map<
    string,
    { readonly answered: Deferred.Deferred<void>; readonly isRunning: boolean }
  >()
  /** Held while an answer, or the end of the time for one, is written. */
  private readonly answering = Semaphore.makeUnsafe(1)
  private chat: Chat["Service"] | undefined
  private record: SessionRecord = {}
  /** Tools that the record has no more, with questions that the turn still waits with. */
  private removed: ReadonlyArray<ClientTool> = []
  private publish: Publish = () => {}
  /** The message whose calls the turn takes up. */
  private first: EntryId | undefined

  /** Sets the conversation, once it is open. */
  attach(chat: Chat["Service"]): void {
    this.chat = chat
  }

  /** Sets what the next turn works with. `session`: the whole session; `publish` shows a question to the clients. */
  begin(record: SessionRecord, session: Session, publish: Publish): void {
    this.record = record
    this.publish = publish
    this.removed = []
    const last = lastEntry(session)
    this.first = last
    const names = new Set((record.tools ?? []).map(({ name }) => name))
    for (const { entry, question } of questionsOf(session)) {
      if (entry !== last || question.kind === "approval" || names.has(question.name)) continue
      names.add(question.name)
      this.removed = [...this.removed, { name: question.name, description: "", parameters: { type: "object" } }]
    }
  }

  /** Asks about the call that needs approval. Without `approvals` in the record, the answer is no. */
  readonly approve = (call: ApprovalQuestion): Effect.Effect<Answer> =>
    Effect.gen({ self: this }, function* () {
      const { approvals } = this.record
      if (approvals === undefined || call.call === undefined) return no("")
      const whole = yield* this.whole
      const isMain = call.agent === mainAgent
      // The calls of another agent are in its own conversation, where the same ids are other calls.
      const id = questionId(whole, isMain ? call.call : `${call.agent}.${questionsOfLast(whole).length + 1}`)
      const calls = this.chat === undefined ? [] : yield* callsOf(this.chat)
      // Clients get no request of a call that a hook added.
      const own = isMain && calls.some((one) => one.id === call.call) ? call.call : undefined
      const question: CallQuestion = {
        call: id,
        kind: "approval",
        name: call.tool,
        args: argsFrom(call.args),
        title: call.title,
        detail: call.detail,
        deadline: (yield* Clock.currentTimeMillis) + (approvals.deadline ?? defaultDeadline)
      }
      const answer = yield* this.ask(question, own)
      if (answer === null) return no("nobody answered whether it may run, within the time for it")
      if (!("decision" in answer) || answer.decision === "deny") {
        return no("reason" in answer ? (answer.reason ?? "") : "")
      }
      yield* this.note({ _tag: "CallBegan", call: id })
      return once
    }).pipe(Effect.orDie)

  /** The tools of the record, as the agent calls them. */
  get tools(): ReadonlyArray<Tool> {
    return [...(this.record.tools ?? []), ...this.removed].map((tool) => this.toolOf(tool))
  }

  private toolOf({ deadline = defaultDeadline, description, name, parameters }: ClientTool): Tool {
    return {
      name,
      aliases: [],
      description,
      parameters,
      // Several calls of one answer are asked at the same time.
      kind: "read",
      isNeverMasked: false,
      timeout: Duration.infinity,
      call: (given, { id, waiting }) => {
        const args = argsFrom(given)
        const title = shortLine(`${name} ${JSON.stringify(args)}`, maxTitleChars)
        const asking = Effect.gen({ self: this }, function* () {
          const call = questionId(yield* this.whole, id)
          const until = (yield* Clock.currentTimeMillis) + deadline
          return yield* this.ask({ call, kind: "tool", name, args, title, detail: null, deadline: until }, id)
        })
        const run = Effect.flatMap(waiting(Effect.orDie(asking)), (answer) =>
          answer === null
            ? new ToolFailure({
                message: `nobody answered ${name} within ${Duration.format(Duration.millis(deadline))}`
              })
            : "result" in answer
              ? Effect.succeed({ value: answer.result })
              : new ToolFailure({ message: "error" in answer ? answer.error : `${name} has no result` })
        )
        return Effect.succeed({ title, question: Effect.undefined, run })
      }
    }
  }

  /** How calls outlive the turn that made them. */
  readonly lasting: LastingCalls = {
    staysOpen: Effect.suspend(() =>
      this.chat === undefined ? Effect.succeed(false) : Effect.map(this.ofLastMessage, (asked) => asked.length > 0)
    ),
    ended: ({ id }, { response, status }) =>
      Effect.ignore(this.note({ _tag: "CallEnded", call: id, response, status }), { log: "Warn" }),
    earlier: (calls, tools) =>
      Effect.map(
        Effect.orElseSucceed(this.whole, () => undefined),
        (session) => {
          const asked = session === undefined ? [] : questionsOfLast(session)
          const own = new Set(this.tools.map(({ name }) => name))
          // The calls of a group run side by side. What follows a group with one that did not end did not begin.
          let mayHaveBegun = true
          return groupsOf(calls, tools).flatMap((group) => {
            const hadTurn = mayHaveBegun
            return group.map(({ call, id }): CallAnswer | undefined => {
              const done = session === undefined ? undefined : endedCall(session, id)
              if (done !== undefined) return { status: done.status, response: done.response, result: undefined }
              const asks = session === undefined ? id : questionId(session, id)
              const found = asked.find(({ question }) => question.call === asks)
              if (own.has(call.name)) {
                if (found?.answer === undefined) mayHaveBegun = false
                return undefined
              }
              if (tools.every(({ kind, name }) => name !== call.name || kind === "read")) return undefined
              mayHaveBegun = false
              return hadTurn && found?.hasBegun !== false ? abandonedAnswer(lostCall) : undefined
            })
          })
        }
      )
  }

  /** The questions of the last message. */
  private get ofLastMessage(): Effect.Effect<ReadonlyArray<AskedQuestion>> {
    return Effect.map(this.whole, questionsOfLast).pipe(Effect.orElseSucceed(() => []))
  }

  private get whole(): Effect.Effect<Session, SessionStoreError> {
    return Effect.suspend(() => this.chat?.whole ?? Effect.die("the session is not open"))
  }

  /** Writes what happened to a call of the last message. */
  private note(
    what:
      | { readonly _tag: "QuestionAsked"; readonly question: CallQuestion }
      | { readonly _tag: "QuestionAnswered"; readonly call: string; readonly answer: ClientAnswer | null }
      | { readonly _tag: "CallBegan"; readonly call: string }
      | Pick<CallEnded, "_tag" | "call" | "response" | "status">
  ): Effect.Effect<void, SessionStoreError> {
    return Effect.gen({ self: this }, function* () {
      const entry = lastEntry(yield* this.whole)
      const at = yield* Clock.currentTimeMillis
      if (entry !== undefined) yield* this.chat?.note({ ...what, at, entry, ignorable: true }) ?? Effect.void
    })
  }

  private found(call: string): Effect.Effect<AskedQuestion | undefined, SessionStoreError> {
    return Effect.map(this.ofLastMessage, (asked) => asked.find(({ question }) => question.call === call))
  }

  /** Asks, unless the log has the answer. Returns null when the time has passed. `call`: the call of the main agent that is asked about. */
  private ask(asking: CallQuestion, call: string | undefined): Effect.Effect<ClientAnswer | null, SessionStoreError> {
    return Effect.gen({ self: this }, function* () {
      const answered = Deferred.makeUnsafe<void>()
      this.asking.set(asking.call, { answered, isRunning: asking.kind === "tool" || call === undefined })
      const before = yield* this.found(asking.call)
      if (before?.answer !== undefined) return before.answer
      // One that an earlier run asked keeps its time.
      const question = before?.question ?? asking
      if (before === undefined) yield* this.note({ _tag: "QuestionAsked", question })
      this.publish(question, lastEntry(yield* this.whole) === this.first ? undefined : call)
      const left = Math.max(0, question.deadline - (yield* Clock.currentTimeMillis))
      yield* Effect.timeoutOption(Deferred.await(answered), left)
      return yield* this.answering.withPermit(
        Effect.gen({ self: this }, function* () {
          const after = yield* this.found(asking.call)
          if (after?.answer !== undefined) return after.answer
          yield* this.note({ _tag: "QuestionAnswered", call: asking.call, answer: null })
          return null
        })
      )
    }).pipe(Effect.ensuring(Effect.sync(() => this.asking.delete(asking.call))))
  }

  /** The number of questions that wait, and of those whose calls have started. */
  get waiting(): { readonly size: number; readonly ofRunningCalls: number } {
    const all = [...this.asking.values()]
    return { size: all.length, ofRunningCalls: all.filter(({ isRunning }) => isRunning).length }
  }

  /** Takes the answer of a client. The same answer again changes nothing. */
  readonly answer = (session: string, call: string, answer: ClientAnswer): Effect.Effect<void, ServeError> =>
    this.answering.withPermit(
      Effect.gen({ self: this }, function* () {
        const whole = yield* Effect.catch(this.whole, storeError)
        const asked = questionsOf(whole).filter(({ question }) => question.call === call)
        const found = asked.find((one) => isOpen(whole, one)) ?? asked.at(-1)
        if (found === undefined) {
          return yield* new NotFound({ message: `session ${session} has no question ${call}; read its questions` })
        }
        const { question } = found
        if (found.answer !== undefined && found.answer !== null) {
          if (isSameAnswer(found.answer, answer)) return
          return yield* new Conflict({ message: `the question ${call} already has another answer` })
        }
        const isLate = found.answer === null || question.deadline <= (yield* Clock.currentTimeMillis)
        if (isLate || !isOpen(whole, found)) {
          return yield* new Conflict({ message: `the turn does not wait for ${call} any more` })
        }
        if (!fits(question, answer)) {
          const wanted = question.kind === "approval" ? "a decision" : "a result or an error"
          return yield* new BadRequest({ message: `the question ${call} takes ${wanted}` })
        }
        yield* Effect.catch(this.note({ _tag: "QuestionAnswered", call, answer }), storeError)
        const waiting = this.asking.get(call)
        if (waiting !== undefined) yield* Deferred.succeed(waiting.answered, undefined)
      }).pipe(Effect.uninterruptible)
    )
}

const asJson = Schema.decodeUnknownOption(Schema.Json)

/** The arguments as JSON: models sometimes send them as text. */
const argsFrom = (given: unknown): CallQuestion["args"] => {
  const value = typeof given === "string" ? (parsedOrUndefined(given) ?? given) : given
  // The wire has only JSON.
  return Option.getOrElse(asJson(value ?? {}), () => ({}))
}
