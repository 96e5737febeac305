import { assert, describe, it } from "@effect/vitest"
import { text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { itemParts, view } from "../../../src/domain/conversation/Conversation.ts"
import { emptySession, startedWith } from "../../../src/domain/session/Session.ts"
import {
  carriedFolder,
  carriedName,
  carriedSession,
  resumeCommand
} from "../../../src/domain/transcripts/CarriedSession.ts"
import { conversationOf, entryOf } from "../../support/entries.ts"

const place = { id: "0199c7a0-9999-7222", folder: "/work/it's here", at: "2026-02-03T04:05:06.789Z" }
const cd = "cd '/work/it'\\''s here' && "

describe("the place of a carried session", () => {
  it.each([
    ["claude", "-work-it-s-here", "0199c7a0-9999-7222.jsonl", "claude --resume 0199c7a0-9999-7222"],
    ["codex", "2026/02/03", "rollout-2026-02-03T04-05-06-0199c7a0-9999-7222.jsonl", "codex resume 0199c7a0-9999-7222"],
    ["gemini", undefined, "session-2026-02-03T04-05-0199c7a0.jsonl", "gemini --resume 0199c7a0-9999-7222"],
    ["pi", "--work-it's here--", "2026-02-03T04-05-06-789Z_0199c7a0-9999-7222.jsonl", "pi --session '/a file'"]
  ] as const)("%s", (agent, folder, name, command) => {
    assert.deepStrictEqual(
      [carriedFolder(agent, place), carriedName(agent, place), resumeCommand(agent, place, "/a file")],
      [folder, name, `${cd}${command}`]
    )
    const isDocument = agent === "gemini"
    assert.strictEqual(carriedName(agent, place, ".json").endsWith(isDocument ? ".json" : ".jsonl"), true)
  })

  it("opencode takes a file in before it goes on", () => {
    assert.strictEqual(
      resumeCommand("opencode", place, "/a file"),
      `${cd}opencode import '/a file' && opencode --session 0199c7a0-9999-7222`
    )
    assert.strictEqual(carriedName("opencode", place), "0199c7a0-9999-7222.json")
  })
})

it("a carried session names each heavy medium with its size and its own handle, and leaves others alone", () => {
  const data = (length: number) => ({ inlineData: { mimeType: "image/png", data: "A".repeat(length) } })
  const handles = ["h_aaaaaaaaaa", "h_bbbbbbbbbb", "h_cccccccccc", "h_dddddddddd"].map((one) => Handle.make(one))
  const content = user(text("see"), data(1_000_000), data(1_000_001), data(4_000_000))
  const session = {
    ...emptySession,
    started: startedWith({ cwd: "/old", model: "m" }, "old", 1),
    conversation: conversationOf([entryOf(1, content, { handles })])
  }
  const carried = carriedSession(session, "pi", place)
  assert.deepStrictEqual(view(carried.conversation).flatMap(itemParts), [
    text("see"),
    data(1_000_000),
    text("[image/png, 0.8 MB, left out; kept under h_cccccccccc]"),
    text("[image/png, 3.0 MB, left out; kept under h_dddddddddd]")
  ])
  assert.deepInclude(carried.started, {
    session: place.id,
    cwd: place.folder,
    model: "m",
    importedFrom: { format: "pi", session: place.id }
  })
})
