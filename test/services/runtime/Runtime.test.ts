import { Effect, Layer, Result, Stream } from "effect"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { call, model, plainText } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as LiveRuntime from "../../../src/layers/assembly/LiveRuntime.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import * as Runtime from "../../../src/services/runtime/Runtime.ts"
import { noticeText, type RuntimeNotice } from "../../../src/services/runtime/RuntimeNotice.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The assembled agent as another program holds it: nothing here is of the command line. */

const answer = (content: ReturnType<typeof model>) => ({ content, finishReason: "STOP", usage: null }) as const

const writes = answer(model(call("write_file", { file_path: "notes.md", content: "Written.\n" }, "1")))

const machine = (folder: string, script: Parameters<typeof ScriptedModel.layer>[0]) =>
  LiveRuntime.layer({ folder, home: path.join(folder, ".home"), model: ScriptedModel.layer(script) })

const newFolder = () => mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "runtime-"))

const texts = (agent: Runtime.AssembledAgent, message: string) =>
  agent.send(message).pipe(
    Stream.runCollect,
    Effect.map((events) => events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join(""))
  )

describe("an agent in a folder", () => {
  it.live("runs tools, and calls the handler before a change", () => {
    const folder = newFolder()
    const asked: Array<string> = []
    const program = Effect.gen(function* () {
      const agent = yield* Runtime.Runtime
      assert.strictEqual(yield* texts(agent, "Write a note."), "I wrote it.")
      assert.deepStrictEqual(asked, ["write_file notes.md"])
      assert.strictEqual(readFileSync(path.join(folder, "notes.md"), "utf8"), "Written.\n")
      assert.isUndefined(agent.id)
    })
    const agent = Runtime.layer({
      handlers: {
        notify: () => Effect.void,
        ask: ({ title }) => {
          asked.push(title)
          return Effect.succeed({ _tag: "Once" } as const)
        }
      }
    })
    return program.pipe(Effect.provide(Layer.provide(agent, machine(folder, [writes, "I wrote it."]))))
  })

  it.live("changes nothing without a handler: the model gets the denial", () => {
    const folder = newFolder()
    return Effect.gen(function* () {
      const agent = yield* Runtime.make()
      assert.strictEqual(yield* texts(agent, "Write a note."), "I may not.")
      assert.isFalse(existsSync(path.join(folder, "notes.md")))
    }).pipe(Effect.scoped, Effect.provide(machine(folder, [writes, "I may not."])))
  })

  it.live("stores a named session, releases it with its scope, and resumes it", () => {
    const folder = newFolder()
    const named = (script: Parameters<typeof ScriptedModel.layer>[0], message: string) =>
      Effect.gen(function* () {
        const agent = yield* Runtime.make({ session: { _tag: "Named", name: "release" }, tools: false })
        const said = yield* texts(agent, message)
        return {
          said,
          isNew: agent.isNew,
          words: entries(yield* agent.chat.conversation).map((e) => plainText(e.content))
        }
      }).pipe(Effect.scoped, Effect.provide(machine(folder, script)))
    return Effect.gen(function* () {
      const first = yield* named(["One."], "First.")
      assert.isTrue(first.isNew)
      const locks = readdirSync(path.join(folder, ".home", "sessions")).filter((name) => name.endsWith(".lock"))
      assert.deepStrictEqual(locks, [])
      const second = yield* named(["Two."], "Second.")
      assert.isFalse(second.isNew)
      assert.includeMembers(second.words, ["First.", "One.", "Second.", "Two."])
    })
  })

  it.live.each(["before it is looked for", "after it was found"])(
    "a stored session that is deleted %s is not begun anew, and none with its name is taken",
    (when) =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        for (const name of ["one", "two"]) {
          const made = Runtime.make({ session: { _tag: "Named", name }, tools: false })
          yield* Effect.scoped(Effect.flatMap(made, (agent) => texts(agent, "First.")))
        }
        const deleted = yield* store.summary("one")
        yield* store.remove("one")
        yield* store.rename("two", "one")
        const summary = when === "after it was found" ? () => Effect.succeed(deleted) : store.summary
        const error = yield* Runtime.make({ session: { _tag: "Stored", id: "one" }, tools: false }).pipe(
          Effect.provideService(SessionStore, { ...store, summary }),
          Effect.scoped,
          Effect.flip
        )
        assert.deepInclude(error, { _tag: "SessionStoreError" })
        assert.include(error.message, "one")
        assert.deepStrictEqual(yield* store.list, ["two"])
      }).pipe(Effect.provide(machine(newFolder(), () => "One.")))
  )
})

