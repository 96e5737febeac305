/** The dialects of the APIs of models: Anthropic's Messages, Gemini, OpenAI's Chat Completions and Responses. */
export const dialects = ["anthropic", "gemini", "chat", "responses"] as const
export type Dialect = (typeof dialects)[number]
