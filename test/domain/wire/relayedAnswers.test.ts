import { assert, describe, expect, it } from "@effect/vitest"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { usageOf } from "../../../src/domain/wire/AnswerUsage.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { type HiddenExchange, woven } from "../../../src/domain/wire/HiddenExchange.ts"
import { type AnswerRelay, RelayedBody } from "../../../src/domain/wire/RelayedAnswer.ts"
import { SseSplitter, sseText } from "../../../src/domain/wire/SseEvents.ts"
import { type Block, codecs, type Json, signatureOf } from "../../support/GatewayDialects.ts"

/** Answers of every dialect with calls of the gateway's tool, streamed and whole: what the client gets, and what the provider gets back. */

const tool = "palimpsest_recall"
const called = (id: string, name = tool): Block => ({ kind: "call", id, name, args: { grep: id } })
const other = (id: string) => called(id, "read_file")
const said = (text: string): Block => ({ kind: "text", text })
const thought: Block = { kind: "thought", text: "let me see", signature: signatureOf("s") }
const isOwn = (block: Block) => block.kind === "call" && block.name === tool
const resultsOf = (relay: AnswerRelay, ...[calls, recalled]: Parameters<AnswerRelay["results"]>) =>
  relay.results(calls, recalled).map((message) => JSON.stringify(message))
const resultOf = (block: Block) => {
  const { id, name } = block.kind === "call" ? block : { id: "", name: "" }
  return { id, name, text: `result of ${id}` }
}
const textOf = (blocks: ReadonlyArray<Block>) => blocks.map((each) => (each.kind === "text" ? each.text : "")).join("")

const answers: ReadonlyArray<readonly [name: string, rounds: ReadonlyArray<ReadonlyArray<Block>>, note?: string]> = [
  ["no call", [[thought, said("only words")]]],
  ["a call of the client's", [[said("I read."), other("c1"), other("c2")]]],
  ["a hidden call", [[called("r1")], [said("It is 12.")]]],
  [
    "a thought on both sides of a hidden call",
    [
      [thought, called("r1")],
      [thought, said("12.")]
    ]
  ],
  [
    "words before each call",
    [[thought, said("I look. "), called("r1")], [said("Again. "), called("r2")], [said("12.")]]
  ],
  [
    "two calls in one answer",
    [
      [called("r1"), called("r2")],
      [thought, said("12.")]
    ]
  ],
  ["a call between the client's", [[said("Both."), other("c1"), called("r1"), other("c2")]]],
  [
    "both kinds after a hidden one",
    [
      [thought, called("r1")],
      [said("Now."), other("c1"), called("r2")]
    ]
  ],
  ["a note for the client", [[said("Hm. "), called("r1")], [said("12.")]], "[recalled]\n"],
  ["a last call that nobody answers", [[said("Hm. "), called("r1")], [called("r2")]]]
]

/** The messages of a history in a form that can be compared: without the ids that only the provider gives. */
const plain = (messages: ReadonlyArray<string>): ReadonlyArray<Json> =>
  messages.map((json) => {
    const { id: _id, status: _status, ...message }: Json = JSON.parse(json)
    return message
  })

/** What clients get of answers that the gateway adds to. */
const written: Array<string> = []

