import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path, Stdio, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { sizeText } from "../../../src/domain/text/NumberText.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { MemoryLimit } from "../../../src/services/transcripts/ChooseReader.ts"
import { goesOnFrom } from "../../../src/services/transcripts/CodexHistory.ts"
import type { LoadOptions } from "../../../src/services/transcripts/LoadedTranscript.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { told } from "../../support/reading.ts"
import { assert, layer } from "../../support/vitest.ts"

/** Rollouts of Codex that go on from another one, as Codex 0.169 writes them. */

const services = Layer.mergeAll(NodeServices.layer, MemoryTempStore.layer, TokenCounter.layerEstimate)

/** The first record of a rollout that goes on from a place in another one. */
const meta = (id: string, thread_id?: string, end_byte_offset?: number) => ({
  type: "session_meta",
  payload: {
    id,
    cwd: "/w",
    history_mode: "paginated",
    ...(thread_id === undefined ? {} : { history_base: { thread_id, end_byte_offset } })
  }
})
const said = (text: string) => ({
  type: "response_item",
  payload: { type: "message", role: "user", content: [{ type: "input_text", text }] }
})
const lines = (...records: ReadonlyArray<object>) => records.map((record) => `${JSON.stringify(record)}\n`).join("")

const origin = lines(meta("a"), said("one"), said("two"), said("three"))
/** The bytes of the origin with two messages. */
const two = lines(meta("a"), said("one"), said("two")).length
const fork = lines(meta("b", "a", two), said("fork"), said("late"))
/** The bytes of the fork with one message. */
const one = lines(meta("b", "a", two), said("fork")).length
/** The user went back in the origin: the same session in another rollout. */
const back = lines(meta("a", "a", lines(meta("a"), said("one")).length), said("other"))

/** Rollouts of one day, by their ids: what they go on from, the place in it, and their words. */
const goingOn = (rollouts: Readonly<Record<string, readonly [from: string, place: number, words: string]>>) =>
  Object.fromEntries(
    Object.entries(rollouts).map(([id, [from, place, words]]) => [
      `sessions/2026/01/03/rollout-2026-01-03T00-00-00-${id}.jsonl`,
      lines(meta(id, from, place), said(words))
    ])
  )

const files = {
  "sessions/2026/01/01/rollout-2026-01-01T00-00-00-a.jsonl": origin,
  "sessions/2026/01/02/rollout-2026-01-02T00-00-00-b.jsonl": fork,
  "sessions/2026/01/02/rollout-2026-01-02T00-00-01-a_r2.jsonl": back,
  "archived_sessions/rollout-2026-01-03T00-00-00-c.jsonl": lines(meta("c", "b", one), said("fork of the fork")),
  ...goingOn({
    d: ["r2", back.length, "after going back"],
    begun: ["b", 0, "anew"],
    // The origin was written anew: it ends before the place, or the place is within a record.
    short: ["a", origin.length + 1, "alone"],
    within: ["a", two - 5, "alone"],
    deep: ["b", 5, "alone"],
    piped: ["pipe", 5, "alone"],
    lost: ["gone", 9, "alone"],
    x: ["y", 1_000, "x"],
    y: ["x", 1_000, "y"]
  }),
  // Copied elsewhere, with what it goes on from beside it.
  "copies/rollout-2026-01-01T00-00-00-a.jsonl": origin,
  "copies/mine.jsonl": fork
}

/** Loads the file whose name ends so; its messages, its session and what was not read. */
const loaded = Effect.fnUntraced(function* (name: string, options?: LoadOptions) {
  const path = yield* Path.Path
  const home = yield* written
  const file = Object.keys(files).find((one) => one.endsWith(name)) ?? name
  const { skipped, transcript } = yield* load(path.join(home, file), options)
  if (transcript === undefined) return assert.fail("no transcript")
  return { id: transcript.session, texts: told(transcript).join(" | ").replaceAll("user: ", ""), skipped }
})

/** Writes the files, and returns their folder. */
const written = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = yield* fs.makeTempDirectoryScoped()
  for (const [file, content] of Object.entries(files)) {
    yield* fs.makeDirectory(path.join(home, path.dirname(file)), { recursive: true })
    yield* fs.writeFileString(path.join(home, file), content)
  }
  execFileSync("mkfifo", [path.join(home, "sessions/rollout-2026-01-03T00-00-00-pipe.jsonl")])
  return home
})

