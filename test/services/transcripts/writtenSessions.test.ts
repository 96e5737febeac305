import { Effect, FileSystem, Layer, Path, Stdio } from "effect"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entries, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { FormatName, type Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { BlobFolder, TempStore } from "../../../src/services/session/TempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { environmentSecrets, secretsOfEvents } from "../../../src/services/transcripts/FindSecrets.ts"
import { importTranscript } from "../../../src/services/transcripts/ImportTranscript.ts"
import { redactFile, redactLoaded } from "../../../src/services/transcripts/RedactSession.ts"
import * as Export from "../../../src/services/transcripts/TranscriptExport.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Sessions in files of every format, on a disk in memory: written, read back with what they dropped, written again, and without their secrets. */

const large = "a line of a long result\n".repeat(1_000)
const secret = "ghp_0123456789abcdefABCDEF0123456789abcd"
const said = (content: ReturnType<typeof user>, at: number): Transcript["steps"][number] => ({
  _tag: "Message",
  draft: { content, at }
})
const transcript: Transcript = {
  format: "claude",
  session: "0190a000-0000-7000-8000-0000000000ab",
  cwd: "/home/margarete/p",
  model: "claude-sonnet-4-5",
  steps: [
    said(user(text("When is high water?")), 1_000),
    said(model(text("I look."), call("read", { path: "tides.txt" }, "c1")), 2_000),
    said(user(response("read", { output: large }, "c1")), 3_000),
    {
      _tag: "Compaction",
      insert: [{ content: user(text("They asked for tides.")), author: "summary" }],
      keptFrom: undefined,
      trigger: "auto",
      tokensBefore: undefined
    },
    said(user(text(`The token is ${secret}.`)), 4_000),
    said(model(text("Thanks.")), 5_000)
  ],
  skipped: {}
}

const disk = Layer.mergeAll(MemoryFileSystem.layer({ "/w/": "" }), Path.layer)
/** Blobs as files of the disk in memory, whose folders cannot be flushed. */
const blobs = Layer.effect(
  BlobFolder,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const store = yield* TempStore
    const at = (folder: string) =>
      Layer.succeed(TempStore, {
        ...store,
        put: (bytes) =>
          Effect.tap(store.hash(bytes), (hash) =>
            Effect.orDie(
              Effect.andThen(fs.makeDirectory(folder, { recursive: true }), fs.writeFile(`${folder}/${hash}`, bytes))
            )
          )
      })
    return { at }
  })
)
const memory = Layer.mergeAll(disk, TokenCounter.layerEstimate, MemoryTempStore.layer, Stdio.layerTest({}))
const services = Layer.provideMerge(blobs, memory)

const names: Readonly<Record<string, string>> = { contents: "talk.json" }

describe.each(FormatName.literals)("a session written as %s", (format) => {
  const file = `/w/${names[format] ?? "talk.jsonl"}`
  it.effect("is read back whole, and a second write leaves nothing of the first", services, function* () {
    const fs = yield* FileSystem.FileSystem
    const events = yield* importTranscript(transcript)
    const first = yield* Export.write(file, format, events.slice(0, 4))
    const unheld = yield* Export.write(file, format, events)
    const loaded = yield* load(file)
    assert.deepStrictEqual(loaded.events, events)
    assert.strictEqual(loaded.format, format)
    assert.strictEqual(loaded.session.started?.cwd, "/home/margarete/p")
    assert.deepStrictEqual([first, unheld], [{}, format === "contents" ? { "message before a compaction": 3 } : {}])
    // The file, and in its folder the large text and the log of a format that is not ours.
    const left = yield* fs.readDirectory("/w", { recursive: true })
    assert.deepStrictEqual(left.map((name) => name.replace(/[a-z2-7]{52}/, "#").replace(/^talk[^/]*/, "talk")).sort(), [
      "talk",
      "talk",
      "talk/#",
      ...(format === "palimpsest" ? [] : ["talk/#.jsonl"])
    ])
    const whole = (yield* fs.readFileString(file)).trimEnd().split("\n")
    const lines = yield* Export.lines(format, events)
    if (format !== "palimpsest") assert.deepStrictEqual(lines, whole)
    else {
      yield* fs.writeFileString("/w/alone.jsonl", lines.join("\n"))
      assert.deepStrictEqual((yield* load("/w/alone.jsonl")).events, events)
    }
    // Changed by another program: what stands there is read, and our log is what is beside it.
    yield* fs.writeFileString(file, `${whole.join("\n")}\n\n`)
    const changed = yield* load(file)
    assert.strictEqual(
      changed.sidecar?.started?.session,
      format === "palimpsest" ? undefined : loaded.session.started?.session
    )
    const texts = (one: typeof changed) => projectMessages(one.session.conversation).map(({ content }) => content)
    assert.deepStrictEqual(texts(changed).at(-1), texts(loaded).at(-1))
  })
})

