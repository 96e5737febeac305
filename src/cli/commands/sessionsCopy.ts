import { Effect, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { matchName } from "../../domain/session/SessionName.ts"
import { orSelectionError } from "../../services/runtime/SessionOpening.ts"
import * as SessionCopy from "../../services/session/SessionCopy.ts"
import { SessionStore, StoreOpener } from "../../services/session/SessionStore.ts"
import * as Input from "../flags/SharedFlags.ts"
import { failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { orExit } from "../output/RuntimeText.ts"

/** The `sessions copy` command: copies saved sessions to another store. */

/** Resolves the named sessions without duplicates. */
export const resolveAll = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const all = yield* orExit(SessionStore.use((store) => store.summaries))
  const sessions = yield* Effect.forEach(names, (one) => orExit(orSelectionError(one, matchName(one, all))))
  return [...new Set(sessions)]
})

const copiedText = (copied: SessionCopy.Copied): string =>
  copied._tag === "Same"
    ? "was there already"
    : copied._tag === "Added"
      ? `was copied (${Output.plural(copied.events, "event")})`
      : `was continued (${Output.plural(copied.events, "event")})`

/** The command `palimpsest sessions copy --to STORE [SESSION…]`. */
export const copy = Command.make(
  "copy",
  {
    sessions: Input.argument(
      "session",
      "Number, title, beginning of the id, or latest; without any, all sessions"
    ).pipe(Argument.variadic()),
    to: Flag.String("to").pipe(
      Flag.withMetavar("store"),
      Flag.withDescription("Store to copy to: files, files:FOLDER, sqlite:FILE or postgres://USER@HOST/DATABASE")
    )
  },
  Effect.fn("cli.sessions.copy")(function* ({ sessions: names, to: address }) {
    const from = yield* SessionStore
    const sessions = names.length === 0 ? yield* orExit(from.summaries) : yield* resolveAll(names)
    const to = yield* orExit(StoreOpener.use((opener) => opener.open(address)))
    let failures = 0
    // The oldest first, so that the lists of both stores have the same order.
    for (const { id } of sessions.toReversed()) {
      const copied = yield* Effect.result(orExit(SessionCopy.copy(from, to, id)))
      if (Result.isFailure(copied)) failures += 1
      yield* Output.notice(
        Result.isFailure(copied)
          ? `session ${id} was not copied: ${copied.failure.message}`
          : `session ${id} ${copiedText(copied.success)}`
      )
    }
    if (sessions.length === 0) yield* Output.notice("no sessions yet")
    if (failures > 0) {
      const others = failures === sessions.length ? "" : "; the others are"
      return yield* failed(`${Output.plural(failures, "session")} not copied${others}`)
    }
  }, Effect.scoped)
).pipe(
  Command.withDescription("Copy sessions to another store, or what was added since the last copy"),
  Input.withExamples({
    "palimpsest sessions copy --to sqlite:sessions.db": "Copy all sessions to a database"
  })
)
