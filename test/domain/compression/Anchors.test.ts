import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  agentTexts,
  type AnchorKind,
  anchorsOf,
  eachAnchor,
  anchorKindOf,
  toolTexts
} from "../../../src/domain/compression/Anchors.ts"
import { call, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { corpus } from "../../support/corpus.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const found = (of: string): Array<string> => [...anchorsOf(of)].map(([name, kind]) => `${kind} ${name}`)

/** Texts with their anchors, and words with the kind that they have alone. */
const texts = corpus<{
  readonly word?: string
  readonly kind?: AnchorKind
  readonly text: string
  readonly anchors: ReadonlyArray<string>
}>("anchors-of-texts")

describe("kinds", () => {
  it.each(texts)("$text", ({ anchors, kind, text: sentence, word }) => {
    assert.deepStrictEqual(found(sentence), anchors)
    if (word !== undefined) assert.strictEqual(anchorKindOf(word), kind)
  })

  it("a word of more than 200 characters is no anchor", () => {
    assert.isUndefined(anchorKindOf(`src/${"a".repeat(193)}.ts.`))
    assert.strictEqual(anchorKindOf(`src/${"a".repeat(193)}.ts`), "path")
  })

  it.each([
    ["sk-ant-api03-AbCdEfGh1234567890", undefined],
    ["ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", undefined],
    ["AKIAIOSFODNN7EXAMPLE", undefined],
    ["1234567890123456", "number"],
    ["0123456789abcdef0123456789abcdef", "id"]
  ])("a key is no anchor, a long number or hash is one: %s", (word, kind) => {
    assert.strictEqual(anchorKindOf(word), kind)
    assert.strictEqual(anchorKindOf(word), kind)
  })
})

describe("in a sentence", () => {
  it("reports every occurrence with its position", () => {
    const seen: Array<readonly [string, number]> = []
    eachAnchor("src/a.ts x src/a.ts", (anchor, _, at) => seen.push([anchor, at]))
    assert.deepStrictEqual(seen, [
      ["src/a.ts", 0],
      ["src/a.ts", 11]
    ])
  })

  it("can be searched recursively", () => {
    const seen: Array<string> = []
    eachAnchor("src/a.ts then src/b.ts then parseDate", (anchor) => {
      eachAnchor(anchor, (inner) => seen.push(inner))
      // A search that begins again and again would never end.
      assert.isBelow(seen.length, 10)
    })
    assert.deepStrictEqual(seen, ["src/a.ts", "src/b.ts", "parseDate"])
  })
})

const Text = Schema.Array(
  Schema.Union([
    Schema.String,
    Schema.Literals([
      "src/a.ts",
      "parseDate",
      "#12",
      "128",
      " ",
      " ",
      ":",
      "=",
      "/",
      ".",
      "https://x.y/z",
      "v1.2",
      "29b3aa8",
      "\n",
      "é",
      "(",
      ")."
    ])
  ])
)

describe("stability", () => {
  it.prop(
    "an anchor is a part of the text and by itself an anchor of the same kind",
    [Text],
    ([pieces]) => {
      const whole = pieces.join("")
      for (const [anchor, kind] of anchorsOf(whole)) {
        assert.isTrue(whole.includes(anchor))
        assert.strictEqual(anchorKindOf(anchor), kind)
        assert.strictEqual(anchorsOf(anchor).get(anchor), kind)
      }
    },
    { arbitrary: { runs: runsOf(1_000), seed: "anchors" } }
  )

  it.prop(
    "the same text has the same anchors, whatever was scanned before",
    [Text, Text],
    ([a, b]) => {
      const before = found(a.join(""))
      found(b.join(""))
      assert.deepStrictEqual(found(a.join("")), before)
    },
    { arbitrary: { runs: runsOf(500), seed: "again" } }
  )

  it.prop(
    "words on different lines do not affect each other",
    [Text, Text],
    ([a, b]) => {
      assert.deepStrictEqual(
        new Set(found(`${a.join("")}\n${b.join("")}`)),
        new Set([...found(a.join("")), ...found(b.join(""))])
      )
    },
    { arbitrary: { runs: runsOf(500), seed: "apart" } }
  )

  it("patterns do not backtrack: quadratic time would exceed the test's limit", () => {
    for (const trap of ["a.", "/", "a-", "a/", "=", "A", ".", "-"])
      assert.isAtLeast(anchorsOf(trap.repeat(sizeOf(2_000_000, 200_000))).size, 0)
  })
})

describe("origin of the words", () => {
  const said = (of: typeof agentTexts, part: Part): ReadonlyArray<string> => {
    const all: Array<string> = []
    of(part, (one) => all.push(one))
    return all
  }
  const script = (input: string) => call("exec", { input })
  const unread = 'const run = (cmd) => tools.exec_command({ cmd }); text(await run("cat src/a.ts"))'

  it.each<readonly [what: string, part: Part, words: ReadonlyArray<string>]>([
    [
      "all arguments of a call",
      call("edit", { path: "a.ts", edits: [{ old: "x", line: 128 }], dry: true, none: null }),
      ["a.ts", "x", "128"]
    ],
    [
      "of a script of Codex, what its calls say",
      script('const r = await tools.exec_command({"cmd":"npm test"}); if (r.session_id) text(r.output)'),
      ["npm test"]
    ],
    [
      "of a script of Codex, what its calls say one after the other",
      script('for (const f of ["src/a.ts", "src/b.ts"]) text(await tools.exec_command({ cmd: `cat ${f}` }))'),
      ["cat src/a.ts", "cat src/b.ts"]
    ],
    ["all of a script of Codex where a call cannot be read", script(unread), [unread]],
    ["its text", text("said"), ["said"]],
    ["its thought", { text: "hm", thought: true }, ["hm"]],
    ["no response of a tool", response("read", { output: "no" }), []]
  ])("the agent's: %s", (_, part, words) => assert.deepStrictEqual(said(agentTexts, part), words))

  it("the tool's: all values of its response", () => {
    const values = { output: "yes", n: [1], c: [{ type: "input_text", text: "x" }], type: "UserAccount" }
    assert.deepStrictEqual(said(toolTexts, response("read", values)), ["yes", "1", "x", "UserAccount"])
    assert.deepStrictEqual(said(toolTexts, text("said")), [])
  })
})

it("the colours of a terminal belong to no name", () => {
  assert.deepStrictEqual(found("\u001b[0;32mAdded \u001b[1mmain.py\u001b[0m \u001b[31mstate_file.ts\u001b[0m"), [
    "path main.py",
    "path state_file.ts"
  ])
})
