import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Fiber, FileSystem, Layer, Path } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import { entries, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { logVersion, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { estimatorVersion } from "../../../src/domain/tokens/Tokens.ts"
import { FormatName } from "../../../src/domain/transcripts/Transcript.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { HandleIndex, makeEntry } from "../../../src/services/session/EntryBuilder.ts"
import { BlobFolder, blobFolderOf } from "../../../src/services/session/TempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import * as Export from "../../../src/services/transcripts/TranscriptExport.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { isUnitTier } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A log of three messages, one of them large enough for a blob. Made once. */
const events = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const held = new HandleIndex()
      const list: Array<SessionEvent> = [
        { _tag: "Started", version: logVersion, session: "export-test", at: 0, estimator: estimatorVersion }
      ]
      for (const [index, words] of ["first", "large ".repeat(4_000), "third"].entries()) {
        const entry = yield* makeEntry({ content: user(text(words)) }, entryId(index + 1), held)
        list.push({ _tag: "Appended", entry })
      }
      return list
    }).pipe(Effect.provide(Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)))
  )
)

const blobFolder = Layer.effect(
  BlobFolder,
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (platform) => ({
    at: (folder: string) => Layer.provide(FileTempStore.layer(folder), Layer.succeedContext(platform))
  }))
)

const files = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  return (yield* fs.readDirectory(folder, { recursive: true })).sort()
})

const reading = Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)

/** Exports into a folder with one fault in its file system; what is there before and after. */
const attempt = Effect.fnUntraced(function* (
  format: FormatName,
  fault: FaultyFileSystem.Fault,
  hangs: boolean,
  old: string | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped()
  const file = path.join(folder, "talk.jsonl")
  const blobs = path.basename(blobFolderOf(file))
  if (old !== undefined) {
    yield* fs.writeFileString(file, old)
    yield* fs.makeDirectory(path.join(folder, blobs))
    yield* fs.writeFileString(path.join(folder, blobs, "older"), "large")
  }
  const before = yield* files(folder)
  const faulty = yield* FaultyFileSystem.make(fault)
  const list = yield* events
  const write = Export.write(file, format, list).pipe(Effect.provide(blobFolder.pipe(Layer.provideMerge(faulty.layer))))
  const fiber = yield* Effect.forkChild(write)
  if (hangs) yield* faulty.interrupt(fiber)
  const exit = yield* Fiber.await(fiber)
  const calls = (yield* faulty.calls).filter(({ mutating }) => mutating !== undefined).length
  return { exit, calls, file, before, left: yield* files(folder) }
})

describe("Export.write", () => {
  for (const format of FormatName.literals) {
    for (const [name, verdict] of [
      ["fails", "fail"],
      ["stops half-way", "half"],
      ["hangs and is interrupted", "hang"]
    ] as const) {
      // All forms but our own take one way to the disk, with other lines: one of them is tried with every fault.
      const isOther = format !== "palimpsest" && format !== "claude"
      if (verdict !== "fail" && isOther) continue
      // The unit tier tries ours, and once what a form of others adds.
      if (isUnitTier && (format === "palimpsest" ? verdict === "half" : format !== "claude" || verdict !== "fail"))
        continue
      it.effect(
        `${format}: whichever disk call ${name}, the file is the old or the new one, without leftovers`,
        NodeServices.layer,
        function* () {
          const fs = yield* FileSystem.FileSystem
          let n = 1
          for (let more = true; more; n += 1) {
            for (const old of [undefined, "old"]) {
              const ended = yield* attempt(format, FaultyFileSystem.nthMutating(n, verdict), verdict === "hang", old)
              more = ended.calls >= n
              const written = ended.left.includes("talk.jsonl") ? yield* fs.readFileString(ended.file) : undefined
              if (written === old) {
                assert.isTrue(Exit.isFailure(ended.exit), `call ${n}`)
                assert.deepStrictEqual(ended.left, ended.before, `call ${n}`)
              } else {
                const { session } = yield* load(ended.file).pipe(Effect.provide(reading))
                assert.strictEqual(entries(session.conversation).length, 3)
                assert.isEmpty(
                  ended.left.filter((one) => one.endsWith(".tmp")),
                  `call ${n}`
                )
              }
            }
          }
          assert.isAbove(n, 6)
        }
      )
    }
  }

  it.effect("reports a damaged disk in one line", NodeServices.layer, function* () {
    const { exit } = yield* attempt("palimpsest", FaultyFileSystem.nthMutating(2, "fail"), false, undefined)
    const message = Exit.isFailure(exit) ? String(exit.cause) : ""
    assert.match(message, /cannot be written: .*injected fault/)
  })
})

it.effect(
  "the place of a file is refused where a rename would remove something else than a file, or a file that is read-only",
  NodeServices.layer,
  function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    const at = (name: string) => path.join(folder, name)
    yield* fs.writeFileString(at("file"), "old")
    yield* fs.writeFileString(at("kept"), "old")
    yield* fs.chmod(at("kept"), 0o444)
    yield* fs.symlink(at("file"), at("link"))
    yield* fs.symlink(at("missing"), at("dangling"))
    const refusals: ReadonlyArray<readonly [place: string, why: RegExp]> = [
      ["-", /: it stands for standard input; name a file/],
      [folder, /: it is a folder; name a file in it$/],
      [at("link"), /: it is a link to .+; name the file itself$/],
      [at("dangling"), /: it is a link to .+; name the file itself$/],
      [at("kept"), /: it is read-only$/],
      [at("none/file"), /: the folder .+ does not exist; make it first$/],
      ...(process.platform === "win32" ? [] : [["/dev/null", /: it is not a regular file$/] as const])
    ]
    for (const [place, why] of refusals) {
      for (const refused of [Export.checkPlace(place), Export.writeText(place, "new")]) {
        assert.match((yield* Effect.flip(refused)).message, why)
      }
    }
    yield* Export.writeText(at("file"), "new")
    assert.deepStrictEqual([yield* fs.readFileString(at("file")), yield* fs.readFileString(at("kept"))], ["new", "old"])
    assert.strictEqual(yield* fs.readLink(at("link")), at("file"))
  }
)