describe.each(dialects)("an answer in the dialect %s", (dialect) => {
  const codec = codecs[dialect]
  const answering = wire[dialect].answers
  /** What the provider gets back of an answer. Gemini wants no thoughts. */
  const sentBack = (blocks: ReadonlyArray<Block>) =>
    codec.assistant(dialect === "gemini" ? blocks.filter(({ kind }) => kind !== "thought") : blocks)
  const seenOf = (blocks: ReadonlyArray<Block>) =>
    blocks.map((block) => (block.kind === "thought" ? { kind: "thought" } : block))
  /** What the client sees: blocks, but texts without their borders, which two dialects do not have. */
  const shown = (blocks: ReadonlyArray<Block>) => ({
    text: textOf(blocks),
    others: seenOf(blocks.filter(({ kind }) => kind !== "text" && (kind !== "thought" || dialect !== "chat")))
  })

  const rows = answers.map(([name, rounds, note = ""]) => ({ name, rounds, note }))
  it.each(rows)("with $name reaches the client without it, and the provider with it", ({ note, rounds }) => {
    const stream = answering.stream(tool)
    const whole = new RelayedBody(answering, tool)
    const isUnanswered = rounds.at(-1)?.every(isOwn) === true
    const ending = isUnanswered ? "stopped" : "as sent"
    let client = ""
    const visible: Array<Block> = []
    const hidden: Array<HiddenExchange["rounds"][number]> = []
    const expected: Array<Json> = []
    let beside: HiddenExchange["beside"]
    for (const [at, blocks] of rounds.entries()) {
      const own = blocks.filter(isOwn)
      const answer = { number: at + 1, blocks, counts: { input: 11, output: 3 } }
      const splitter = new SseSplitter()
      for (const event of codec.events(answer).flatMap((each) => splitter.push(each))) client += stream.push(event)
      const read = stream.read()
      const same = whole.push(codec.json(answer))
      assert.deepStrictEqual({ ...same, sent: plain(same?.sent ?? []) }, { ...read, sent: plain(read.sent) })
      assert.deepStrictEqual<ReadonlyArray<Block>>(
        read.calls.map(({ args, id, name }) => ({ kind: "call", id, name, args })),
        own
      )
      assert.strictEqual(
        read.hasOthers,
        blocks.some((block) => block.kind === "call" && !isOwn(block))
      )
      assert.deepInclude(usageOf(wire[dialect].answers.usage, read.usage), { prompt: 11, answer: 3 })
      assert.deepStrictEqual(plain(read.sent), sentBack(blocks))
      visible.push(...blocks.filter((block) => !isOwn(block)))
      const results = own.map(resultOf)
      const written = resultsOf(
        answering,
        read.calls,
        results.map(({ text }) => ({ text, media: [] }))
      )
      assert.deepStrictEqual(plain(written), codec.results(results))
      if (at === rounds.length - 1) {
        if (own.length > 0) beside = { calls: read.calls.map(({ json }) => json), results: written }
        continue
      }
      client += stream.next(note)
      whole.next(note)
      const told = note === "" ? [] : [said(note)]
      visible.push(...told)
      hidden.push({
        sent: [...read.sent, ...written],
        visible: [...read.visible, ...told.map((each) => ({ kind: "text" as const, text: textOf([each]) }))]
      })
      expected.push(...sentBack(blocks), ...codec.results(results))
    }
    client += stream.finish(ending)
    // It is one answer, whose events belong together.
    const identities = [...client.matchAll(/^data: (\{.*)$/gm)].flatMap(([, json = ""]) => {
      const { created, id, message, response }: Json = JSON.parse(json)
      return [response?.id, message?.id, dialect === "chat" ? `${id} ${created}` : undefined].filter(Boolean)
    })
    assert.lengthOf(new Set(identities), dialect === "gemini" ? 0 : 1)
    if (note !== "" || isUnanswered) written.push(`# ${dialect}`, client.trimEnd(), whole.finish(ending))
    for (const got of [codec.readEvents(client), codec.readJson(whole.finish(ending))]) {
      assert.deepStrictEqual(shown(got.blocks), shown(visible))
      assert.deepStrictEqual(got.counts, { input: 11 * rounds.length, output: 3 * rounds.length })
    }
    if (isUnanswered) {
      assert.notMatch(client + whole.finish(ending), /"(?:stop|finish)_reason":"tool/)
      return
    }
    // The client's next request, and what goes out for it.
    const last = rounds.at(-1) ?? []
    const owned = last.filter(isOwn)
    const theirs = last.filter((block) => block.kind === "call" && !isOwn(block))
    const answersOf = (blocks: ReadonlyArray<Block>) => codec.results(blocks.map(resultOf))
    const history = [...codec.assistant(visible), ...answersOf(theirs), ...codec.user("And then?")].map((one) =>
      JSON.stringify(one)
    )
    const back = woven(wire[dialect], { rounds: hidden, ...(beside === undefined ? {} : { beside }) }, history)
    assert.deepStrictEqual(plain([...(back?.sent ?? []), ...history.slice(back?.consumed ?? 0)]), [
      ...expected,
      ...codec.assistant([...last.filter((block) => !isOwn(block)), ...owned]),
      ...answersOf([...owned, ...theirs]),
      ...codec.user("And then?")
    ])
  })

  it("whose words the client changed comes after the hidden calls alone", () => {
    const whole = new RelayedBody(answering, tool)
    const read = whole.push(codec.json({ blocks: [said("I look."), called("r1")], counts: { input: 1, output: 1 } }))
    const results = resultsOf(answering, read?.calls ?? [], [{ text: "seen", media: [] }])
    const rounds = [{ sent: [...(read?.sent ?? []), ...results], visible: read?.visible ?? [] }]
    const history = [...codec.assistant([said("Other words.")]), ...codec.user("Go on.")].map((one) =>
      JSON.stringify(one)
    )
    const back = woven(wire[dialect], { rounds }, history)
    assert.deepStrictEqual(plain([...(back?.sent ?? []), ...history.slice(back?.consumed ?? 0)]), [
      ...codec.assistant([called("r1")]),
      ...codec.results([{ id: "r1", name: tool, text: "seen" }]),
      ...codec.assistant([said("Other words.")]),
      ...codec.user("Go on.")
    ])
    // Where the client left the whole answer out, nothing stands beside the calls of the next one.
    const beside = { calls: ["{}"], results: ["{}"] }
    const next = [...history.slice(1), ...codec.assistant([other("c9")]), ...codec.results([resultOf(other("c9"))])]
    const left = woven(
      wire[dialect],
      { rounds: [], beside },
      next.map((one) => (typeof one === "string" ? one : JSON.stringify(one)))
    )
    assert.deepStrictEqual(left, dialect === "responses" ? { sent: [], consumed: 0 } : undefined)
  })

  it("that fails in the middle ends with an event of the failure", () => {
    const error = { code: 429, message: "slow down" }
    const [ours, theirs] = ["<html>", JSON.stringify({ error })].map((body) => {
      const [event] = new SseSplitter().push(answering.stream(tool).failure(503, body))
      const { response, type, ...data }: Json = JSON.parse(event?.data ?? "")
      assert.strictEqual(type ?? "", event?.name)
      return response ?? data
    })
    assert.deepStrictEqual(theirs?.["error"], error)
    assert.include(JSON.stringify(ours?.["error"]), "503")
  })
})

/** The data of the events that a client gets of these events of a provider. */
const passedOn = (dialect: Dialect, events: ReadonlyArray<object>): ReadonlyArray<Json> => {
  const stream = wire[dialect].answers.stream(tool)
  const text = events.map((data) => stream.push({ raw: "", name: "", data: JSON.stringify(data) })).join("")
  return new SseSplitter().push(text + stream.finish("as sent")).map(({ data }) => JSON.parse(data))
}

it("a call without an index in the event that ends an answer reaches the client without the hidden one beside it", () => {
  const toolCall = (id: string, name: string) => ({ id, type: "function", function: { name, arguments: "{}" } })
  const delta = { tool_calls: [toolCall("r1", tool), toolCall("c1", "read_file")] }
  const [event] = passedOn("chat", [{ id: "1", choices: [{ index: 0, delta, finish_reason: "tool_calls" }] }])
  assert.deepStrictEqual(event?.["choices"][0].delta, { tool_calls: [{ ...toolCall("c1", "read_file"), index: 0 }] })
})

/** What a client gets of these answers, of which all but the last call the gateway's tool alone. */
const continued = (dialect: Dialect, rounds: ReadonlyArray<ReadonlyArray<object>>): ReadonlyArray<Json> => {
  const stream = wire[dialect].answers.stream(tool)
  const texts = rounds.map(
    (events, at) =>
      (at === 0 ? "" : stream.next("")) +
      events
        .map((data) => stream.push({ raw: sseText({ name: "" }, data), name: "", data: JSON.stringify(data) }))
        .join("")
  )
  return new SseSplitter().push(texts.join("") + stream.finish("as sent")).map(({ data }) => JSON.parse(data))
}

const chatEvent = (delta: object, finish_reason: string | null = null) => ({
  id: "1",
  choices: [{ index: 0, delta, finish_reason }]
})
const chatCall = (more: object, called: object) => ({ tool_calls: [{ type: "function", ...more, function: called }] })

describe("what a provider sends after the end of an answer that goes on", () => {
  const counts = (promptTokenCount: number) => ({ usageMetadata: { promptTokenCount } })
  const part = (part: object, finishReason?: string) => ({
    candidates: [{ content: { role: "model", parts: [part] }, ...(finishReason === undefined ? {} : { finishReason }) }]
  })
  it("is no part of what the client gets (gemini)", () => {
    const call = { functionCall: { name: tool, args: {} } }
    const events = continued("gemini", [
      [part(call, "STOP"), counts(11)],
      [part({ text: "12." }, "STOP"), counts(7)]
    ])
    assert.deepStrictEqual(
      events.map((event) => event["usageMetadata"].promptTokenCount),
      [18, 18]
    )
  })

  it("is no part of what the client gets, also of an error that ends it (chat)", () => {
    const failed = { ...chatEvent({}, "error"), error: { message: "busy" } }
    const events = continued("chat", [[failed], [chatEvent({ content: "12." }, "stop")]])
    assert.deepStrictEqual(
      events.map(({ choices }) => choices[0].delta),
      [{ content: "12." }]
    )
  })
})

describe("calls whose server numbers them otherwise", () => {
  const own = { name: tool, arguments: '{"grep":"a"}' }
  it.each<readonly [rule: string, pieces: ReadonlyArray<object>]>([
    [
      "without an index, with the id in each event",
      [chatCall({ id: "c1" }, { name: "look", arguments: '{"pa' }), chatCall({ id: "c1" }, { arguments: 'th":1}' })]
    ],
    [
      "without an index, with the id and the name in each event",
      [
        chatCall({ id: "c1" }, { name: "look", arguments: '{"pa' }),
        chatCall({ id: "c1" }, { name: "look", arguments: 'th":1}' })
      ]
    ],
    [
      "without an index, with the id in the first event",
      [chatCall({ id: "c1" }, { name: "look", arguments: '{"pa' }), chatCall({}, { arguments: 'th":1}' })]
    ],
    ["with one index for all of them", [chatCall({ index: 0, id: "c1" }, { name: "look", arguments: '{"path":1}' })]],
    [
      "with an index from one",
      [
        chatCall({ index: 1, id: "c1" }, { name: "look", arguments: '{"pa' }),
        chatCall({ index: 1 }, { arguments: 'th":1}' })
      ]
    ],
    [
      "with another id in each event",
      [
        chatCall({ index: 0, id: "c1" }, { name: "look", arguments: '{"pa' }),
        chatCall({ index: 0, id: "c7" }, { arguments: 'th":1}' })
      ]
    ]
  ])("%s are whole, for the model and for the client", (rule, pieces) => {
    const index = rule.startsWith("without") ? {} : { index: rule.includes("one index") ? 0 : 9 }
    const events = [
      ...pieces.map((piece) => chatEvent(piece)),
      chatEvent(chatCall({ ...index, id: "r1" }, own)),
      chatEvent({}, "tool_calls")
    ]
    const { calls, hasOthers, sent } = ((stream) => {
      for (const data of events) stream.push({ raw: "", name: "", data: JSON.stringify(data) })
      return stream.read()
    })(wire.chat.answers.stream(tool))
    assert.deepStrictEqual(
      [
        calls.map(({ args, id }) => ({ args, id })),
        hasOthers,
        plain(sent)[0]?.["tool_calls"].map(({ id }: Json) => id)
      ],
      [[{ args: { grep: "a" }, id: "r1" }], true, ["c1", "r1"]]
    )
    const shown = continued("chat", [events]).flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])
    assert.deepStrictEqual(
      [
        shown.map((call: Json) => call["function"].arguments).join(""),
        new Set(shown.map(({ index = 0 }: Json) => index))
      ],
      ['{"path":1}', new Set([0])]
    )
  })

  it("are two where neither has an id or an index", () => {
    const stream = wire.chat.answers.stream(tool)
    const calls = {
      tool_calls: ["one", "two"].map((grep) => ({ function: { name: tool, arguments: `{"grep":"${grep}"}` } }))
    }
    stream.push({ raw: "", name: "", data: JSON.stringify(chatEvent(calls, "tool_calls")) })
    assert.deepStrictEqual(
      stream.read().calls.map(({ args }) => args),
      [{ grep: "one" }, { grep: "two" }]
    )
  })
})

