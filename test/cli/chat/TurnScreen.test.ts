import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as TurnScreen from "../../../src/cli/chat/TurnScreen.ts"
import * as Output from "../../../src/cli/output/Output.ts"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { ChatTerminal } from "../../../src/services/terminal/ChatTerminal.ts"

const tokens = TokenCount.make

type Response = Extract<ChatEvent, { _tag: "ToolCallResponse" }>

/** What is shown of these events; notes stand in brackets. */
const shown = (...events: ReadonlyArray<ChatEvent>) =>
  Effect.gen(function* () {
    let out = ""
    let isAnswering = false
    const write = (text: string) =>
      Effect.sync(() => {
        if (isAnswering) out = `${out.trimEnd()}\n`
        isAnswering = false
        out += text
      })
    const terminal = Layer.mock(ChatTerminal, {
      isTerminal: true,
      canColor: false,
      columns: Effect.succeed(40),
      write,
      answer: (piece) =>
        Effect.sync(() => {
          isAnswering = true
          out += piece.replaceAll("**", "")
        }),
      endAnswer: () => write(""),
      card: ({ body, head, isRunning, more }) =>
        write(
          isRunning
            ? `<${[head, ...more].join(": ")}${body.map((line) => `|${line}`).join("")}>`
            : `${[head, ...body.map((line) => `  ${line}`)].join("\n")}${more.length === 0 ? "" : ` {${more.join("|")}}`}\n`
        ),
      note: (line) => write(`[${line}]\n`),
      working: (label, seconds) => write(`(${label}${seconds === undefined ? "" : ` ${Math.round(seconds)} s`})`),
      panel: () => Effect.void
    })
    const screen = yield* Effect.provide(TurnScreen.make(false), terminal)
    for (const event of events) yield* TurnScreen.show(screen, event)
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
  delay: 5_497,
  reason: "ServerError",
  message: "the model's server failed (503); try again"
}
const overflow = (change: Partial<Extract<ChatEvent, { _tag: "ContextWindowWillOverflow" }>>): ChatEvent => ({
  _tag: "ContextWindowWillOverflow",
  what: "message",
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

const started = (id: string, title: string): ChatEvent => ({ _tag: "ToolCallStarted", id, name: "a_tool", title })
const answered = (id: string, change: Partial<Extract<ChatEvent, { _tag: "ToolCallResponse" }>> = {}): ChatEvent => ({
  _tag: "ToolCallResponse",
  id,
  name: "a_tool",
  status: "success",
  display: null,
  message: null,
  duration: 5,
  ...change
})
const diff = (lines: number): ChatEvent =>
  answered("1", {
    display: {
      _tag: "Diff",
      file: "a.ts",
      diff: `--- a.ts\n+++ a.ts\n@@ -1 +1,${lines} @@\n \tkept\n${Array.from({ length: lines }, (_, at) => `+line ${at}\n`).join("")}-old\u202e\r\n`,
      added: lines,
      removed: 1
    }
  })

const agentDoes = (activity: Extract<ChatEvent, { _tag: "SubagentActivity" }>["activity"]): ChatEvent => ({
  _tag: "SubagentActivity",
  id: "1",
  agent: "generalist",
  activity
})

const cases: ReadonlyArray<readonly [rule: string, events: ReadonlyArray<ChatEvent>, shown: string]> = [
  ["an answer ends with its line", [content("**a** "), content("b"), finished("STOP")], "(answering)a b\n"],
  ["blanks before the words", [content("\n"), content("a"), finished("STOP")], "\n(answering)a\n"],
  [
    "an answer that was cut off",
    [content("a"), finished("MAX_TOKENS")],
    "(answering)a\n[The answer was cut off at the model's output limit. Ask it to continue.]\n"
  ],
  [
    "a pause before anything came",
    [retry],
    "[The model's server failed (503); retrying in 5 s.](waiting to retry 5 s)".replace("](", "]\n(")
  ],
  [
    "a pause after something came: that is void",
    [content("one two "), retry, content("three"), finished("STOP")],
    "(answering)one two\n[The model's server failed (503); retrying in 5 s. Ignore the partial answer above.]\n(waiting to retry 5 s)(answering)three\n"
  ],
  ["a failure is a sentence", [{ _tag: "Error", reason: "NetworkError", message: "no network" }], "[No network.]\n"],
  [
    "a failure after something came",
    [content("one two "), { _tag: "InvalidStream", fault: "NO_FINISH_REASON", message: "it broke off" }],
    "(answering)one two\n[It broke off. Ignore the partial answer above.]\n"
  ],
  [
    "cancelled in the middle of a line",
    [content("one two "), { _tag: "UserCancelled" }],
    "(answering)one two\n[Cancelled. The partial answer was discarded; your message is back in the input line.]\n"
  ],
  [
    "cancelled before anything came",
    [{ _tag: "UserCancelled" }],
    "[Cancelled. Your message is back in the input line.]\n"
  ],
  [
    "a thought says what is going on, sources are one line",
    [
      { _tag: "Thought", subject: "looking", description: "" },
      { _tag: "Thought", subject: "", description: "no headline" },
      { _tag: "Citation", text: "http://a\nhttp://b" }
    ],
    "(looking)[Sources: http://a · http://b]\n"
  ],
  [
    "a call is one line: what it was, what came of it, and how long where that is worth a word",
    [
      started("1", "read_file a.ts"),
      answered("1", { display: { _tag: "Text", text: "lines 1-20\nof 300\u001b[2J" } }),
      started("2", "run npm test"),
      { _tag: "ToolCallProgress", id: "2", text: "one\n  two\n" },
      answered("2", { duration: 12_400, display: { _tag: "Text", text: "exit code 0" } })
    ],
    "<Read a.ts>(running)✓ Read a.ts · … of 300 {lines 1-20|of 300\\u{1b}[2J}\n(thinking)<run npm test>(running)<run npm test: one:   two|  two>✓ run npm test · 12 s\n(thinking)"
  ],
  [
    "a command that fails is no success: its exit code and what it printed last",
    [
      started("1", "run_shell_command make"),
      answered("1", { name: "run_shell_command", display: { _tag: "Text", text: "one\nno rule\nexit code 2" } }),
      answered("2", { name: "run_shell_command", display: { _tag: "Text", text: "ended by SIGKILL" } }),
      answered("3", { display: { _tag: "Text", text: "exit code 2" } })
    ],
    "<Run make>(running)✗ Run make · exit code 2: no rule {one|no rule|exit code 2}\n(thinking)✗ Run · ended by SIGKILL\n(thinking)✓ a_tool · exit code 2\n(thinking)"
  ],
  [
    "calls at the same time are counted",
    [started("1", "read a"), started("2", "read b"), answered("1"), answered("2")],
    "<read a>(running)<read b>(running 2 calls)✓ read a\n(running)✓ read b\n(thinking)"
  ],
  [
    "a call that is no success says why; what is long is cut",
    [
      answered("1", { status: "error", message: "there is no such file\nmore" }),
      answered("2", { status: "denied", message: "the user did not allow it" }),
      answered("3", { status: "cancelled", message: "[Operation Cancelled] …" }),
      answered("4", { status: "timeout", message: "it did not end within ten minutes and was stopped" })
    ],
    "✗ a_tool · there is no such file\n(thinking)✗ a_tool · not allowed\n(thinking)✗ a_tool · cancelled\n(thinking)✗ a_tool · it did not end within ten m…\n(thinking)"
  ],
  [
    "a call that is cancelled before it starts names its file",
    [
      { _tag: "ToolCallRequest", id: "1", call: { name: "read_file", args: { file_path: "src/a.ts" } } },
      answered("1", { name: "read_file", status: "cancelled", message: "[Operation Cancelled] …" })
    ],
    "✗ Read src/a.ts · cancelled\n(thinking)"
  ],
  [
    "a change is shown without its head, and what nobody would see is spelled out",
    [started("1", "replace a.ts"), diff(2)],
    "<Edit a.ts>(running)✓ Edit a.ts · +2 −1\n  @@ -1 +1,2 @@\n     kept\n  +line 0\n  +line 1\n  -old\\u{202e}\n(thinking)"
  ],
  [
    "a change that was asked about is not shown again",
    [{ _tag: "ToolCallConfirmation", id: "1", name: "replace", title: "replace a.ts", detail: "" }, diff(2)],
    "✓ Edit a.ts · +2 −1 {@@ -1 +1,2 @@|   kept|+line 0|+line 1|-old\\u{202e}}\n(thinking)"
  ],
  [
    "a long change is cut with a count",
    [started("1", "replace a.ts"), diff(50)],
    `<Edit a.ts>(running)✓ Edit a.ts · +50 −1\n  @@ -1 +1,50 @@\n     kept\n${Array.from({ length: 10 }, (_, at) => `  +line ${at}\n`).join("")}  … 41 more lines {@@ -1 +1,50 @@|   kept|${Array.from({ length: 50 }, (_, at) => `+line ${at}|`).join("")}-old\\u{202e}}\n(thinking)`
  ],
  [
    "a plan is shown whole",
    [
      answered("1", {
        name: "write_todos",
        display: {
          _tag: "Todos",
          todos: [
            { description: "look", status: "completed" },
            { description: "change", status: "in_progress" },
            { description: "test", status: "pending" }
          ]
        }
      })
    ],
    "✓ Plan · 1 of 3 steps done\n  ✓ look\n  ▸ change\n  ○ test\n(thinking)"
  ],
  [
    "what an agent does that a call started is a line each, but for what went well",
    [
      started("1", "generalist tidy up"),
      agentDoes({ _tag: "Thought", text: "where?" }),
      agentDoes({ _tag: "CallStarted", id: "a", name: "glob", title: "glob **/*.ts" }),
      agentDoes({ _tag: "CallEnded", id: "a", name: "glob", status: "success" }),
      agentDoes({ _tag: "CallEnded", id: "b", name: "glob", status: "timeout" }),
      agentDoes({ _tag: "TurnEnded", tokens: tokens(12_000) })
    ],
    "<generalist tidy up>(running)(generalist: where?)<generalist tidy up|turn 1 · Find **/*.ts>  generalist › Find **/*.ts\n<generalist tidy up|turn 1 · thinking><generalist tidy up|turn 1 · thinking>  generalist ✗ Find took too long\n<generalist tidy up|turn 2 · 12,000 tokens · thinking>"
  ],
  [
    "masking, loops and limits are told",
    [
      { _tag: "ToolOutputMasked", parts: 3, before: tokens(9_000), after: tokens(1_000) },
      { _tag: "LoopDetected", kind: "calls", detail: "five times the same call", halted: false },
      { _tag: "LoopDetected", kind: "calls", detail: "five times the same call", halted: true },
      { _tag: "LimitReached", limit: "turns", message: "the agent took 100 turns" }
    ],
    [
      "[3 old tool outputs shortened: from 9,000 to 1,000 tokens. The full outputs stay recallable.]\n",
      "[The model repeats itself (five times the same call); it was told to change its approach.]\n",
      "[Stopped: the model repeats itself (five times the same call). The conversation is intact; tell it how to continue.]\n",
      "[The agent took 100 turns.]\n"
    ].join("")
  ],
  [
    "a prepared snapshot shows in the progress line, and a note says why it is not used",
    [
      { _tag: "SnapshotPreparation", state: "running", message: null },
      { _tag: "SnapshotPreparation", state: "ready", message: null },
      { _tag: "SnapshotPreparation", state: "dropped", message: "words were pinned" }
    ],
    "(preparing a snapshot)(thinking)[The snapshot that was prepared is not used: words were pinned.]\n"
  ],
  [
    "cancelled after something was said or done",
    [
      content("I begin"),
      finished("STOP"),
      started("1", "run"),
      answered("1", { status: "cancelled" }),
      { _tag: "UserCancelled" }
    ],
    "(answering)I begin\n<run>(running)✗ run · cancelled\n(thinking)[Cancelled. Everything up to here is kept.]\n"
  ],
  [
    "room was made",
    [compressed("COMPRESSED", "the model was busy.")],
    "[Compressed to make room: from 8,000 to 2,000 tokens (80 % to 20 % of the window). Everything stays recallable; /undo reverses it. Note: the model was busy.]\n"
  ],
  [
    "room was made by shortening",
    [compressed("CONTENT_TRUNCATED")],
    "[Shortened tool outputs to make room: from 8,000 to 2,000 tokens (80 % to 20 % of the window). Everything stays recallable; /undo reverses it.]\n"
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
        `[Not compressed: ${why}. The conversation is unchanged.]\n`
      ] as const
  ),
  [
    "no room, and more than a quarter is in use: /compress is an advice",
    [overflow({})],
    "[This message does not fit: it has about 1,200 tokens, and 800 of the window of 10,000 are left. Nothing was sent. Shorten it, try /compress, or use a model with a larger window (/model). Cannot be shortened: e3 tool output Bash (900).]\n"
  ],
  [
    "no room, and most of the window is free: it is not",
    [overflow({ estimated: tokens(9_000), remaining: tokens(7_500), stubborn: [] })],
    "[This message does not fit: it has about 9,000 tokens, and 7,500 of the window of 10,000 are left. Nothing was sent. Shorten it, or use a model with a larger window (/model).]\n"
  ],
  [
    "results that do not fit: the three largest parts are named",
    [
      overflow({
        what: "tool results",
        stubborn: [12, 2, 3, 4].map((at) => ({ entry: entryId(at), what: "text", tokens: tokens(100 * at) }))
      })
    ],
    "[The tools' results do not fit: they have about 1,200 tokens, and 800 of the window of 10,000 are left. Nothing was sent. Ask for less at once, or use a model with a larger window (/model). Cannot be shortened: e12 text (1,200), e2 text (200), e3 text (300).]\n"
  ],
  [
    "a message that alone is too large",
    [overflow({ estimated: tokens(10_001) })],
    "[This message alone is too large: it has about 10,001 tokens, the whole window 10,000. Nothing was sent. Shorten it, or use a model with a larger window (/model).]\n"
  ]
]

describe("what the user sees of a turn", () => {
  for (const [rule, events, expected] of cases) {
    it.effect(rule, () => Effect.map(shown(...events), (out) => assert.strictEqual(out, expected)))
  }
})

describe("responseCard", () => {
  const style = { style: Output.plain, width: 40 }
  const written = (lines: number, change: Partial<Response> = {}): Response => ({
    _tag: "ToolCallResponse",
    id: "1",
    name: "write_file",
    status: "success",
    display: {
      _tag: "Diff",
      file: "a.ts",
      diff: `--- a.ts\n+++ a.ts\n@@ -1 +1,${lines} @@\n${"+line\n".repeat(lines)}`,
      added: lines,
      removed: 0
    },
    message: null,
    duration: 5,
    ...change
  })
  const cases: ReadonlyArray<
    readonly [rule: string, event: Response, hasBody: boolean, wasApproved: boolean, body: number, more: number]
  > = [
    ["shows a short change whole", written(3), true, false, 4, 0],
    ["shows the beginning of a long change", written(40), true, false, 13, 41],
    ["does not repeat a change that was approved", written(3), true, true, 0, 4],
    ["has one line where there is no room", written(3), false, false, 0, 4],
    ["shows nothing of a change that failed", written(3, { status: "error" }), true, false, 0, 4]
  ]
  it.each(cases)("%s", (_rule, event, hasBody, wasApproved, body, more) => {
    const card = TurnScreen.responseCard(event, "write a.ts", { ...style, hasBody, wasApproved })
    assert.deepStrictEqual([card.body.length, card.more.length, card.language], [body, more, "ts"])
  })
})
