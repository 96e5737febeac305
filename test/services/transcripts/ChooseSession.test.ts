import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Path } from "effect"
import type { SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { chooseSession } from "../../../src/services/transcripts/ChooseSession.ts"
import { sessionOf } from "../../../src/services/transcripts/FindSessions.ts"
import { assert, layer } from "../../support/vitest.ts"

const file = (id: string, path = `/sessions/${id}.jsonl`): SessionFile => ({
  agent: "claude",
  id,
  parent: undefined,
  kind: "session",
  path,
  bytes: 1,
  updatedAt: 0,
  folder: undefined
})
const sessions = [
  sessionOf([file("aaaa-1"), file("side-1")], new Map()),
  sessionOf([file("aaaa-2")], new Map()),
  sessionOf([file("bbbb-1")], new Map()),
  sessionOf([file("ccc")], new Map())
]
const problems = [{ path: "/agent/opencode.db", message: "is locked" }]
const claude = '{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}\n'

layer(NodeServices.layer)("a session", (it) => {
  it.effect.each<[string, number | string]>([
    ["/sessions/aaaa-1.jsonl", 0],
    ["/sessions/side-1.jsonl", 0],
    ["/sessions/../sessions/bbbb-1.jsonl", 2],
    ["aaaa-2", 1],
    ["bbbb", 2],
    ["aaaa", "2 sessions have an id that begins with this"],
    ["aaaa-", "2 sessions have an id that begins with this"],
    // Three characters choose none.
    ["bbb", "no such file or session"],
    ["ccc", "no such file or session"],
    ["bbbb-12", "no such file or session"],
    ["/agent/opencode.db", "is locked"],
    ["/agent/opencode.db#ses_1", "is locked"],
    ["/agent/opencode.db2", "no such file or session"]
  ])("is chosen by path, id or beginning of an id: %s", function* ([name, expected]) {
    const chosen = yield* Effect.result(chooseSession(name, { problems, sessions }))
    if (typeof expected === "number") {
      assert.strictEqual(chosen._tag === "Success" ? chosen.success : undefined, sessions[expected])
    } else assert.include(chosen._tag === "Failure" ? chosen.failure.message : "", expected)
  })

  it.effect.each<[string, string, string]>([
    ["mine.jsonl", claude, ""],
    ["mine.jsonl", "", "is empty"],
    ["mine.jsonl", "a\0b", "is binary"],
    ["mine.jsonl", `${claude}\0\0\0`, ""],
    ["mine.jsonl", "\u001f\u008b\u0008", "compressed"],
    ["mine.jsonl", "hello\n", "is not a session of a known agent"],
    ["mine.json", '[{"role":"user","parts":[{"text":"x"}]}]', "is a history for the Gemini API"]
  ])("may be a file elsewhere: %s, %j", function* ([name, text, problem]) {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped()
    const path = (yield* Path.Path).join(folder, name)
    yield* fs.writeFile(path, Buffer.from(text, "latin1"))
    const chosen = yield* Effect.result(chooseSession(path, { problems, sessions }))
    if (problem === "") {
      const [only, ...others] = chosen._tag === "Success" ? chosen.success.files : []
      assert.deepInclude(only, { agent: "claude", id: "mine", path, bytes: text.length })
      assert.deepStrictEqual(others, [])
    } else assert.include(chosen._tag === "Failure" ? chosen.failure.message : "", problem)
    const none = yield* Effect.flip(chooseSession(folder, { problems, sessions }))
    assert.include(none.message, "is a directory")
  })
})
