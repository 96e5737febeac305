import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, FileSystem, Layer } from "effect"
import { decode } from "../../../../src/domain/text/Bytes.ts"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"
import { SteeringSettings } from "../../../../src/services/tools/builtin/FileChange.ts"
import { UnescapesContent, writeFile } from "../../../../src/services/tools/builtin/WriteFile.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import * as FaultyFileSystem from "../../../support/FaultyFileSystem.ts"
import { interruptSweep } from "../../../support/interruptSweep.ts"
import { assert, layer } from "../../../support/vitest.ts"
import { temporaryFolder, writeFiles } from "../../../support/workspaces.ts"
import { workspace } from "./editing.ts"

layer(NodeServices.layer)("write_file", (it) => {
  it.effect("returns the diff and the file's name; creates folders", function* () {
    const { layer: here, mode, names, place, read } = yield* workspace()
    const tool = yield* Effect.provide(writeFile, here)
    const { question, result, title } = yield* callTool(tool, {
      file_path: "docs/new/test.md",
      content: "This is a test file.\n"
    })
    const diff = "--- a/test.md\n+++ b/test.md\n@@ -0,0 +1 @@\n+This is a test file.\n"
    assert.strictEqual(title, "write_file docs/new/test.md")
    assert.deepStrictEqual(question, {
      detail: diff,
      touches: [place("docs/new/test.md")],
      grants: [`edit in ${place(".")}`],
      covers: "edits of files in this folder"
    })
    assert.deepStrictEqual(result.value, { fileDiff: diff, fileName: "test.md" })
    assert.deepStrictEqual(result.display, { _tag: "Diff", file: "docs/new/test.md", diff, added: 1, removed: 0 })
    assert.strictEqual(yield* read("docs/new/test.md"), "This is a test file.\n")
    assert.deepStrictEqual(yield* names, ["docs", "docs/new", "docs/new/test.md"])
    assert.strictEqual((yield* mode("docs/new/test.md")) & 0o600, 0o600)
  })

  it.effect("keeps a file's mode and a link", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, mode, place, read } = yield* workspace({ "run.sh": "old\n" })
    yield* fs.chmod(place("run.sh"), 0o751)
    yield* fs.symlink(place("run.sh"), place("link.sh"))
    const tool = yield* Effect.provide(writeFile, here)
    yield* callTool(tool, { file_path: "link.sh", content: "new\n" })
    assert.strictEqual(yield* read("run.sh"), "new\n")
    assert.strictEqual(yield* mode("run.sh"), 0o751)
    assert.strictEqual(yield* fs.readLink(place("link.sh")), place("run.sh"))
  })

  it.effect("keeps CR LF line ends, and writes a new file as given", function* () {
    const { layer: here, read } = yield* workspace({ "dos.txt": "a\r\nb\r\n" })
    const tool = yield* Effect.provide(writeFile, here)
    const { result } = yield* callTool(tool, { file_path: "dos.txt", content: "a\nc\n" })
    assert.strictEqual(yield* read("dos.txt"), "a\r\nc\r\n")
    assert.deepStrictEqual(result.display?._tag === "Diff" ? result.display.added : undefined, 1)
    yield* callTool(tool, { file_path: "new.txt", content: "a\r\nb\n" })
    assert.strictEqual(yield* read("new.txt"), "a\r\nb\n")
  })

  it.effect("keeps a byte order mark", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, place } = yield* workspace({ "marked.txt": "\uFEFFa\r\nb\r\n" })
    const tool = yield* Effect.provide(writeFile, here)
    for (const content of ["a\nc\n", "\uFEFFa\nd\n"]) yield* callTool(tool, { file_path: "marked.txt", content })
    assert.strictEqual(decode(yield* fs.readFile(place("marked.txt"))).text, "\uFEFFa\r\nd\r\n")
  })

  it.effect("shows the user all of a change, also for binary files, and the file's real path", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, place } = yield* workspace({ "a.bin": "\0old", "src/run.sh": "old\n" })
    yield* fs.symlink(place("src/run.sh"), place("notes.md"))
    const tool = yield* Effect.provide(writeFile, here)
    const detail = (file_path: string, content: string) =>
      Effect.map(callTool(tool, { file_path, content }), ({ question }) => question?.detail)
    const binary = (file: string, text: string) => `${file} is binary, or will be. Its complete new content:\n${text}`
    assert.strictEqual(yield* detail("a.bin", "rm -r x\n"), binary("a.bin", "rm -r x\n"))
    assert.strictEqual(yield* detail("new.sh", "rm -r x\n#\0"), binary("new.sh", "rm -r x\n#\0"))
    const linked = yield* detail("notes.md", "rm -r x\n")
    assert.isTrue(linked?.startsWith("The file is src/run.sh:\n--- a/run.sh\n"))
    assert.include(linked, "+rm -r x\n")
    const long = yield* detail(`${"src/../".repeat(20)}src/run.sh`, "rm -r y\n")
    assert.isTrue(long?.startsWith("The file is src/run.sh:\n"))
    assert.isTrue((yield* detail(place("src/run.sh"), "rm -r z\n"))?.startsWith("--- a/run.sh\n"))
  })

  it.effect("asks for files that run by themselves in any mode, by their own name and by link targets", function* () {
    const { layer: here, place } = yield* workspace({
      ".git/HEAD": "x\n",
      "src/a.ts": "a\n",
      "scripts/check.sh": "a\n",
      "package.json": `{"name": "a", "scripts": {"test": "vitest"}}`
    })
    const fs = yield* FileSystem.FileSystem
    yield* fs.symlink(place(".git"), place("docs"))
    yield* fs.symlink(place("scripts"), place(".husky"))
    yield* fs.symlink(place("package.json"), place("data.json"))
    const tool = yield* Effect.provide(writeFile, here)
    let writes = 0
    const asked = (file_path: string, content = `new ${(writes += 1)}\n`) =>
      Effect.map(callTool(tool, { file_path, content }), ({ question }) => ({
        grants: question?.grants,
        isExplained: question?.because !== undefined
      }))
    const only = (file: string) => ({ grants: [`edit:${place(file)}`], isExplained: true })
    assert.deepStrictEqual(yield* asked(".git/hooks/pre-commit"), only(".git/hooks/pre-commit"))
    assert.deepStrictEqual(yield* asked("docs/config"), only(".git/config"))
    assert.deepStrictEqual(yield* asked("docs/../.git/config"), only(".git/config"))
    assert.deepStrictEqual(yield* asked(place("docs/config")), only(".git/config"))
    assert.deepStrictEqual(yield* asked(".husky/check.sh"), only("scripts/check.sh"))
    assert.deepStrictEqual(yield* asked(".GIT/x"), only(".GIT/x"))
    assert.deepStrictEqual(yield* asked("b/.palimpsest/skills/s/SKILL.md"), only("b/.palimpsest/skills/s/SKILL.md"))
    assert.deepStrictEqual(yield* asked("new/folder/.github/a.yml"), only("new/folder/.github/a.yml"))
    const scripts = `{"name": "a", "scripts": {"test": "touch PWNED"}}`
    assert.deepStrictEqual(yield* asked("package.json", scripts), only("package.json"))
    assert.deepStrictEqual(yield* asked("data.json", scripts.replace("PWNED", "THIS")), only("package.json"))
    yield* fs.writeFileString(place(".git/config"), "[core]\n\tbare = false\n\thooksPath = tools/hooks # ours\n")
    assert.deepStrictEqual(yield* asked("tools/Hooks/pre-push"), only("tools/Hooks/pre-push"))
    const plain = { grants: [`edit in ${place(".")}`], isExplained: false }
    for (const file of ["src/b.ts", "tools/hook", "scripts/check.sh", ".gitignore", "git/x", "Makefile"])
      assert.deepStrictEqual(yield* asked(file), plain, file)
    const renamed = `{"name": "b", "scripts": {"test": "touch THIS"}}`
    assert.deepStrictEqual(yield* asked("package.json", renamed), plain)
    const strict = yield* writeFile.pipe(
      Effect.provideService(SteeringSettings, { memoryNames: ["RULES.md"], buildFiles: true }),
      Effect.provide(here)
    )
    for (const file_path of ["Makefile", "docs2/rules.md"]) {
      const { question } = yield* callTool(strict, { file_path, content: "new\n" })
      assert.deepStrictEqual(question?.grants, [`edit:${place(file_path)}`])
    }
  })

  it.effect("does not write into a folder that became a link out after the check", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, names, place, read } = yield* workspace({ "d/x": "old", "out/x": "precious" })
    // Only d is in the workspace; its neighbour stands for the rest of the disk.
    const swap = Effect.andThen(fs.rename(place("d/in"), place("d/was")), fs.symlink(place("out"), place("d/in")))
    yield* fs.makeDirectory(place("d/in"))
    yield* fs.writeFileString(place("d/in/x"), "old")
    const racing = FileSystem.layerNoop({
      ...fs,
      access: (file, options) => Effect.andThen(fs.access(file, options), swap)
    })
    const inner = FileWorkspace.layer({ root: place("d") }).pipe(Layer.provideMerge(here))
    const tool = yield* writeFile.pipe(Effect.provide(Layer.merge(inner, racing)))
    assert.strictEqual(
      yield* failureOf(tool, { file_path: "in/x", content: "new" }),
      `file_write_failure: in/x was not written: ${place("d/in")}: it was replaced by a link, or a folder above it was; try again`
    )
    assert.strictEqual(yield* read("out/x"), "precious")
    assert.notMatch((yield* names).join(" "), /\.tmp/)
  })

  it.effect("neither asks for nor writes unchanged content", function* () {
    const { layer: here } = yield* workspace({ "a.txt": "same\n" })
    const tool = yield* Effect.provide(writeFile, here)
    const { question, result } = yield* callTool(tool, { file_path: "a.txt", content: "same\n" })
    assert.strictEqual(question, undefined)
    assert.deepStrictEqual(result.value, { fileDiff: "", fileName: "a.txt" })
    const empty = yield* callTool(tool, { file_path: "empty.txt", content: "" })
    assert.strictEqual(empty.question?.detail, "empty.txt is created, empty")
  })

  it.effect("unescapes content only for models known to escape too much", function* () {
    const { layer: here, read } = yield* workspace()
    const args = { file_path: "a.ts", content: 'print(\\"a\\")\\n' }
    yield* callTool(yield* Effect.provide(writeFile, here), args)
    assert.strictEqual(yield* read("a.ts"), args.content)
    const repairing = yield* writeFile.pipe(Effect.provide(here), Effect.provideService(UnescapesContent, true))
    yield* callTool(repairing, args)
    assert.strictEqual(yield* read("a.ts"), 'print("a")\n')
  })

  it.effect("does not write a file that changed after the question", function* () {
    const { layer: here, names, read, write } = yield* workspace({ "a.txt": "one\n" })
    const tool = yield* Effect.provide(writeFile, here)
    const args = { file_path: "a.txt", content: "two\n" }
    const failure = yield* failureOf(tool, args, () => write("a.txt", "a person's\n"))
    assert.match(failure ?? "", /^file_changed: a\.txt was changed by another program meanwhile/)
    assert.strictEqual(yield* read("a.txt"), "a person's\n")
    const made = yield* failureOf(tool, { file_path: "b.txt", content: "x" }, () => write("b.txt", "a person's\n"))
    assert.match(made ?? "", /^file_changed/)
    assert.deepStrictEqual(yield* names, ["a.txt", "b.txt"])
  })

  it.effect("does not follow a folder swapped for a link after the question", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, place } = yield* workspace({ "dir/a.txt": "one\n", "other/a.txt": "one\n" })
    const tool = yield* Effect.provide(writeFile, here)
    const failure = yield* failureOf(tool, { file_path: "dir/a.txt", content: "two\n" }, () =>
      Effect.orDie(
        Effect.andThen(fs.remove(place("dir"), { recursive: true }), fs.symlink(place("other"), place("dir")))
      )
    )
    assert.match(failure ?? "", /^file_changed/)
    assert.strictEqual(yield* fs.readFileString(place("other/a.txt")), "one\n")
  })

  it.effect("refuses invalid places in one sentence, and creates nothing", function* () {
    const fs = yield* FileSystem.FileSystem
    const { layer: here, names, place } = yield* workspace({ "a.txt": "x", "dir/b.txt": "x" })
    const outside = yield* temporaryFolder
    yield* writeFiles(outside, { passwd: "x" })
    yield* fs.symlink(outside, place("out"))
    const tool = yield* Effect.provide(writeFile, here)
    const failures: ReadonlyArray<readonly [string, RegExp]> = [
      ["../up.txt", /^path_not_in_workspace: /],
      ["out/passwd", /^path_not_in_workspace: /],
      ["dir", /^target_is_directory: dir is a folder/],
      ["a.txt/b.txt", /expected a folder, found a file/],
      ["/dev/null", /^path_not_in_workspace: /]
    ]
    const before = yield* names
    for (const [file_path, expected] of failures) {
      assert.match((yield* failureOf(tool, { file_path, content: "y" })) ?? "no failure", expected)
    }
    assert.match((yield* failureOf(tool, { file_path: "a.txt" })) ?? "", /^invalid_tool_params: .*content/)
    assert.deepStrictEqual(yield* names, before)
    assert.deepStrictEqual(yield* fs.readDirectory(outside), ["passwd"])
    assert.strictEqual(yield* fs.readFileString(`${outside}/passwd`), "x")
  })

  it.effect("a failed write leaves only the old file, and gives the reason", function* () {
    for (let n = 1; ; n += 1) {
      const { layer: here, names, read } = yield* workspace({ "a.txt": "old\n" })
      const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, "half"))
      const tool = yield* Effect.provide(writeFile, Layer.merge(here, faulty.layer))
      const failure = yield* failureOf(tool, { file_path: "a.txt", content: "new\n" })
      if (failure === undefined) {
        assert.strictEqual(yield* read("a.txt"), "new\n")
        assert.isAbove(n, 3)
        return
      }
      assert.match(failure, /a\.txt was not written/)
      assert.strictEqual(yield* read("a.txt"), "old\n")
      assert.deepStrictEqual(yield* names, ["a.txt"])
    }
  })

  it.effect("interrupted at any point it has written completely or not at all, without leftovers", function* () {
    const made: Array<Effect.Success<ReturnType<typeof workspace>>> = []
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          const here = yield* workspace({ "a.txt": "old\n" })
          made.push(here)
          yield* callTool(yield* Effect.provide(writeFile, here.layer), { file_path: "a.txt", content: "new\n" })
        }),
      (exit) =>
        Effect.gen(function* () {
          const last = made.at(-1)
          if (last === undefined) return
          const text = yield* last.read("a.txt").pipe(Effect.catchDefect(() => Effect.succeed("old\n")))
          assert.include(["old\n", "new\n"], text)
          if (Exit.isSuccess(exit)) assert.strictEqual(text, "new\n")
          const left = (yield* last.names).filter((name) => name !== "a.txt")
          assert.deepStrictEqual(left, [])
        })
    )
    assert.isAbove(points, 0)
  })
})
