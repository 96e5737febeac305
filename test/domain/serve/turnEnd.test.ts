import { assert, it } from "@effect/vitest"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { endAfter, type ServedTurnEnd } from "../../../src/domain/serve/EventBuffer.ts"

const before: ServedTurnEnd = { status: "answered", error: "earlier" }
const failed: ServedTurnEnd = { status: "failed", error: "why" }

it.each<readonly [event: ChatEvent, end: ServedTurnEnd]>([
  [{ _tag: "UserCancelled" }, { status: "cancelled", error: null }],
  [{ _tag: "HookStopped", message: "why", refused: true }, failed],
  [{ _tag: "HookStopped", message: "why", refused: false }, before],
  [{ _tag: "Content", text: "words" }, before]
] as ReadonlyArray<readonly [ChatEvent, ServedTurnEnd]>)("after %o a turn ends as %o", (event, end) => {
  assert.deepStrictEqual(endAfter(before, event), end)
})

it.each(["Error", "InvalidStream", "ContextWindowWillOverflow"] as const)("after %s a turn has failed", (_tag) => {
  assert.deepStrictEqual(endAfter(before, { _tag, message: "why" } as ChatEvent), failed)
})

it("a turn that is finished is answered, whatever came before", () => {
  assert.deepStrictEqual(endAfter(failed, { _tag: "Finished" } as ChatEvent), { status: "answered", error: null })
})
