import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { chat, instructionOf, place, type Place, runs, says, serve, turnsOf } from "./scene.ts"

/** A folder that brings all that a folder may bring, through the built program: what of it counts, and when. */

const folder = {
  "GEMINI.md": "Rule of the folder: be blue.\n",
  ".env": "PALIMPSEST_WINDOW=70000\n",
  ".palimpsest/settings.json": {
    model: "gemini-2.5-pro",
    hooks: { BeforeAgent: [{ hooks: [{ type: "command", command: "touch hooked" }] }] }
  },
  ".gemini/agents/scout.md": "---\nname: scout\ndescription: Scouts what lies ahead.\n---\nYou scout.\n",
  ".gemini/skills/brew/SKILL.md": "---\nname: brew\ndescription: Brews what is wanted.\n---\nBoil water.\n"
}

/** What a run shows to have been taken from the folder. */
const takenIn = Effect.fnUntraced(function* (where: Place) {
  const fake = yield* serve(says("Hello."))
  const { status, stderr, stdout } = yield* runs(where, fake, ["ask", "Hello", "--json"])
  const report = JSON.parse(String(stdout))
  const sent = JSON.stringify((yield* turnsOf(fake)).map(({ body }) => body))
  return {
    status,
    stderr,
    taken: {
      settings: report.model === "gemini-2.5-pro",
      variables: report.limit === 70_000,
      hooks: existsSync(path.join(where.cwd, "hooked")),
      memory: sent.includes("be blue"),
      agents: sent.includes("Scouts what lies ahead."),
      skills: sent.includes("Brews what is wanted.")
    }
  }
})
const all = { settings: true, variables: true, hooks: true, memory: true, agents: true, skills: true }
const nothing = { settings: false, variables: false, hooks: false, memory: false, agents: false, skills: false }

describe("a folder", () => {
  it.live("without a trust decision and terminal provides nothing, with one line; trusted, it does", function* () {
    const where = yield* place("trust-ask", { work: folder })
    const before = yield* takenIn(where)
    assert.deepStrictEqual([before.status, before.taken], [0, nothing])
    assert.match(before.stderr, /^palimpsest: [^\n]*not trusted[^\n]*palimpsest trust[^\n]*\n$/)

    const trusted = yield* runs(where, undefined, ["trust"])
    assert.strictEqual(trusted.status, 0)
    assert.include(String(trusted.stdout), `Trusted with everything below it: ${where.cwd}\n`)
    const after = yield* takenIn(where)
    assert.deepStrictEqual([after.status, after.taken], [0, all])
    assert.notInclude(after.stderr, "not trusted")
    // Its hooks run commands, so they are named when they are new, and only then.
    assert.match(after.stderr, /new hook[^\n]*BeforeAgent: "touch hooked"/)
    assert.strictEqual((yield* takenIn(where)).stderr, "")
  })

  it.live("is trusted for one run by a variable, but not by its own .env", function* () {
    const where = yield* place("trust-variable", {
      work: { "GEMINI.md": folder["GEMINI.md"], ".env": "GEMINI_CLI_TRUST_WORKSPACE=true\n" }
    })
    const fake = yield* serve()
    yield* runs(where, fake, ["ask", "Hello"])
    yield* runs(where, fake, ["ask", "Hello"], { env: { GEMINI_CLI_TRUST_WORKSPACE: "true" } })
    const [one, two] = (yield* turnsOf(fake)).map(instructionOf)
    assert.notInclude(one, "be blue")
    assert.include(two, "be blue")
    assert.isFalse(existsSync(path.join(where.home, "trusted-folders.json")))
  })
})

needs("tmux")("the question whether a folder is trusted", () => {
  it.live("is undecided after Ctrl+C, asked about again, answered once, and never asked about again", function* () {
    const where = yield* place("trust-chat", { work: folder })
    const file = path.join(where.home, "trusted-folders.json")
    const fake = yield* serve(says("Hello."))
    const asking = Effect.gen(function* () {
      const screen = yield* chat(fake, where)
      const asked = yield* screen.until((shown) => shown.endsWith("\ntrust?"))
      return { asked, screen }
    })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { asked, screen } = yield* asking
        assert.include(asked, "Do you trust")
        assert.match(asked, /hooks, which run commands: \.palimpsest\/settings\.json \(BeforeAgent: "touch\s+hooked"\)/)
        assert.match(asked, /memory, which tells the model what to do: GEMINI\.md/)
        yield* screen.press("C-c")
        yield* screen.prompt()
        assert.isFalse(existsSync(file))
      })
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { screen } = yield* asking
        yield* screen.say("y")
        yield* screen.prompt()
        assert.deepStrictEqual(JSON.parse(readFileSync(file, "utf8")).folders, { [where.cwd]: "trusted" })
        yield* screen.say("Hello", "Hello.")
        assert.include(instructionOf((yield* turnsOf(fake))[0]), "be blue")
      })
    )
    const screen = yield* chat(fake, where)
    assert.notInclude(yield* screen.prompt(), "trust?")
  })
})
