/** Messages of the runtime in the words of the command line: what happened, and which flag or command helps. */

import { Clock, Effect, Stdio } from "effect"
import { latestName } from "../../domain/session/SessionName.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { TurnError } from "../../services/chat/Turn.ts"
import type { MemoryError } from "../../services/memory/Memory.ts"
import type { RuntimeHandlers } from "../../services/runtime/Runtime.ts"
import type { RuntimeError, SessionSelectionError } from "../../services/runtime/RuntimeError.ts"
import { type Notify, noticeText, type RuntimeNotice } from "../../services/runtime/RuntimeNotice.ts"
import type { SessionStoreError } from "../../services/session/SessionStore.ts"
import type { SettingsNotice } from "../../services/settings/Settings.ts"
import { badInput, type ExitError, failed } from "./ExitError.ts"
import * as Output from "./Output.ts"
import { ago } from "./TimeText.ts"

const trustHint = "; to trust it: palimpsest trust"

const settingsHint = ({ isUntrusted }: SettingsNotice): string => (isUntrusted === true ? trustHint : "")

/** Why a settings file is ignored, and what to do. */
export const leftOutLine = (why: SettingsNotice): string => `${why.text}${settingsHint(why)}`

/** Why a fact was not remembered, and what to do; safe for a terminal. */
export const memoryErrorLine = ({ kind, message }: MemoryError): string =>
  printableLine(`${message}${kind === "Untrusted" ? trustHint : ""}`)

/** The advice for a notice, if there is any. */
const hint = (notice: RuntimeNotice): string => {
  switch (notice._tag) {
    case "Message":
      return ""
    case "Settings":
      return settingsHint(notice.notice)
    case "UnknownModel":
      return ` (to set it: palimpsest config set models.${notice.model}.window N)`
    case "UntrustedFolder":
    case "UntrustedMemory":
      return trustHint
    case "MoreMemoryProblems":
      return "; palimpsest memory refresh lists them"
    case "ApprovalUnavailable":
      return "; --approve all runs it without asking"
  }
}

/** A notice in one line, safe for a terminal. */
export const noticeLine = (notice: RuntimeNotice): string => printableLine(`${noticeText(notice)}${hint(notice)}`)

/** Prints notices on stderr. */
export const notify: Effect.Effect<Notify, never, Stdio.Stdio> = Effect.map(
  Stdio.Stdio,
  (stdio) => (notice) => Effect.provideService(Output.notice(noticeLine(notice)), Stdio.Stdio, stdio)
)

/** Prints notices and progress on stderr. Approvals are denied. */
export const handlers: Effect.Effect<RuntimeHandlers, never, Stdio.Stdio> = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return {
    notify: yield* notify,
    progress: (label, work) => Effect.provideService(Output.progress(label)(work), Stdio.Stdio, stdio)
  }
})

const unknownSession = (name: string): string =>
  `no session ${printableLine(name)}; "palimpsest sessions list" lists yours, "palimpsest find" those of all agents`

const selectionFailure = ({ name, problem }: SessionSelectionError): ExitError => {
  switch (problem._tag) {
    case "NoSessions":
    case "Unknown":
      return badInput(
        name === latestName ? `no saved sessions yet; start one with "palimpsest chat"` : unknownSession(name)
      )
    case "Ambiguous":
      return badInput(`${printableLine(name)} names ${problem.ids.length} sessions: ${problem.ids.join(", ")}`)
    case "InvalidId":
      return badInput(
        `there is no session ${JSON.stringify(printableLine(name))}, and a new one cannot have that id; use 1 to 64 letters, digits, hyphens or underscores`
      )
  }
}

const storeFailure = ({ message, reason }: SessionStoreError, now: number): ExitError => {
  switch (reason._tag) {
    case "SessionNotFound":
      return badInput(unknownSession(reason.id))
    case "SessionTooNew":
      return badInput(printableLine(message))
    case "SessionCorrupt":
      return badInput(
        `${printableLine(message)}; recover what is readable with "palimpsest sessions import FILE --lenient"`
      )
    case "SessionLocked":
      return failed(
        `session ${reason.id} is in use by process ${reason.pid} (opened ${ago(reason.since, now)}); end that process, or use another session`
      )
    default:
      return failed(printableLine(message))
  }
}

/** The exit error for a failure of the runtime. `now` is in milliseconds since 1970. */
const exitError = (error: RuntimeError, now: number): ExitError => {
  switch (error._tag) {
    case "SessionSelectionError":
      return selectionFailure(error)
    case "SessionStoreError":
      return storeFailure(error, now)
    case "UnknownModelError": {
      const source = error.isRequested ? "" : "; it comes from the settings or PALIMPSEST_MODEL"
      return badInput(`${printableLine(error.message)}${source}`)
    }
    case "InvalidOption":
    case "SettingsError":
    case "SystemPromptError":
    case "WorkspaceFolderError":
      return badInput(printableLine(error.message))
    case "AgentNestingError":
      return (error.problem === "Unreadable" ? badInput : failed)(printableLine(error.message))
    case "ChatBusy":
      return failed(printableLine(error.message))
  }
}

/** Turns failures of the runtime into exit errors. */
export const orExit = <A, E extends RuntimeError, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, ExitError, R> =>
  Effect.catch(work, (error) => Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(exitError(error, now))))

/** The exit error of a failed turn. For a missing key it names what works without one: `advice`. */
export const turnFailure = Effect.fnUntraced(function* (
  error: TurnError,
  advice: Effect.Effect<ReadonlyArray<string>>
) {
  const reason = error._tag === "ModelError" ? error.reason : undefined
  const isMissingKey = reason?._tag === "AuthenticationError" && reason.kind === "MissingKey"
  if (!isMissingKey) return failed(printableLine(error.message))
  const lines = yield* advice
  yield* Effect.forEach(lines.slice(0, -1), Output.notice, { discard: true })
  return failed(lines.at(-1) ?? "")
})