describe("reasoning beside a hidden call of Chat Completions", () => {
  const call = chatCall({ id: "r1" }, { name: tool, arguments: "{}" })
  it("in the event that ends the answer reaches the client, once", () => {
    const events = continued("chat", [
      [chatEvent({ role: "assistant", reasoning_content: "I look.", ...call }, "tool_calls")],
      [chatEvent({ role: "assistant", reasoning_content: " Found." }), chatEvent({ content: "12." }, "stop")].map(
        (event) => ({ ...event, id: "2" })
      )
    ])
    assert.deepStrictEqual(
      events.map(({ id }) => id),
      ["1", "1", "1"]
    )
    const deltas = events.map(({ choices }) => choices[0].delta)
    assert.deepStrictEqual(deltas, [
      { role: "assistant", reasoning_content: "I look." },
      { reasoning_content: " Found." },
      { content: "12." }
    ])
  })

  it("reaches the client where nothing is streamed", () => {
    const body = new RelayedBody(wire.chat.answers, tool)
    const empty = { role: "assistant", content: "12.", reasoning: "", annotations: [], audio: null }
    const blank = new RelayedBody(wire.chat.answers, tool).push(JSON.stringify({ choices: [{ message: empty }] }))
    assert.deepStrictEqual(blank?.visible, [{ kind: "text", text: "12." }])
    const message = { role: "assistant", content: null, reasoning_content: "I look.", ...call }
    body.push(JSON.stringify({ choices: [{ message, finish_reason: "tool_calls" }] }))
    assert.lengthOf(body.read().calls, 1)
    body.next("")
    // A client may leave before the next answer is there: then nothing of it is counted.
    assert.lengthOf(body.read().calls, 0)
    const last = { role: "assistant", content: "12.", reasoning_content: " Found.", refusal: null }
    body.push(JSON.stringify({ choices: [{ message: last, finish_reason: "stop" }] }))
    assert.deepStrictEqual(JSON.parse(body.finish("as sent")).choices[0].message, {
      ...last,
      reasoning_content: "I look. Found."
    })
  })
})

