import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import { type Content, isCall, isResponse, withOutput } from "../../../src/domain/content/Content.ts"
import { wireContent } from "../../../src/domain/content/WireContent.ts"
import { entryId, pairing, viewItem } from "../../../src/domain/conversation/Conversation.ts"
import { projectItems } from "../../../src/domain/conversation/Projection.ts"
import {
  countedParts,
  isPromptContent,
  systemBefore,
  type DialogueMessage,
  toContent,
  toMessage
} from "../../../src/domain/effect-ai/PromptContent.ts"
import { messageText } from "../../../src/services/effect-ai/PromptNames.ts"
import { thousand } from "../../support/generate.ts"
import { AnyMessage, answers, calls, messageOf, result, results, says } from "../../support/prompts.ts"
import { runsOf } from "../../support/runs.ts"

const isDialogue = (message: Prompt.Message): message is DialogueMessage => message.role !== "system"
const throughJson = (content: Content): Content => JSON.parse(JSON.stringify(content))

describe("a message of a prompt as content, and back", () => {
  it.effect.prop(
    "loses nothing, in memory and in a log",
    [AnyMessage],
    ([drawn]) =>
      Effect.sync(() => {
        const message = messageOf(drawn)
        if (!isDialogue(message)) return
        const content = toContent(message)
        for (const back of [toMessage(content), toMessage(throughJson(content))]) {
          assert.deepStrictEqual(back, message)
          // Addresses and keys like __proto__ are the same to the assertion, whatever they hold.
          assert.strictEqual(back && messageText(back), messageText(message))
        }
        assert.isTrue(isPromptContent(throughJson(content)))
      }),
    { arbitrary: { ...thousand("round trip"), runs: runsOf(1_000, 100) } }
  )

  it("keeps what a result shows to the model, in its order", () => {
    const [picture, page] = ["AAAA", new URL("https://a.b/c.pdf")].map((data) =>
      Prompt.filePart({ mediaType: "image/png", data, fileName: "f" })
    )
    if (picture === undefined || page === undefined) return assert.fail("no files")
    const said = ["before", "between"].map((text) => Prompt.textPart({ text, options: { any: { a: 1 } } }))
    const part = (id: string, modelOutput: ReadonlyArray<Prompt.ToolModelOutputPart>) =>
      Prompt.toolResultPart({
        id,
        name: "look",
        result: { a: [1] },
        isFailure: false,
        providerExecuted: false,
        modelOutput
      })
    const message = Prompt.toolMessage({
      content: [
        part("c1", [...said.slice(0, 1), picture, ...said.slice(1), page]),
        part("c2", [page]),
        part("c3", said)
      ]
    })
    assert.deepStrictEqual(toMessage(throughJson(toContent(message))), message)
  })

  it("keeps the system messages before it", () => {
    const before = [
      Prompt.systemMessage({ content: "One.", options: { anthropic: { cacheControl: { type: "ephemeral" } } } }),
      Prompt.systemMessage({ content: "" })
    ]
    const content = toContent(says("Hello."), before)
    assert.deepStrictEqual(systemBefore(throughJson(content)), before)
    assert.deepStrictEqual(toMessage(content), says("Hello."))
    assert.deepStrictEqual(systemBefore(toContent(says("Hello."))), [])
  })

  it("shows our code its texts, thoughts, and calls with their responses", () => {
    const contents = [
      toContent(says("Read it.")),
      toContent(calls("c1")),
      toContent(results(result("c1", "Body.", true)))
    ]
    assert.deepStrictEqual(
      contents.map(({ role }) => role),
      ["user", "model", "user"]
    )
    assert.strictEqual(contents[0]?.parts[0]?.text, "Read it.")
    assert.strictEqual(pairing(contents).responseOf.size, 1)
    assert.deepInclude(contents[2]?.parts[0]?.functionResponse, { id: "c1", response: { error: "Body." } })
  })

  it("keeps approvals apart, so that a later answer belongs to its call", () => {
    const asked = Prompt.assistantMessage({
      content: [...calls("c1").content, Prompt.toolApprovalRequestPart({ approvalId: "a1", toolCallId: "c1" })]
    })
    const decided = Prompt.toolMessage({
      content: [Prompt.toolApprovalResponsePart({ approvalId: "a1", approved: true })]
    })
    const contents = [asked, decided, answers("x"), results(result("c1", "y"))].map((message) => toContent(message))
    assert.deepStrictEqual(
      contents.map(({ parts }) => parts.length),
      [1, 0, 1, 1]
    )
    const sent = projectItems(
      contents.map((content, at) => viewItem({ id: entryId(at + 1), content, tokens: [1], handles: [] }))
    )
    assert.deepStrictEqual(
      sent.map(({ content }) => content.parts),
      contents.map(({ parts }) => parts).filter((parts) => parts.length > 0)
    )
  })

  it("does not show provider-executed calls as ours", () => {
    const { parts } = toContent(
      Prompt.assistantMessage({
        content: [
          Prompt.toolCallPart({ id: "s1", name: "search", params: { q: "x" }, providerExecuted: true }),
          Prompt.toolResultPart({ id: "s1", name: "search", isFailure: false, result: "found", providerExecuted: true })
        ]
      })
    )
    assert.isFalse(parts.some((part) => isCall(part) || isResponse(part)))
    assert.include(parts[1]?.text, "found")
  })

  it.effect.prop(
    "sends no keys that the API does not know",
    [AnyMessage],
    ([drawn]) =>
      Effect.sync(() => {
        const message = messageOf(drawn)
        if (!isDialogue(message)) return
        const content = wireContent(toContent(message, [Prompt.systemMessage({ content: "x" })]))
        const known = new Set(["text", "thought", "functionCall", "functionResponse", "inlineData", "fileData"])
        assert.hasAllKeys(content, ["role", "parts"])
        assert.isTrue(content.parts.every((part) => Object.keys(part).every((key) => known.has(key))))
        assert.strictEqual(wireContent(content), content)
      }),
    { arbitrary: thousand("wire", 300) }
  )

  it("replaces an output's text and keeps the rest of the message", () => {
    const shown = [Prompt.textPart({ text: "long" }), Prompt.filePart({ mediaType: "image/png", data: "AQID" })]
    const cases: ReadonlyArray<readonly [Prompt.ToolResultPart, unknown]> = [
      [result("c1", "long"), undefined],
      [result("c1", { output: "long" }), undefined],
      [result("c1", { lines: [1, 2] }), undefined],
      [result("c1", "it broke", true), undefined],
      [
        { ...result("c1", { raw: 1 }), modelOutput: shown, options: { x: { y: 1 } } },
        [Prompt.textPart({ text: "…" }), shown[1]]
      ]
    ]
    for (const [part, output] of cases) {
      const other = result("c2", "other")
      const content = toContent(results(part, other))
      const parts = content.parts.map((one, at) => (at === 0 ? withOutput(one, "…") : one))
      const message = toMessage({ ...content, parts }, new Set([0]))
      const { modelOutput: _, ...rest } = part
      const expected = { ...rest, result: "…", ...(output === undefined ? {} : { modelOutput: output }) }
      assert.deepStrictEqual(message?.content as ReadonlyArray<unknown>, [expected, other])
    }
  })

  it("recognizes only its own content", () => {
    const foreign: ReadonlyArray<Content> = [
      { role: "user", parts: [{ text: "x" }] },
      { role: "user", parts: [], "effect/ai": { role: "system" } },
      { role: "user", parts: [], "effect/ai": null }
    ]
    for (const content of foreign) {
      assert.isFalse(isPromptContent(content))
      assert.isUndefined(toMessage(content))
      assert.deepStrictEqual(systemBefore(content), [])
    }
  })

  it("counts a file by its kind, whatever its bytes", () => {
    const file = (data: Prompt.FilePart["data"]) =>
      countedParts(Prompt.userMessage({ content: [Prompt.filePart({ mediaType: "image/png", data })] }))
    assert.deepStrictEqual(file(new Uint8Array(1_000_000))[0]?.inlineData, { mimeType: "image/png", data: "" })
    assert.deepStrictEqual(countedParts(Prompt.systemMessage({ content: "Be brief." })), [{ text: "Be brief." }])
    const counted = countedParts(calls("c1"))
    assert.isTrue(counted.every(isCall) && !counted.some(isResponse))
  })
})
