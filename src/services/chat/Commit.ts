/** The one place where history changes: appends one line to the log, then replaces the state. */

import { Effect, Option, Ref, Schema, type Semaphore } from "effect"
import { applyEvent, recallableOf, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { ChatState } from "./ChatState.ts"
import { endingBy, endPreparation } from "./Preparation.ts"

/** Another change is in progress, such as a turn or a compression. Wait for it, or cancel it. */
export class ChatBusy extends Schema.TaggedError<ChatBusy>()("ChatBusy", { doing: Schema.String }) {
  override get message() {
    return `the conversation is busy with ${this.doing}; wait for it to end, or cancel it`
  }
}

/** Runs work with the one permit of a semaphore. Fails with `ChatBusy` at once if other work has it. `activity`: what that work is doing. */
export const ifFree = <A, E, R>(
  permit: Semaphore.Semaphore,
  activity: Effect.Effect<string>,
  work: Effect.Effect<A, E, R>
) =>
  permit
    .withPermitsIfAvailable(1)(work)
    .pipe(
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.flatMap(activity, (doing) => Effect.fail(new ChatBusy({ doing }))),
          onSome: Effect.succeed
        })
      )
    )

/** Runs a change exclusively. Fails with `ChatBusy` at once if another change is running. */
export const exclusively = <A, E, R>(chat: ChatState, activity: string, change: Effect.Effect<A, E, R>) =>
  ifFree(chat.changing, Ref.get(chat.activity), Effect.andThen(Ref.set(chat.activity, activity), change))

/** Appends an event to the log and applies it to the state. Uninterruptible: a cancellation takes effect afterwards. */
export const commit = (chat: ChatState, event: SessionEvent): Effect.Effect<void, SessionStoreError> => {
  const ending = endingBy(event)
  return chat.log.append(event).pipe(
    Effect.tapError((error) => (error.reason._tag === "SessionChanged" ? reread(chat) : Effect.void)),
    Effect.andThen(Ref.update(chat.session, (session) => applyEvent(session, event))),
    Effect.andThen(ending === undefined ? Effect.void : endPreparation(chat, ending)),
    chat.committing.withPermit,
    Effect.uninterruptible
  )
}

const replace = (chat: ChatState, session: Session) =>
  Effect.andThen(
    Ref.set(chat.session, session),
    Effect.sync(() => {
      chat.handles.restore(recallableOf(session).entries)
      chat.unread = undefined
      return session
    })
  )

/** Continues with the log as it is, where what was acknowledged is gone from it. The change that found it fails; the next one is made to what is there. */
const reread = (chat: ChatState) =>
  chat.log.whole === undefined
    ? Effect.void
    : chat.log.whole.pipe(
        Effect.flatMap((session) => replace(chat, session)),
        Effect.ignore({ log: "Debug" })
      )

/** Returns the complete session. Reads what the store did not load, never between the two steps of a commit. */
export const readWhole = (chat: ChatState): Effect.Effect<Session, SessionStoreError> =>
  Effect.suspend(() =>
    chat.unread === undefined
      ? Ref.get(chat.session)
      : chat.committing.withPermit(
          Effect.flatMap(chat.unread, (stored) =>
            Effect.uninterruptible(
              // The log knows of failures of earlier processes too.
              Effect.flatMap(Ref.get(chat.session), ({ memory: { failed } }) =>
                replace(
                  chat,
                  failed === stored.memory.failed ? stored : { ...stored, memory: { ...stored.memory, failed } }
                )
              )
            )
          )
        )
  )
