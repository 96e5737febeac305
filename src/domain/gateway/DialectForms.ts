import { anthropicForm } from "../model/AnthropicForm.ts"
import { chatCompletionsForm } from "../model/ChatCompletionsForm.ts"
import { geminiForm } from "../model/GeminiForm.ts"
import type { MessageForm } from "../model/MessageForm.ts"
import { responsesForm } from "../model/ResponsesForm.ts"
import type { AnswerDialect } from "./Answer.ts"
import { anthropicAnswers } from "./AnthropicAnswers.ts"
import { chatAnswers } from "./ChatAnswers.ts"
import type { Dialect } from "./Dialect.ts"
import { geminiAnswers } from "./GeminiAnswers.ts"
import { responsesAnswers } from "./ResponsesAnswers.ts"

/** The message form of each dialect. */
export const forms: Readonly<Record<Dialect, MessageForm>> = {
  anthropic: anthropicForm,
  chat: chatCompletionsForm,
  responses: responsesForm,
  gemini: geminiForm
}

/** The answer dialect of each dialect. */
export const answerDialects: Readonly<Record<Dialect, AnswerDialect>> = {
  anthropic: anthropicAnswers,
  chat: chatAnswers,
  responses: responsesAnswers,
  gemini: geminiAnswers
}