describe("an answer of Gemini after a recall", () => {
  const candidate = (parts: ReadonlyArray<object>, more: object = {}) => ({
    candidates: [{ content: { role: "model", parts }, index: 0, ...more }]
  })
  const counts = (promptTokenCount: number) => ({ usageMetadata: { promptTokenCount } })
  const end = { finishReason: "STOP" }
  const called = candidate([{ functionCall: { name: tool, args: {} } }], end)

  it.each<readonly [where: string, last: ReadonlyArray<object>]>([
    ["the event that ends it", [{ ...candidate([{ text: "12." }], end), ...counts(5) }]],
    ["an event of its own", [candidate([{ text: "12." }], end), counts(5)]],
    ["an event before", [{ ...candidate([{ text: "1" }]), ...counts(5) }, candidate([{ text: "2." }], end)]]
  ])("ends with the counts of all rounds, where the last come in %s", (_, last) => {
    const events = continued("gemini", [[{ ...called, ...counts(7) }], last])
    assert.deepInclude(events.at(-1), counts(12))
  })

  it("has no content of nothing, for which Google's SDK would forget the turn", () => {
    const hidden = candidate([{ functionCall: { name: tool, args: {} } }], end)
    for (const rounds of [[[hidden]], [[hidden], [{ candidates: [end] }]]]) {
      for (const { candidates } of continued("gemini", rounds)) {
        assert.isAtLeast(candidates[0].content.parts.length, 1)
      }
    }
  })
})

