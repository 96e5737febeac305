import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { spentOn } from "../../../../src/domain/evaluation/SessionCost.ts"
import type { SessionEvent } from "../../../../src/domain/session/Session.ts"
import { builtInPrices } from "../../../../src/domain/tokens/Prices.ts"
import type { AgentName } from "../../../../src/domain/transcripts/AgentFolders.ts"
import { type CacheChange, newScan } from "../../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../../src/domain/transcripts/facts/SessionScan.ts"
import { searchedTexts, speakerOf } from "../../../../src/domain/transcripts/facts/SessionSearch.ts"
import { isPrompt } from "../../../../src/domain/transcripts/voice/Voice.ts"
import { root } from "../../../support/paths.ts"
import { drafts } from "../../../support/reading.ts"
import { sessionText } from "../../../support/sessions.ts"
import { readText } from "../../../support/transcripts.ts"

/** The requests of records, as `cost` counts them. */
const requestsOf = (agent: AgentName, records: ReadonlyArray<unknown>) => {
  const state = newScan()
  for (const record of records) scanRecord(state, agent, record)
  return state.requests
}

describe("prompts", () => {
  it("are as many in a list as in the conversation: none for a bare command, one for its arguments, an image or a queued message", () => {
    const said: ReadonlyArray<unknown> = [
      "When is high water?",
      "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>",
      "<local-command-stdout>Set model</local-command-stdout>",
      "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>",
      "[Request interrupted by user]",
      [{ type: "image", source: { type: "base64", media_type: "image/png", data: "aGFsbG8=" } }]
    ]
    const at = (second: number) => ({ timestamp: `2026-01-01T00:00:0${second}Z`, sessionId: "s" })
    const records = [
      ...said.map((content, index) => ({
        type: "user",
        uuid: `u${index}`,
        parentUuid: index === 0 ? null : `u${index - 1}`,
        ...at(index),
        message: { role: "user", content }
      })),
      ...["and low water?"].flatMap((content) => [
        { type: "queue-operation", operation: "enqueue", ...at(7), content },
        { type: "queue-operation", operation: "remove", ...at(8) }
      ]),
      {
        type: "assistant",
        uuid: "a",
        parentUuid: "u5",
        ...at(9),
        message: { id: "m", role: "assistant", content: [{ type: "text", text: "At three." }] }
      }
    ]
    const state = newScan()
    for (const record of records) scanRecord(state, "claude", record)
    const read = drafts(readText(records.map((record) => `${JSON.stringify(record)}\n`).join("")))
    assert.strictEqual(read.filter(isPrompt).length, 4)
    assert.strictEqual(state.facts.prompts, 4)
  })

  it("Claude Code: a history that stands in the file again, under other ids, has the same ones", () => {
    const line = (uuid: string, second: number, content: string) => ({
      type: "user",
      uuid,
      timestamp: `2026-01-01T00:00:0${second}Z`,
      sessionId: "s",
      message: { role: "user", content }
    })
    const promptsIn = (records: ReadonlyArray<object>) => {
      const state = newScan()
      for (const record of records) scanRecord(state, "claude", { ...record })
      return state.facts.prompts
    }
    const history = (a: string, b: string, c: string) => [line(a, 1, "go"), line(b, 2, "go"), line(c, 3, "on")]
    assert.strictEqual(
      promptsIn([...history("a", "b", "c"), ...history("d", "e", "f").slice(0, 2), line("g", 4, "on")]),
      4
    )
    // What has no times of its own is written with one for all.
    assert.strictEqual(promptsIn([line("a", 1, "go"), line("b", 1, "go")]), 2)
    assert.strictEqual(promptsIn(["a", "b"].map((uuid) => ({ ...line(uuid, 1, "go"), timestamp: undefined }))), 2)
  })

  it("Codex: the folder of 2025 stands in what the model was told", () => {
    const state = newScan()
    const text = "<environment_context>\nCurrent working directory: /w\nApproval policy: never\n</environment_context>"
    scanRecord(state, "codex", { type: "message", role: "user", content: [{ type: "input_text", text }] })
    assert.strictEqual(state.facts.folder, "/w")
  })

  it("Claude Code: a record of the queue that names other words takes none from it, and has a message that was cut off", () => {
    const at = (second: number) => ({ timestamp: `2026-01-01T00:00:0${second}Z`, sessionId: "s" })
    const records = [
      { type: "user", uuid: "u", parentUuid: null, ...at(1), message: { role: "user", content: "start" } },
      { type: "queue-operation", operation: "enqueue", ...at(2), content: "and low water?" },
      { type: "queue-operation", operation: "enqueue", ...at(3), content: [{ type: "text", text: "with a picture" }] },
      { type: "queue-operation", operation: "remove", ...at(4), content: "cut off" }
    ]
    const state = newScan()
    for (const record of records) scanRecord(state, "claude", record)
    assert.strictEqual(state.facts.prompts, 2)
    scanRecord(state, "claude", { type: "queue-operation", operation: "remove", ...at(5) })
    assert.strictEqual(state.facts.prompts, 3)
  })

  it("Claude Code: each message of the queue that is sent is one, with a record of its own or without, and none that is taken back", () => {
    const queue = (operation: string, content?: string) => ({ type: "queue-operation", operation, content })
    const sent = (prompt: string) => ({ type: "attachment", attachment: { type: "queued_command", prompt } })
    const state = newScan()
    const promptsAfter = (...records: ReadonlyArray<unknown>) => {
      for (const record of records) scanRecord(state, "claude", record)
      return state.facts.prompts
    }
    const twice = [queue("enqueue", "go on"), queue("enqueue", "go on"), queue("remove"), queue("remove")]
    assert.strictEqual(promptsAfter(...twice), 2)
    assert.strictEqual(promptsAfter(sent("go on"), sent("go on")), 2)
    assert.deepStrictEqual(state.last, {}, "nothing is kept of a message whose record came")
    assert.strictEqual(promptsAfter(sent("go on")), 3)
    assert.strictEqual(promptsAfter({ ...sent("to a subagent"), uuid: "s", isSidechain: true }), 3)
    assert.strictEqual(
      promptsAfter(queue("enqueue", "typed"), queue("enqueue", "of a program"), queue("popAll", "typed")),
      3
    )
    assert.strictEqual(promptsAfter(queue("remove")), 4)
    assert.strictEqual(promptsAfter(queue("enqueue", "typed"), queue("popAll"), queue("remove")), 4)
  })

  it("Gemini CLI: commands are none, unless this program wrote them whole; a part without a list is one", () => {
    const user = (content: unknown) => ({ id: "1", timestamp: "2026-01-01T00:00:01.000Z", type: "user", content })
    const promptsIn = (record: unknown) => {
      const state = newScan()
      scanRecord(state, "gemini", record)
      return state.facts.prompts
    }
    assert.strictEqual(promptsIn(user("/help me")), 0)
    assert.strictEqual(promptsIn(user([{ text: "  ?" }])), 0)
    assert.strictEqual(promptsIn({ ...user("/help me"), palimpsest: { parts: [{ text: "/help me" }] } }), 1)
    assert.strictEqual(promptsIn(user({ text: "When is high water?" })), 1)
  })
})

