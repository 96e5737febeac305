import { Effect, FileSystem, Layer, Schema } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import { maxKeptFileBytes } from "../../../src/domain/session/ChangedFiles.ts"
import { applyEvents, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import * as PersistentList from "../../../src/domain/text/PersistentList.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import * as FileRewind from "../../../src/services/runtime/FileRewind.ts"
import { FileRecorder } from "../../../src/services/tools/builtin/FileChange.ts"
import { writeFile } from "../../../src/services/tools/builtin/WriteFile.ts"
import { Workspace } from "../../../src/services/workspace/Workspace.ts"
import { callTool } from "../../support/callTool.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { inMemory } from "../../support/workspaces.ts"

const here = (files: Readonly<Record<string, string>>) => Layer.merge(inMemory(files), Layer.fresh(Offline.layer))

/** A chat whose tool writes files, and the files as they are. */
const working = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const workspace = yield* Workspace
  const events: Array<SessionEvent> = []
  const log = { append: (event: SessionEvent) => Effect.sync(() => void events.push(event)) }
  const chat = yield* Chat.make({ log, session: { ...emptySession, model: "gemini-2.5-flash" } })
  const tool = yield* Effect.provideService(writeFile, FileRecorder, FileRewind.recorderOf(chat, "tool"))
  const rewind = yield* FileRewind.make(chat, workspace)
  const say = Effect.map(chat.append([{ content: user(text("Go on.")) }]), ([entry]) => entry?.id ?? "")
  const write = (name: string, content: string) => callTool(tool, { file_path: name, content })
  const files = Effect.gen(function* () {
    const held: Record<string, string> = {}
    for (const name of (yield* fs.readDirectory("/work")).toSorted()) {
      held[name] = yield* fs.readFileString(`/work/${name}`)
    }
    return held
  })
  const goBack = Effect.fnUntraced(function* (sequence: number, overwrites = false) {
    return yield* rewind.restore(yield* rewind.survey({ _tag: "Before", sequence }), overwrites)
  })
  return { chat, events, fs, rewind, say, write, files, goBack }
})

const Step = Schema.Struct({
  file: Schema.Literals(["a.txt", "b.txt", "c.txt", "new.txt"]),
  kind: Schema.Literals(["write", "write", "write", "message", "message", "rewind", "undo"]),
  number: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
})

describe("rewinding files", () => {
  it.effect.prop(
    "after any tool calls and rewinds, the files are as they were when the message was sent",
    [Schema.Array(Step).check(Schema.isMaxLength(25))],
    ([steps]) =>
      Effect.gen(function* () {
        const { chat, events, files, goBack, rewind, say, write } = yield* working
        const seen: Array<Record<string, string>> = []
        let beforeRewind: Record<string, string> | undefined
        for (const { file, kind, number } of steps) {
          if (kind === "write") yield* write(file, `${number}\n`)
          if (kind === "message") {
            seen.push(yield* files)
            yield* say
          }
          if (kind === "rewind" && seen.length > 0) {
            const index = number % seen.length
            const before = yield* files
            const done = yield* goBack(index + 1)
            assert.deepStrictEqual(yield* files, seen[index])
            if (done.length > 0) beforeRewind = before
          } else if (kind === "undo" && beforeRewind !== undefined) {
            yield* rewind.restore(yield* rewind.survey({ _tag: "LastRewind" }), false)
          }
        }
        for (const [index, then] of [...seen.entries()].reverse()) {
          yield* goBack(index + 1)
          assert.deepStrictEqual(yield* files, then)
        }
        // What the log says is what the chat knows.
        const restored = applyEvents(emptySession, events)
        const { changes } = yield* chat.whole
        assert.deepStrictEqual(PersistentList.toArray(restored.changes), PersistentList.toArray(changes))
      }).pipe(Effect.provide(here({ "a.txt": "first a\n", "b.txt": "first b\n" }))),
    { arbitrary: { runs: runsOf(80) } }
  )

  it.effect("undoes the last rewind", here({ "a.txt": "first\n" }), function* () {
    const { files, goBack, rewind, say, write } = yield* working
    yield* say
    yield* write("a.txt", "changed\n")
    yield* write("made.txt", "made\n")
    const after = yield* files
    assert.deepStrictEqual(yield* goBack(1), [
      { shown: "a.txt", outcome: "restored" },
      { shown: "made.txt", outcome: "removed" }
    ])
    assert.deepStrictEqual(yield* files, { "a.txt": "first\n" })
    yield* rewind.restore(yield* rewind.survey({ _tag: "LastRewind" }), false)
    assert.deepStrictEqual(yield* files, after)
  })

  it.effect(
    "leaves files that others changed, unless they are to be overwritten, and keeps what it overwrites",
    here({ "a.txt": "a\n", "b.txt": "b\n" }),
    function* () {
      const { files, fs, goBack, rewind, say, write } = yield* working
      yield* say
      yield* write("a.txt", "tool\n")
      yield* write("b.txt", "tool\n")
      yield* write("gone.txt", "tool\n")
      yield* fs.writeFileString("/work/a.txt", "user\n")
      yield* fs.remove("/work/gone.txt")
      const survey = yield* rewind.survey({ _tag: "Before", sequence: 1 })
      assert.deepStrictEqual(
        survey.map(({ shown, state }) => [shown, state]),
        [
          ["a.txt", "changed"],
          ["b.txt", "ours"]
        ]
      )
      assert.deepStrictEqual(yield* goBack(1), [
        { shown: "a.txt", outcome: "left" },
        { shown: "b.txt", outcome: "restored" }
      ])
      assert.deepStrictEqual(yield* files, { "a.txt": "user\n", "b.txt": "b\n" })
      yield* goBack(1, true)
      assert.deepStrictEqual(yield* files, { "a.txt": "a\n", "b.txt": "b\n" })
      yield* rewind.restore(yield* rewind.survey({ _tag: "LastRewind" }), false)
      assert.deepStrictEqual(yield* files, { "a.txt": "user\n", "b.txt": "tool\n" })
    }
  )

  it.effect(
    "names the files that other programs wrote since, except ignored ones and those that tools changed",
    here({
      "old.txt": "",
      "shell.txt": "",
      "sub/made.txt": "",
      "noise.log": "",
      ".gitignore": "*.log\n",
      ".git/HEAD": ""
    }),
    function* () {
      const { fs, rewind, say, write } = yield* working
      yield* say
      yield* write("tool.txt", "tool\n")
      const target = { _tag: "Before", sequence: 1 } as const
      yield* fs.utimes("/work/old.txt", 1, 1)
      yield* fs.utimes("/work/.gitignore", 1, 1)
      yield* fs.utimes("/work/tool.txt", 9, 9)
      for (const name of ["shell.txt", "sub/made.txt", "noise.log"]) yield* fs.utimes(`/work/${name}`, 9, 9)
      assert.deepStrictEqual(yield* rewind.unrecorded(target, 5_000), ["shell.txt", "sub/made.txt"])
      assert.deepStrictEqual(yield* rewind.unrecorded(target, 9_000), [])
    }
  )

  it.effect(
    "does not keep a file that is too large, and says so",
    here({ "large.txt": "x".repeat(maxKeptFileBytes + 1) }),
    function* () {
      const { files, goBack, say, write } = yield* working
      yield* say
      yield* write("large.txt", "small now\n")
      assert.deepStrictEqual(yield* goBack(1), [
        { shown: "large.txt", outcome: "failed", problem: "its earlier version is not kept" }
      ])
      assert.deepStrictEqual(yield* files, { "large.txt": "small now\n" })
    }
  )
})