it("a signature in an empty text goes back to the Gemini API with the call after it", () => {
  const stream = wire.gemini.answers.stream(tool)
  const parts = [
    { text: "hm", thought: true },
    { text: "" },
    { text: "", thoughtSignature: "s" },
    { functionCall: { name: tool, args: {} } }
  ]
  const data = JSON.stringify({ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] })
  stream.push({ raw: "", name: "", data })
  assert.deepStrictEqual(plain(stream.read().sent), [{ role: "model", parts: parts.slice(2) }])
})

it("are written like this: see `test/golden/gateway-answers.txt`, and take a new one with `vitest -u`", () =>
  expect(`${written.join("\n")}\n`).toMatchFileSnapshot("../../golden/gateway-answers.txt"))

it.each([
  ["anthropic", { type: "tool_result", tool_use_id: "r1", content: "no such handle", is_error: true }],
  ["gemini", { functionResponse: { id: "r1", name: tool, response: { error: "no such handle" } } }],
  ["chat", { role: "tool", tool_call_id: "r1", content: "no such handle" }],
  ["responses", { type: "function_call_output", call_id: "r1", output: "no such handle" }]
] as const)("a recall that failed is told as an error, where %s has a way to", (dialect, result) => {
  const call = { id: "r1", name: tool, args: {}, json: "{}" }
  const written = resultsOf(wire[dialect].answers, [call], [{ text: "no such handle", media: [], isError: true }])
  assert.include(written.join(), JSON.stringify(result))
})

