import { assert, it } from "@effect/vitest"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { append, empty, type Entry, entryId, masked } from "../../../src/domain/conversation/Conversation.ts"
import { findMaskable, ResultTokens, unmaskedTools } from "../../../src/domain/conversation/Masking.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { entryOf } from "../../support/entries.ts"

const entry = (n: number, content: Content, tokens: ReadonlyArray<number>, more: Partial<Entry> = {}): Entry => ({
  ...entryOf(n, content, { tokens }),
  ...more
})
const result = (name: string, output = "long") => response(name, { output })
const bounded = { 0: { form: "last-lines", size: 0, tokens: TokenCount.make(500) } } as const

/** Calls with their results, of which the last waits for its answer. */
const entries = [
  entry(1, user(text("go")), [1]),
  entry(2, model(call("read", {}), call("write_todos", {})), [1, 1]),
  entry(3, user(result("read"), result("write_todos")), [1_000, 900]),
  entry(4, user(result("bounded")), [9_000], { bounded }),
  entry(5, user(result("small"), response("failed", { error: "no" }), text("beside")), [400, 800, 700]),
  entry(6, user(result("new")), [600]),
  entry(7, user(result("last")), [2_000])
]
const conversation = entries.reduce(append, empty)

it.each([
  [0, "6.0 4.0 3.0"],
  [1, "4.0 3.0"],
  [600, "4.0 3.0"],
  [1_800, "4.0 3.0"],
  [1_801, "3.0"],
  [2_300, "3.0"],
  [3_300, ""]
])("results older than the newest %i tokens of results can be masked: %s", (protect, expected) => {
  const { found, gain } = runSync(findMaskable(conversation.view, protect, new Set(["write_todos"])))
  assert.strictEqual(found.map(({ entry: id, index }) => `${id.slice(1)}.${index}`).join(" "), expected)
  assert.strictEqual(
    gain,
    found.reduce((sum, { tokens }) => sum + tokens - 200, 0)
  )
})

it("results of tools that are needed verbatim are not masked", () =>
  assert.deepStrictEqual(unmaskedTools.toSorted(), [
    "activate_skill",
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "write_todos"
  ]))

it("a result that is masked is not masked again, and the tokens of all are followed", () => {
  const shorten = { entry: entryId(3), part: 0, replacement: text("short"), tokens: TokenCount.make(450) }
  const after = masked(conversation, [shorten])
  const { found } = runSync(findMaskable(after.view, 0, new Set()))
  assert.notInclude(
    found.map(({ entry: id, index }) => `${id} ${index}`),
    "e3 0"
  )
  const tokens = new ResultTokens()
  const grown = append(conversation, entry(8, user(result("more"), text("beside")), [50, 70]))
  for (const one of [conversation, grown, conversation, after, grown]) {
    assert.strictEqual(runSync(tokens.follow(one.view)), runSync(new ResultTokens().follow(one.view)))
  }
  assert.strictEqual(runSync(tokens.follow(conversation.view)), 1_000 + 900 + 500 + 400 + 800 + 600 + 2_000)
})
