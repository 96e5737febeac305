import { call, model, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import { against, brief, contentsOf, endingOf, said, taken, textOf } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** `Chat.send` against a server on the loopback interface, through the real adapter. */

const half = Fake.response([{ text: "half an answer" }], { finishReason: null })
const ending = (finishReason: string, ...parts: ReadonlyArray<unknown>): Fake.Answer =>
  Fake.sse(Fake.response(parts, { finishReason }))

/** These answers to the first requests, then always `fine`. */
const first =
  (...answers: ReadonlyArray<Fake.Answer>): Fake.Script =>
  ({ index, method }) =>
    method === "countTokens" ? Fake.tokens(1) : (answers[index] ?? said("fine"))
const times = (count: number, answer: Fake.Answer): ReadonlyArray<Fake.Answer> =>
  Array.from({ length: count }, () => answer)

it.live("a turn's events arrive in order, with exactly one ending", function* () {
  const cited = Fake.response([{ text: "the answer" }])
  const withCitations = {
    ...cited,
    candidates: cited.candidates.map((candidate) => ({
      ...candidate,
      citationMetadata: { citationSources: [{ uri: "https://b" }, { uri: "https://a", title: "A" }] }
    }))
  }
  const { chat, events } = yield* against(
    first(
      Fake.sse(
        Fake.response(
          [
            { text: "**Look** at it", thought: true },
            { text: "So: " },
            { functionCall: { name: "read_file", args: { path: "a" }, id: "1" } }
          ],
          { finishReason: null }
        ),
        withCitations
      )
    )
  )
  const sent = yield* taken(chat.send("question"))
  assert.deepStrictEqual(sent.events.map(brief), [
    "ModelInfo",
    "Thought Look: at it",
    "Content So: ",
    "ToolCallRequest read_file",
    "Content the answer",
    "Citation (A) https://a\nhttps://b",
    "Finished STOP"
  ])
  const last = endingOf(sent.events)
  assert.isTrue(last?._tag === "Finished" && last.answer === "e2" && last.usage?.prompt === 10)
  assert.deepStrictEqual(sent.events[0], {
    _tag: "ModelInfo",
    model: "gemini-2.5-flash",
    limit: TokenCount.make(1_048_576)
  })
  assert.deepStrictEqual(
    events.map(({ _tag }) => _tag),
    ["Answered"],
    "message and answer are one line of the log"
  )
  const [asked, answer] = entries(yield* chat.conversation)
  assert.deepStrictEqual(asked?.content, user(text("question")))
  assert.deepStrictEqual(
    answer?.content,
    model(text("So: "), call("read_file", { path: "a" }, "1"), text("the answer")),
    "the thought is no part of it"
  )
  assert.strictEqual(answer?.model, "gemini-2.5-flash")
  assert.deepStrictEqual(answer?.usage, { prompt: 10, answer: 5, thoughts: 0, cached: 0 })
})

/** What is seen of a second try that goes well. */
const mended = (reason: string) => [`Retry 2 ${reason}`, "Content fine", "Finished STOP"]

/** What the server does first; what a person sees of it. */
const bad: ReadonlyArray<readonly [what: string, script: ReadonlyArray<Fake.Answer>, events: ReadonlyArray<string>]> = [
  ["503, then an answer", [Fake.failure(503, "overloaded")], mended("InternalProviderError")],
  [
    "503 for as long as anybody asks",
    times(10, Fake.failure(503, "overloaded")),
    [...Array.from({ length: 9 }, (_, n) => `Retry ${n + 2} InternalProviderError`), "Error InternalProviderError"]
  ],
  ["429 that says when", [Fake.rateLimited(0.05)], mended("RateLimitError")],
  ["429 that says longer than anybody waits", [Fake.rateLimited(3_600)], ["Error RateLimitError"]],
  ["400", [Fake.failure(400, "no")], ["Error InvalidRequestError"]],
  ["a connection that closes before a word", [[Fake.drop]], mended("NetworkError")],
  [
    "a network cut in the middle of an answer",
    [[Fake.streamHead, Fake.event(half), Fake.drop]],
    ["Content half an answer", ...mended("NetworkError")]
  ],
  ["no finish reason", [Fake.sse(half)], ["Content half an answer", ...mended("NO_FINISH_REASON")]],
  [
    "never a finish reason",
    times(4, Fake.sse(half)),
    [
      "Content half an answer",
      "Retry 2 NO_FINISH_REASON",
      "Content half an answer",
      "Retry 3 NO_FINISH_REASON",
      "Content half an answer",
      "Retry 4 NO_FINISH_REASON",
      "Content half an answer",
      "InvalidStream NO_FINISH_REASON"
    ]
  ],
  ["a call that cannot be read", [ending("MALFORMED_FUNCTION_CALL")], mended("MALFORMED_FUNCTION_CALL")],
  ["SAFETY", [ending("SAFETY")], ["Error ContentPolicyError"]],
  [
    "failures of every kind, one after the other",
    [
      Fake.failure(503, "overloaded"),
      Fake.sse(half),
      [Fake.streamHead, Fake.event(half), Fake.drop],
      ending("MALFORMED_FUNCTION_CALL")
    ],
    [
      "Retry 2 InternalProviderError",
      "Content half an answer",
      "Retry 3 NO_FINISH_REASON",
      "Content half an answer",
      "Retry 4 NetworkError",
      "Retry 5 MALFORMED_FUNCTION_CALL",
      "Content fine",
      "Finished STOP"
    ]
  ],
  [
    "100,000 calls",
    [Fake.sse(Fake.response(Array.from({ length: 100_000 }, (_, n) => call("read_file", { path: `f${n}` }))))],
    ["Error AnswerTooLargeError"]
  ],
  [
    "a call that its own window cannot hold",
    [ending("STOP", call("f", { text: "lorem ipsum ".repeat(400_000) }))],
    ["ToolCallRequest f", "Error AnswerTooLargeError"]
  ],
  [
    "a call, and then no end",
    [
      [
        Fake.streamHead,
        Fake.event(Fake.response([call("f", {})], { finishReason: null })),
        ...Array.from({ length: 40 }, () => Fake.write("x".repeat(1_000_000))),
        Fake.stall
      ]
    ],
    ["ToolCallRequest f", "Error AnswerTooLargeError"]
  ]
]

describe("any answer has one clear ending, and the conversation continues", () => {
  it.live.each(bad)("%s", function* ([, script, expected]) {
    const { chat, events: log, fake } = yield* against(first(...script))
    const { error, events } = yield* taken(chat.send("question"))
    assert.deepStrictEqual(events.map(brief), ["ModelInfo", ...expected])
    const last = endingOf(events) ?? assert.fail("it has not one ending")
    if (last._tag === "Finished") {
      assert.isUndefined(error)
      assert.strictEqual(textOf(events), entries(yield* chat.conversation)[1]?.content.parts[0]?.text)
    } else {
      assert.isEmpty(log, "the conversation is what it was")
      assert.isTrue("message" in last && last.message === error?.message)
      assert.match(error?.message ?? "", /^[^\n]+[^\n.]$/)
    }
    const asked = (yield* fake.requests).length
    const next = yield* taken(chat.send("and now?"))
    assert.deepStrictEqual(next.events.map(brief), ["ModelInfo", "Content fine", "Finished STOP"])
    const latest = (yield* fake.requests)[asked] ?? assert.fail("no request")
    assert.deepStrictEqual(contentsOf(latest).at(-1), user(text("and now?")))
    assert.lengthOf(contentsOf(latest), last._tag === "Finished" ? 3 : 1)
  })

  it.live("an answer of 10 MB is accepted, and the next message still fits", function* () {
    const long = "All work and no play makes a long answer. ".repeat(2_500)
    const piece = Fake.response([{ text: long }], { finishReason: null })
    const pieces = Array.from({ length: 100 }, () => piece)
    const { chat } = yield* against(first(Fake.sse(...pieces, Fake.response([{ text: "end" }]))))
    const { events } = yield* taken(chat.send("question"))
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.lengthOf(entries(yield* chat.conversation)[1]?.content.parts[0]?.text ?? "", long.length * pieces.length + 3)
    const next = yield* taken(chat.send("and now?"))
    assert.deepStrictEqual(next.events.map(brief), [
      "ModelInfo",
      "ChatCompressed COMPRESSED",
      "Content fine",
      "Finished STOP"
    ])
  })
})