layer(services)("a rollout that goes on from another one", (it) => {
  it.effect.each([
    ["T00-00-00-a.jsonl", "a", "one | two | three"],
    ["T00-00-00-b.jsonl", "b", "one | two | fork | late"],
    ["-a_r2.jsonl", "a", "one | other"],
    ["-c.jsonl", "c", "one | two | fork | fork of the fork"],
    ["-d.jsonl", "d", "one | other | after going back"],
    ["-begun.jsonl", "begun", "anew"],
    ["copies/mine.jsonl", "b", "one | two | fork | late"]
  ] as const)("%s has the messages before its own", function* ([name, id, texts]) {
    const read = yield* loaded(name)
    assert.deepStrictEqual([read.id, read.texts], [id, texts])
  })

  it.effect.each([
    ["-lost.jsonl", "gone", "alone"],
    ["-x.jsonl", "y", "x"],
    ["-short.jsonl", "a", "alone"],
    ["-within.jsonl", "a", "alone"],
    ["-deep.jsonl", "b", "alone"],
    ["-piped.jsonl", "pipe", "alone"]
  ] as const)("%s is refused without them, and read leniently", function* ([name, rollout, texts]) {
    const { message } = yield* Effect.flip(loaded(name))
    assert.include(
      message,
      `line 1: goes on from the rollout ${rollout}, whose file is not among Codex's sessions, or was changed`
    )
    const read = yield* loaded(name, { lenient: true })
    assert.deepStrictEqual(
      [read.texts, read.skipped],
      [texts, { [`records of the rollout ${rollout}, which is missing or was changed`]: 1 }]
    )
  })

  it.effect("from standard input it is refused without them, and read leniently", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(load("-"))
      assert.include(message, "goes on from the rollout a")
      const { transcript } = yield* load("-", { lenient: true })
      assert.deepStrictEqual(transcript && told(transcript), ["user: fork", "user: late"])
    }).pipe(Effect.provide(Stdio.layerTest({ stdin: Stream.make(new TextEncoder().encode(fork)) })))
  )

  it.effect("the memory that reading takes counts the records before its own", function* () {
    const path = yield* Path.Path
    const file = path.join(yield* written, "copies/mine.jsonl")
    const { kind, message } = yield* Effect.flip(Effect.provideService(load(file), MemoryLimit, 1))
    assert.strictEqual(kind, "TooLarge")
    assert.include(message, `a file of ${sizeText(fork.length + two)} takes`)
  })

  it.effect("an error names the file that has the line, and the line there", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = path.join(yield* written, "sessions")
    const broken = '{"type":"response_item","payload":{"type":"message","role":5}}\n'
    const bad = lines(meta("e"), said("one")) + broken
    yield* fs.writeFileString(path.join(folder, "rollout-2026-01-04T00-00-00-e.jsonl"), bad)
    const ofBase = path.join(folder, "rollout-2026-01-04T00-00-00-f.jsonl")
    yield* fs.writeFileString(ofBase, lines(meta("f", "e", bad.length)))
    const own = path.join(folder, "rollout-2026-01-04T00-00-00-g.jsonl")
    const fork = lines(meta("g", "e", bad.length - broken.length)) + broken
    yield* fs.writeFileString(own, fork)
    const ofFork = path.join(folder, "rollout-2026-01-04T00-00-00-h.jsonl")
    yield* fs.writeFileString(ofFork, lines(meta("h", "g", fork.length)))
    assert.include((yield* Effect.flip(load(ofFork))).message, "-g.jsonl, line 2: ")
    const [first, second] = [yield* Effect.flip(load(ofBase)), yield* Effect.flip(load(own))]
    assert.include(first.message, "-e.jsonl, line 3: ")
    assert.include(second.message, "-g.jsonl, line 2: ")
    assert.deepStrictEqual([path.basename(first.path), first.line], ["rollout-2026-01-04T00-00-00-e.jsonl", 3])
  })

  it.effect("a link to a rollout is read like the rollout", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const home = yield* written
    const link = path.join(yield* fs.makeTempDirectoryScoped(), "link.jsonl")
    yield* fs.symlink(path.join(home, "sessions/2026/01/02/rollout-2026-01-02T00-00-00-b.jsonl"), link)
    assert.strictEqual((yield* load(link)).transcript?.steps.length, 4)
    assert.isDefined(yield* goesOnFrom(link))
  })

  it.effect("a link among Codex's sessions is read like the rollout, wherever the file lies", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const home = yield* written
    const store = yield* fs.makeTempDirectoryScoped()
    for (const [at, name] of ["01/rollout-2026-01-01T00-00-00-a", "02/rollout-2026-01-02T00-00-00-b"].entries()) {
      const [link, file] = [path.join(home, `sessions/2026/01/${name}.jsonl`), path.join(store, `${at}`)]
      yield* fs.rename(link, file)
      yield* fs.symlink(file, link)
      if (at === 0) assert.isDefined(yield* goesOnFrom(link))
      else assert.strictEqual((yield* load(link)).transcript?.steps.length, 4)
    }
  })

  it.effect("a file that another rollout goes on from is known", function* () {
    const path = yield* Path.Path
    const home = yield* written
    const other = (name: string) =>
      Effect.map(goesOnFrom(path.join(home, name)), (file) => file && path.basename(file, ".jsonl").split("-").at(-1))
    assert.strictEqual(yield* other("copies/rollout-2026-01-01T00-00-00-a.jsonl"), "mine")
    assert.strictEqual(yield* other("sessions/2026/01/02/rollout-2026-01-02T00-00-01-a_r2.jsonl"), "d")
    assert.strictEqual(yield* other("sessions/2026/01/03/rollout-2026-01-03T00-00-00-d.jsonl"), undefined)
  })
})
