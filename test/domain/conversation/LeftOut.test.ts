import { assert, it } from "@effect/vitest"
import type { Part } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { leftOut, type MediaPlace, mediaSize } from "../../../src/domain/conversation/LeftOut.ts"

const image = (length: number): Part => ({ inlineData: { mimeType: "image/png", data: "A".repeat(length) } })
const place = (part: number, shown: Part, isNew = false): MediaPlace => ({
  entry: entryId(1),
  part,
  handle: undefined,
  shown,
  isNew,
  size: mediaSize([shown])
})
const linked = place(0, { fileData: { fileUri: "https://a.test/b.png" } })
const inline = [1, 2, 3].map((part) => place(part, image(100)))

it.each<readonly [rule: string, left: ReadonlyArray<MediaPlace>, parts: ReadonlyArray<number>]>([
  ["for too many bytes, the oldest with bytes", leftOut([linked, ...inline], "bytes", [], 0), [1]],
  ["then twice as many", leftOut([linked, ...inline], "bytes", [], 1), [1, 2]],
  ["and all of them in the end", leftOut([linked, ...inline], "bytes", [], 2), [1, 2, 3]],
  ["also beside a message of as many bytes", leftOut(inline, "bytes", [image(300)], 2), [1, 2, 3]],
  ["none where the message alone has more", leftOut(inline, "bytes", [image(301)], 2), []],
  ["what no provider has accepted", leftOut([linked, place(1, image(9), true)], "image", [image(9)], 0), [1]],
  ["else all, unless the message has one of the kind", leftOut([linked, ...inline], "image", [], 0), [0, 1, 2, 3]],
  ["and nothing where it has", leftOut(inline, "image", [image(9)], 0), []]
])("leaves out %s", (_, left, parts) =>
  assert.deepStrictEqual(
    left.map(({ part }) => part),
    parts
  )
)
