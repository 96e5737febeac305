import { assert, describe, it } from "@effect/vitest"
import { piReader } from "../../../../src/domain/transcripts/pi/PiReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { bad, drafts, ok, reading, told } from "../../../support/reading.ts"

const read = reading(piReader)
const readRecords = (records: ReadonlyArray<unknown>) => read(records.map((record) => JSON.stringify(record)))

const header = (version?: number) => ({
  type: "session",
  version,
  id: "s",
  timestamp: "2026-01-01T00:00:00Z",
  cwd: "/w"
})
const timestamp = "2026-01-01T00:00:01Z"
const entry = (id: string, parentId: string | null, rest: object) => ({ id, parentId, timestamp, ...rest })
const message = (value: object) => ({ type: "message", timestamp, message: value })
const user = (text: string) => message({ role: "user", content: [{ type: "text", text }] })
const assistant = (...content: ReadonlyArray<unknown>) => message({ role: "assistant", model: "m1", content })
const say = (text: string) => assistant({ type: "text", text })
const call = (id: string, name: string, args: unknown = {}) => ({ type: "toolCall", id, name, arguments: args })
const result = (toolCallId: string, content: unknown, isError = false) =>
  message({ role: "toolResult", toolCallId, toolName: "read", content, isError })
const records = (...list: ReadonlyArray<object>) => ok(readRecords(list))
const bash = (rest: object) => message({ role: "bashExecution", command: "ls", output: "", ...rest })
const compaction = (rest: object) => ({ type: "compaction", timestamp, summary: "so far", tokensBefore: 99, ...rest })
const noted = (record: object, palimpsest: object) => ({ ...record, palimpsest })
/** Entries, each the child of the one before it. */
const path = (...list: ReadonlyArray<object>) =>
  list.map((one, n) => entry(String(n + 1), n === 0 ? null : String(n), one))
const two = [
  { type: "text", text: "a" },
  { type: "text", text: "b" }
]
const answered = (content: unknown, failed = false) => [assistant(call("t", "read")), result("t", content, failed)]
const part = { text: "a", later: [1] }

