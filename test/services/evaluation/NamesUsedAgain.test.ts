import { text, user, model } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { append, compressed, empty, type Entry } from "../../../src/domain/conversation/Conversation.ts"
import type { NamesUsedAgain } from "../../../src/domain/evaluation/Retention.ts"
import { emptySession, type Session } from "../../../src/domain/session/Session.ts"
import { namesUsedAgain } from "../../../src/services/evaluation/Replay.ts"
import { entryOf } from "../../support/entries.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const entry = (sequence: number, content: Entry["content"], author?: Entry["author"]) =>
  entryOf(sequence, content, { handles: [], ...(author === undefined ? {} : { author }) })

const handle = Handle.make("h_aaaaaaaaaa")
const [first, second] = [entry(1, user(text("Use src/alpha.ts and src/beta.ts."))), entry(2, model(text("Yes.")))]
const talk = [first, second, entry(3, user(text("Go on.")))].reduce(append, empty)

/** A session in which the first two messages were replaced by a snapshot. `hasRange`: the handle leads to them. */
const compressedTo = (snapshot: string, hasRange: boolean): Session => ({
  ...emptySession,
  conversation: compressed(talk, {
    drop: { from: first.id, to: second.id },
    insert: [entry(4, user(text(snapshot)), "summary")],
    shorten: []
  }),
  ranges: hasRange
    ? { value: { handle, entries: [first, second] }, before: undefined, length: 1, tokens: 0 }
    : undefined
})

const rules: ReadonlyArray<
  readonly [rule: string, snapshot: string, hasRange: boolean, kept: Omit<NamesUsedAgain, "used">]
> = [
  [
    "in the context, or behind a handle in the context",
    `Work on src/alpha.ts, all else is in ${handle}.`,
    true,
    { inContext: 1, behindHandle: 1, lost: 0 }
  ],
  [
    "as lost when the context has neither it nor a handle",
    "Work on src/alpha.ts.",
    true,
    { inContext: 1, behindHandle: 0, lost: 1 }
  ],
  ["as lost behind a handle that names nothing", `See ${handle}.`, false, { inContext: 0, behindHandle: 0, lost: 2 }]
]

describe("the names that a replay kept", () => {
  it.effect.each(rules)("count a name %s", function* ([, snapshot, hasRange, kept]) {
    const session = compressedTo(snapshot, hasRange)
    const end = append(session.conversation, entry(5, model(text("I change src/alpha.ts and src/beta.ts."))))
    assert.deepStrictEqual(yield* namesUsedAgain([session], end), { used: 2, ...kept })
  })

  it.effect("are none of a conversation without compression", function* () {
    assert.deepStrictEqual(yield* namesUsedAgain([], talk), { used: 0, inContext: 0, behindHandle: 0, lost: 0 })
  })
})
