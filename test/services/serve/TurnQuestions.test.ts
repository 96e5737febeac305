import { Duration, Effect } from "effect"
import { emptySession } from "../../../src/domain/session/Session.ts"
import { TurnQuestions } from "../../../src/services/serve/TurnQuestions.ts"
import type { Tool } from "../../../src/services/tools/Tool.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const tool = (name: string, more: Pick<Tool, "kind" | "isAgent">): Tool => ({
  name,
  aliases: [],
  description: "",
  parameters: {},
  isNeverMasked: false,
  timeout: Duration.infinity,
  call: () => Effect.die("only named"),
  ...more
})

const tools = [
  tool("read", { kind: "read" }),
  tool("edit", { kind: "edit" }),
  tool("agent", { kind: "edit", isAgent: true }),
  tool("reader", { kind: "read", isAgent: true })
]

describe("calls of which no end is known are not carried out again where they may have begun", () => {
  it.effect.each([
    ["edit edit", "lost again"],
    ["read edit edit", "again lost again"],
    ["agent agent", "lost lost"],
    ["agent reader agent edit", "lost again lost again"],
    ["agent read agent", "lost again again"],
    ["edit agent agent", "lost again again"]
  ] as const)("%s", function* ([names, expected]) {
    const questions = new TurnQuestions()
    questions.attach(Object.assign(Object.create(null), { whole: Effect.succeed(emptySession) }))
    const calls = names.split(" ").map((name, index) => ({ call: { name, args: {} }, id: `c${index}` }))
    const answers = yield* questions.lasting.earlier(calls, tools)
    assert.strictEqual(answers.map((answer) => (answer === undefined ? "again" : "lost")).join(" "), expected)
  })
})
