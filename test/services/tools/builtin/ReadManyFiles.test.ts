import { FileSystem } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { readManyFiles } from "../../../../src/services/tools/builtin/ReadManyFiles.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { answerOf, refusalOf, resultOf } from "../../../support/callTool.ts"
import { isUnitTier } from "../../../support/runs.ts"
import { assert, describe, it } from "../../../support/vitest.ts"
import { inMemory, onDisk } from "../../../support/workspaces.ts"

const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 0])

const files = {
  "README.md": "readme\n",
  "src/b.ts": "b\n",
  "src/a.ts": "a\n",
  "src/deep/c.TS": "c\n",
  "src/logo.png": png,
  "src/blob.dat2": Uint8Array.from([0, 1]),
  "app/[id]/page.tsx": "page\n",
  "node_modules/x.ts": "x\n",
  "dist/x.ts": "x\n",
  ".env": "KEY=1\n",
  ".git/HEAD": "ref",
  ".gitignore": "ignored.ts\n",
  "ignored.ts": "i\n",
  "empty/": ""
}

const end = "--- End of content ---"
const block = (file: string, text: string) => `--- /work/${file} ---\n\n${text}\n\n`

describe("read_many_files", () => {
  const cases: ReadonlyArray<readonly [rule: string, args: object, answer: string]> = [
    [
      "gives each file under its path, by path",
      { include: ["src/*.ts", "README.md"] },
      `${block("README.md", "readme\n")}${block("src/a.ts", "a\n")}${block("src/b.ts", "b\n")}${end}`
    ],
    [
      "case does not count, and what is named twice is given once",
      { include: ["**/*.ts", "SRC/A.ts", "src/a.ts"] },
      `${block("src/a.ts", "a\n")}${block("src/b.ts", "b\n")}${block("src/deep/c.TS", "c\n")}${end}`
    ],
    [
      "a folder is all that lies in it; media and what is binary are told to be skipped",
      { include: ["src"] },
      `${block("src/a.ts", "a\n")}${block("src/b.ts", "b\n")}${block("src/deep/c.TS", "c\n")}${end}\n(skipped src/blob.dat2: binary)\n(skipped src/logo.png: image, not requested by name)`
    ],
    [
      "leaves out what is excluded",
      { include: ["src/*.ts"], exclude: ["**/b.*"] },
      `${block("src/a.ts", "a\n")}${end}`
    ],
    [
      "takes a name that looks like a pattern",
      { include: ["app/[id]/page.tsx"] },
      `${block("app/[id]/page.tsx", "page\n")}${end}`
    ],
    [
      "one pattern may stand alone, in the older words",
      { paths: "README.md" },
      `${block("README.md", "readme\n")}${end}`
    ],
    [
      "takes what is usually left out when asked for",
      { include: ["{dist,.env}{,/*}"], useDefaultExcludes: false },
      `${block(".env", "KEY=1\n")}${block("dist/x.ts", "x\n")}${end}`
    ],
    ["keys are left out even by name", { include: [".env"] }, "No files matching .env were found."],
    [
      "takes ignored files when asked for",
      { include: ["ignored.ts"], file_filtering_options: { respect_git_ignore: false } },
      `${block("ignored.ts", "i\n")}${end}`
    ],
    [
      "ignored files are left out even by name",
      { include: ["ignored.ts"] },
      "No files matching ignored.ts were found."
    ],
    ["reports that nothing matched", { include: ["*.rs", "empty"] }, "No files matching *.rs, empty were found."]
  ]
  it.effect.each(cases)("%s", inMemory(files), function* ([, args, answer]) {
    assert.strictEqual(yield* answerOf(yield* readManyFiles, args), answer)
  })

  it.effect.each(["src/*.png", "src/logo.png", "**/logo*"])(
    "attaches requested media: %s",
    inMemory(files),
    function* (include) {
      const { media, value } = yield* resultOf(yield* readManyFiles, { include: [include] })
      assert.strictEqual(value, `${block("src/logo.png", "src/logo.png (image) is attached.")}${end}`)
      assert.deepStrictEqual(media, [
        { inlineData: { mimeType: "image/png", data: Buffer.from(png).toString("base64") } }
      ])
    }
  )

  it.effect(
    "ignored files are left out also where their names begin with two dots",
    inMemory({ ".git/HEAD": "ref", ".gitignore": "*.ts\n", "..x.ts": "x" }),
    function* () {
      const answer = yield* answerOf(yield* readManyFiles, { include: ["..x.ts"] })
      assert.strictEqual(answer, "No files matching ..x.ts were found.")
    }
  )

  it.effect.skipIf(isUnitTier)(
    "stops after 20 MiB",
    inMemory({ "a.txt": "a".repeat(19_000_000), "b.txt": "b".repeat(2_000_000), "c.txt": "c" }),
    function* () {
      const { display, value } = yield* resultOf(yield* readManyFiles, { include: ["*.txt"] })
      const skipped = String(value)
        .split("\n")
        .filter((line) => line.startsWith("(skipped "))
      assert.deepStrictEqual(skipped, ["(skipped c.txt: 20 MiB had been read)"])
      assert.deepStrictEqual(display, {
        _tag: "Text",
        text: "2 files read\na.txt\nb.txt\n1 skipped\nc.txt: 20 MiB had been read"
      })
    }
  )

  it.effect.skipIf(isUnitTier)(
    "reads 2,000 of very many files and counts the rest",
    inMemory(Object.fromEntries(Array.from({ length: 2_050 }, (_, i) => [`${1_000 + i}.txt`, ""]))),
    function* () {
      const result = yield* resultOf(yield* readManyFiles, { include: ["*.txt"] })
      const more = "(50 more files match; only the first 2000 are read: ask for fewer)"
      const answer = String(result.value)
      assert.strictEqual(answer.split("/work/").length - 1, 2_000)
      assert.isTrue(
        answer.endsWith(`--- /work/2999.txt ---\n\n(2999.txt is empty)\n\n${end}\n${more}`),
        answer.slice(-200)
      )
      assert.deepInclude(result.display, { _tag: "Text" })
      assert.include(JSON.stringify(result.display), more)
    }
  )

  it.effect("an unreadable file does not stop the others", onDisk({ "a.txt": "a", "big.txt": "" }), function* () {
    const fs = yield* FileSystem.FileSystem
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const { root } = yield* Workspace
    yield* spawner.exitCode(ChildProcess.make("mkfifo", [`${root}/pipe`]))
    yield* fs.truncate(`${root}/big.txt`, 21 * 1_048_576)
    assert.strictEqual(
      yield* answerOf(yield* readManyFiles, { include: ["pipe", "*.txt"] }),
      `--- ${root}/a.txt ---\n\na\n\n${end}\n(skipped big.txt: big.txt has 21.0 MiB; files of more than 20 MiB cannot be read at once)\n(skipped pipe: pipe is a named pipe; only regular files can be read)`
    )
  })

  const refused: ReadonlyArray<readonly [rule: string, args: unknown, said: string]> = [
    ["no patterns", { include: [] }, "read_many_files was called wrongly: include:"],
    ["an empty pattern", { include: [""] }, "read_many_files was called wrongly: include.0:"],
    ["nothing", {}, "read_many_files was called wrongly: include:"],
    ["a file outside", { include: ["/etc/passwd"] }, "/etc/passwd is outside the workspace"]
  ]
  it.effect.each(refused)("%s is refused in one sentence", inMemory(files), function* ([, args, said]) {
    const message = yield* refusalOf(yield* readManyFiles, args)
    assert.isTrue(message.startsWith(said), message)
    assert.notInclude(message, "\n")
  })
})
