import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { empty, entryId } from "../../../src/domain/conversation/Conversation.ts"
import type { CacheBreak } from "../../../src/domain/evaluation/CacheBreaks.ts"
import { type Findings, verdictOf } from "../../../src/domain/evaluation/Verdict.ts"
import { inspect } from "../../../src/services/evaluation/Inspect.ts"

const nothing = Effect.runSync(inspect(empty))

/** A conversation of 100,000 tokens, most of them results of Read. */
const usual: Findings["inspection"] = {
  ...nothing,
  tokens: { all: 100_000, view: 40_000, environment: 0 },
  kinds: [{ kind: "output", parts: 10, tokens: 76_000, view: 30_000 }],
  tools: [{ tool: "Read", calls: 9, arguments: 1_000, outputs: 9, output: 52_000, view: 9_000 }],
  cost: { ...nothing.cost, total: 10 }
}

const read = (path: string, repeated: number) => ({ path, reads: 3, tokens: 14_199, repeated, entries: [] })

const lostBreak = (cost: number | undefined, avoid = "keep the agent running"): CacheBreak => ({
  request: "e9",
  at: 0,
  model: "m",
  cause: "pause",
  detail: "19 min without a request; the cache keeps 5 min",
  avoid,
  expected: 90_000,
  served: 0,
  cost
})

const names = ["session_live.ex", "e`v`il", "TASK-12", "other"]
const lost = { after: "e124", facts: 200, lost: [...names, ...Array.from({ length: 134 }, () => "x")], keptByCode: 191 }
const none = { lost: undefined, breaks: [], tellsNames: true, kindNames: { output: "tool output" } }

const most = "76 % of all tokens are tool output, and `Read` alone has 53 %"

const rows: ReadonlyArray<readonly [rule: string, findings: Partial<Findings>, verdict: ReadonlyArray<string>]> = [
  ["nothing", { inspection: nothing }, ["This conversation has no counted content."]],
  ["nothing to say but where the tokens are", {}, [`${most}; nothing was compacted.`]],
  [
    "a compaction, beside a snapshot by code",
    { lost },
    [
      "The compaction after e124 lost 138 of 200 facts, among them `session_live.ex`, `e v il` and `TASK-12`; a snapshot of the same size that code writes keeps 191.",
      `${most}; nothing was compacted.`
    ]
  ],
  [
    "a compaction that keeps more than code, without names",
    { lost: { ...lost, after: null, keptByCode: 20 }, tellsNames: false },
    [
      "The compaction at the start lost 138 of 200 facts; ask for them again by name, or recall them.",
      `${most}; nothing was compacted.`
    ]
  ],
  [
    "a compaction whose lost names have 60 characters, 61, and blanks around",
    { lost: { ...lost, lost: ["a".repeat(60), `${"b".repeat(60)}c`, " d\n", ...lost.lost] } },
    [
      `The compaction after e124 lost 141 of 200 facts, among them \`${"a".repeat(60)}\`, \`…${"b".repeat(58)}c\` and \`d\`; a snapshot of the same size that code writes keeps 191.`,
      `${most}; nothing was compacted.`
    ]
  ],
  ["a compaction that lost next to nothing", { lost: { ...lost, lost: ["one"] } }, [`${most}; nothing was compacted.`]],
  [
    "a file that was read again",
    { inspection: { ...usual, reads: [read("lib/live/session_live.ex", 9_000)] } },
    [
      "`session_live.ex` was read 3 times (14,199 tokens); rereading took 9 % of all tokens; ask for the lines that matter.",
      `${most}; nothing was compacted.`
    ]
  ],
  [
    "files that were read again, without names",
    { inspection: { ...usual, reads: [read("a", 9_000), read("b", 2_000)] }, tellsNames: false },
    [
      "One file was read 3 times (14,199 tokens), and with 1 other file rereading took 11 % of all tokens; ask for the lines that matter.",
      `${most}; nothing was compacted.`
    ]
  ],
  [
    "a broken cache, the most expensive time first",
    { breaks: [lostBreak(0.5), lostBreak(1.25, "nothing: go on"), lostBreak(undefined)] },
    [
      "The prompt cache broke 3 times, for $1.75 of $10.00; most expensive: 19 min without a request, the cache keeps 5 min (nothing avoids it: go on).",
      `${most}; nothing was compacted.`
    ]
  ],
  ["a cache whose breaks cost next to nothing", { breaks: [lostBreak(0.01)] }, [`${most}; nothing was compacted.`]],
  [
    "one large part",
    {
      inspection: {
        ...usual,
        largest: [
          { entry: entryId(11), part: 0, kind: "output", tool: "Read", tokens: 23_000, handle: null, preview: "" }
        ]
      }
    },
    [
      "One part, tool output of `Read` in e11, has 23,000 tokens, 23 % of all; a narrower call would have been enough.",
      `${most}; nothing was compacted.`
    ]
  ],
  [
    "three sentences at most, what matters most first",
    {
      lost,
      breaks: [lostBreak(1.5, "go on sooner")],
      inspection: {
        ...usual,
        reads: [read("a.ts", 16_000)],
        broken: { calls: [], responses: [{ entry: entryId(3), part: 0, tool: "Read" }] }
      }
    },
    [
      "1 tool result has no call, and agents refuse to resume such a conversation; `palimpsest rescue` repairs it.",
      "The compaction after e124 lost 138 of 200 facts, among them `session_live.ex`, `e v il` and `TASK-12`; a snapshot of the same size that code writes keeps 191.",
      "`a.ts` was read 3 times (14,199 tokens); rereading took 16 % of all tokens; ask for the lines that matter."
    ]
  ]
]

describe("the verdict", () => {
  for (const [rule, findings, verdict] of rows) {
    it(rule, () => assert.deepStrictEqual(verdictOf({ ...none, inspection: usual, ...findings }), verdict))
  }
})
