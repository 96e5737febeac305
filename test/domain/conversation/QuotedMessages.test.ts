import { assert, it } from "@effect/vitest"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { quotedMessages } from "../../../src/domain/conversation/QuotedMessages.ts"

it("messages are quoted part by part, without thoughts, and long texts by their ends", () => {
  const image = { inlineData: { mimeType: "image/png", data: "AA" } }
  assert.deepStrictEqual(
    quotedMessages([
      user(text("Look."), image, { fileData: { fileUri: "https://a.test" } }),
      model({ text: "hm", thought: true }),
      model({ text: "hm", thought: true }, text("I look."), call("read", { path: "a" }), call("ls", undefined)),
      user(response("read", { output: `${"a".repeat(1_000)}${"m".repeat(10)}${"z".repeat(500)}` }))
    ]),
    [
      { role: "user", parts: [{ text: "Look." }, { media: "image/png" }, { media: "unknown" }] },
      {
        role: "model",
        parts: [{ text: "I look." }, { call: "read", arguments: '{"path":"a"}' }, { call: "ls", arguments: "{}" }]
      },
      {
        role: "user",
        parts: [{ answer_of: "read", output: `${"a".repeat(1_000)} [… 10 characters …] ${"z".repeat(500)}` }]
      }
    ]
  )
})
