import { Effect } from "effect"
import { readFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "../support/vitest.ts"
import { instructionOf, place, runs, says, serve, turnsOf } from "./scene.ts"

/** `palimpsest prompt` through the built program: what it prints is what is sent. */

const rows = (stderr: string) =>
  new Map(
    [...stderr.matchAll(/^(\S.*?) {2,}([\d,]+)$/gm)].map(([, name = "", tokens = ""]) => [
      name,
      Number(tokens.replaceAll(",", ""))
    ])
  )

describe("prompt", () => {
  it.live("prints what ask would send, byte for byte, and section sizes that add up", function* () {
    const where = yield* place("prompt", {
      trust: "trusted",
      work: { "GEMINI.md": "Rule: be blue.\n", ".git/HEAD": "ref: refs/heads/main\n" }
    })
    const shown = yield* runs(where, undefined, ["prompt"])
    assert.strictEqual(shown.status, 0)
    const fake = yield* serve(says("Hello."))
    yield* runs(where, fake, ["ask", "Hello"])
    const [one] = yield* turnsOf(fake)
    assert.strictEqual(String(shown.stdout), `${instructionOf(one)}\n`)
    assert.include(String(shown.stdout), "be blue")
    const table = rows(shown.stderr)
    const sections = [...table].slice(0, [...table.keys()].indexOf("system prompt"))
    assert.includeMembers(
      sections.map(([name]) => name),
      ["preamble", "coreMandates", "git", "memory"]
    )
    const sum = sections.reduce((total, [, tokens]) => total + tokens, 0)
    assert.isAtMost(Math.abs(sum - (table.get("system prompt") ?? 0)), sections.length + 1)
    assert.strictEqual(
      (table.get("system prompt") ?? 0) + (table.get("tools") ?? 0) + (table.get("environment") ?? 0),
      table.get("in each request")
    )
  })

  it.live("applies GEMINI_PROMPT_* and settings to sections, and reports unknown names", function* () {
    const where = yield* place("prompt-switch", {
      home: { "settings.json": { prompt: { sections: { sandbox: false, taskTracker: false } } } }
    })
    const json = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
      Effect.map(runs(where, undefined, ["prompt", "--json", ...args], { env }), ({ stdout }) => {
        const document: {
          readonly sections: ReadonlyArray<{ readonly key: string }>
          readonly notices: ReadonlyArray<string>
          readonly tokens: { readonly prompt: number }
        } = JSON.parse(String(stdout))
        return { ...document, keys: document.sections.map(({ key }) => key) }
      })
    const usual = yield* json([])
    assert.includeMembers(usual.keys, ["preamble", "primaryWorkflows"])
    assert.notInclude(usual.keys, "sandbox")
    const switched = yield* json([], {
      GEMINI_PROMPT_PRIMARYWORKFLOWS: "false",
      GEMINI_PROMPT_SANDBOX: "1",
      GEMINI_PROMPT_PREAMBEL: "0"
    })
    assert.notInclude(switched.keys, "primaryWorkflows")
    assert.includeMembers(switched.keys, ["sandbox", "preamble"])
    assert.match(switched.notices.join("\n"), /^GEMINI_PROMPT_PREAMBEL has no effect[^\n]*GEMINI_PROMPT_PREAMBLE\?$/)
    const minimal = yield* json(["--size", "minimal"])
    assert.isBelow(minimal.tokens.prompt, usual.tokens.prompt)
    assert.deepStrictEqual((yield* json(["--size", "none"])).keys.length <= 1, true)
    assert.deepStrictEqual(yield* json(["--mode", "minimal"]), minimal)
  })

  it.live("GEMINI_SYSTEM_MD replaces it, with its substitutions; GEMINI_WRITE_SYSTEM_MD writes it", function* () {
    const where = yield* place("prompt-own", { user: { "mine.md": "You are mine.\n\n${AvailableTools}\n" } })
    const written = path.join(where.user, "kept", "system.md")
    const { status, stdout } = yield* runs(where, undefined, ["prompt"], {
      env: { GEMINI_SYSTEM_MD: "~/mine.md", GEMINI_WRITE_SYSTEM_MD: written }
    })
    assert.strictEqual(status, 0)
    assert.match(String(stdout), /^You are mine\.\n\n[^$]*read_file/)
    assert.strictEqual(readFileSync(written, "utf8"), String(stdout))
  })

  it.live.each([
    ["a file that is missing", ["prompt"], {}, "none.md"],
    ["a file that is missing, of ask", ["ask", "Hello"], {}, "none.md"],
    ["a folder", ["prompt"], { "none.md/a": "" }, "none.md"],
    ["a file that is no text", ["prompt"], { "none.md": new Uint8Array([0, 255, 254]) }, "none.md"]
  ] as const)("GEMINI_SYSTEM_MD: %s prints one line and exits with 2", function* ([rule, args, files, file]) {
    const where = yield* place(`prompt-${rule}`, { user: files })
    const fake = yield* serve()
    const { status, stderr, stdout } = yield* runs(where, fake, args, {
      env: { GEMINI_SYSTEM_MD: path.join(where.user, file) }
    })
    assert.deepStrictEqual([status, String(stdout)], [2, ""])
    assert.match(stderr, /^palimpsest: [^\n]*none\.md[^\n]*\n$/)
    assert.deepStrictEqual(yield* fake.requests, [])
  })
})
