import { assert, describe, it } from "@effect/vitest"
import { recallDeclaration } from "../../../src/domain/gateway/RecallDeclaration.ts"
import { headOf, isStored, readBody, toolsOf, withMessages } from "../../../src/domain/gateway/RequestBody.ts"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { routeOf } from "../../../src/domain/gateway/Route.ts"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import { codecs, type Json } from "../../support/GatewayDialects.ts"

describe.each(dialects)("a request in the dialect %s", (dialect) => {
  const codec = codecs[dialect]
  const route = routeOf("POST", requestTarget(codec.path(true)) ?? { path: "", query: [] })
  const key = { anthropic: "messages", chat: "messages", responses: "input", gemini: "contents" }[dialect]
  const lead = dialect === "chat" || dialect === "responses" ? [{ role: "system", content: "s" }] : []
  const plain = (name: string) => JSON.parse(recallDeclaration(dialect, `"palimpsest_recall"${name}`).plain)
  const declared = (name: string) => JSON.parse(recallDeclaration(dialect, name).inDialect)
  const said = [...codec.user("one"), ...codec.assistant([{ kind: "text", text: "two" }]), ...codec.user("three")]
  const own = declared("x")

  it.each<readonly [rule: string, tools: ReadonlyArray<Json> | undefined]>([
    ["no tools", undefined],
    ["an empty list of tools", []],
    ["one tool", [plain("a")].map((one) => (dialect === "gemini" ? { functionDeclarations: [one] } : one))],
    [
      "two tools",
      dialect === "gemini"
        ? [{ googleSearch: {} }, { functionDeclarations: [plain("a"), plain("b")] }]
        : [plain("a"), plain("b")]
    ]
  ])("with %s keeps all but its messages, and has our tool last", (_, tools) => {
    const { tools: _tools, ...body } = codec.body([...lead, ...said], true)
    const given: Json = { ...body, ...(tools === undefined ? {} : { tools }) }
    const first = given[key].slice(0, -said.length)
    const read = route === undefined ? undefined : readBody(route, JSON.stringify(given))
    if (read === undefined) return assert.fail("not read")
    assert.deepStrictEqual(
      read.messages.map((json) => JSON.parse(json)),
      said
    )
    assert.deepStrictEqual(JSON.parse(withMessages(read, read.messages.slice(1), undefined)), {
      ...given,
      [key]: [...first, ...said.slice(1)]
    })
    const declaration = recallDeclaration(dialect, "x")
    const functions = tools?.find((tool) => tool["functionDeclarations"] !== undefined)
    const all =
      functions === undefined
        ? [...(tools ?? []), own]
        : (tools ?? []).map((tool) =>
            tool === functions
              ? { functionDeclarations: [...functions["functionDeclarations"], JSON.parse(declaration.plain)] }
              : tool
          )
    assert.deepStrictEqual(JSON.parse(withMessages(read, read.messages, declaration)), {
      ...given,
      [key]: [...first, ...said],
      tools: all
    })
    for (const words of ["one", "two"]) assert.notInclude(headOf(read), `"${words}"`)
  })
})

it.each([
  ["{}", true],
  ['{"store": true}', true],
  ['{"store" :false}', false],
  ['{"metadata":{"store":false}}', true],
  ['{"store":false,"store":true}', undefined],
  ['[{"store":true}]', undefined],
  ["no JSON", undefined]
])("the answer to %s is stored, as far as its dialect stores any: %s", (text, expected) => {
  for (const dialect of dialects) {
    const route = routeOf("POST", requestTarget(codecs[dialect].path(true)) ?? { path: "", query: [] })
    assert.strictEqual(route && isStored(route, text), dialect === "responses" ? expected : undefined, dialect)
  }
})

describe("a request of Codex, whose tools are an item", () => {
  const route = routeOf("POST", requestTarget("/v1/responses") ?? { path: "", query: [] })
  const declaration = recallDeclaration("responses", "")
  const item = { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "exec" }] }
  const user = { type: "message", role: "user", content: [{ type: "input_text", text: "one" }] }

  it.each<readonly [rule: string, beside: Json, tools: ReadonlyArray<Json>]>([
    ["has our tool among them", {}, item.tools],
    ["has our tool among them beside an empty list", { tools: [] }, item.tools],
    ["has our tool in an empty item", {}, []],
    [
      "has our tool among those of the request, where it has some",
      { tools: [{ type: "function", name: "a" }] },
      item.tools
    ]
  ])("%s", (_, beside, tools) => {
    const { tools: others = [] } = beside
    const given = { model: "m", ...beside, input: [{ role: "developer", content: "s" }, { ...item, tools }, user] }
    const read = route === undefined ? undefined : readBody(route, JSON.stringify(given))
    if (read === undefined) return assert.fail("not read")
    const own = JSON.parse(declaration.inDialect)
    const written = JSON.parse(withMessages(read, read.messages, declaration))
    const expected =
      others.length > 0
        ? { ...given, tools: [...others, own] }
        : { ...given, input: [given.input[0], { ...item, tools: [...tools, own] }, user] }
    assert.deepStrictEqual(written, expected)
    assert.deepStrictEqual(JSON.parse(toolsOf(read)), others.length > 0 ? others : { ...item, tools })
  })

  it.each([item, { type: "compaction", encrypted_content: "e" }, { type: "compaction_trigger" }])(
    "keeps $type in the middle, as any instruction",
    (kept) => {
      const groups = wire.responses.messages.read([user, kept, user])
      assert.deepStrictEqual(
        groups.map(({ from, to }) => [from, to]),
        [
          [0, 1],
          [2, 3]
        ]
      )
    }
  )
})
