/** Imports conversations of other agents as saved sessions: for `sessions import`, and for `--resume` with the id of one. */

import { Clock, Effect } from "effect"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { latestName } from "../../domain/session/SessionName.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { newId } from "../../services/platform/NewId.ts"
import { message } from "../../services/runtime/RuntimeNotice.ts"
import { findSession, type OpenHandlers, type SessionOptions } from "../../services/runtime/SessionOpening.ts"
import { isSessionId, SessionStore } from "../../services/session/SessionStore.ts"
import { type LocatedSession, SessionLocator } from "../../services/transcripts/SessionLocator.ts"
import { Transcripts } from "../../services/transcripts/Transcripts.ts"
import { badInput, failed } from "../output/ExitError.ts"
import { orExit } from "../output/RuntimeText.ts"
import { ago } from "../output/TimeText.ts"
import * as ConversationInput from "./ConversationInput.ts"

/** Number of ids to try: the file's own id first, then new ones. */
const maxIdAttempts = 4

/** Stores the events of a file as a new session, under the file's own id if it is free. Returns the id. */
export const addUnderFreeId = Effect.fnUntraced(function* (events: ReadonlyArray<SessionEvent>) {
  const [started, ...rest] = events
  if (started?._tag !== "Started") return yield* badInput("the file does not start a conversation")
  const store = yield* SessionStore
  for (let attempt = 0; attempt < maxIdAttempts; attempt += 1) {
    const id = attempt === 0 && isSessionId(started.session) ? started.session : yield* newId
    const isAdded = yield* store.add([{ ...started, session: id }, ...rest]).pipe(
      Effect.as(true),
      Effect.catchIf(
        ({ reason }) => reason._tag === "SessionExists" || reason._tag === "SessionLocked",
        () => Effect.succeed(false)
      ),
      orExit
    )
    if (isAdded) return id
  }
  return yield* failed("no id was free for the session; try again")
})

/** Copies a session, unless it was copied before. Returns the id of the copy. */
const copied = Effect.fnUntraced(function* (
  { path: file, title }: LocatedSession,
  { notify, progress = (_label, work) => work }: OpenHandlers
) {
  const transcripts = yield* Transcripts
  const { events, format } = yield* progress("reading the session", transcripts.load(file, { lenient: true })).pipe(
    Effect.mapError(ConversationInput.unreadable)
  )
  const [started] = events
  const earlier =
    started?._tag === "Started"
      ? yield* Effect.option(SessionStore.use((store) => store.summary(started.session)))
      : undefined
  if (earlier?._tag === "Some") {
    const { id, updatedAt } = earlier.value
    const when = ago(updatedAt, yield* Clock.currentTimeMillis)
    yield* notify(message(`resuming your copy of the ${format} session, last changed ${when}`))
    return id
  }
  const id = yield* addUnderFreeId(events)
  if (title !== undefined) yield* orExit(SessionStore.use((store) => store.rename(id, title)))
  yield* notify(message(`resuming a copy of the ${format} session; ${printableLine(file)} is unchanged`))
  return id
})

/** Returns the name of a session to resume. Where no saved session has it, and a session of another agent has this id, that one is copied. */
export const resumableName = Effect.fnUntraced(function* (name: string, handlers: OpenHandlers) {
  if (name === latestName || !ConversationInput.sessionName.test(name)) return name
  const unknown = yield* findSession(name).pipe(
    Effect.as(undefined),
    Effect.catchTag("SessionSelectionError", (error) =>
      error.problem._tag === "Ambiguous" ? Effect.undefined : Effect.succeed(error)
    ),
    orExit
  )
  if (unknown === undefined) return name
  const find = yield* SessionLocator
  const { progress = (_label, work) => work } = handlers
  const located = yield* progress("reading the sessions of your agents", find(name)).pipe(
    Effect.catchTag("TranscriptError", (error) =>
      error.kind === "UnknownSession" ? orExit(Effect.fail(unknown)) : Effect.fail(ConversationInput.unreadable(error))
    )
  )
  return yield* copied(located, handlers)
})

/** Options whose session can be resumed under its name. */
export const resumable = Effect.fnUntraced(function* (options: SessionOptions, handlers: OpenHandlers) {
  const { session } = options
  if (session?._tag !== "Resume") return options
  return { ...options, session: { ...session, name: yield* resumableName(session.name, handlers) } }
})
