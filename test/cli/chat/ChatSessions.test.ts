import { assert, describe, it } from "@effect/vitest"
import { sessionFlags } from "../../../src/cli/chat/ChatSessions.ts"

describe("sessionFlags", () => {
  const options = { model: "gemini-2.5-pro", session: "work", threshold: 0.5, plain: true }

  it("opens the first session as asked, a new one with the same model, and a resumed one with its own", () =>
    assert.deepStrictEqual(sessionFlags(options, false), {
      first: options,
      begun: { model: "gemini-2.5-pro", threshold: 0.5 },
      resumed: { threshold: 0.5 }
    }))

  it("does not save a recording as the model of a session", () =>
    assert.deepStrictEqual(sessionFlags({ ...options, model: "replay:a.jsonl" }, true), {
      first: { ...options, model: undefined },
      begun: { threshold: 0.5 },
      resumed: { threshold: 0.5 }
    }))
})
