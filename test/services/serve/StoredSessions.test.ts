import { text } from "../../../src/domain/content/Content.ts"
import { environmentChange } from "../../../src/domain/prompt/EnvironmentChange.ts"
import { applyEvents, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { exportedLines } from "../../../src/services/serve/StoredSessions.ts"
import { assert, it } from "../../support/vitest.ts"

it.effect("an export of a session names no folder of the server, but to the user of the machine", function* () {
  const folder = "/srv/tenants/acme"
  const environment = (name: string) => `Contents of ${folder} (… marks entries that are not shown):\n  ${name}`
  const change = environmentChange(environment("a.txt"), environment("b.txt")) ?? ""
  assert.include(change, folder)
  const entryOf = (at: number, words: string) => {
    const event = appended(at, text(words))
    return event._tag === "Appended" ? event.entry : assert.fail("no entry")
  }
  const told = (at: number) => ({ ...entryOf(at, change), author: "program" as const })
  const events: ReadonlyArray<SessionEvent> = [
    { ...started("one"), cwd: folder },
    { _tag: "EnvironmentSent", at: 0, text: environment("a.txt"), opens: true },
    { _tag: "Answered", message: entryOf(1, "Hello"), attached: [told(2)], answer: entryOf(3, "Yes.") },
    { _tag: "Appended", entry: told(4) },
    { _tag: "Appended", entry: entryOf(5, "The end.") }
  ]
  const lines = yield* exportedLines("acme", "palimpsest", events)
  assert.isFalse(lines.some((line) => line.includes(folder)))
  for (const words of ["Hello", "Yes.", "The end.", "has changed"]) assert.include(lines.join("\n"), words)
  assert.strictEqual(applyEvents(emptySession, events).conversation.next, 6)
  const own = yield* exportedLines("local", "palimpsest", events)
  assert.strictEqual(own.join("\n").split(folder).length - 1, 6)
})
