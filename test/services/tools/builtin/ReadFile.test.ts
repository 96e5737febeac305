import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Layer, Path } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"
import { readFile } from "../../../../src/services/tools/builtin/ReadFile.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { answerOf, refusalOf, resultOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"
import { placeOf } from "../../../support/watchedFiles.ts"
import { inMemory, onDisk, temporaryFolder } from "../../../support/workspaces.ts"

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}`).join("\n")
const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)
const png = bytes(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13)

const files = {
  "short.txt": "one\ntwo\n",
  "exact.txt": `${numbered(2_000)}\n`,
  "long.txt": numbered(4_500),
  "wide.txt": `${"x".repeat(2_001)}\nshort\n`,
  "edge.txt": `${"x".repeat(2_000)}\n`,
  "pairs.txt": "😀".repeat(1_001),
  "empty.txt": "",
  "crlf.txt": "one\r\ntwo\r\n",
  "bom.txt": bytes(0xef, 0xbb, 0xbf, 0x68, 0x69),
  "utf16le.txt": bytes(0xff, 0xfe, 0x68, 0, 0x69, 0, 0x0a, 0),
  "utf16be.txt": bytes(0xfe, 0xff, 0, 0x68, 0, 0x69),
  "utf32le.txt": bytes(0xff, 0xfe, 0, 0, 0x68, 0, 0, 0, 0x00, 0xf6, 0x01, 0),
  "latin1.txt": bytes(0x63, 0x61, 0x66, 0xe9),
  "control.txt": bytes(...Array.from({ length: 10 }, (_, i) => (i < 4 ? 1 : 65))),
  "some-control.txt": bytes(...Array.from({ length: 10 }, (_, i) => (i < 3 ? 1 : 65))),
  "image.PNG": png,
  "pointer.png": "version https://git-lfs.github.com/spec/v1\n",
  "paper.pdf": "%PDF-1.4\nhello",
  "sound.mp3": bytes(0x49, 0x44, 0x33, 0, 0),
  "film.mp4": bytes(0, 0, 0, 1),
  "playlist.mp4": "only words\n",
  "program.bin": bytes(1, 2, 3, 0),
  unknown: bytes(0x7f, 0x45, 0x4c, 0x46, 0),
  "archive.zip": "PK no nul here",
  "code.ts": bytes(0x61, 0, 0x62),
  "drawing.svg": "<svg/>",
  "large.svg": `<svg>${" ".repeat(1_048_577)}</svg>`,
  "folder/inside.txt": "x"
}

const withTool = <A, E, R>(
  body: (answer: (args: unknown) => Effect.Effect<string, unknown>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const tool = yield* readFile
    return yield* body((args) => answerOf(tool, args))
  })

describe("read_file", () => {
  const range = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, i) => `line ${first + i}`).join("\n")

  const cases: ReadonlyArray<readonly [rule: string, args: object, answer: string]> = [
    ["a complete text is returned unchanged", { file_path: "short.txt" }, "one\ntwo\n"],
    ["an absolute path is taken", { file_path: "/work/short.txt" }, "one\ntwo\n"],
    ["2,000 lines are a whole text", { file_path: "exact.txt" }, files["exact.txt"]],
    [
      "of more lines the first 2,000 are given, and how to read on",
      { file_path: "long.txt" },
      `This is only part of long.txt: lines 1-2000 of 4500. To read on, call read_file with start_line 2001.\n\n--- CONTENT ---\n${range(1, 2_000)}`
    ],
    [
      "start_line alone gives 2,000 lines from there",
      { file_path: "long.txt", start_line: 2_001 },
      `This is only part of long.txt: lines 2001-4000 of 4500. To read on, call read_file with start_line 4001.\n\n--- CONTENT ---\n${range(2_001, 4_000)}`
    ],
    [
      "the last part says nothing of reading on",
      { file_path: "long.txt", start_line: 4_499, end_line: 9_999 },
      `This is only part of long.txt: lines 4499-4500 of 4500.\n\n--- CONTENT ---\n${range(4_499, 4_500)}`
    ],
    [
      "end_line alone gives lines from the first",
      { file_path: "short.txt", end_line: 1 },
      "This is only part of short.txt: lines 1-1 of 2. To read on, call read_file with start_line 2.\n\n--- CONTENT ---\none"
    ],
    [
      "offset from 0 and limit are the older words",
      { absolute_path: "/work/long.txt", offset: 10, limit: 2 },
      "This is only part of long.txt: lines 11-12 of 4500. To read on, call read_file with start_line 13.\n\n--- CONTENT ---\nline 11\nline 12"
    ],
    ["null is nothing", { file_path: "short.txt", start_line: null, end_line: null }, "one\ntwo\n"],
    [
      "of a line of more than 2,000 characters these are given",
      { file_path: "wide.txt" },
      `This is only part of wide.txt: lines 1-2 of 2. Lines of more than 2,000 characters are cut.\n\n--- CONTENT ---\n${"x".repeat(2_000)}... [truncated]\nshort\n`
    ],
    ["a line of 2,000 is whole", { file_path: "edge.txt" }, files["edge.txt"]],
    ["an empty file is reported as empty", { file_path: "empty.txt" }, "(empty.txt is empty)"],
    ["line breaks become plain", { file_path: "crlf.txt" }, "one\ntwo\n"],
    ["the mark of UTF-8 is no text", { file_path: "bom.txt" }, "hi"],
    ["UTF-16 is read by its mark, little end first", { file_path: "utf16le.txt" }, "hi\n"],
    ["UTF-16 is read by its mark, big end first", { file_path: "utf16be.txt" }, "hi"],
    ["UTF-32 is read by its mark", { file_path: "utf32le.txt" }, "h😀"],
    ["bytes that are no UTF-8 are marked", { file_path: "latin1.txt" }, "caf\uFFFD"],
    [
      "more than three in ten bytes that cannot be printed are binary",
      { file_path: "control.txt" },
      "control.txt is binary (10 bytes) and cannot be shown as text."
    ],
    ["three in ten are not", { file_path: "some-control.txt" }, "\u0001\u0001\u0001AAAAAAA"],
    ["what only bears the name of an image is text", { file_path: "pointer.png" }, files["pointer.png"]],
    ["what only bears the name of a film is text", { file_path: "playlist.mp4" }, files["playlist.mp4"]],
    ["a NUL makes it binary", { file_path: "unknown" }, "unknown is binary (5 bytes) and cannot be shown as text."],
    [
      "an archive is binary by its name",
      { file_path: "archive.zip" },
      "archive.zip is binary (14 bytes) and cannot be shown as text."
    ],
    ["TypeScript is always text", { file_path: "code.ts" }, "a\0b"],
    ["a drawing is text", { file_path: "drawing.svg" }, "<svg/>"],
    [
      "a drawing of more than 1 MiB is not shown",
      { file_path: "large.svg" },
      "large.svg is a drawing (SVG) of more than 1 MiB and is not shown."
    ]
  ]
  it.effect.each(cases)("%s", ([, args, answer]) =>
    withTool((ask) => Effect.map(ask(args), (given) => assert.strictEqual(given, answer))).pipe(
      Effect.provide(inMemory(files))
    )
  )

  const attached: ReadonlyArray<readonly [file: keyof typeof files, mimeType: string, what: string]> = [
    ["image.PNG", "image/png", "image"],
    ["paper.pdf", "application/pdf", "PDF"],
    ["sound.mp3", "audio/mpeg", "audio"],
    ["film.mp4", "video/mp4", "video"]
  ]
  for (const [file, mimeType, what] of attached) {
    it.effect(`attaches ${what} unchanged`, inMemory(files), function* () {
      const { media, value } = yield* resultOf(yield* readFile, { file_path: file })
      const content = files[file]
      const data = Buffer.from(typeof content === "string" ? content : content).toString("base64")
      assert.deepStrictEqual(media, [{ inlineData: { mimeType, data } }])
      assert.strictEqual(value, `${file} (${what}) is attached.`)
    })
  }

  it.effect("splits no surrogate pair", () =>
    withTool((ask) =>
      Effect.map(ask({ file_path: "pairs.txt" }), (given) => {
        assert.isTrue(given.isWellFormed())
        assert.include(given, "... [truncated]")
      })
    ).pipe(Effect.provide(inMemory(files)))
  )

  const refused: ReadonlyArray<readonly [rule: string, args: unknown, said: string]> = [
    ["a file that is not there", { file_path: "none.txt" }, "there is no file none.txt"],
    ["a folder", { file_path: "folder" }, "folder is a folder; use list_directory to list it"],
    ["a path out", { file_path: "../x" }, "../x is outside the workspace; only files in /work may be used"],
    [
      "a line behind the end",
      { file_path: "short.txt", start_line: 3 },
      "short.txt has 2 lines; start_line 3 is after its end"
    ],
    [
      "an end before the start",
      { file_path: "short.txt", start_line: 2, end_line: 1 },
      "end_line 1 is before start_line 2"
    ],
    ["no path", {}, "read_file was called wrongly: file_path:"],
    ["line 0", { file_path: "short.txt", start_line: 0 }, "read_file was called wrongly: start_line:"],
    ["a word for a line", { file_path: "short.txt", start_line: "one" }, "read_file was called wrongly: start_line:"],
    ["a number for a path", { file_path: 7 }, "read_file was called wrongly: file_path:"],
    ["a word for the arguments", "short.txt", "read_file was called wrongly:"]
  ]
  it.effect.each(refused)("%s is refused in one sentence", inMemory(files), function* ([, args, said]) {
    const message = yield* refusalOf(yield* readFile, args)
    assert.isTrue(message.startsWith(said), message)
    assert.notInclude(message, "\n")
  })

  it.effect("refuses more than 20 MiB and reads exactly that", onDisk({}), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    const tool = yield* readFile
    yield* fs.writeFileString(`${root}/big.txt`, "")
    yield* fs.truncate(`${root}/big.txt`, 20 * 1_048_576 + 1)
    assert.strictEqual(
      yield* refusalOf(tool, { file_path: "big.txt" }),
      "big.txt has 20.0 MiB; files of more than 20 MiB cannot be read at once"
    )
    yield* fs.truncate(`${root}/big.txt`, 20 * 1_048_576)
    assert.include(yield* answerOf(tool, { file_path: "big.txt" }), "is binary (20971520 bytes)")
  })
})

describe("read_file opens nothing but regular files", () => {
  it.effect("refuses a named pipe and a device without opening them", onDisk({}), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const tool = yield* readFile
    yield* spawner.exitCode(ChildProcess.make("mkfifo", [`${root}/pipe`]))
    assert.strictEqual(
      yield* refusalOf(tool, { file_path: "pipe" }),
      "pipe is a named pipe; only regular files can be read"
    )
    yield* fs.symlink("/dev/zero", `${root}/zero`)
    assert.include(yield* refusalOf(tool, { file_path: "zero" }), "leads out of the workspace through a link")
  })

  it.effect(
    "refuses a device inside the workspace",
    FileWorkspace.layer({ root: "/dev" }).pipe(Layer.provideMerge(NodeServices.layer)),
    function* () {
      assert.strictEqual(
        yield* refusalOf(yield* readFile, { file_path: "null" }),
        "null is a device; only regular files can be read"
      )
    }
  )
})

/** A file system on which something happens to a file when it has been opened for the n-th time. */
const meddling = (happens: (fs: FileSystem.FileSystem, opened: number) => Effect.Effect<void, unknown>) =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      let opened = 0
      return FileSystem.FileSystem.of({
        ...fs,
        open: (place, options) => Effect.tap(fs.open(place, options), () => Effect.orDie(happens(fs, (opened += 1))))
      })
    })
  ).pipe(Layer.provide(inMemory({ "a.txt": "old", "b.txt": "other" })))

const meddled = (happens: (fs: FileSystem.FileSystem, opened: number) => Effect.Effect<void, unknown>) =>
  FileWorkspace.layer({ root: "/work" }).pipe(Layer.provideMerge(meddling(happens)), Layer.provideMerge(Path.layer))

describe("a file that changes while it is read", () => {
  const changes: ReadonlyArray<
    readonly [name: string, change: (fs: FileSystem.FileSystem) => Effect.Effect<void, unknown>, then: string]
  > = [
    ["grows", (fs) => fs.writeFileString("/work/a.txt", "old and new"), "old and new"],
    ["shrinks", (fs) => fs.writeFileString("/work/a.txt", "o"), "o"],
    ["is replaced by one of the same size", (fs) => fs.rename("/work/b.txt", "/work/a.txt"), "other"]
  ]
  for (const [name, change, then] of changes) {
    it.effect(
      `that ${name} is read again, completely`,
      meddled((fs, opened) => (opened === 1 ? change(fs) : Effect.void)),
      function* () {
        assert.strictEqual(yield* answerOf(yield* readFile, { file_path: "a.txt" }), then)
      }
    )
  }

  it.effect(
    "without end is reported as endless",
    meddled((fs, opened) => fs.writeFileString("/work/a.txt", "x".repeat(opened + 3))),
    function* () {
      assert.strictEqual(
        yield* refusalOf(yield* readFile, { file_path: "a.txt" }),
        "a.txt kept changing while it was read; try again when no program writes to it"
      )
    }
  )

  it.effect(
    "and is removed is reported as missing",
    meddled((fs) => fs.remove("/work/a.txt")),
    function* () {
      assert.strictEqual(yield* refusalOf(yield* readFile, { file_path: "a.txt" }), "there is no file a.txt")
    }
  )

  it.effect("and becomes a link that leads out is not read", onDisk({ "a.txt": "public" }), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    const outside = yield* temporaryFolder
    yield* fs.writeFileString(`${outside}/secret`, "secret")
    const swapping = FileSystem.FileSystem.of({
      ...fs,
      // Between the judgement of the path and its opening.
      open: (place, options) =>
        fs
          .remove(placeOf(place))
          .pipe(
            Effect.andThen(fs.symlink(`${outside}/secret`, `${root}/a.txt`)),
            Effect.andThen(fs.open(place, options))
          )
    })
    const tool = yield* readFile.pipe(Effect.provideService(FileSystem.FileSystem, swapping))
    const message = yield* refusalOf(tool, { file_path: "a.txt" })
    assert.notInclude(message, "secret")
    assert.strictEqual(yield* fs.readFileString(`${root}/a.txt`), "secret")
  })
})
