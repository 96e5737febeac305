import { Effect } from "effect"
import { browserAgent } from "../../../../src/services/agent/builtin/BrowserAgent.ts"
import { BrowserFailure, type Snapshot } from "../../../../src/services/tools/Browser.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { assert, it } from "../../../support/vitest.ts"

it.effect("the tools of the browser ask before they touch a page, and show it", function* () {
  const page = (done: string): Effect.Effect<Snapshot> =>
    Effect.succeed({ url: `u ${done}`, title: `t ${done}`, outline: `o ${done}` })
  const targets = () => Effect.succeed([])
  const opened: Array<unknown> = []
  const { own } = browserAgent(
    {
      open: (given) => {
        opened.push(given)
        return Effect.succeed({
          open: (url) => (url === "bad" ? new BrowserFailure({ message: "refused" }) : page(url)),
          snapshot: page("snapshot"),
          click: (ref) => page(`click ${ref}`),
          type: (ref, text, submit) => page(`type ${ref} ${text} ${submit}`),
          back: page("back"),
          screenshot: Effect.succeed({ mimeType: "image/png", bytes: new Uint8Array([1, 2, 3]) })
        })
      }
    },
    targets
  )
  const tools = (yield* own?.open ?? Effect.succeed([])).map((tool) => [tool.name, tool] as const)
  assert.deepStrictEqual(opened, [targets])
  assert.isFalse(own?.reads)
  const called = Effect.fnUntraced(function* (name: string, args: object) {
    const tool = new Map(tools).get(`browser_${name}`) ?? assert.fail(name)
    const { question, result, title } = yield* callTool(tool, args)
    const said = String(result.value)
    const seen = ["u", "t", "o"].map((letter) => new RegExp(`\\b${letter} [^"<>\n]+`).exec(said)?.[0]).join()
    return [tool.kind, title.slice(tool.name.length + 1), question?.detail, question?.grants.join(), seen, result.media]
  })
  const shown = (done: string) => ["u", "t", "o"].map((letter) => `${letter} ${done}`).join()
  assert.deepStrictEqual<unknown>(
    [
      yield* called("open", { url: "https://a.b:1/c" }),
      yield* called("snapshot", {}),
      yield* called("click", { ref: "e1" }),
      yield* called("type", { ref: "e1", text: "x" }),
      yield* called("type", { ref: "e1", text: "x", submit: true }),
      yield* called("back", {})
    ],
    [
      ["fetch", "https://a.b:1/c", "https://a.b:1/c", "fetch:a.b:1", shown("https://a.b:1/c"), undefined],
      ["read", "", undefined, undefined, shown("snapshot"), undefined],
      ["execute", "e1", "click e1", "browser", shown("click e1"), undefined],
      ["execute", "e1 x", "type into e1: x", "browser", shown("type e1 x false"), undefined],
      ["execute", "e1 x", "type into e1 and press Enter: x", "browser", shown("type e1 x true"), undefined],
      ["execute", "", undefined, undefined, shown("back"), undefined]
    ]
  )
  assert.deepStrictEqual((yield* called("screenshot", {}))[5], [
    { inlineData: { mimeType: "image/png", data: "AQID" } }
  ])
  const [[, open] = []] = tools
  if (open !== undefined) assert.strictEqual(yield* failureOf(open, { url: "bad" }), "browser_failed: refused")
})