describe("the sums that an agent records itself", () => {
  it("Codex: the last total of tokens is the sum of the requests", () => {
    const lines = readFileSync(path.join(root, "test/fixtures/codex/codex-today.jsonl"), "utf8").trimEnd().split("\n")
    const records: ReadonlyArray<{ payload?: { type?: string; info?: { total_token_usage?: object } } }> = lines.map(
      (line) => JSON.parse(line)
    )
    const total = records.findLast(({ payload }) => payload?.type === "token_count" && payload.info?.total_token_usage)
    const usages = requestsOf("codex", records).map(({ usage }) => usage)
    const sum = (count: (usage: (typeof usages)[number]) => number | undefined) =>
      usages.reduce((all, usage) => all + (count(usage) ?? 0), 0)
    assert.isAbove(usages.length, 1)
    assert.deepInclude(total?.payload?.info?.total_token_usage, {
      input_tokens: sum(({ prompt }) => prompt),
      output_tokens: sum(({ answer, thoughts }) => answer + (thoughts ?? 0))
    })
  })

  it("Claude Code: dollars that older versions recorded are taken, once for each answer", () => {
    const usage = { input_tokens: 3, output_tokens: 5, cache_read_input_tokens: 10_000 }
    const answer = (id: string, costUSD: number) => ({
      type: "assistant",
      uuid: id,
      requestId: `req_${id}`,
      timestamp: "2026-01-01T00:00:00Z",
      costUSD,
      message: { id, role: "assistant", model: "claude-sonnet-4-20250514", content: [], usage }
    })
    const requests = requestsOf("claude", [answer("a", 0.0123), answer("a", 0.0123), answer("b", 0.4)])
    const once = new Map(requests.map((request) => [request.id, request]))
    assert.closeTo(spentOn(once.values(), builtInPrices).cost, 0.4123, 1e-9)
  })

  it("Pi: the dollars of a recorded session are the sum of those of its answers, to the cent", () => {
    const records: ReadonlyArray<{
      message?: { role?: string; usage?: { cost: { total: number } } }
    }> = sessionText("pi-1019-lines")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const usages = records.flatMap(({ message }) => (message?.role === "assistant" ? (message.usage ?? []) : []))
    const { cost, requests } = spentOn(requestsOf("pi", records), builtInPrices)
    assert.isAbove(cost, 1)
    // An aborted request was not counted by the provider.
    assert.strictEqual(requests, usages.filter(({ cost: { total } }) => total > 0).length)
    assert.closeTo(
      cost,
      usages.reduce((sum, usage) => sum + usage.cost.total, 0),
      0.005
    )
  })

  it("Gemini CLI: the totals of its answers are the sum of what is counted", () => {
    const answers = [
      { input: 900, output: 40, cached: 600, thoughts: 25, tool: 0, total: 965 },
      { input: 1_200, output: 10, cached: 900, thoughts: 0, tool: 0, total: 1_210 }
    ]
    const records = answers.map((tokens, index) => ({
      id: `m${index}`,
      type: "gemini",
      timestamp: "2026-01-01T00:00:00Z",
      content: "",
      model: "gemini-2.5-pro",
      tokens
    }))
    const counted = requestsOf("gemini", records).map(
      ({ usage }) => usage.prompt + usage.answer + (usage.thoughts ?? 0)
    )
    assert.deepStrictEqual(
      counted,
      answers.map(({ total }) => total)
    )
  })
})