it.effect("shows a result as the agent's model saw it, and recalls it whole", services, function* () {
  const shown = new Map([
    ["c1", "<persisted-output>\nPreview: a line\n</persisted-output>"],
    ["absent", ""]
  ])
  const events = yield* importTranscript({ ...transcript, steps: transcript.steps.slice(0, 3), shown })
  yield* Export.write("/w/talk.jsonl", "claude", events)
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFileString("/w/alone.jsonl", yield* fs.readFileString("/w/talk.jsonl"))
  const { session } = yield* load("/w/alone.jsonl")
  const { conversation } = session
  assert.include(JSON.stringify(projectMessages(conversation)), "Preview: a line")
  assert.notInclude(JSON.stringify(projectMessages(conversation)), "a line of a long result")
  assert.isBelow(viewTokens(conversation), 200)
  assert.deepStrictEqual(entries(conversation)[2]?.content, user(response("read", { output: large }, "c1")))
  // A call may have the name of something that every object has.
  const inherited = [model(call("read", {}, "constructor")), user(response("read", { output: large }, "constructor"))]
  const steps = [...transcript.steps.slice(0, 3), ...inherited.map((content) => said(content, 4_000))]
  const written = yield* Export.lines("claude", yield* importTranscript({ ...transcript, steps, shown }))
  assert.strictEqual(written.filter((line) => line.includes("content-replacement")).length, 1)
  // A result that is shorter than what was shown stays.
  const long = yield* importTranscript({ ...transcript, shown: new Map([["c1", large.repeat(2)]]) })
  assert.notInclude(JSON.stringify(long), '"bounded"')
})

describe("a session without its secrets", () => {
  const search = {
    secrets: true,
    personal: true,
    known: environmentSecrets({ TIDE_PASSWORD: "correct-horse" }),
    accounts: []
  }
  it.effect("says the same in other words, and names what it recalls anew", services, function* () {
    const file = "/w/talk.jsonl"
    yield* Export.write(file, "palimpsest", yield* importTranscript(transcript))
    const loaded = yield* load(file)
    const { places, values } = yield* secretsOfEvents(loaded.events, "talk", search)
    assert.deepStrictEqual(places, [{ path: "talk", line: 4, kind: "GitHub token", isPersonal: false, count: 1 }])
    assert.strictEqual(values, 1)
    const { inText, loaded: copy, replaced } = yield* redactLoaded(loaded, search)
    const [before, after] = [loaded, copy].map(({ events }) =>
      JSON.stringify(events).replace(/h_[a-z2-7]{10,52}/g, "h")
    )
    assert.strictEqual(
      after,
      before
        ?.replaceAll(secret, "[redacted: GitHub token #1]")
        .replaceAll("/home/margarete", "[redacted: home folder #1]")
    )
    // A part that is another one has another handle.
    const [parts, handles] = (["content", "handles"] as const).map((of) => {
      const [old = [], made = []] = [loaded, copy].map(({ session }) =>
        entries(session.conversation)
          .flatMap((entry): ReadonlyArray<unknown> => (of === "handles" ? entry.handles : entry.content.parts))
          .map((each) => JSON.stringify(each))
      )
      return old.map((each, at) => each === made[at])
    })
    assert.deepStrictEqual(parts, handles)
    assert.strictEqual(replaced, 2)
    assert.strictEqual(inText(`margarete has ${secret}`), "[redacted: account #1] has [redacted: GitHub token #1]")
    // A file of records, one of them broken.
    const { secrets } = yield* secretsOfEvents(loaded.events, "talk", search)
    const lines = ['{"a":"correct-horse"}', `{"b":"${secret}`, "more", '{"c":1}', ""].join("\n")
    assert.deepStrictEqual(yield* redactFile(lines, secrets), {
      copy: lines
        .replace("correct-horse", "[redacted: TIDE_PASSWORD #1]")
        .replace(secret, "[redacted: GitHub token #1]"),
      replaced: 2,
      unsearched: [{ place: "line 2", what: "broken record" }]
    })
  })
})