describe("entries become messages", () => {
  type Case = readonly [rule: string, entries: ReadonlyArray<object>, told: ReadonlyArray<string>, skipped?: object]
  const inTrees: ReadonlyArray<Case> = [
    [
      "a tree is the path to its last entry",
      [
        entry("1", null, user("a")),
        entry("2", "1", say("left")),
        entry("3", "1", say("taken")),
        entry("4", "3", user("b"))
      ],
      ["user: a", "model: taken", "user: b"],
      { "dead branch": 1 }
    ],
    [
      "a parent that is not in the file ends the path",
      [entry("1", null, user("a")), entry("3", "gone", user("b"))],
      ["user: b"],
      { "dead branch": 1 }
    ],
    [
      "an entry that stands twice counts once",
      [entry("1", null, user("a")), entry("2", "1", say("b")), entry("1", null, user("a")), entry("3", "2", user("c"))],
      ["user: a", "model: b", "user: c"],
      { "repeated entry": 1 }
    ],
    [
      "commands that the user ran are a program's",
      path(
        bash({ output: "a\nb", exitCode: 2 }),
        bash({ cancelled: true, excludeFromContext: false }),
        bash({ output: "c", truncated: true, fullOutputPath: "/f" }),
        bash({ excludeFromContext: true })
      ),
      [
        "program: $ ls\na\nb\nexit code 2",
        "program: $ ls\n(no output)\n(cancelled)",
        "program: $ ls\nc\nfull output: /f"
      ],
      { "bash left out of context": 1 }
    ],
    [
      "so are custom messages, and a summary of a branch is a summary",
      path(
        { type: "custom_message", customType: "x", content: "injected" },
        message({ role: "custom", content: "own" }),
        message({ role: "hookMessage", content: "hook" }),
        { type: "branch_summary", fromId: "9", summary: "tried" },
        message({ role: "branchSummary", summary: "b" }),
        message({ role: "compactionSummary", summary: "c" }),
        { type: "custom", data: {} },
        { type: "label", targetId: "1" }
      ),
      ["program: injected", "program: own", "program: hook", "summary: tried", "summary: b", "summary: c"],
      { custom: 1, label: 1 }
    ],
    [
      "exact parts replace an entry's own form",
      path(noted(user("native"), { parts: [part] }), noted(compaction({}), { parts: [part] })),
      ["user: a", "compaction (auto, 99), kept from nothing", "+ summary: a"]
    ],
    [
      "an answer after a repeated one is not part of it",
      path(
        assistant(call("a", "read"), call("b", "read")),
        result("a", "x"),
        compaction({ firstKeptEntryId: "3" }),
        noted(result("a", "x"), { again: "2" }),
        result("b", "y")
      ),
      [
        "model: read(a {}) | read(b {})",
        'user: read[a] {"output":"x"}',
        "compaction (auto, 99), kept from 1",
        "+ summary: so far",
        'user: read[b] {"output":"y"}'
      ]
    ],
    [
      "a compaction says that the user asked for it; no tokens are none",
      path(user("a"), noted(compaction({ tokensBefore: 0 }), { trigger: "manual" })),
      ["user: a", "compaction (manual, ?), kept from nothing", "+ summary: so far"]
    ]
  ]
  const inLists: ReadonlyArray<Case> = [
    [
      "texts, images, thoughts and the signature of a call",
      [
        message({ role: "user", content: "plain" }),
        message({ role: "user", content: [{ type: "image", data: "AA", mimeType: "image/png" }] }),
        assistant(
          { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
          { ...call("t", "f"), thoughtSignature: "s" }
        )
      ],
      ["user: plain", 'user: {"inlineData":{"mimeType":"image/png","data":"AA"}}', "model: ~hm^sig | f(t {})^s"]
    ],
    [
      "a result of several blocks",
      answered(two),
      ["model: read(t {})", `user: read[t] ${JSON.stringify({ content: two })}`]
    ],
    [
      "a result without blocks, and a failure",
      [...answered([]), ...answered(two.slice(1), true)],
      ["model: read(t {})", 'user: read[t] {"output":""}', "model: read(t {})", 'user: read[t] {"error":"b"}']
    ],
    [
      "results in a row are one message, whatever stands between",
      [
        assistant(call("1", "read"), call("2", "read")),
        result("1", "x"),
        { type: "model_change", timestamp, modelId: "m2" },
        result("2", "y")
      ],
      ["model: read(1 {}) | read(2 {})", 'user: read[1] {"output":"x"} | read[2] {"output":"y"}'],
      { model_change: 1 }
    ],
    ["an aborted answer without parts stays", [assistant(), user("b")], ["model: ", "user: b"]],
    [
      "an entry says whether it goes on or begins, never in another role",
      [
        assistant(call("1", "f"), call("2", "f"), call("3", "f")),
        result("1", "x"),
        noted(user("note"), { message: "same" }),
        result("2", "y"),
        noted(result("3", "z"), { message: "new" }),
        noted(say("done"), { message: "same" })
      ],
      [
        "model: f(1 {}) | f(2 {}) | f(3 {})",
        'user: read[1] {"output":"x"} | note',
        'user: read[2] {"output":"y"}',
        'user: read[3] {"output":"z"}',
        "model: done"
      ]
    ],
    [
      "version 1 names the first kept record by its number",
      [user("a"), say("b"), user("c"), compaction({ firstKeptEntryIndex: 2 })],
      ["user: a", "model: b", "user: c", "compaction (auto, 99), kept from 1", "+ summary: so far"]
    ]
  ]
  const cases = [
    ...inTrees.flatMap((one) => [2, 3].map((version) => [one[0], version, one] as const)),
    ...inLists.flatMap((one) => [undefined, 1].map((version) => [one[0], version, one] as const))
  ]
  it.each(cases)("%s (version %s)", (_, version, [, list, expected, skipped = {}]) => {
    const transcript = records(header(version), ...list)
    assert.deepStrictEqual(told(transcript), expected)
    assert.deepStrictEqual(transcript.skipped, skipped)
  })

  it("a message has the time of its first entry and the ids of all; its model is the one that answered", () => {
    const change = { type: "model_change", timestamp, provider: "p", modelId: "m2" }
    const transcript = records(
      header(3),
      ...path(assistant(call("a", "read"), call("b", "read")), result("a", "x"), result("b", "y"), change)
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, model, origin }) => [at, model, origin]),
      [
        [Date.parse(timestamp), "m1", { line: 2, ids: ["1"] }],
        [Date.parse(timestamp), undefined, { line: 3, ids: ["2", "3"] }]
      ]
    )
    assert.strictEqual(transcript.model, "m2")
  })

  it.each<readonly [string, ReadonlyArray<unknown>, number, string]>([
    ["a newer version", [header(4)], 1, ""],
    ["an invalid version", [{ ...header(), version: "x" }], 1, "version:"],
    ["no header", [user("a")], 1, ""],
    ["an entry without id in a tree", [header(3), user("a")], 2, "id:"],
    ["no message", [header(), { type: "message", timestamp }], 2, "message:"],
    ["a number for content", [header(), message({ role: "user", content: 5 })], 2, "content:"],
    ["a number for a result", [header(), result("t", 5)], 2, "message.content:"],
    ["a text that is none", [header(), assistant({ type: "text" })], 2, "content[0].text:"],
    ["a call without a name", [header(), assistant({ type: "toolCall" })], 2, "content[0].name:"],
    ["a compaction without a summary", [header(), { type: "compaction", timestamp }], 2, "summary:"],
    ["exact parts that are none", [header(), noted(user("a"), { parts: {} })], 2, "palimpsest.parts:"],
    ["a circle of parents", [header(3), entry("1", "2", user("a")), entry("2", "1", user("b"))], 2, ""],
    ["no record", [header(), 7], 2, ""]
  ])("%s is a problem of its line", (_, list, line, where) => {
    const problem = bad(readRecords(list))
    assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [line, true], problemText(problem))
  })

  it.each<readonly [string, string | undefined, number | undefined]>([
    ["a message", "3", 2],
    ["an entry that is no message: the next one", "x", 1],
    ["an entry after results: the next one", "y", 4],
    ["an entry that is not on the path", "dead", undefined],
    ["nothing", undefined, undefined]
  ])("a compaction's first kept entry is %s", (_, firstKeptEntryId, expected) => {
    const { steps } = records(
      header(3),
      entry("1", null, user("a")),
      entry("dead", "1", say("no")),
      entry("x", "1", { type: "thinking_level_change", thinkingLevel: "off" }),
      entry("2", "x", assistant(call("t", "read"))),
      entry("3", "2", user("c")),
      entry("4", "3", result("t", "x")),
      entry("y", "4", { type: "label", targetId: "1" }),
      entry("5", "y", user("d")),
      entry("6", "5", compaction({ firstKeptEntryId }))
    )
    assert.deepInclude(steps.at(-1), { keptFrom: expected })
  })

  it.each<readonly [string, object, unknown]>([
    [
      "with a cache",
      { input: 3, output: 191, cacheRead: 20, cacheWrite: 1_684 },
      { prompt: 1_707, answer: 191, thoughts: 0, cached: 20, cacheWrite: 1_684 }
    ],
    ["nothing, because it was aborted", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, undefined],
    ["a text", { input: "3", output: 1, cacheRead: 0, cacheWrite: 0 }, undefined]
  ])("use that is %s", (_, usage, expected) => {
    const [draft] = drafts(records(header(), message({ role: "assistant", content: [], usage })))
    assert.deepStrictEqual(draft?.usage, expected)
  })
})
