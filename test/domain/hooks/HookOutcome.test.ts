import { assert, describe, it } from "@effect/vitest"
import {
  type HookEvent,
  type HookEventName,
  type HookOutcome,
  type HookOutput,
  emptyOutcome
} from "../../../src/domain/hooks/Hook.ts"
import { changedBy, matchesEvent, outcomeOf } from "../../../src/domain/hooks/HookOutcome.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

it.each<readonly [string, string | undefined, HookEvent, boolean]>([
  ["no matcher means all", undefined, { _tag: "SessionStart", source: "startup" }, true],
  ["an empty one means all", " ", { _tag: "SessionStart", source: "startup" }, true],
  ["* means all", "*", { _tag: "SessionStart", source: "startup" }, true],
  ["a source exactly", "startup", { _tag: "SessionStart", source: "startup" }, true],
  ["no part of it", "start", { _tag: "SessionStart", source: "startup" }, false],
  ["no regular expression on it", ".*", { _tag: "SessionStart", source: "startup" }, false],
  ["a reason exactly", "exit", { _tag: "SessionEnd", reason: "prompt_input_exit" }, false],
  ["a trigger exactly", "auto", { _tag: "PreCompress", trigger: "auto" }, true],
  ["no other trigger", "manual", { _tag: "PreCompress", trigger: "auto" }, false],
  [
    "a trigger afterwards",
    "manual",
    {
      _tag: "PostCompress",
      trigger: "manual",
      status: "NOOP",
      before: TokenCount.make(1),
      after: TokenCount.make(1)
    },
    true
  ],
  ["a kind", "ToolPermission", { _tag: "Notification", kind: "ToolPermission", message: "", details: {} }, true],
  ["another kind", "ToolPermission", { _tag: "Notification", kind: "Other", message: "", details: {} }, false],
  ["what has nothing of the kind concerns all", "glob", { _tag: "BeforeAgent", prompt: "x" }, true]
])("matchesEvent %s", (_rule, matcher, event, expected) => {
  assert.strictEqual(matchesEvent(event, matcher), expected)
})

const outcome = (event: HookEventName, ...outputs: ReadonlyArray<HookOutput>): HookOutcome =>
  outcomeOf(
    event,
    outputs.map((output, index) => ({ hook: `h${index + 1}`, output })),
    []
  )
const specific = (fields: Readonly<Record<string, unknown>>): HookOutput => ({ hookSpecificOutput: fields })

type Expected = Partial<HookOutcome>

const check = (event: HookEventName, outputs: ReadonlyArray<HookOutput>, expected: Expected) => {
  const found = outcome(event, ...outputs)
  for (const key of Object.keys(emptyOutcome)) {
    const wanted = Object.hasOwn(expected, key) ? expected : emptyOutcome
    if (key === "notices" && !Object.hasOwn(expected, key)) continue
    assert.deepStrictEqual(Reflect.get(found, key), Reflect.get(wanted, key), `${event}: ${key}`)
  }
}

