/** The JSON that a command hook receives on standard input, and the variables that it receives in its environment. */

import { Schema } from "effect"
import type { Usage } from "../tokens/Tokens.ts"
import type { HookEvent } from "./Hook.ts"

/** Fields common to all events. */
interface HookCircumstances {
  /** The session id; empty outside a session. */
  readonly session: string
  /** Path of the session file; empty when there is none. */
  readonly transcript: string
  /** The folder in which the command runs. */
  readonly cwd: string
  /** ISO 8601. */
  readonly timestamp: string
}

const isOutput = Schema.is(Schema.Struct({ output: Schema.String }))
const isError = Schema.is(Schema.Struct({ error: Schema.String }))

/** A tool response in the shape that Gemini CLI's hooks expect. */
const toolResponse = (response: unknown): object => {
  if (isError(response)) {
    return { llmContent: response.error, returnDisplay: response.error, error: { message: response.error } }
  }
  const content: unknown = isOutput(response) ? response.output : response
  return { llmContent: content, returnDisplay: typeof content === "string" ? content : "" }
}

const tool = (event: { readonly tool: string; readonly input: unknown; readonly asked?: string }): object => ({
  tool_name: event.tool,
  tool_input: event.input,
  ...(event.asked === undefined ? {} : { original_request_name: event.asked })
})

/** Token usage in the Gemini API's field names. Thoughts count in the total only. */
const usageMetadata = ({ answer, prompt, thoughts }: Usage): object => ({
  promptTokenCount: prompt,
  candidatesTokenCount: answer,
  totalTokenCount: prompt + answer + thoughts
})

const own: (event: HookEvent) => object = (event) => {
  switch (event._tag) {
    case "BeforeTool":
      return tool(event)
    case "AfterTool":
      return { ...tool(event), tool_response: toolResponse(event.response) }
    case "BeforeAgent":
      return { prompt: event.prompt }
    case "AfterAgent":
      return { prompt: event.prompt, prompt_response: event.answer, stop_hook_active: event.isAgain }
    case "Notification":
      return { notification_type: event.kind, message: event.message, details: event.details }
    case "SessionStart":
      return { source: event.source }
    case "SessionEnd":
      return { reason: event.reason }
    case "PreCompress":
      return { trigger: event.trigger }
    case "PostCompress":
      return {
        trigger: event.trigger,
        status: event.status,
        tokens_before: event.before,
        tokens_after: event.after,
        ...(event.promptId === undefined ? {} : { prompt_id: event.promptId })
      }
    case "BeforeModel":
    case "BeforeToolSelection":
      return { llm_request: event.request }
    case "AfterModel":
      return {
        llm_request: event.request,
        llm_response: {
          // A chunk with only calls or only a finish reason has no text.
          ...(event.text === "" ? {} : { text: event.text }),
          candidates: [
            {
              content: { role: "model", parts: event.text === "" ? [] : [event.text] },
              ...(event.finishReason === null ? {} : { finishReason: event.finishReason }),
              index: 0
            }
          ],
          ...(event.usage === undefined ? {} : { usageMetadata: usageMetadata(event.usage) })
        }
      }
  }
}

/** Encodes an event as the JSON object for command hooks. */
export const hookInput = (event: HookEvent, { cwd, session, timestamp, transcript }: HookCircumstances): object => ({
  session_id: session,
  transcript_path: transcript,
  cwd,
  hook_event_name: event._tag,
  timestamp,
  ...own(event)
})

/** The environment variables of a command hook: Gemini CLI's, and the one by which Claude Code's hooks find their project. */
export const hookVariables = ({
  cwd,
  plans,
  session
}: Pick<HookCircumstances, "cwd" | "session"> & {
  /** The folder of plans. Absent: none. */
  readonly plans: string | undefined
}): Readonly<Record<string, string>> => ({
  GEMINI_PROJECT_DIR: cwd,
  CLAUDE_PROJECT_DIR: cwd,
  GEMINI_CWD: cwd,
  GEMINI_SESSION_ID: session,
  ...(plans === undefined ? {} : { GEMINI_PLANS_DIR: plans })
})