describe("the strategy", () => {
  for (const [where, options, settings, expected] of [
    ["the default", {}, {}, "palimpsest"],
    ["that of the settings", {}, { strategy: "gemini" }, "gemini"],
    ["the option's, over the settings", { strategy: "pi" }, { strategy: "gemini" }, "pi"]
  ] as const) {
    it.live(`is ${where}`, () => {
      const folder = newFolder()
      mkdirSync(path.join(folder, ".home"))
      writeFileSync(path.join(folder, ".home", "settings.json"), JSON.stringify(settings))
      return Effect.gen(function* () {
        const { chat } = yield* Runtime.make({ ...options, tools: false })
        assert.strictEqual((yield* chat.settings).policy?.strategy, expected)
      }).pipe(Effect.scoped, Effect.provide(machine(folder, [])))
    })
  }
})

describe("failures", () => {
  const failure = (options: Runtime.RuntimeOptions) =>
    Runtime.make(options).pipe(
      Effect.result,
      Effect.map((result) => (Result.isFailure(result) ? result.failure : undefined)),
      Effect.scoped,
      Effect.provide(machine(newFolder(), []))
    )

  it.live("a missing session is a tagged error with its name", function* () {
    const empty = yield* failure({ session: { _tag: "Resume", name: "gone" } })
    assert.deepInclude(empty, { _tag: "SessionSelectionError", name: "gone", problem: { _tag: "NoSessions" } })
    const invalid = yield* failure({ session: { _tag: "Named", name: "not an id" } })
    assert.deepInclude(invalid, { _tag: "SessionSelectionError", problem: { _tag: "InvalidId" } })
  })

  const options: ReadonlyArray<readonly [options: object, told: string]> = [
    [{ threshold: 7 }, "threshold is 7; expected a fraction from 0 to 1"],
    [{ threshold: Number.NaN }, "threshold is NaN; expected a fraction from 0 to 1"],
    [{ strategy: "nope" }, 'strategy is "nope"; expected palimpsest or gemini or pi or openclaw'],
    [{ model: 5 }, "model is 5; expected the name of a model"],
    [{ model: "" }, 'model is ""; expected the name of a model'],
    [{ compressionModel: [] }, "compressionModel is a list; expected the name of a model, or several names"]
  ]
  it.live.each(options)("an option that no conversation can have is named: %j", function* ([given, told]) {
    for (const session of [undefined, { _tag: "Named", name: "new" }] as const) {
      const error = yield* failure({ ...given, session })
      assert.deepStrictEqual([error?._tag, error?.message], ["InvalidOption", told])
    }
  })

  it.live("an unusable folder is named", function* () {
    const error = yield* failure({ addDir: ["/not/there"] })
    assert.strictEqual(error?._tag, "WorkspaceFolderError")
    assert.include(error?.message, "/not/there")
  })

  it("notices describe the event without mentioning flags", () => {
    const notices: ReadonlyArray<RuntimeNotice> = [
      { _tag: "UntrustedFolder", files: ["GEMINI.md"], more: 2 },
      { _tag: "UntrustedMemory", file: "../GEMINI.md" },
      {
        _tag: "Settings",
        notice: { text: "/w/settings.json is ignored: the folder is not trusted", isUntrusted: true }
      },
      { _tag: "UnknownModel", model: "nope", window: 32_768 },
      { _tag: "MoreMemoryProblems", count: 3 },
      { _tag: "ApprovalUnavailable", title: "write_file .git/config", because: "git runs it" }
    ]
    assert.deepStrictEqual(notices.map(noticeText), [
      "this folder is not trusted, so GEMINI.md and 2 more are not loaded",
      "../GEMINI.md: its folder is not trusted, so it is ignored",
      "/w/settings.json is ignored: the folder is not trusted",
      "the model nope is not known here; a window of 32,768 tokens is assumed",
      "3 more memory files have problems",
      "write_file .git/config needs approval, because git runs it"
    ])
  })
})