describe("an answer of Chat Completions", () => {
  const relay = wire.chat.answers
  const call = { id: "r1", type: "function", function: { name: tool, arguments: '{"grep":"x"}' } }

  it("that is split over choices has its calls, and goes on as one", () => {
    const choices = [
      { index: 0, message: { role: "assistant", content: "I look." }, finish_reason: "tool_calls" },
      { index: 1, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" }
    ]
    const whole = new RelayedBody(relay, tool).push(JSON.stringify({ choices }))
    const stream = relay.stream(tool)
    for (const { message, ...choice } of choices)
      stream.push({ raw: "", name: "", data: JSON.stringify({ choices: [{ ...choice, delta: message }] }) })
    for (const read of [whole, stream.read()]) {
      assert.deepStrictEqual(
        read?.calls.map(({ args }) => args),
        [{ grep: "x" }]
      )
      assert.deepStrictEqual(plain(read?.sent ?? []), [{ role: "assistant", content: "I look.", tool_calls: [call] }])
    }
  })

  it("that begins with its thought goes back without it, and the client gets it", () => {
    const content = "<think>hm</think>\n\nI look."
    const body = JSON.stringify({ choices: [{ message: { role: "assistant", content, tool_calls: [call] } }] })
    const read = new RelayedBody(relay, tool).push(body)
    assert.deepStrictEqual(plain(read?.sent ?? []), [{ role: "assistant", content: "I look.", tool_calls: [call] }])
    assert.deepStrictEqual(read?.visible, [{ kind: "text", text: content }])
  })

  it.each([
    [
      "a call in the first form",
      [{ function_call: { name: "look", arguments: "" } }, { function_call: { arguments: "{}" } }]
    ],
    ["a thought in its text", [{ content: "<think>a</th" }, { content: "ink>b" }]]
  ])("with %s reaches the client as it came", (_, deltas) => {
    const events = [...deltas, {}].map((delta, at) => {
      const finish_reason = at === deltas.length ? "stop" : null
      return sseText({ name: "" }, { id: "x", choices: [{ index: 0, delta, finish_reason }] })
    })
    const stream = relay.stream(tool)
    const splitter = new SseSplitter()
    const passed = [...events, "data: [DONE]\n\n"]
      .flatMap((text) => splitter.push(text))
      .map(stream.push)
      .join("")
    assert.strictEqual(passed + stream.finish("as sent"), `${events.join("")}data: [DONE]\n\n`)
  })
})
