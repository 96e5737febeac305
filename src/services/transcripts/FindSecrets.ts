/** Finds secrets and personal data in all files of a session. */

import { Effect, type FileSystem, Option, type Path } from "effect"
import { encodeLine } from "../../domain/session/LogFormat.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { hiddenValues } from "../../domain/text/ChildEnvironment.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import type { Secret } from "../../domain/text/Redaction.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { type RecordSecret, type SecretSearch, SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import { AgentSessions, problemOf, type SessionProblem } from "./AgentSessions.ts"
import { earlierParts } from "./CodexHistory.ts"
import type { FoundSession } from "./FindSessions.ts"

/** Returns the values of environment variables that are secrets by their name or form. */
export const environmentSecrets = (variables: Readonly<Record<string, string>>): ReadonlyArray<Secret> =>
  hiddenValues(variables).map(({ instead, value }) => ({ kind: instead.replace(/^\[redacted: |\]$/g, ""), value }))

/** Where a secret stands. Its value is not shown. */
export interface SecretPlace {
  readonly path: string
  /** The line of the record in its file, from 1. In a conversation that is no session: the number of its message. */
  readonly line: number
  readonly kind: string
  readonly isPersonal: boolean
  /** How often it stands there. */
  readonly count: number
}

/** The secrets of one session. */
export interface FoundSecrets {
  readonly places: ReadonlyArray<SecretPlace>
  /** Different values. */
  readonly values: number
  readonly problems: ReadonlyArray<SessionProblem>
  /** What was collected, to replace it. */
  readonly secrets: SessionSecrets
}

/** Collects secrets with their places. */
const collecting = (search: SecretSearch) => {
  const secrets = new SessionSecrets(search)
  const values = new Set<string>()
  const places = new Map<string, { -readonly [Key in keyof SecretPlace]: SecretPlace[Key] }>()
  return {
    secrets,
    /** Adds the secrets of a record. */
    add: (path: string, line: number, found: ReadonlyArray<RecordSecret>) => {
      for (const { isPersonal, kind, value } of found) {
        values.add(value)
        const key = `${path}\n${line} ${kind}`
        const known = places.get(key)
        if (known === undefined) places.set(key, { path, line, kind, isPersonal, count: 1 })
        else known.count += 1
      }
    },
    end: (problems: ReadonlyArray<SessionProblem>): FoundSecrets => {
      secrets.settle()
      return { places: [...places.values()], values: values.size, problems, secrets }
    }
  }
}

/** Finds the secrets of a conversation that is no session of an agent. `name`: what the places call it. */
export const secretsOfEvents = Effect.fn("FindSecrets.secretsOfEvents")(function* (
  events: ReadonlyArray<SessionEvent>,
  name: string,
  search: SecretSearch
): Effect.fn.Return<FoundSecrets> {
  const { add, end, secrets } = collecting(search)
  let message = 0
  for (const event of events) {
    if (event._tag === "Appended") message += 1
    add(name, message, yield* Work.run(secrets.collect(encodeLine(event))))
  }
  return end([])
})

/** Finds the secrets of a session, its subagents and the texts beside it. A file that cannot be read is a problem; the others go on. */
export const secretsOf = Effect.fn("FindSecrets.secretsOf")(function* (
  session: FoundSession,
  search: SecretSearch
): Effect.fn.Return<FoundSecrets, never, AgentSessions | FileSystem.FileSystem | Path.Path> {
  const agents = yield* AgentSessions
  const { add, end, secrets } = collecting(search)
  const problems: Array<SessionProblem> = []
  for (const file of session.files) {
    // What was said before a fork of Codex is part of its conversation, and stands in another session's file.
    const before = file.agent === "codex" ? Effect.option(earlierParts(file.path)) : Effect.succeedNone
    for (const { file: path, from, to } of Option.getOrUndefined(yield* before)?.parts ?? []) {
      const collect = (record: unknown) => void Work.runSync(secrets.collect(JSON.stringify(record)))
      yield* Effect.ignore(agents.records({ ...file, path }, { from, to, line: 1 }, collect))
    }
    // What the name of a file shows is a secret in its text, too.
    yield* Work.run(secrets.collect(file.path.split(/[\\/]/).at(-1) ?? "", false))
    yield* agents
      .records(file, { from: 0, line: 1 }, (record, { line }) => {
        const text = file.kind === "text" && isJson(record) && typeof record.text === "string" ? record.text : undefined
        const found = secrets.collect(text ?? JSON.stringify(record), text === undefined)
        add(file.path, line, Work.runSync(found))
      })
      .pipe(Effect.catch(({ message }) => Effect.sync(() => void problems.push(problemOf(file.path, message)))))
    yield* Effect.yieldNow
  }
  return end(problems)
})
