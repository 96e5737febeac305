import { Effect } from "effect"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { bodyOf, calls, chat, place, results, runs, says, serve, textsOf, turnsOf } from "./scene.ts"

/** Files that a message names with `@`, through the built program. */

/** A picture of one pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const files = {
  "notes.txt": "first words\n",
  "two words.txt": "second words\n",
  "odd,name.txt": "third words\n",
  "docs/one.md": "fourth words\n",
  "docs/deep/two.md": "fifth words\n",
  "src/a.ts": "sixth words\n",
  "src/b.ts": "seventh words\n",
  "hidden.log": "secret words\n",
  ".gitignore": "*.log\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  "p.png": Buffer.from(pixel, "base64")
}
const message = `Compare @notes.txt @"two words.txt" @odd\\,name.txt @docs @src/*.ts @p.png @hidden.log @nothing.here`

/** Far more than the window below. */
const lineOfBig = (at: number) => `Line ${at} of the big file, value ${at * 7_919}.`
const big = Array.from({ length: 20_000 }, (_, at) => `${lineOfBig(at)}\n`).join("")
const small = { window: 30_000, files: { lines: 100_000 } }
const handleIn = (texts: ReadonlyArray<string>): string => /recall (h_\w+)/.exec(texts.join("\n"))?.[1] ?? ""

/** After the first answer the model asks for the line that it was not shown. */
const recalling = Effect.fnUntraced(function* () {
  let turn = 0
  return yield* FakeGemini.make((request) => {
    if (request.method !== "streamGenerateContent") {
      return request.method === "countTokens"
        ? FakeGemini.tokens(100)
        : FakeGemini.json(FakeGemini.response([{ text: "T" }]))
    }
    turn += 1
    return turn === 1
      ? calls(["recall", { handle: handleIn(textsOf(request)), from: 10_001, to: 10_001 }])
      : says("It is all there.")
  })
})