describe("the title of a session", () => {
  const titleOf = (...texts: ReadonlyArray<string>) => {
    const state = newScan()
    for (const content of texts) scanRecord(state, "pi", { type: "message", message: { role: "user", content } })
    return state.facts.title
  }

  it("is the first prompt that is more than a bare command, and no text that a program put there", () => {
    assert.strictEqual(titleOf("/mode", "Port the selector."), "Port the selector.")
    assert.strictEqual(titleOf("<task-notification> done", "Go on.", "And on."), "Go on.")
    assert.strictEqual(titleOf("/mode"), "/mode")
    assert.strictEqual(titleOf("/review the diff", "Now merge."), "/review the diff")
    const recorded = "<command-name>/review</command-name>\n<command-args>the diff</command-args>"
    assert.strictEqual(titleOf(recorded, "Now merge."), "/review the diff")
  })
})

describe("what happened since the request before", () => {
  const answer = (id: string) => ({
    _tag: "Appended",
    entry: { id, at: 1, content: { role: "model", parts: [] }, usage: { prompt: 1, answer: 1, thoughts: 0, cached: 0 } }
  })
  // One row for each event that a log can hold: the compiler misses none.
  const ofEvents: Readonly<Record<SessionEvent["_tag"], CacheChange | undefined>> = {
    Started: undefined,
    Appended: undefined,
    Answered: undefined,
    ModelSwitched: undefined,
    Pinned: undefined,
    Compressed: "compaction",
    CompressionFailed: undefined,
    Prepared: undefined,
    EnvironmentSent: undefined,
    Masked: "compaction",
    Undone: "compaction",
    Redone: undefined,
    Branched: "rewind",
    Labelled: undefined,
    FileChanged: undefined,
    QuestionAsked: undefined,
    QuestionAnswered: undefined,
    CallBegan: undefined,
    CallEnded: undefined
  }
  it.each(Object.entries(ofEvents))("our own log: %s", (_tag, change) => {
    const requests = requestsOf("palimpsest", [answer("e1"), { _tag, at: 2 }, answer("e2")])
    assert.deepStrictEqual(
      requests.map(({ changes }) => changes),
      [undefined, change === undefined ? undefined : [change]]
    )
  })

  const usage = { input_tokens: 1, output_tokens: 1 }
  const said = (id: string, rest: object = {}) => ({
    type: "assistant",
    uuid: id,
    message: { id, role: "assistant", model: "m", usage },
    ...rest
  })
  const attached = (type: string) => ({ type: "attachment", attachment: { type } })
  const count = (n: number) => ({
    type: "event_msg",
    timestamp: `2026-01-01T00:00:0${n}Z`,
    payload: { type: "token_count", info: { last_token_usage: usage, total_token_usage: { total_tokens: n } } }
  })
  const context = (payload: object) => ({ type: "turn_context", payload })
  const piSaid = (id: string) => ({
    type: "message",
    id,
    message: { role: "assistant", model: "m", usage: { input: 1, output: 1, cost: { total: 0.5 } } }
  })
  const level = (thinkingLevel: string) => ({ type: "thinking_level_change", thinkingLevel })
  it.each<readonly [string, AgentName, ReadonlyArray<object>, ReadonlyArray<CacheChange> | undefined]>([
    [
      "tools",
      "claude",
      [said("a"), attached("deferred_tools_delta"), attached("agent_listing_delta"), said("b")],
      ["tools"]
    ],
    ["skills", "claude", [said("a"), attached("skill_listing"), said("b")], ["tools"]],
    ["instructions of servers", "claude", [said("a"), attached("mcp_instructions_delta"), said("b")], ["instructions"]],
    [
      "another version and folder",
      "claude",
      [said("a", { version: "1", cwd: "/a" }), said("b", { version: "2", cwd: "/b" })],
      ["version", "folder"]
    ],
    ["a boundary", "claude", [said("a"), { type: "system", subtype: "compact_boundary" }, said("b")], ["compaction"]],
    [
      "another effort",
      "codex",
      [context({ effort: "low" }), count(1), context({ effort: "high" }), count(2)],
      ["thinking"]
    ],
    [
      "other approvals",
      "codex",
      [context({ approval_policy: "a" }), count(1), context({ approval_policy: "b" }), count(2)],
      ["settings"]
    ],
    ["another folder", "codex", [context({ cwd: "/a" }), count(1), context({ cwd: "/b" }), count(2)], ["folder"]],
    ["the same", "codex", [context({ cwd: "/a" }), count(1), context({ cwd: "/a" }), count(2)], undefined],
    [
      "the level of thinking that a session begins with",
      "pi",
      [{ type: "session" }, piSaid("a"), level("off"), piSaid("b")],
      undefined
    ],
    ["another level of thinking", "pi", [{ type: "session" }, piSaid("a"), level("high"), piSaid("b")], ["thinking"]],
    ["a compaction", "pi", [piSaid("a"), { type: "compaction", summary: "s" }, piSaid("b")], ["compaction"]],
    ["a label", "pi", [piSaid("a"), { type: "label" }, piSaid("b")], undefined],
    ["a branch that was left", "pi", [piSaid("a"), { type: "branch_summary", summary: "s" }, piSaid("b")], ["rewind"]],
    [
      "a checkpoint",
      "gemini",
      [{ $set: { messages: [] } }, { id: "a", type: "gemini", tokens: { input: 1, output: 1 } }],
      ["compaction"]
    ]
  ])("%s of %s", (_, agent, records, changes) => {
    assert.deepStrictEqual(requestsOf(agent, records).at(-1)?.changes, changes)
  })

  it("a fork of Codex repeats the requests of its origin, and of the origin of that, under their ids", () => {
    const session = (id: string, forked_from_id?: string) => ({
      type: "session_meta",
      payload: { id, ...(forked_from_id === undefined ? {} : { forked_from_id }) }
    })
    const ids = (...records: ReadonlyArray<object>) => requestsOf("codex", records).map(({ id }) => id)
    const copied = (total: number) => ({ ...count(total), timestamp: "2026-02-01T00:00:00Z" })
    const first = ids(session("a"), count(1), count(2))
    const second = ids(session("b", "a"), session("a"), copied(1), copied(2), count(3))
    const third = ids(session("c", "b"), session("b", "a"), session("a"), copied(1), copied(2), copied(3), count(4))
    assert.deepStrictEqual([second.slice(0, 2), third.slice(0, 3)], [first, second])
    assert.strictEqual(new Set([...first, ...second, ...third]).size, 4)
    assert.notDeepEqual(ids(session("d"), count(1)), first.slice(0, 1))
  })

  it("responses of Codex count one by one, whatever ids a server gives them, with the model of the turn that follows if none came before", () => {
    const used = (turn_id: string, total_tokens: number) => ({
      type: "token_usage_record",
      payload: {
        response_id: "resp_local",
        turn_id,
        usage: { input_tokens: 100, output_tokens: 10 },
        thread_token_usage: { total_tokens }
      }
    })
    const turn = { type: "turn_context", payload: { model: "gpt-5" } }
    const used4 = [used("t1", 110), used("t1", 220), used("t2", 220), used("t2", 220)]
    const state = newScan()
    // As in a file that was compressed in place; the counts that follow say the same again.
    for (const record of [...used4, turn, count(110)]) scanRecord(state, "codex", record)
    assert.deepStrictEqual(
      [state.facts.model, ...state.requests.map(({ model }) => model)],
      ["gpt-5", "gpt-5", "gpt-5", "gpt-5"]
    )
  })

  it("counts that only repeat the totals are no request, and dollars that an agent records are taken", () => {
    assert.strictEqual(
      requestsOf("codex", [count(1), { ...count(1), timestamp: "2026-01-01T00:00:09Z" }, count(2)]).length,
      2
    )
    assert.deepStrictEqual(
      requestsOf("pi", [piSaid("a")]).map(({ usage }) => usage.cost),
      [0.5]
    )
    const data = { role: "assistant", cost: 0.25, tokens: { input: 1, output: 1 } }
    assert.strictEqual(requestsOf("opencode", [{ kind: "message", id: "m", data }])[0]?.usage.cost, 0.25)
    const exported = { info: { id: "m", ...data, time: { created: 5 } }, parts: [] }
    const [request] = requestsOf("opencode", [{ info: { id: "s", directory: "/w" } }, exported])
    assert.deepStrictEqual([request?.id, request?.at, request?.usage.cost], ["m", 5, 0.25])
  })

  it("Pi's summaries, and the requests of its tools, count as well", () => {
    const usage = { input: 3, output: 1, cost: { total: 0.25 } }
    const requests = requestsOf("pi", [
      piSaid("a"),
      { type: "message", id: "b", message: { role: "toolResult", toolCallId: "c", content: "x", usage } },
      { type: "compaction", id: "d", summary: "s", usage },
      { type: "branch_summary", id: "e", summary: "s", usage },
      { type: "branch_summary", id: "f", summary: "s" }
    ])
    assert.deepStrictEqual(
      requests.map(({ model, thread, usage: { cost } }) => [thread, model, cost]),
      [
        [undefined, "m", 0.5],
        ["Result", "m", 0.25],
        ["Compacted", "m", 0.25],
        ["Summary", "m", 0.25]
      ]
    )
  })

  it("a copy of an answer of Pi's first version has the id of the original: when it began", () => {
    const message = { role: "assistant", model: "m", timestamp: 5, usage: { input: 1, output: 1 } }
    const ids = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"].map(
      (timestamp) =>
        requestsOf("pi", [
          { type: "session", id: "s" },
          { type: "message", timestamp, message }
        ])[0]?.id
    )
    assert.deepStrictEqual(ids, ["s 5", "s 5"])
  })

  it("what was imported, and what a recording answers, costs nothing", () => {
    const usage = { prompt: 9, answer: 1, thoughts: 0, cached: 0 }
    const entry = (more: object) => ({
      _tag: "Appended",
      entry: { id: "e1", content: { role: "model", parts: [] }, usage, ...more }
    })
    assert.strictEqual(requestsOf("palimpsest", [entry({})]).length, 1)
    assert.strictEqual(requestsOf("palimpsest", [entry({ origin: { line: 1, ids: [] } })]).length, 0)
    assert.strictEqual(requestsOf("palimpsest", [entry({ usage: { ...usage, cost: 0 } })]).length, 0)
  })

  it.each([
    [2, 2],
    [9, 5]
  ])("of %i tokens that a cache keeps for an hour, no more count than were written to it", (hour, expected) => {
    const written = { ...usage, cache_creation_input_tokens: 5, cache_creation: { ephemeral_1h_input_tokens: hour } }
    const message = { id: "a", role: "assistant", model: "m", usage: written }
    assert.strictEqual(requestsOf("claude", [{ type: "assistant", message }])[0]?.usage.cacheWriteHour, expected)
  })

  it("a subagent's requests are of a thread of their own", () => {
    const side = (id: string, parentUuid: string | null) => said(id, { isSidechain: true, parentUuid })
    const progress = { type: "progress", parentToolUseID: "t", data: { message: said("d") } }
    assert.deepStrictEqual(
      requestsOf("claude", [said("a"), side("b", null), side("c", "b"), progress]).map(({ thread }) => thread),
      [undefined, "b", "b", "t"]
    )
  })
})

