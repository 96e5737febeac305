import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as TurnScreen from "../../../src/cli/chat/TurnScreen.ts"
import type { ChatEvent } from "../../../src/domain/ChatEvent.ts"
import { entryId } from "../../../src/domain/Conversation.ts"
import { TokenCount } from "../../../src/domain/Tokens.ts"
import { ChatTerminal } from "../../../src/services/ChatTerminal.ts"

const tokens = TokenCount.make

/** What is shown of these events; notes stand in brackets. */
const shown = (...events: ReadonlyArray<ChatEvent>) =>
  Effect.gen(function* () {
    let out = ""
    const write = (text: string) =>
      Effect.sync(() => {
        out += text
      })
    const terminal = Layer.mock(ChatTerminal, {
      isTerminal: true,
      canColor: false,
      columns: Effect.succeed(40),
      write,
      note: (line) => write(`[${line}]\n`),
      working: (label) => write(`(${label})`)
    })
    const screen = yield* Effect.provide(TurnScreen.make(false), terminal)
    for (const event of events) yield* screen.show(event)
    return out
  })

const content = (text: string): ChatEvent => ({ _tag: "Content", text })
const finished = (reason: string): ChatEvent => ({
  _tag: "Finished",
  reason,
  usage: null,
  answer: entryId(2),
  tokens: tokens(10),
  limit: tokens(100)
})
const retry: ChatEvent = {
  _tag: "Retry",
  attempt: 2,
  delay: 4_900,
  reason: "ServerError",
  message: "the model's server failed (503); try again"
}
const overflow = (change: Partial<Extract<ChatEvent, { _tag: "ContextWindowWillOverflow" }>>): ChatEvent => ({
  _tag: "ContextWindowWillOverflow",
  estimated: tokens(1_200),
  remaining: tokens(800),
  limit: tokens(10_000),
  stubborn: [
    { entry: null, what: "this message", tokens: tokens(1_200) },
    { entry: entryId(3), what: "tool output Bash", tokens: tokens(900) }
  ],
  text: "words",
  message: "",
  ...change
})
const compressed = (status: string, message: string | null = null): ChatEvent => ({
  _tag: "ChatCompressed",
  trigger: "auto",
  status,
  before: tokens(8_000),
  after: tokens(2_000),
  limit: tokens(10_000),
  message
})

const cases: ReadonlyArray<readonly [rule: string, events: ReadonlyArray<ChatEvent>, shown: string]> = [
  ["an answer ends with its line", [content("**a** "), content("b"), finished("STOP")], "a b\n"],
  [
    "an answer that was cut off",
    [content("a"), finished("MAX_TOKENS")],
    "a\n[The answer was cut off at the model's limit; ask it to go on.]\n"
  ],
  [
    "a pause before anything came",
    [retry],
    "[The model's server failed (503); asking again in 5 s.](waiting to ask again)".replace("](", "]\n(")
  ],
  [
    "a pause after something came: that is void",
    [content("one two "), retry, content("three"), finished("STOP")],
    "one two\n[The model's server failed (503); asking again in 5 s. What stands above is void.]\n(waiting to ask again)three\n"
  ],
  ["a failure is a sentence", [{ _tag: "Error", reason: "NetworkError", message: "no network" }], "[No network.]\n"],
  [
    "a failure after something came",
    [content("one two "), { _tag: "InvalidStream", fault: "NO_FINISH_REASON", message: "it broke off" }],
    "one two\n[It broke off. What stands above is void.]\n"
  ],
  [
    "cancelled in the middle of a line",
    [content("one two "), { _tag: "UserCancelled" }],
    "one two\n[Cancelled; nothing was said. Your message is in the line again.]\n"
  ],
  [
    "a thought says what is going on, a tool that nobody offers is named, sources are one line",
    [
      { _tag: "Thought", subject: "looking", description: "" },
      { _tag: "Thought", subject: "", description: "no headline" },
      { _tag: "ToolCallRequest", call: { name: "search" } },
      { _tag: "Citation", text: "http://a\nhttp://b" }
    ],
    "(looking)[The model asks for the tool search, which nobody offers here.]\n[Sources: http://a · http://b]\n"
  ],
  [
    "room was made",
    [compressed("COMPRESSED", "the model was busy.")],
    "[Compressed to make room: from 8,000 to 2,000 tokens (80 % to 20 % of the window). All of it can be recalled; /undo takes it back. Note: the model was busy.]\n"
  ],
  [
    "room was made by shortening",
    [compressed("CONTENT_TRUNCATED")],
    "[Shortened tool outputs to make room: from 8,000 to 2,000 tokens (80 % to 20 % of the window). All of it can be recalled; /undo takes it back.]\n"
  ],
  ...(
    [
      ["COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", "the summary would not be smaller"],
      ["COMPRESSION_FAILED_TOKEN_COUNT_ERROR", "the tokens could not be counted"],
      ["COMPRESSION_FAILED_EMPTY_SUMMARY", "the model returned an empty summary"],
      ["FAILED_SUMMARIZER", "the summary failed"]
    ] as const
  ).map(
    ([status, why]) =>
      [
        `no room was made: ${why}`,
        [compressed(status)],
        `[No room was made: ${why}. The conversation goes on as it is.]\n`
      ] as const
  ),
  [
    "spec 4: no room, and more than a quarter is in use: /compress is an advice",
    [overflow({})],
    "[This message does not fit: it has about 1,200 tokens, and 800 of the window of 10,000 are left. Nothing was sent. Shorten it, try /compress, or take a model with a larger window (/model). What cannot be made smaller: e3 tool output Bash (900).]\n"
  ],
  [
    "spec 4: no room, and most of the window is free: it is not",
    [overflow({ estimated: tokens(9_000), remaining: tokens(7_500), stubborn: [] })],
    "[This message does not fit: it has about 9,000 tokens, and 7,500 of the window of 10,000 are left. Nothing was sent. Shorten it, or take a model with a larger window (/model).]\n"
  ],
  [
    "a message that alone is too large",
    [overflow({ estimated: tokens(10_001) })],
    "[This message alone is too large: it has about 10,001 tokens, the whole window 10,000. Nothing was sent. Shorten it, or take a model with a larger window (/model).]\n"
  ]
]

describe("what a person sees of a turn", () => {
  for (const [rule, events, expected] of cases) {
    it.effect(rule, () => Effect.map(shown(...events), (out) => assert.strictEqual(out, expected)))
  }
})
