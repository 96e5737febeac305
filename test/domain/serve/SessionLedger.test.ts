import { assert, it } from "@effect/vitest"
import { text } from "../../../src/domain/content/Content.ts"
import { environmentChange } from "../../../src/domain/prompt/EnvironmentChange.ts"
import { shownMessages } from "../../../src/domain/serve/SessionLedger.ts"
import { applyEvent, emptySession } from "../../../src/domain/session/Session.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"

it("a message of the program about a change of the environment is shown to no client, the user's words of it are", () => {
  const change = environmentChange("", "Outputs are stored in /srv/tenants/acme.") ?? ""
  const told = appended(1, text(change))
  const session = [
    started("s"),
    told._tag === "Appended" ? { ...told, entry: { ...told.entry, author: "program" as const } } : told,
    appended(2, text(change)),
    appended(3, text("words"))
  ].reduce(applyEvent, emptySession)
  assert.deepStrictEqual(
    shownMessages(session, 9, 999).map(({ id }) => id),
    ["e2", "e3"]
  )
})
