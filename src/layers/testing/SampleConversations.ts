/** Conversations of every shape that a strategy has to handle, ordinary and malformed. */

import { Arbitrary, Schema } from "effect"
import { call, model, response, text, user } from "../../domain/content/Content.ts"
import type { Draft } from "../../domain/conversation/Conversation.ts"

/** Lengths of a text, in lines of 60 characters. */
const lineCounts = [1, 1, 12, 12, 400] as const

const lines = (n: number, count: number): string =>
  Array.from({ length: count }, (_, at) => `src/part${n}.ts:${at}: what stands in line ${at} of part ${n}.`).join("\n")

const image = { inlineData: { mimeType: "image/png", data: "aGVsbG8=".repeat(20) } }

const draft = (content: Draft["content"], rest: Partial<Draft> = {}): Draft => ({ content, ...rest })

const exchange = (n: number, name: string, args: Readonly<Record<string, unknown>>, answer: object) => [
  draft(model(text("Looking."), call(name, args, `c${n}`))),
  draft(user(response(name, answer, `c${n}`)))
]

/** The kinds of messages. `n` numbers them; `count` is the length of their text in lines. */
const kinds = {
  asks: (n: number, count: number) => [draft(user(text(`Request ${n}: ${lines(n, count)}`)))],
  answers: (n: number, count: number) => [draft(model(text(`Answer ${n}: ${lines(n, count)}`)))],
  reads: (n: number, count: number) => exchange(n, "read_file", { path: `src/f${n}.ts` }, { output: lines(n, count) }),
  edits: (n: number, count: number) =>
    exchange(n, "write_file", { file_path: `out/f${n}.md`, content: lines(n, count) }, { output: "ok" }),
  fails: (n: number, count: number) =>
    exchange(n, "run_shell_command", { command: `make ${n}` }, { error: `Exit code 2\n${lines(n, count)}` }),
  "calls in parallel": (n: number, count: number) => [
    draft(model(...[0, 1, 2].map((k) => call("grep", { pattern: `x${k}` }, `p${n}-${k}`)))),
    draft(user(...[2, 0, 1].map((k) => response("grep", { output: lines(n, count) }, `p${n}-${k}`))))
  ],
  "calls without ids": (n: number, count: number) => [
    draft(model(call("ls", { path: "a" }), call("ls", { path: "b" }))),
    draft(user(response("ls", { output: "a" }), response("ls", { output: lines(n, count) })))
  ],
  "is answered far away": (n: number, count: number) => [
    draft(model(call("shell", { command: "sleep" }, `f${n}`))),
    draft(user(text(`Are you there? (${n})`))),
    draft(model(text("Still waiting."))),
    draft(user(response("shell", { output: lines(n, count) }, `f${n}`)))
  ],
  "calls and is not answered": (n: number) => [draft(model(call("shell", { command: `make ${n}` }, `o${n}`)))],
  "answers no call": (n: number, count: number) => [
    draft(user(response("shell", { output: lines(n, count) }, `gone${n}`)))
  ],
  "shows a picture": (n: number, count: number) => [draft(user(text(`Look (${n}): ${lines(n, count)}`), image))],
  thinks: (n: number, count: number) => [
    draft(model({ text: lines(n, count), thought: true, thoughtSignature: "c2ln" }, text("Yes.")))
  ],
  "says nothing": () => [draft(model()), draft(model(text("")))],
  "speaks as a program": (n: number, count: number) => [
    draft(user(text(`A reminder (${n}): ${lines(n, count)}`)), { author: "program" })
  ],
  "summarises what was before": (n: number) => [
    draft(user(text(`<summary>\nEarlier work ${n} on src/part${n}.ts.\n</summary>`)), { author: "summary" })
  ]
} as const

const isKind = (name: string): name is keyof typeof kinds => name in kinds
const kindNames = Object.keys(kinds).filter(isKind)

/** The kinds of ordinary messages, which occur most often. */
const ordinaryKinds: ReadonlyArray<keyof typeof kinds> = [
  "asks",
  "answers",
  "reads",
  "edits",
  "asks",
  "reads",
  "answers"
]

/** Generates the messages of a conversation. They shrink to fewer and shorter ones. */
export const sampleConversations: Arbitrary.Arbitrary<ReadonlyArray<Draft>> = Arbitrary.array(
  Arbitrary.schema(
    Schema.Struct({ kind: Schema.Literals([...ordinaryKinds, ...kindNames]), lines: Schema.Literals(lineCounts) })
  ),
  { maxLength: 14 }
).pipe(Arbitrary.map((made) => made.flatMap(({ kind, lines: count }, n) => kinds[kind](n, count))))

/** Returns a conversation of this many turns, each with a prompt, a call, its result and an answer, of about 600 tokens. */
export const turns = (count: number): ReadonlyArray<Draft> =>
  Array.from({ length: count }, (_, n) => [...kinds.asks(n, 1), ...kinds.reads(n, 24), ...kinds.answers(n, 1)]).flat()