describe("@ references of `ask`", () => {
  it.live("reads text, images, folders, globs and quoted names once, and sends them afterwards", function* () {
    const where = yield* place("at-all", { work: files })
    const fake = yield* serve(says("Compared."), says("Still the same."))
    const first = yield* runs(where, fake, ["ask", message, "--session", "s"])
    assert.deepStrictEqual([first.status, String(first.stdout)], [0, "Compared.\n"])
    // Read as by a call, with what was left out and why.
    assert.match(
      first.stderr,
      /^palimpsest: ✓ @notes\.txt @"two words\.txt"[^\n]* · … 8 files, [\d,]+ tokens; 1 not found; 1 left out\n/
    )
    assert.match(first.stderr, /hidden\.log[^\n]*ignored by git/)
    assert.match(first.stderr, /\npalimpsest: @nothing\.here matches no file here\n/)
    const [one] = yield* turnsOf(fake)
    const texts = textsOf(one).join("\n")
    for (const word of ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]) {
      assert.strictEqual(texts.split(`${word} words`).length, 2, word)
    }
    assert.include(texts, message)
    assert.notInclude(texts, "secret words")
    const data = bodyOf(one).contents.flatMap(({ parts }) => parts.flatMap(({ inlineData }) => inlineData ?? []))
    assert.deepStrictEqual(data, [{ mimeType: "image/png", data: pixel }])
    // What was read stays as it is in the conversation.
    assert.strictEqual((yield* runs(where, fake, ["ask", "Again", "--session", "s"])).status, 0)
    const [, two] = yield* turnsOf(fake)
    assert.strictEqual(
      JSON.stringify(bodyOf(two).contents.slice(1, 1 + bodyOf(one).contents.length - 1)),
      JSON.stringify(bodyOf(one).contents.slice(1))
    )
  })

  it.live("resolves references in the user's text only, and searches by name in a chat only", function* () {
    const where = yield* place("at-typed", { work: files })
    const fake = yield* serve(says("Compared."), says("Nothing."))
    const given = "diff @src/a.ts\n@one.md, @someone"
    const first = yield* runs(where, fake, ["ask", "Compare @notes.txt with @one.md"], { input: given })
    assert.deepStrictEqual([first.status, String(first.stdout)], [0, "Compared.\n"])
    assert.match(first.stderr, /^palimpsest: ✓ @notes\.txt @one\.md · 1 file, [\d,]+ tokens; 1 not found\n/)
    assert.include(first.stderr, "palimpsest: @one.md matches no file here\n")
    assert.notInclude(first.stderr, "@someone")
    // Without words of a person nothing is read, and nothing is said of it.
    const second = yield* runs(where, fake, ["ask"], { input: given })
    assert.deepStrictEqual([second.status, second.stderr], [0, ""])
    const [one, two] = yield* turnsOf(fake)
    const texts = textsOf(one).join("\n")
    assert.include(texts, `Compare @notes.txt with @one.md\n\n${given}`)
    assert.include(texts, "first words")
    for (const word of ["fourth words", "sixth words"]) assert.notInclude(texts, word)
    assert.include(textsOf(two), given)
  })

  it.live("reports up to five omissions, then counts them; fails when nothing could be read", function* () {
    const where = yield* place("at-none", { work: files })
    const fake = yield* serve(says("What?"))
    const { status, stderr } = yield* runs(where, fake, ["ask", "@q1 @q2 @q3 @q4 @hidden.log @q5 @q6"])
    assert.strictEqual(status, 0)
    assert.deepStrictEqual(stderr.trimEnd().split("\n"), [
      "palimpsest: ✗ @q1 @q2 @q3 @q4 @hidden.log @q5 @q6 · 6 not found; 1 left out",
      ...["q1", "q2", "q3", "q4"].map((name) => `palimpsest: @${name} matches no file here`),
      "palimpsest: hidden.log was left out: ignored by git",
      "palimpsest: 2 more were not read, or only in part"
    ])
  })

  it.live("reports sizes before sending what does not fit, sends it shortened, and can recall the whole", function* () {
    const where = yield* place("at-big", { home: { "settings.json": small }, work: { "big.txt": big } })
    const fake = yield* recalling()
    const { status, stderr, stdout } = yield* runs(where, fake, ["ask", "Sum up @big.txt now"])
    assert.deepStrictEqual([status, String(stdout)], [0, "It is all there.\n"], stderr)
    assert.match(
      stderr,
      /\npalimpsest: This does not fit: 1 file, [\d,]+ tokens, [\d,]+ remain: big\.txt \([\d,]+, of which [\d,]+ would fit\)\n/
    )
    assert.match(stderr, /\npalimpsest: They are sent shortened; [^\n]*recalled[^\n]*\n/)
    const [one, two] = yield* turnsOf(fake)
    const texts = textsOf(one).join("\n")
    assert.include(texts, lineOfBig(0))
    assert.include(texts, lineOfBig(19_999))
    assert.notInclude(texts, lineOfBig(10_000))
    assert.isBelow(texts.length, 120_000)
    assert.include(JSON.stringify(results(two)), lineOfBig(10_000))
  })
})

needs("tmux")("@ references of a chat", () => {
  it.live("that do not fit are confirmed: n and Ctrl+C return the message, y sends it shortened", function* () {
    const where = yield* place("at-chat-big", { home: { "settings.json": small }, work: { "big.txt": big } })
    const fake = yield* recalling()
    const screen = yield* chat(fake, where)
    yield* screen.prompt()
    const asked = yield* screen.say("Sum up @big.txt now", (shown) => shown.endsWith("\nshorten?"))
    assert.match(asked, /This does not fit: 1 file, [\d,]+ tokens[^]*big\.txt[^]*y {2}send what fits of each/)
    yield* screen.press("C-c")
    yield* screen.prompt("Sum up @big.txt now")
    yield* screen.press("Enter")
    yield* screen.until((shown) => shown.endsWith("\nshorten?"))
    yield* screen.say("n")
    yield* screen.prompt("Sum up @big.txt now")
    assert.deepStrictEqual(yield* turnsOf(fake), [])
    yield* screen.press("Enter")
    yield* screen.until((shown) => shown.endsWith("\nshorten?"))
    yield* screen.say("y", "It is all there.")
    const [, two] = yield* turnsOf(fake)
    assert.include(JSON.stringify(results(two)), lineOfBig(10_000))
  })
})
