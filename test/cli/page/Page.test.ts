import { Effect } from "effect"
import { parseHTML } from "linkedom"
import { createHash } from "node:crypto"
import { rowLimit, rows, select } from "../../../src/cli/page/Entries.ts"
import { thinned } from "../../../src/cli/page/PageCharts.ts"
import { script, sheet } from "../../../src/cli/page/Sheet.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { isUnitTier, runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { conversationOf, entry, everything, hostile, pageOf } from "./pages.ts"

/** A conversation with a bit of everything, and a compression over it. */
const plain = Conversation.compressed(
  conversationOf([
    entry(1, user(text("the environment")), [40], { author: "environment" }),
    entry(2, user(text("Fix the parser")), [12], { at: Date.UTC(2026, 1, 3, 4, 5, 6) }),
    entry(3, model(text("I look"), call("read", { path: "src/Parse.ts", lines: [1, 2] }, "1")), [5, 30]),
    entry(4, user(response("read", { output: "\n<b>const</b> a = 1\r\nlast" }, "1")), [900]),
    entry(5, user(text("And now?")), [7]),
    entry(6, model(call("exec", { command: "npm test" }, "2")), [20], {
      at: Date.UTC(2026, 1, 3, 5),
      model: "some-model"
    })
  ]),
  {
    drop: { from: Conversation.entryId(2), to: Conversation.entryId(3) },
    insert: [entry(7, user(text("A summary")), [60], { author: "summary" })],
    shorten: [
      {
        entry: Conversation.entryId(4),
        part: 0,
        replacement: response("read", { output: "…" }, "1"),
        tokens: TokenCount.make(9)
      }
    ]
  }
)

const look = { recall: "palimpsest recall x", turns: new Map(), hidesTexts: false }

type Document = ReturnType<typeof parseHTML>["document"]
type Element = Document["body"]

const page = (self: Conversation.Conversation, more = {}) =>
  Effect.map(pageOf(self, more), (html) => ({ html, document: parseHTML(html).document }))

const elements = (document: Document, selector: string) => [...document.querySelectorAll(selector)]
const words = (element: Element | null) => (element?.textContent ?? "").replace(/\s+/g, " ").trim()

