import { Effect } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { view } from "../../../src/domain/conversation/Conversation.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import * as FakeGemini from "../../../src/layers/testing/FakeGemini.ts"
import { bodyOf, calls, environmentOf, instructionOf, says, textsOf } from "../../cli/scene.ts"
import { working } from "../../support/runtime.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What goes with every request of an agent that is put together as the program does it. */

const answering =
  (...answers: ReadonlyArray<FakeGemini.Answer>): FakeGemini.Script =>
  ({ index, method }) =>
    method === "streamGenerateContent" ? (answers[index] ?? says("Well.")) : FakeGemini.tokens(100)

/** Enough for a compression to be worth its while. */
const long = (seed: number) =>
  Array.from({ length: 400 }, (_, at) => `Point ${at}: ${seed * 104_729 + at * 37} of the list.`).join("\n")

const openFiles = (...names: ReadonlyArray<string>) => ({
  workspaceState: {
    openFiles: names.map((name, at) => ({
      path: name,
      timestamp: 1_000 - at,
      ...(at === 0 ? { isActive: true, cursor: { line: 3, character: 1 }, selectedText: "chosen words" } : {})
    })),
    isTrusted: true
  }
})

describe("the environment message", () => {
  it.live("begins every request and is rebuilt only by a compression; the instruction never changes", function* () {
    const { cwd, fake, opened, said } = yield* working({ script: answering(), work: { "first.txt": "1" } })
    yield* said(long(1))
    writeFileSync(path.join(cwd, "second.txt"), "2")
    yield* said("Go on.")
    yield* said(long(2))
    const outcome = yield* Effect.orDie(opened.chat.compress())
    assert.strictEqual(outcome._tag, "Compressed")
    yield* said("And now?")
    rmSync(path.join(cwd, "first.txt"))
    yield* said("And now?")
    const requests = yield* fake.requests
    assert.lengthOf(requests, 5)
    const [one, two, three, four, five] = requests.map(environmentOf)
    assert.include(one, "first.txt")
    assert.notInclude(one, "second.txt")
    assert.deepStrictEqual([two, three], [one, one])
    assert.include(four, "second.txt")
    assert.strictEqual(five, four)
    assert.lengthOf(new Set(requests.map(instructionOf)), 1)
    assert.lengthOf(new Set(requests.map((request) => JSON.stringify(bodyOf(request).tools))), 1)
  })

  it.live("names the folder of long outputs only to an agent whose tools can read there", function* () {
    for (const tools of [true, false]) {
      const { fake, said } = yield* working({ script: answering(), session: "s", options: { tools } })
      yield* said("Hello.")
      const [request] = yield* fake.requests
      assert.strictEqual(/Outputs that were too long .* are stored in /.test(environmentOf(request)), tools)
    }
  })

  it.live("everything before a new message is stable from turn to turn", function* () {
    const { fake, said } = yield* working({
      script: answering(calls(["list_directory", { dir_path: "." }]), says("One.")),
      work: { "GEMINI.md": "Be brief.", "a/GEMINI.md": "Be exact." }
    })
    yield* said("First.")
    yield* said("Second.")
    yield* said("Third.")
    const bodies = (yield* fake.requests).map(bodyOf)
    assert.lengthOf(bodies, 4)
    for (const [at, body] of bodies.entries()) {
      const next = bodies[at + 1]
      if (next === undefined) continue
      assert.strictEqual(JSON.stringify(next.contents.slice(0, body.contents.length)), JSON.stringify(body.contents))
      assert.deepStrictEqual(next.systemInstruction, body.systemInstruction)
    }
  })
})

