import { describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import { Effect } from "effect"
import process from "node:process"
import type { Dialect } from "../../src/domain/wire/Dialect.ts"
import type { Json } from "../support/GatewayDialects.ts"
import { type Talker, talkThrough } from "../support/GatewaySession.ts"
import { loadPackage } from "./install.ts"

/** The vendors' own SDKs through the gateway: 200 turns in a window of 32,768 tokens, against a strict local server. */

const size = { turns: 200, window: 32_768 }
const apiKey = "not-checked"

const openai = (url: string) => new (loadPackage("openai").OpenAI)({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })

const anthropicTalker: Talker = (url) => {
  const { Anthropic } = loadPackage("@anthropic-ai/sdk")
  const client = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 })
  const messages: Array<Json> = []
  return async (text) => {
    messages.push({ role: "user", content: text })
    const { content } = await client.messages
      .stream({ model: "claude-sonnet-4-6", max_tokens: 4_096, messages })
      .finalMessage()
    messages.push({ role: "assistant", content })
    return content.map((block: Json) => block["text"] ?? "").join("")
  }
}

const chatTalker: Talker = (url) => {
  const client = openai(url)
  const messages: Array<Json> = []
  return async (text) => {
    messages.push({ role: "user", content: text })
    const completion = await client.chat.completions.stream({ model: "gpt-4o", messages }).finalChatCompletion()
    const [{ message }] = completion.choices
    messages.push({ role: "assistant", content: message.content })
    return message.content
  }
}

const responsesTalker: Talker = (url) => {
  const client = openai(url)
  const input: Array<Json> = []
  return async (text) => {
    input.push({ role: "user", content: text })
    const response = await client.responses.stream({ model: "gpt-5", input, store: false }).finalResponse()
    input.push(...response.output)
    return response.output_text
  }
}

const geminiTalker: Talker = (url) => {
  const chat = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } }).chats.create({ model: "gemini-2.5-flash" })
  return async (message) => {
    let words = ""
    for await (const { text } of await chat.sendMessageStream({ message })) words += text ?? ""
    return words
  }
}

const talkers: ReadonlyArray<readonly [name: string, dialect: Dialect, talker: Talker]> = [
  ["@anthropic-ai/sdk", "anthropic", anthropicTalker],
  ["openai, Chat Completions", "chat", chatTalker],
  ["openai, Responses", "responses", responsesTalker],
  ["@google/genai", "gemini", geminiTalker]
]

describe.each(talkers)("%s through the gateway", (name, dialect, talker) => {
  it.live(
    "talks for 200 turns, and forgets nothing",
    () =>
      Effect.gen(function* () {
        const { compressions, requests } = yield* talkThrough(dialect, talker, size)
        process.stdout.write(`${name}: ${requests} requests, ${compressions} compressions\n`)
      }).pipe(Effect.scoped),
    600_000
  )
})