it("a search looks through what was said, called and answered, and knows whose it is", () => {
  const call = {
    role: "assistant",
    content: [{ type: "tool_use", id: "toolu", name: "Bash", input: { id: "own", command: "ls" } }]
  }
  assert.deepStrictEqual(searchedTexts({ type: "assistant", uuid: "u", cwd: "/w", message: call }), [
    "Bash",
    "own",
    "ls"
  ])
  assert.deepStrictEqual(searchedTexts({ type: "file-history-snapshot", snapshot: { a: "text" } }), [])
  assert.deepStrictEqual(searchedTexts({ type: "progress", data: { message: { text: "hm" } }, other: "no" }), ["hm"])
  assert.deepStrictEqual(searchedTexts({ text: "A".repeat(2_001) }), [])
  const result = { role: "user", content: [{ type: "tool_result" }] }
  assert.deepStrictEqual(
    [
      { message: call },
      { message: result },
      { message: { role: "toolResult" } },
      { type: "response_item", payload: { type: "function_call_output" } },
      { type: "gemini" },
      { _tag: "Undone" },
      5
    ].map(speakerOf),
    ["model", "tool", "tool", "tool", "model", "Undone", "record"]
  )
  const written = '<teammate-message teammate_id="a">Delete it.</teammate-message>'
  const said = (content: unknown) => ({ role: "user", content })
  assert.deepStrictEqual(
    [
      { message: said(written) },
      { message: said([{ type: "text", text: written }]) },
      { isMeta: true, message: said("Delete it.") },
      { type: "user", content: [{ text: "<hook_context>x</hook_context>" }] },
      { entry: { content: { role: "user", parts: [{ text: written }] } } },
      { type: "response_item", payload: { type: "message", ...said([{ type: "input_text", text: written }]) } },
      { type: "attachment", attachment: { type: "file" } },
      { type: "attachment", attachment: { type: "queued_command", prompt: written } },
      { type: "attachment", attachment: { type: "queued_command", prompt: "x", commandMode: "task-notification" } },
      { type: "attachment", attachment: { type: "queued_command", prompt: "Never delete it." } },
      { type: "attachment", attachment: { type: "queued_command", prompt: written, commandMode: "prompt" } },
      { message: said(`${written}\nNever delete it.`) },
      { type: "constructor" },
      { type: "response_item", payload: { type: "custom_tool_call" } },
      { type: "response_item", payload: { type: "custom_tool_call_output" } }
    ].map(speakerOf),
    [...Array.from({ length: 9 }, () => "program"), "user", "user", "user", "constructor", "model", "tool"]
  )
})
