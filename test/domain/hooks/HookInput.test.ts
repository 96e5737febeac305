import { assert, describe, it } from "@effect/vitest"
import { HookEvent, type HookRequest } from "../../../src/domain/hooks/Hook.ts"
import { hookInput, hookVariables } from "../../../src/domain/hooks/HookInput.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

const circumstances = { session: "s1", transcript: "/t/s1.jsonl", cwd: "/work", timestamp: "2026-01-02T03:04:05.000Z" }
const request: HookRequest = {
  model: "m",
  messages: [{ role: "user", content: "hi" }],
  config: { temperature: 0 },
  toolConfig: { mode: "ANY", allowedFunctionNames: ["glob"] }
}

const cases: ReadonlyArray<readonly [HookEvent, object]> = [
  [
    { _tag: "BeforeTool", tool: "glob", input: { pattern: "*" } },
    { tool_name: "glob", tool_input: { pattern: "*" } }
  ],
  [
    { _tag: "BeforeTool", tool: "glob", input: {}, asked: "list_directory" },
    { tool_name: "glob", tool_input: {}, original_request_name: "list_directory" }
  ],
  [
    { _tag: "AfterTool", tool: "glob", input: {}, response: { output: "a.ts" } },
    { tool_name: "glob", tool_input: {}, tool_response: { llmContent: "a.ts", returnDisplay: "a.ts" } }
  ],
  [
    { _tag: "AfterTool", tool: "glob", input: {}, response: { error: "no" } },
    {
      tool_name: "glob",
      tool_input: {},
      tool_response: { llmContent: "no", returnDisplay: "no", error: { message: "no" } }
    }
  ],
  [
    { _tag: "AfterTool", tool: "glob", input: {}, response: { found: 3 } },
    { tool_name: "glob", tool_input: {}, tool_response: { llmContent: { found: 3 }, returnDisplay: "" } }
  ],
  [{ _tag: "BeforeAgent", prompt: "do" }, { prompt: "do" }],
  [
    { _tag: "AfterAgent", prompt: "do", answer: "done", isAgain: true },
    { prompt: "do", prompt_response: "done", stop_hook_active: true }
  ],
  [
    { _tag: "Notification", kind: "ToolPermission", message: "may I", details: { tool: "glob" } },
    { notification_type: "ToolPermission", message: "may I", details: { tool: "glob" } }
  ],
  [{ _tag: "SessionStart", source: "resume" }, { source: "resume" }],
  [{ _tag: "SessionEnd", reason: "logout" }, { reason: "logout" }],
  [{ _tag: "PreCompress", trigger: "auto" }, { trigger: "auto" }],
  [
    {
      _tag: "PostCompress",
      trigger: "manual",
      status: "COMPRESSED",
      before: TokenCount.make(9),
      after: TokenCount.make(4)
    },
    { trigger: "manual", status: "COMPRESSED", tokens_before: 9, tokens_after: 4 }
  ],
  [{ _tag: "BeforeModel", request }, { llm_request: request }],
  [{ _tag: "BeforeToolSelection", request }, { llm_request: request }],
  [
    { _tag: "AfterModel", request, text: "so", finishReason: null },
    {
      llm_request: request,
      llm_response: { text: "so", candidates: [{ content: { role: "model", parts: ["so"] }, index: 0 }] }
    }
  ],
  [
    { _tag: "AfterModel", request, text: "so", finishReason: "STOP" },
    {
      llm_request: request,
      llm_response: {
        text: "so",
        candidates: [{ content: { role: "model", parts: ["so"] }, finishReason: "STOP", index: 0 }]
      }
    }
  ],
  [
    {
      _tag: "AfterModel",
      request,
      text: "",
      finishReason: "STOP",
      usage: { prompt: 70, answer: 5, thoughts: 20, cached: 60 }
    },
    {
      llm_request: request,
      llm_response: {
        candidates: [{ content: { role: "model", parts: [] }, finishReason: "STOP", index: 0 }],
        usageMetadata: { promptTokenCount: 70, candidatesTokenCount: 5, totalTokenCount: 95 }
      }
    }
  ]
]

describe("hookInput", () => {
  it.each(cases)("$_tag is encoded in snake case, with the common fields", (event, own) => {
    assert.deepStrictEqual(hookInput(event, circumstances), {
      session_id: "s1",
      transcript_path: "/t/s1.jsonl",
      cwd: "/work",
      hook_event_name: event._tag,
      timestamp: "2026-01-02T03:04:05.000Z",
      ...own
    })
  })

  it("this table covers every event", () => {
    assert.sameMembers([...new Set(cases.map(([{ _tag }]) => _tag))], Object.keys(HookEvent.cases))
  })
})

describe("the variables of a command hook", () => {
  const place = { GEMINI_PROJECT_DIR: "/w", CLAUDE_PROJECT_DIR: "/w", GEMINI_CWD: "/w", GEMINI_SESSION_ID: "s1" }
  it("name the folder and the session", () =>
    assert.deepStrictEqual(hookVariables({ cwd: "/w", session: "s1", plans: undefined }), place))
  it("name the folder of plans where there is one", () =>
    assert.deepStrictEqual(hookVariables({ cwd: "/w", session: "s1", plans: "/p" }), {
      ...place,
      GEMINI_PLANS_DIR: "/p"
    }))
})
