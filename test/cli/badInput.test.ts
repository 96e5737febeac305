import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/FakeGemini.ts"
import { type Around, program, run } from "./program.ts"

const said = (text: string, options?: FakeGemini.ResponseOptions) => FakeGemini.response([{ text }], options)
const piece = (text: string) => said(text, { finishReason: null })
const good = FakeGemini.sse(said("Forty-two"))
const ending = (finishReason: string) => FakeGemini.sse(FakeGemini.response([], { finishReason }))

const cases: Record<string, FakeGemini.Answer> = {
  noFinish: FakeGemini.sse(piece("Forty")),
  noFinishEmpty: FakeGemini.sse(),
  emptyBody: [FakeGemini.streamHead],
  malformed: ending("MALFORMED_FUNCTION_CALL"),
  unexpectedTool: ending("UNEXPECTED_TOOL_CALL"),
  safety: ending("SAFETY"),
  safetyAfterText: FakeGemini.sse(piece("Forty"), said("", { finishReason: "SAFETY" })),
  blockedPrompt: FakeGemini.sse(FakeGemini.blocked("PROHIBITED_CONTENT")),
  recitation: ending("RECITATION"),
  maxTokens: ending("MAX_TOKENS"),
  maxTokensAfterText: FakeGemini.sse(said("Forty", { finishReason: "MAX_TOKENS" })),
  other: ending("OTHER"),
  language: ending("LANGUAGE"),
  big: FakeGemini.sse(...Array.from({ length: 100 }, () => piece("x".repeat(100_000))), said("end")),
  bigOne: FakeGemini.sse(said("y".repeat(10_000_000))),
  html: [FakeGemini.head(200, { "content-type": "text/html" }), FakeGemini.write("<!doctype html><html><body><h1>Log in to the Wi-Fi</h1></body></html>\n")],
  html404: [FakeGemini.head(404, { "content-type": "text/html" }), FakeGemini.write("<!doctype html>\n<html>\n<body><h1>Not found</h1></body></html>\n")],
  html403: [FakeGemini.head(403, { "content-type": "text/html" }), FakeGemini.write("<!doctype html>\n<html>\n<body><h1>Proxy</h1></body></html>\n")],
  html302: [FakeGemini.head(302, { "content-type": "text/html", location: "http://127.0.0.1:1/login" }), FakeGemini.write("<a>x</a>")],
  notJsonEvent: [FakeGemini.streamHead, FakeGemini.write("data: {oops\r\n\r\n")],
  wrongShape: FakeGemini.sse({ candidates: "none" }),
  arrayShape: FakeGemini.sse([1]),
  errorEvent: [FakeGemini.streamHead, FakeGemini.event(piece("Forty")), FakeGemini.event(FakeGemini.failureBody(500, "Internal error"))],
  key: FakeGemini.keyInvalid,
  modelNotFound: FakeGemini.failure(404, "models/gemini-2.5-flash is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."),
  badRequest: FakeGemini.failure(400, "Invalid JSON payload received.\nUnknown name \"x\""),
  quota: FakeGemini.dailyQuota,
  nul: FakeGemini.sse(said("Forty\u0000\u001b[2Jtwo\ud800")),
  toolCall: FakeGemini.sse(FakeGemini.response([{ functionCall: { name: "ls", args: {} } }])),
}
describe.concurrent("x", () => {
  for (const [name, answer] of Object.entries(cases)) {
    it.effect(name, () => Effect.gen(function* () {
      const { folder } = yield* program
      const home = path.join(folder, `bad-${name}`, "home")
      const cwd = path.join(folder, `bad-${name}`, "work")
      mkdirSync(home, { recursive: true }); mkdirSync(cwd, { recursive: true })
      const fake = yield* FakeGemini.make(({ body, method }) => method === "countTokens" ? FakeGemini.tokens(10) : JSON.stringify(body).includes('"text":"two"}]}]') ? answer : good)
      const ask = (p: string) => run(["ask", p, "--session", "work"], { cwd, env: { PALIMPSEST_HOME: home, GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: fake.url } })
      yield* ask("one")
      const log = path.join(home, "sessions", "work.jsonl")
      const before = readFileSync(log, "utf8")
      const t = performance.now()
      const e = yield* ask("two")
      const ms = Math.round(performance.now() - t)
      const same = readFileSync(log, "utf8") === before
      const third = yield* ask("three")
      const last: any = (yield* fake.requests).at(-1)?.body
      console.log([`== ${name} (${ms} ms)`, `status ${e.status} same=${same} third=${third.status} ${third.stderr}`, `contents ${JSON.stringify(last.contents).slice(0, 400)}`, `out ${JSON.stringify(String(e.stdout).slice(0, 100))} ${e.stdout.length}`, e.stderr].join("\n"))
    }))
  }
})