describe("a page", () => {
  it.effect("shows each message once, in order, with role, tokens and its first words", function* () {
    const { document } = yield* page(plain)
    const told = elements(document, "li.message").map((row) => [
      row.id,
      row.getAttribute("data-view"),
      row.getAttribute("data-kinds"),
      words(row.querySelector(".who")),
      words(row.querySelector(".n")),
      words(row.querySelector(".words"))
    ])
    assert.deepStrictEqual(told, [
      ["e1", "in", "user", "environment", "40", "the environment"],
      ["e2", "left", "user", "user", "12", "Fix the parser"],
      ["e3", "left", "model call", "model", "35", "I look · read src/Parse.ts"],
      ["e4", "in", "output", "tool result", "900", "read: <b>const</b> a = 1 last"],
      ["e5", "in", "user", "user", "7", "And now?"],
      ["e6", "in", "call", "model", "20", "exec npm test"],
      ["e7", "in", "summary", "summary", "60", "A summary"]
    ])
  })

  it.effect("shows what a compression inserted before the messages that came later", function* () {
    const { document } = yield* page(Conversation.append(plain, entry(8, user(text("Go on")), [3])))
    assert.deepStrictEqual(
      elements(document, "li.message, li.cut").map((row) => row.id || "cut"),
      ["e1", "e2", "e3", "e4", "e5", "e6", "cut", "e7", "e8"]
    )
  })

  it.effect("shows messages under the headings of their prompts", function* () {
    const { document } = yield* page(plain)
    assert.deepStrictEqual(
      elements(document, "#conversation h3").map((heading) => words(heading)),
      ["Prompt 1: Fix the parser", "Prompt 2: And now?"]
    )
  })

  it.effect("shows of each part its kind, its exact text and its handle", function* () {
    const { html, document } = yield* page(plain)
    const [said, called] = elements(document, "#e3 .part")
    assert.strictEqual(words(said?.querySelector("p") ?? null), "model text, 5 tokens · h_aaaaaaadxa")
    assert.match(
      words(called ?? null),
      /^call arguments read, 30 tokens · h_\w+ path src\/Parse\.ts ?lines \[ 1, 2 \]$/
    )
    assert.include(html, "<pre>\n\n&lt;b&gt;const&lt;/b&gt; a = 1&#13;\nlast</pre>")
    assert.include(words(document.querySelector("#e4 .part")), "900 tokens, shortened to 9 in the view")
    assert.include(
      words(document.querySelector("#e2 .about")),
      "prompt 1 · not in the current view · 2026-02-03 04:05:06 UTC"
    )
    assert.include(words(document.querySelector("#e6 .about")), "in the current view · by some-model")
    assert.include(words(document.querySelector("#e7 .about")), "inserted by a compression")
  })

  it.effect("has the report's numbers, and the time of the conversation", function* () {
    const { document } = yield* page(plain, {
      model: "some-model",
      cwd: "/home/me",
      torn: 12,
      skipped: { progress: 1_083 }
    })
    const all = words(document.querySelector("main"))
    assert.strictEqual(words(document.querySelector("dl.numbers div")), "tokens in all 1,034")
    for (const told of ["Broken pairs", "a call without a response", "progress1,083", "Line 12, the last one"]) {
      assert.include(all, told)
    }
    const facts = words(document.querySelector("dl.facts"))
    assert.include(facts, "2026-02-03 04:05:06 UTC to 2026-02-03 05:00:00 UTC")
    assert.include(facts, "40 tokens in the environment message")
    assert.include(facts, "/home/me")
  })

  it.effect("draws the growth with its compaction, in both sizes, and links to the largest messages", function* () {
    const { document } = yield* page(plain)
    for (const size of ["wide", "narrow"]) {
      const chart = document.querySelector(`#growth svg.${size}`)
      assert.include(chart?.getAttribute("aria-label") ?? "", "Tokens in the view")
      assert.strictEqual(chart?.querySelectorAll(".area path, path.area").length, 1)
      assert.strictEqual(chart?.querySelectorAll(".cut line, line.cut").length, 1)
      assert.strictEqual(chart?.querySelectorAll("a").length, 5)
      assert.isTrue(
        elements(document, `#growth svg.${size} a title`).some((title) => words(title) === "e4 added 900 tokens")
      )
      assert.isNull(chart?.querySelector("style") ?? null)
    }
    assert.match(
      words(document.querySelector("li.cut")),
      /^A compaction: 1,014 → \d+ tokens in the view$|^A compaction: /
    )
  })

  it.effect("links only to places on the page, and repeats no id", function* () {
    const { document, html } = yield* page(plain)
    const ids = elements(document, "[id]").map((element) => element.id)
    assert.deepStrictEqual(ids.length, new Set(ids).size)
    const links = elements(document, "a").map(
      (link) => link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? ""
    )
    assert.isAbove(links.length, 15)
    for (const link of links) assert.isTrue(link.startsWith("#") && ids.includes(link.slice(1)), link)
    for (const label of elements(document, "[aria-labelledby]")) {
      assert.include(ids, label.getAttribute("aria-labelledby"))
    }
    assert.notMatch(html, /\b(?:https?|ftp|data|blob|file|wss?):(?!\/\/www\.w3\.org\/)/i)
    assert.notMatch(html, /\burl\(|@import|\bsrcset|<link|<iframe|<img|<base/i)
  })

  it.effect("allows only its own style sheet and script", function* () {
    const { html } = yield* page(plain)
    const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
    const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(html)?.[1]
    assert.strictEqual(
      policy,
      `default-src 'none'; style-src ${hash(sheet)}; script-src ${hash(script)}; base-uri 'none'; form-action 'none'`
    )
    assert.deepStrictEqual(
      [...html.matchAll(/<style[^>]*>([^]*?)<\/style>/g)].map((match) => match[1]),
      [sheet]
    )
    assert.deepStrictEqual(
      [...html.matchAll(/<script[^>]*>([^]*?)<\/script>/g)].map((match) => match[1]),
      [script]
    )
    assert.notMatch(html, /\sstyle=/)
  })

  it.effect("is deterministic", function* () {
    assert.strictEqual(yield* pageOf(plain), yield* pageOf(plain))
  })
})

describe("an empty page", () => {
  const environment = entry(1, user(text("where")), [9], { author: "environment" })
  const cases: ReadonlyArray<readonly [name: string, conversation: Conversation.Conversation]> = [
    ["no messages", Conversation.empty],
    ["the environment message alone", conversationOf([environment])],
    ["a message without parts", conversationOf([entry(1, user())])],
    ["empty texts of no tokens", conversationOf([entry(1, user(text("")), [0]), entry(2, model(text("")), [0])])],
    ["a call without arguments", conversationOf([entry(1, model({ functionCall: { name: "" } }), [0])])],
    ["a part that is nothing", conversationOf([entry(1, model({}), [0])])],
    ["times that are none", conversationOf([entry(1, user(text("x")), [1], { at: 8.64e15 + 1 })])],
    [
      "a summary alone",
      Conversation.compressed(Conversation.empty, {
        insert: [entry(1, user(text("s")), [3], { author: "summary" })],
        shorten: []
      })
    ]
  ]
  it.effect.each(cases)("%s", function* ([, conversation]) {
    const { document, html } = yield* page(conversation)
    assert.strictEqual(elements(document, "li.message").length, conversation.next - 1)
    assert.notMatch(html.replace(script, ""), /NaN|Infinity|undefined|null|\[object/)
  })
})

describe("hostile content", () => {
  const parts = Object.values(hostile)
  const all = conversationOf([
    ...parts.map((said, index) => entry(index + 1, user(text(said)))),
    entry(parts.length + 1, model(...parts.map((name, index) => call(name, { [name]: name, path: name }, `${index}`)))),
    entry(parts.length + 2, user(...parts.map((name, index) => response(name, { output: name }, `${index}`)))),
    entry(
      parts.length + 3,
      model({ inlineData: { mimeType: everything, data: everything } }, { text: everything, thought: true })
    ),
    entry(parts.length + 4, model({ fileData: { fileUri: `javascript:alert(1)${everything}` } }), [0], {
      model: everything,
      source: { 0: everything }
    })
  ])
  const told = {
    file: `${everything}/${everything}`,
    session: everything,
    model: everything,
    cwd: everything,
    skipped: { [everything]: 3, __proto__: 1 },
    next: { waits: null, forced: null }
  }

  it.effect("stays text everywhere", function* () {
    const { document, html } = yield* page(all, told)
    const clean = yield* page(conversationOf([entry(1, user(text("x")))]))
    const names = (each: Document) => new Set(elements(each, "*").map((element) => element.tagName.toLowerCase()))
    const known = [...names(clean.document), "details", "summary", "pre", "code", "b", "ul", "li", "g", "a", "circle"]
    for (const name of names(document)) assert.include(known, name)
    for (const element of elements(document, "*")) {
      for (const { name } of element.attributes) assert.notMatch(name, /^on|^src|^style$|^data$/)
    }
    assert.strictEqual(html.split(/<script/i).length, 2)
    assert.strictEqual(html.split(/<\/html/i).length, 2)
    assert.isTrue(html.isWellFormed())
    assert.notMatch(
      html,
      /[^\P{Cc}\n\t]|[\p{Cs}\p{Zl}\p{Zp}]|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u
    )
  })

  it.effect("does not grow needlessly", function* () {
    const line = "&".repeat(3_000_000)
    const html = yield* pageOf(
      conversationOf([entry(1, user(text(line)), [5]), entry(2, model(call(line, { [line]: line })))])
    )
    assert.isBelow(html.length, 600_000)
    assert.include(html, "… 2,980,000 more characters: <code>palimpsest recall talk.json h_")
  })

  it.effect("limits the arguments of a call as a whole", function* () {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key${index}`, "v".repeat(1_000)]))
    const { document } = yield* page(conversationOf([entry(1, model(call("tool", many)))]))
    const shown = elements(document, "#e1 pre").reduce((sum, each) => sum + (each.textContent ?? "").trim().length, 0)
    assert.isAtMost(shown, 20_000)
    assert.isAbove(shown, 18_000)
    assert.include(
      words(document.querySelector("#e1 .part")),
      `… ${(1_000_000 - shown).toLocaleString("en")} more characters`
    )
  })
})

describe("the command for the full text", () => {
  const cases: ReadonlyArray<readonly [file: string, command: string]> = [
    ["a/b-1.jsonl", "palimpsest recall a/b-1.jsonl h_aaaaaaabxa"],
    ["a b.jsonl", "palimpsest recall &#39;a b.jsonl&#39; h_aaaaaaabxa"],
    ["it's $(rm).jsonl", "palimpsest recall &#39;it&#39;\\&#39;&#39;s $(rm).jsonl&#39; h_aaaaaaabxa"],
    ["-", "palimpsest recall - h_aaaaaaabxa"],
    ["~x", "palimpsest recall &#39;~x&#39; h_aaaaaaabxa"],
    ["-x", "palimpsest recall -x h_aaaaaaabxa"]
  ]
  it.effect.each(cases)("for %s", function* ([file, command]) {
    const html = yield* pageOf(conversationOf([entry(1, user(text("x".repeat(20_001))))]), { file })
    assert.include(html, `… 1 more character: <code>${command}</code>`)
  })
})

describe("omissions from a long conversation", () => {
  const many = conversationOf(
    Array.from({ length: 40 }, (_, index) =>
      entry(index + 1, user(text(`message ${index + 1}`)), [index === 20 ? 500 : index % 7])
    )
  )
  const wanted = new Set([Conversation.entryId(15)])

  it("are none up to the limit", () => {
    const { messages, rows } = select(many, wanted, 40)
    assert.deepStrictEqual([messages, rows.length], [40, 40])
  })

  it("keep the first, the last, the linked and the largest messages", () => {
    const { ids, messages, rows } = select(many, wanted, 12)
    assert.deepStrictEqual([messages, rows.length], [40, 12])
    assert.deepStrictEqual(
      [...ids].filter((id) => ["e1", "e2", "e3", "e38", "e39", "e40", "e15", "e21"].includes(id)).length,
      8
    )
    assert.deepStrictEqual(
      rows.map(({ index }) => index),
      rows.map(({ index }) => index).sort((a, b) => a - b)
    )
  })

  it("are marked where they were", () => {
    const selected = select(many, wanted, 12)
    const { extent, markup } = Effect.runSync(rows(selected, many, [], look))
    assert.deepStrictEqual([extent.messages, extent.shown], [40, 12])
    const left = [...markup.html.matchAll(/… (\d+) messages? between/g)].reduce(
      (sum, [, count]) => sum + Number(count),
      0
    )
    assert.strictEqual(left, 28)
  })

  it.skipIf(isUnitTier)("shorten the texts when there are too many", () => {
    const long = conversationOf(
      Array.from({ length: 2_000 }, (_, index) => entry(index + 1, user(text("x".repeat(9_000)))))
    )
    const { extent } = Effect.runSync(rows(select(long, new Set()), long, [], look))
    assert.strictEqual(extent.partLimit, 3_000)
  })

  it.skipIf(isUnitTier)("cover the rest of a message's parts, and of all messages", () => {
    const long = conversationOf([entry(1, user(...Array.from({ length: 60_000 }, () => text("y".repeat(400)))))])
    const { extent, markup } = Effect.runSync(rows(select(long, new Set()), long, [], look))
    assert.strictEqual(extent.partLimit, 20_000)
    assert.include(markup.html, "… 59,500 more parts")
    const parts = Array.from({ length: 450 }, () => text("y"))
    const wide = conversationOf(Array.from({ length: 100 }, (_, index) => entry(index + 1, user(...parts))))
    const { markup: all } = Effect.runSync(rows(select(wide, new Set()), wide, [], look))
    assert.strictEqual(all.html.split('<div class="part">').length - 1, 40_000)
    assert.include(all.html, "… 450 more parts")
  })

  it.effect.skipIf(isUnitTier)("bound the page, and no link leads to an omitted message", function* () {
    const messages = runsOf(100_000, 6_000)
    const long = conversationOf(
      Array.from({ length: messages }, (_, index) => {
        const said = text(`${index} ${"z".repeat(index % 500)}`)
        return entry(index + 1, index % 3_000 === 0 ? user(said) : model(said), [index % 501])
      })
    )
    const html = yield* pageOf(long)
    assert.isBelow(html.length, 20_000_000)
    assert.strictEqual(html.split('<li id="e').length - 1, rowLimit)
    assert.include(html, `${(messages - rowLimit).toLocaleString("en-US")} messages are not.`)
    const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]))
    for (const [, target] of html.matchAll(/href="#([^"]+)"/g)) assert.isTrue(ids.has(target ?? ""), target)
  })
})

describe("thinned", () => {
  const points = Array.from({ length: 10_000 }, (_, index) => ({
    message: index + 1,
    tokens: (index * 7_919) % 10_007
  }))
  it("keeps a short list unchanged", () => assert.deepStrictEqual(thinned(points.slice(0, 800)), points.slice(0, 800)))
  it("keeps the first, the last, the highest and the lowest, in order", () => {
    const thin = thinned(points)
    assert.isAtMost(thin.length, 800)
    assert.deepStrictEqual([thin[0], thin.at(-1)], [points[0], points.at(-1)])
    const tokens = points.map((point) => point.tokens)
    assert.strictEqual(Math.max(...thin.map((point) => point.tokens)), Math.max(...tokens))
    assert.strictEqual(Math.min(...thin.map((point) => point.tokens)), Math.min(...tokens))
    assert.deepStrictEqual(
      thin,
      [...thin].sort((a, b) => a.message - b.message)
    )
  })
})

describe("the style sheet and the script", () => {
  it("contain no closing tag of their own", () => assert.notMatch(sheet + script, /<\/|<!--/))
  it("load nothing from the network", () =>
    assert.notMatch(sheet + script, /url\(|@import|fetch|XMLHttp|import\(|https?:/))
  it("insert no text into the page as markup", () =>
    assert.notMatch(script, /innerHTML|outerHTML|insertAdjacent|write\(|eval|Function\(/))
})