describe("outcomeOf", () => {
  const anyEvents = ["BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart"] as const

  it.each<readonly [string, ReadonlyArray<HookOutput>, Expected]>([
    ["no answers", [], {}],
    ["one that allows is nothing", [{ decision: "allow" }, { decision: "approve" }], {}],
    [
      "any may stop, the reasons are joined",
      [
        { continue: false, stopReason: "a" },
        { continue: true, stopReason: "not this" },
        { continue: false, stopReason: "b" }
      ],
      { stopped: "a\nb" }
    ],
    ["who stops without a stop reason may have a reason", [{ continue: false, reason: "r" }], { stopped: "r" }],
    ["and without any is named", [{ decision: "allow" }, { continue: false }], { stopped: "stopped by the hook h2" }],
    [
      "any may block, the reasons are joined",
      [{ decision: "deny", reason: "a" }, { decision: "allow" }, { decision: "block", reason: "b" }],
      { blocked: "a\nb" }
    ],
    ["who blocks without a reason is named", [{ decision: "block" }, {}], { blocked: "refused by the hook h1" }],
    ["any may ask", [{ decision: "ask" }, { decision: "allow" }], { asks: true }],
    ["but not where one blocks, before", [{ decision: "block", reason: "r" }, { decision: "ask" }], { blocked: "r" }],
    ["or after", [{ decision: "ask" }, { decision: "block", reason: "r" }], { blocked: "r" }],
    [
      "stopping and blocking are both told",
      [
        { continue: false, stopReason: "s" },
        { decision: "deny", reason: "r" }
      ],
      { stopped: "s", blocked: "r" }
    ],
    [
      "system messages, one each",
      [{ systemMessage: "one" }, { systemMessage: " " }, { systemMessage: "two" }],
      {
        messages: ["one", "two"],
        notices: [
          { hook: "h1", message: "one" },
          { hook: "h3", message: "two" }
        ]
      }
    ],
    ["any may suppress", [{ suppressOutput: true }, { suppressOutput: false }], { suppressed: true }],
    [
      "contexts are joined",
      [specific({ additionalContext: "a" }), specific({ additionalContext: 7 }), specific({ additionalContext: "b" })],
      { context: "a\nb", specific: { additionalContext: "a\nb" } }
    ],
    [
      "any may clear",
      [specific({ clearContext: true }), specific({ clearContext: false })],
      { clears: true, specific: { clearContext: true } }
    ],
    [
      "of everything else the last wins",
      [specific({ tool_input: { a: 1 }, other: 1 }), specific({ tool_input: { b: 2 } })],
      { specific: { tool_input: { b: 2 }, other: 1 } }
    ]
  ])("BeforeTool, AfterTool, BeforeAgent, AfterAgent, SessionStart: %s", (_rule, outputs, expected) => {
    for (const event of anyEvents) check(event, outputs, expected)
  })

  it.each<readonly [string, ReadonlyArray<HookOutput>, Expected]>([
    ["the last decision wins", [{ decision: "block", reason: "a" }, { decision: "allow" }], {}],
    ["and the last reason", [{ decision: "block", reason: "a" }, { reason: "b" }], { blocked: "b" }],
    ["and the last continue", [{ continue: false, stopReason: "a" }, { continue: true }], {}],
    [
      "within the specific output field by field",
      [specific({ llm_request: { model: "a" }, x: 1 }), specific({ llm_request: { model: "b" } })],
      { specific: { llm_request: { model: "b" }, x: 1 } }
    ]
  ])("BeforeModel, AfterModel: %s", (_rule, outputs, expected) => {
    for (const event of ["BeforeModel", "AfterModel"] as const) check(event, outputs, expected)
  })

  it.each<readonly [string, ReadonlyArray<HookOutput>, Expected]>([
    ["the last decision wins", [{ decision: "block", reason: "a" }, { decision: "allow" }], {}],
    [
      "the last specific output replaces the one before",
      [specific({ focus: "a", snapshot: "s" }), specific({ focus: "b" })],
      { specific: { focus: "b" } }
    ],
    ["and stays without another value", [specific({ focus: "a" }), {}], { specific: { focus: "a" } }],
    [
      "what the user is told is never dropped",
      [{ systemMessage: "a" }, { systemMessage: "b" }],
      { messages: ["a", "b"] }
    ]
  ])("PreCompress, PostCompress, Notification, SessionEnd: %s", (_rule, outputs, expected) => {
    for (const event of ["PreCompress", "PostCompress", "Notification", "SessionEnd"] as const) {
      check(event, outputs, expected)
    }
  })

  const choice = (mode?: string, ...names: ReadonlyArray<string>): HookOutput =>
    specific({ toolConfig: { ...(mode === undefined ? {} : { mode }), allowedFunctionNames: names } })

  it.each<readonly [string, ReadonlyArray<HookOutput>, unknown]>([
    ["NONE beats ANY and has no names", [choice("NONE", "x"), choice("ANY", "a")], ["NONE"]],
    [
      "ANY beats AUTO, names are united and sorted",
      [choice("AUTO", "c", "a"), choice("ANY", "b", "a")],
      ["ANY", "a", "b", "c"]
    ],
    ["no mode is AUTO", [choice(undefined, "b"), choice("AUTO", "a")], ["AUTO", "a", "b"]],
    ["an unknown mode is AUTO", [choice("SOME")], ["AUTO"]],
    ["no answers", [{ decision: "block" }, specific({})], undefined]
  ])("BeforeToolSelection: %s", (_rule, outputs, expected) => {
    const found = outcome("BeforeToolSelection", ...outputs)
    assert.isUndefined(found.blocked)
    const config = expected === undefined || !Array.isArray(expected) ? undefined : expected
    assert.deepStrictEqual(
      found.specific,
      config === undefined ? {} : { toolConfig: { mode: config[0], allowedFunctionNames: config.slice(1) } }
    )
  })

  it("combines the changes of hooks that ran in sequence", () => {
    const said = [
      { hook: "h1", output: specific({ tool_input: { a: 1, b: 1 } }) },
      { hook: "h2", output: specific({ tool_input: { b: 2 } }) }
    ]
    assert.deepStrictEqual(outcomeOf("BeforeTool", said, [], true).specific, { tool_input: { a: 1, b: 2 } })
    assert.deepStrictEqual(outcomeOf("BeforeTool", said, []).specific, { tool_input: { b: 2 } })
  })
})

const request = { model: "m", messages: [{ role: "user", content: "hi" } as const] }

it.each<readonly [string, HookEvent, HookOutput, HookEvent]>([
  [
    "a context is put behind the prompt, after a blank line",
    { _tag: "BeforeAgent", prompt: "do" },
    specific({ additionalContext: "more" }),
    { _tag: "BeforeAgent", prompt: "do\n\nmore" }
  ],
  [
    "an argument replaces that of its name",
    { _tag: "BeforeTool", tool: "t", input: { a: 1, b: 1 } },
    specific({ tool_input: { b: 2 } }),
    { _tag: "BeforeTool", tool: "t", input: { a: 1, b: 2 } }
  ],
  [
    "a field of a request replaces that of its name",
    { _tag: "BeforeModel", request },
    specific({ llm_request: { model: "n" } }),
    { _tag: "BeforeModel", request: { ...request, model: "n" } }
  ],
  [
    "what makes no request changes nothing",
    { _tag: "BeforeModel", request },
    specific({ llm_request: { messages: "x" } }),
    { _tag: "BeforeModel", request }
  ],
  [
    "of other events nothing is changed",
    { _tag: "BeforeToolSelection", request },
    specific({ llm_request: { model: "n" } }),
    { _tag: "BeforeToolSelection", request }
  ]
])("changedBy %s", (_rule, event, output, expected) => {
  assert.deepStrictEqual(changedBy(event, output), expected)
})