describe("the editor's state", () => {
  it.live("is sent in full at first and after a compression, else its changes, if there are any", function* () {
    const { cwd, fake, home, opened, said } = yield* working({ script: answering() })
    const editor = (...names: ReadonlyArray<string>) =>
      writeFileSync(
        path.join(home, "ide.json"),
        JSON.stringify(openFiles(...names.map((name) => path.join(cwd, name))))
      )
    const newsIn = (texts: ReadonlyArray<string>) =>
      texts.filter((text) => text.includes("Changes in the user's editor"))
    yield* said("Nothing is open yet.")
    editor("a.ts", "b.ts")
    yield* said("Now something is.")
    yield* said("Nothing changed.")
    editor("c.ts", "a.ts")
    yield* said(long(3))
    assert.strictEqual((yield* Effect.orDie(opened.chat.compress()))._tag, "Compressed")
    yield* said("After the compression.")
    yield* said("Nothing changed again.")
    const requests = yield* fake.requests
    const texts = requests.map(textsOf)
    const [one, two, three, four, five, six] = texts
    assert.isFalse(one?.some((text) => text.includes("editor")))
    assert.match(two?.join("\n") ?? "", /Open in the user's editor[^]*"path": "a\.ts"[^]*"chosen words"[^]*"b\.ts"/)
    assert.strictEqual(three?.join("\n").split("Open in the user's editor").length, 2)
    assert.lengthOf(newsIn(three ?? []), 0)
    const [changed = ""] = newsIn(four ?? [])
    assert.match(changed, /"filesOpened": \[\s*"c\.ts"\s*\][^]*"filesClosed": \[\s*"b\.ts"\s*\]/)
    assert.match(environmentOf(requests[4]), /Open in the user's editor[^]*"c\.ts"[^]*"a\.ts"/)
    assert.lengthOf(newsIn((five ?? []).slice(-1)), 0)
    assert.strictEqual(environmentOf(requests[5]), environmentOf(requests[4]))
    assert.strictEqual(
      six?.filter((text) => /editor/.test(text)).length,
      five?.filter((text) => /editor/.test(text)).length
    )
  })

  it.live("is in full in the request that an automatic compression made room for", function* () {
    const { cwd, fake, home, said } = yield* working({
      settings: { window: 60_000, compressionThreshold: 0.5 },
      script: answering()
    })
    yield* said("Hello.")
    writeFileSync(path.join(home, "ide.json"), JSON.stringify(openFiles(path.join(cwd, "a.ts"))))
    let compressed = false
    for (let seed = 1; seed < 10 && !compressed; seed += 1) {
      const events = yield* said(`${long(seed)}\n${long(seed + 100)}`)
      compressed = events.some((event) => event._tag === "ChatCompressed" && event.status === "COMPRESSED")
    }
    assert.isTrue(compressed)
    const last = (yield* fake.requests).findLast(({ method }) => method === "streamGenerateContent")
    assert.isTrue(textsOf(last).some((text) => text.includes('"a.ts"')))
  })
})

describe("the prompt of a started agent", () => {
  const delegating: FakeGemini.Script = (request) => {
    if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
    if (!instructionOf(request).startsWith("You are Palimpsest")) return calls(["complete_task", { result: "Seen." }])
    const isAnswered = JSON.stringify(bodyOf(request)).includes('"functionResponse"')
    return isAnswered ? says("Well.") : calls(["generalist", { request: "Look at it." }])
  }
  const instructionWith = (settings: object) =>
    Effect.gen(function* () {
      const { fake, said } = yield* working({
        script: delegating,
        settings,
        work: { "GEMINI.md": "Be brief.", ".git/HEAD": "ref: refs/heads/main" }
      })
      yield* said("First.")
      const instructions = (yield* fake.requests)
        .filter(({ method }) => method === "streamGenerateContent")
        .map(instructionOf)
      return instructions.find((text) => !text.startsWith("You are Palimpsest")) ?? "no agent was started"
    })

  it.live(
    "openclaw: is the minimal one where the setting says so, and never has more than that (OpenClaw 2026.9; ours: after the agent's own prompt)",
    function* () {
      const [own, minimal, none] = yield* Effect.forEach(["own", "minimal", "none"], (prompt) =>
        instructionWith({ subagents: { prompt } })
      )
      assert.strictEqual(own, yield* instructionWith({}))
      assert.include(own, "Be brief.")
      assert.notInclude(own, "# What counts as an instruction")
      for (const heading of ["# The task", "# What counts as an instruction", "# Git", "# How you finish"]) {
        assert.include(minimal, heading)
      }
      for (const text of [minimal, none]) {
        assert.notInclude(text, "Be brief.")
        assert.notInclude(text, "You are Palimpsest")
      }
      assert.include(none, "# How you finish")
      assert.notInclude(none, "# The task")
      assert.isAbove(minimal?.length ?? 0, none?.length ?? 0)
    }
  )
})

describe("before and after a compression", () => {
  const rules = "## Red Lines\n\n- Never push."
  const files = { "AGENTS.md": `# House\n\nUse tabs.\n\n${rules}\n`, ".git/HEAD": "ref: refs/heads/main" }
  const isFlush = (request: FakeGemini.FakeRequest) =>
    (textsOf(request).at(-1) ?? "").includes("about to be compressed")

  it.live(
    "openclaw: rules are repeated once after a compression, as a message of the program (OpenClaw 2026.9)",
    function* () {
      const { fake, opened, said } = yield* working({
        script: answering(),
        settings: { repeatRules: { headings: ["Red Lines"] } },
        work: files
      })
      yield* said(long(1))
      yield* said(long(2))
      assert.strictEqual((yield* Effect.orDie(opened.chat.compress()))._tag, "Compressed")
      yield* said("And now?")
      yield* said("And then?")
      const requests = yield* fake.requests
      const told = requests.map((request) => textsOf(request).filter((text) => text.includes(rules)))
      assert.deepStrictEqual(told.slice(0, 2), [[], []])
      for (const texts of told.slice(2)) {
        assert.lengthOf(texts, 1)
        assert.isTrue(texts[0]?.startsWith(runtimeMark))
      }
      const texts = textsOf(requests.at(-1))
      const snapshot = texts.findIndex((text) => text.includes("<state_snapshot>"))
      assert.isAbove(
        texts.findIndex((text) => text.includes(rules)),
        snapshot
      )
      const { conversation } = yield* opened.chat.session
      assert.strictEqual(
        view(conversation).find(({ entry }) => entry.content.parts.some((part) => part.text?.includes(rules)))?.entry
          .author,
        "program"
      )
    }
  )

  it.live("nothing is repeated by default", function* () {
    const { fake, opened, said } = yield* working({ script: answering(), work: files })
    yield* said(long(1))
    yield* said(long(2))
    assert.strictEqual((yield* Effect.orDie(opened.chat.compress()))._tag, "Compressed")
    yield* said("And now?")
    assert.isFalse((yield* fake.requests).flatMap(textsOf).some((text) => text.includes(rules)))
  })

  it.live(
    "openclaw: facts are saved before a compression where the setting says so (OpenClaw 2026.9; ours: a change of memory asks first, as always)",
    function* () {
      const remembering = (settings: object) =>
        Effect.gen(function* () {
          let step = 0
          const { cwd, fake, said } = yield* working({
            script: (request) => {
              if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
              if (step === 0 && !isFlush(request)) return says("Well.")
              step += 1
              return step === 1
                ? calls(["save_memory", { fact: "The port is 8080", scope: "project" }])
                : says(step === 2 ? "NO_REPLY" : "Well.")
            },
            settings: { window: 40_000, ...settings },
            work: files
          })
          yield* said(long(1))
          const events = yield* said(`${long(2)}\n${long(3)}`)
          return { events, fake, memory: readFileSync(path.join(cwd, "AGENTS.md"), "utf8") }
        })
      const saved = yield* remembering({ memoryFlush: true, allowed: ["edit"], approve: "all" })
      assert.include(saved.memory, "- The port is 8080")
      assert.strictEqual(saved.events.at(-1)?._tag, "Finished")
      const denied = yield* remembering({ memoryFlush: true })
      assert.notInclude(denied.memory, "8080")
      assert.strictEqual(denied.events.at(-1)?._tag, "Finished")
      const { fake } = yield* remembering({})
      assert.isFalse((yield* fake.requests).some(isFlush))
      const openclaw = yield* remembering({ strategy: "openclaw", window: 30_000, approve: "all" })
      assert.include(openclaw.memory, "- The port is 8080")
    }
  )
})
