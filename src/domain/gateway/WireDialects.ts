import { anthropic } from "../wire/anthropic/Anthropic.ts"
import { chat } from "../wire/chat/Chat.ts"
import type { Dialect, WireDialect } from "../wire/Dialect.ts"
import { gemini } from "../wire/gemini/Gemini.ts"
import { responses } from "../wire/responses/Responses.ts"

/** Each dialect that clients of the gateway speak. */
export const wire: Readonly<Record<Dialect, WireDialect>> = { anthropic, chat, gemini, responses }
