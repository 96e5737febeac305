import { readFileSync } from "node:fs"
import path from "node:path"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { calls, chat, instructionOf, place, results, runs, says, serve, turnsOf } from "./scene.ts"

/** Memory and settings through the built program: what is remembered, and what is said of files that cannot be used. */

describe("memory in a run", () => {
  it.live("names what is left out of a folder without a trust decision, and how to change that", function* () {
    const where = yield* place("memory-unknown", { work: { "GEMINI.md": "Rule: be blue.\n" } })
    for (const command of ["show", "list", "refresh"]) {
      const { status, stderr, stdout } = yield* runs(where, undefined, ["memory", command])
      assert.strictEqual(status, 0)
      assert.match(String(stdout), /^memory is empty here/)
      assert.match(
        stderr,
        /^palimpsest: this folder is not trusted, so GEMINI\.md is not loaded; to trust it: palimpsest trust\n$/
      )
    }
  })

  it.live("sends a folder's own memory once, with the first tool result that touches the folder", function* () {
    const where = yield* place("memory-touch", {
      trust: "trusted",
      home: { "settings.json": { memory: { downward: false } } },
      work: {
        ".git/HEAD": "",
        "sub/GEMINI.md": "Rule of sub: be green.\n",
        "sub/a.txt": "one\n",
        "sub/b.txt": "two\n"
      }
    })
    const fake = yield* serve(
      calls(["read_file", { file_path: "sub/a.txt" }]),
      calls(["read_file", { file_path: "sub/b.txt" }]),
      says("Read.")
    )
    assert.strictEqual((yield* runs(where, fake, ["ask", "Read"])).status, 0)
    const [one, two, three] = yield* turnsOf(fake)
    assert.notInclude(JSON.stringify(one?.body), "be green")
    assert.include(JSON.stringify(results(two)), "be green")
    assert.notInclude(JSON.stringify(results(three)), "be green")
    assert.strictEqual(instructionOf(three), instructionOf(one))
  })

  it.live("without a terminal, the model must name the scope of a fact, and so must `memory add`", function* () {
    const where = yield* place("memory-add", { trust: "trusted", work: { ".git/HEAD": "" } })
    const unsaid = yield* runs(where, undefined, ["memory", "add", "Tests run with make check."])
    assert.strictEqual(unsaid.status, 2)
    assert.match(unsaid.stderr, /^palimpsest: [^\n]*--scope[^\n]*\n$/)
    const said = yield* runs(where, undefined, ["memory", "add", "Tests run with make check.", "--scope", "project"])
    assert.strictEqual(said.status, 0)
    const listed = yield* runs(where, undefined, ["memory", "list"])
    assert.match(String(listed.stdout), /project +\S+\.md +\d+/)
    const fake = yield* serve(
      calls(["save_memory", { fact: "Wren likes tea." }]),
      calls(["save_memory", { fact: "Wren likes tea.", scope: "global" }]),
      says("Noted.")
    )
    const asked = yield* runs(where, fake, ["ask", "Note it", "--approve", "edits"])
    assert.strictEqual(asked.status, 0)
    const [one, two] = yield* turnsOf(fake)
    assert.include(instructionOf(one), "Tests run with make check.")
    assert.match(String(results(two)[0]?.["error"]), /project.*global/)
    const shown = yield* runs(where, undefined, ["memory", "show"])
    assert.include(String(shown.stdout), "Tests run with make check.")
  })
})

describe("settings in a run", () => {
  for (const [rule, text, status, told] of [
    [
      "a key that is unknown is left out, with the nearest known one",
      `{"windw": 5}`,
      0,
      /settings\.json: [^\n]*windw \(did you mean window\?\)/
    ],
    ["half a file", `{"window": `, 2, /settings\.json: [^\n]*line 1/],
    ["hooks that are no list", `{"hooks": {"BeforeTool": {}}}`, 0, /hooks\.BeforeTool/]
  ] as const) {
    it.live(`${rule}: ${status === 0 ? "the run continues" : "status 2 and one line, nothing is sent"}`, function* () {
      const where = yield* place(`settings-${rule.replaceAll(/\W+/g, "-")}`, { home: { "settings.json": text } })
      const fake = yield* serve(says("Hello."))
      const ended = yield* runs(where, fake, ["ask", "Hello"])
      assert.deepStrictEqual([ended.status, String(ended.stdout)], [status, status === 0 ? "Hello.\n" : ""])
      assert.match(ended.stderr, told)
      assert.match(ended.stderr, /^(?:palimpsest: [^\n]+\n)?$/)
      assert.lengthOf(yield* turnsOf(fake), status === 0 ? 1 : 0)
    })
  }
})

needs("tmux")("memory in a chat", () => {
  it.live("can be shown and extended in a chat; the model asks for the scope; it is sent next", function* () {
    const where = yield* place("memory-chat", {
      trust: "trusted",
      work: { ".git/HEAD": "", "GEMINI.md": "Rule: be blue.\n" }
    })
    const fake = yield* serve(calls(["save_memory", { fact: "Wren likes tea." }]), says("Noted."), says("Yes."))
    const screen = yield* chat(fake, where)
    yield* screen.prompt()
    yield* screen.ask("/memory list", /project +GEMINI\.md +\d+/)
    yield* screen.say("/memory add Ducks are green.")
    // It is never guessed where that belongs.
    yield* screen.until("Put a scope before the fact")
    yield* screen.prompt("/memory add project: Ducks are green.")
    yield* screen.press("Enter")
    yield* screen.until(/Saved to \S+\. Every request includes it from now on\./)
    yield* screen.prompt()
    yield* screen.say("remember that I like tea", (shown) =>
      /Where should this be remembered: Wren likes tea\.[^]*\n\?$/.test(shown)
    )
    yield* screen.say("2")
    yield* screen.asked
    yield* screen.ask("y", "Noted.")
    yield* screen.say("do you know it now?", "Yes.")
    const turns = yield* turnsOf(fake)
    const [first, last] = [instructionOf(turns[0]), instructionOf(turns.at(-1))]
    assert.include(first, "be blue")
    assert.include(first, "Ducks are green.")
    assert.notInclude(first, "likes tea")
    assert.include(last, "Wren likes tea.")
    assert.include(readFileSync(path.join(where.cwd, "GEMINI.md"), "utf8"), "Ducks are green.")
    yield* screen.prompt()
    yield* screen.say(
      "/memory show",
      /global, \d+ tokens[^]*Wren likes tea\.[^]*GEMINI\.md \(project, \d+ tokens\)[^]*be blue/
    )
  })
})
