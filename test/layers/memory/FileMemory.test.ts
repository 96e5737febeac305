import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Option, Path, Ref, Schema } from "effect"
import { execFileSync } from "node:child_process"
import { piAgentDefaults } from "../../../src/domain/compression/strategies/pi/Pi.ts"
import { memoryText } from "../../../src/domain/memory/MemoryText.ts"
import * as FileMemory from "../../../src/layers/memory/FileMemory.ts"
import type { FileMemoryOptions } from "../../../src/layers/memory/MemoryContext.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import type { Memory } from "../../../src/services/memory/Memory.ts"
import { standing, type TrustAnswer, withParents } from "../../../src/services/workspace/Trust.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { runsOf, strideOf } from "../../support/runs.ts"
import { assert, describe, layer } from "../../support/vitest.ts"
import { placeOf, watchedFiles } from "../../support/watchedFiles.ts"
import { temporaryFolder, writeFiles } from "../../support/workspaces.ts"

type Options = Partial<Omit<FileMemoryOptions, "home" | "geminiHome" | "root">> & { readonly cwd?: string }

/** A person's home with these files in it; what they work in is `home/work`, a git repository unless `cwd` says otherwise. */
const person = Effect.fnUntraced(function* (files: Readonly<Record<string, string | Uint8Array>>, given: Options = {}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* temporaryFolder
  const home = path.join(base, "users", "me")
  yield* fs.makeDirectory(path.join(home, "work"), { recursive: true })
  yield* writeFiles(home, files)
  const { cwd = "work", ...options } = given
  const made = FileMemory.make({
    home: path.join(home, ".palimpsest"),
    geminiHome: path.join(home, ".gemini"),
    extensions: [path.join(home, ".gemini", "extensions")],
    root: path.join(home, cwd),
    isTrusted: () => Effect.succeed(true),
    ...options
  })
  return { home, made, memory: yield* made, place: (name: string) => path.join(home, name) }
})

const loadedOf = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string | Uint8Array>>,
  options: Options = {}
) {
  return yield* (yield* person(files, options)).memory.load
})

const shownIn = ({ blocks }: { readonly blocks: ReadonlyArray<{ readonly shown: string }> }) =>
  blocks.map(({ shown }) => shown)

const git = { "work/.git/HEAD": "ref" }

/** What a person who gave these answers trusts, by folders of their home; `.` is that itself. */
const answered =
  (answers: Readonly<Record<string, TrustAnswer>>) =>
  (folder: string): Effect.Effect<boolean> => {
    const chain = withParents(folder, (place) => place.replace(/\/[^/]*$/, "") || "/")
    const named = chain.map((place) => place.split("/users/me")[1]?.replace(/^\//, "") ?? place)
    const given = named.map((name) => (name === "" ? "." : name))
    return Effect.succeed(standing(new Map(Object.entries(answers)), given, false) === "trusted")
  }

layer(NodeServices.layer)("memory files", (it) => {
  describe("discovery", () => {
    it.effect("global, extensions, then the workspace from the outermost folder inward", function* () {
      const loaded = yield* loadedOf(
        {
          ...git,
          ".gemini/GEMINI.md": "gemini",
          ".palimpsest/AGENTS.md": "own",
          ".gemini/extensions/b/gemini-extension.json": JSON.stringify({
            name: "b",
            contextFileName: ["x.md", "y.md"]
          }),
          ".gemini/extensions/b/x.md": "bx",
          ".gemini/extensions/b/y.md": "by",
          ".gemini/extensions/a/gemini-extension.json": JSON.stringify({ name: "a" }),
          ".gemini/extensions/a/GEMINI.md": "a",
          ".gemini/extensions/c/README.md": "no extension",
          "GEMINI.md": "the parent of the project",
          "work/AGENTS.md": "root",
          "work/app/GEMINI.md": "app",
          "work/app/deep/er/GEMINI.md": "deeper",
          "work/app/deep/GEMINI.md": "deep",
          "work/lib/PALIMPSEST.md": "lib"
        },
        { cwd: "work/app" }
      )
      assert.deepStrictEqual(
        loaded.blocks.map(({ shown, source }) => `${source} ${shown}`),
        [
          "global ~/.gemini/GEMINI.md",
          "global ~/.palimpsest/AGENTS.md",
          "extension ~/.gemini/extensions/a/GEMINI.md",
          "extension ~/.gemini/extensions/b/x.md",
          "extension ~/.gemini/extensions/b/y.md",
          "project ~/GEMINI.md",
          "project ~/work/AGENTS.md",
          "project GEMINI.md",
          "project deep/GEMINI.md",
          "project deep/er/GEMINI.md"
        ]
      )
      assert.deepStrictEqual(loaded.problems, [])
    })

    it.effect("upward ends at the parent of the project; without a project there is none", function* () {
      const files = {
        "a/GEMINI.md": "too far",
        "a/b/GEMINI.md": "parent",
        "a/b/c/.git/HEAD": "",
        "a/b/c/GEMINI.md": "root",
        "a/b/c/d/GEMINI.md": "here"
      }
      const loaded = yield* loadedOf(files, { cwd: "a/b/c/d" })
      assert.deepStrictEqual(shownIn(loaded), ["~/a/b/GEMINI.md", "~/a/b/c/GEMINI.md", "GEMINI.md"])
      const none = yield* loadedOf(files, { cwd: "a/b/c/d", memory: { boundaries: [] } })
      assert.deepStrictEqual(shownIn(none), ["GEMINI.md"])
      const other = yield* loadedOf(
        { ...files, "a/b/.root": "" },
        { cwd: "a/b/c/d", memory: { boundaries: [".root"] } }
      )
      assert.deepStrictEqual(shownIn(other), ["~/a/GEMINI.md", "~/a/b/GEMINI.md", "~/a/b/c/GEMINI.md", "GEMINI.md"])
    })

    it.effect("the home folder is not a project, even as a git repository, and is not searched", function* () {
      const files = { ".git/HEAD": "", "GEMINI.md": "home", ".gemini/GEMINI.md": "global", "work/GEMINI.md": "work" }
      assert.deepStrictEqual(shownIn(yield* loadedOf(files, { cwd: "." })), [".gemini/GEMINI.md"])
      const inside = yield* loadedOf({ ...files, "work/GEMINI.md": "@../secret", secret: "s" })
      assert.deepStrictEqual(shownIn(inside), ["~/.gemini/GEMINI.md", "~/GEMINI.md", "GEMINI.md"])
      assert.deepStrictEqual(inside.problems, ["GEMINI.md: @../secret was not imported: it leads out of ~/work"])
    })

    it.effect("downward: level by level, by name, in a limited number of folders; ignore rules apply", function* () {
      const files = {
        ...git,
        "work/.geminiignore": "out/\n",
        "work/.gitignore": "built/\n",
        "work/b/GEMINI.md": "b",
        "work/a/z/GEMINI.md": "az",
        "work/a/GEMINI.md": "a",
        "work/out/GEMINI.md": "ignored",
        "work/built/GEMINI.md": "built",
        "work/node_modules/x/GEMINI.md": "others",
        "work/.git/GEMINI.md": "git"
      }
      const all = yield* loadedOf(files)
      assert.deepStrictEqual(shownIn(all), ["a/GEMINI.md", "b/GEMINI.md", "built/GEMINI.md", "a/z/GEMINI.md"])
      const asGit = yield* loadedOf(files, { memory: { respectGitIgnore: true, respectGeminiIgnore: false } })
      assert.deepStrictEqual(shownIn(asGit), ["a/GEMINI.md", "b/GEMINI.md", "out/GEMINI.md", "a/z/GEMINI.md"])
      assert.deepStrictEqual(shownIn(yield* loadedOf(files, { memory: { maxDirs: 3 } })), [
        "a/GEMINI.md",
        "b/GEMINI.md"
      ])
      assert.deepStrictEqual(shownIn(yield* loadedOf(files, { memory: { downward: false } })), [])
    })

    it.effect("a file under several names counts once; a folder and an empty file do not count", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({
        ...git,
        "work/GEMINI.md": "root",
        "work/a/GEMINI.md": " \n",
        "work/b/x": ""
      })
      yield* fs.symlink("GEMINI.md", place("work/AGENTS.md"))
      yield* fs.link(place("work/GEMINI.md"), place("work/b/GEMINI.md"))
      yield* fs.makeDirectory(place("work/PALIMPSEST.md"))
      const loaded = yield* memory.load
      assert.deepStrictEqual(shownIn(loaded), ["GEMINI.md"])
      assert.deepStrictEqual(loaded.problems, [])
    })

    const [theirs, copy] = ["~/.gemini/GEMINI.md", "~/.palimpsest/GEMINI.md"]
    it.effect.each([
      ["the same text", { ".gemini/GEMINI.md": "same\n", ".palimpsest/GEMINI.md": "same" }, [theirs], 0],
      [
        "imports that lead out of either home, told once",
        { ".gemini/GEMINI.md": "R\n@../out.md\n", ".palimpsest/GEMINI.md": "R\n@../out.md\n", "out.md": "out" },
        [theirs],
        1
      ],
      [
        "the same imports, and files that import one another, told once",
        {
          ".gemini/GEMINI.md": "@./a.md",
          ".gemini/a.md": "A @b.md",
          ".gemini/b.md": "B @a.md",
          ".palimpsest/GEMINI.md": "@./a.md",
          ".palimpsest/a.md": "A @b.md",
          ".palimpsest/b.md": "B @a.md"
        },
        [theirs],
        1
      ],
      [
        "imports that say something else",
        {
          ".gemini/GEMINI.md": "@./a.md",
          ".gemini/a.md": "A",
          ".palimpsest/GEMINI.md": "@./a.md",
          ".palimpsest/a.md": "B"
        },
        [theirs, copy],
        0
      ],
      [
        "an import that is left in the copy alone",
        { ".gemini/GEMINI.md": "R @./a.md", ".palimpsest/GEMINI.md": "R @./a.md", ".palimpsest/a.md": "A" },
        [copy],
        0
      ],
      [
        "facts that were added to the copy",
        {
          ".gemini/GEMINI.md": "R @./a.md\n",
          ".gemini/a.md": "A",
          ".palimpsest/GEMINI.md": "R @./a.md\n\n## Gemini Added Memories\n- tea\n",
          ".palimpsest/a.md": "A"
        },
        [copy],
        0
      ],
      [
        "a text that goes on in the same line",
        { ".gemini/GEMINI.md": "Never push", ".palimpsest/GEMINI.md": "Never push to main" },
        [theirs, copy],
        0
      ]
    ] satisfies ReadonlyArray<
      readonly [string, Readonly<Record<string, string>>, ReadonlyArray<string | undefined>, number]
    >)("a global file contained in another is left out: %s", function* ([, files, taken, told]) {
      const { blocks, problems } = yield* loadedOf({ ...git, ...files })
      assert.deepStrictEqual<ReadonlyArray<string | undefined>>(shownIn({ blocks }), taken)
      assert.lengthOf(problems, told)
    })

    it.effect.each(["tree", "flat"] as const)(
      "a discovered file has its own block, and imports of it are only named: %s",
      function* (importFormat) {
        const { memory, place } = yield* person(
          {
            ...git,
            ".gemini/GEMINI.md": "same",
            ".palimpsest/GEMINI.md": "same",
            ".palimpsest/AGENTS.md": "mine @GEMINI.md",
            "work/GEMINI.md": "root @AGENTS.md @docs/a.md",
            "work/AGENTS.md": "agents @GEMINI.md",
            "work/docs/a.md": "doc",
            "work/src/GEMINI.md": "src @../GEMINI.md @../docs/b.md",
            "work/docs/b.md": "deep @../GEMINI.md",
            "work/lib/x/GEMINI.md": "lib @../../GEMINI.md"
          },
          { memory: { importFormat, maxDirs: 4 } }
        )
        const loaded = yield* memory.load
        assert.deepStrictEqual(
          [shownIn(loaded), loaded.problems],
          [[theirs, "~/.palimpsest/AGENTS.md", "GEMINI.md", "AGENTS.md", "src/GEMINI.md"], []]
        )
        const text = memoryText(loaded)
        for (const said of ["same", "mine", "root", "agents", "doc", "src", "deep"]) {
          assert.lengthOf(text.match(new RegExp(`^(?:\\w+ @.* )?${said}\\b`, "gm")) ?? [], 1, said)
        }
        assert.deepStrictEqual(
          loaded.blocks.map(({ imports }) => imports.map((file) => file.split("/").at(-1))),
          [[], [], ["a.md"], [], ["b.md"]]
        )
        const stands = (path: string, name: string) =>
          importFormat === "flat"
            ? `@${path}`
            : `<!-- @${path} is not repeated here: this memory already contains it as ${name} -->`
        assert.include(text, `mine ${stands("GEMINI.md", theirs)}`)
        assert.include(text, `agents ${stands("GEMINI.md", "GEMINI.md")}`)
        assert.include(text, `src ${stands("../GEMINI.md", "GEMINI.md")}`)
        assert.include(text, `deep ${stands("../GEMINI.md", "GEMINI.md")}`)
        const touched = yield* memory.touched(place("work/lib/x/y"))
        assert.include(touched ?? "", `lib ${stands("../../GEMINI.md", "GEMINI.md")}`)
        assert.notInclude(touched ?? "", "root")
      }
    )

    it.effect(
      "pi: the first of AGENTS.md and CLAUDE.md in each folder, global first, then from the outermost folder down (Pi 0.73; ours: from the project's root on, where folders are trusted)",
      function* () {
        const { fileNames } = piAgentDefaults.memory
        const { memory, place } = yield* person(
          {
            "work/.git/HEAD": "ref",
            ".palimpsest/AGENTS.md": "own",
            ".palimpsest/CLAUDE.md": "not this",
            "work/CLAUDE.md": "root",
            "work/a/AGENTS.md": "a",
            "work/a/CLAUDE.md": "not this",
            "work/a/b/CLAUDE.MD": "b",
            "work/a/b/GEMINI.md": "not this",
            "work/a/b/c/AGENTS.md": "below",
            "work/d/AGENTS.md": "aside"
          },
          { cwd: "work/a/b", memory: piAgentDefaults.memory, ownFileNames: fileNames }
        )
        assert.deepStrictEqual(
          (yield* memory.load).blocks.map(({ text }) => text),
          ["own", "root", "a", "b"]
        )
        yield* (yield* FileSystem.FileSystem).remove(place("work/a/AGENTS.md"))
        assert.deepStrictEqual(
          (yield* memory.refresh).blocks.map(({ text }) => text),
          ["own", "root", "not this", "b"]
        )
      }
    )

    it.effect("the first found does not stand in the way when it leads into an untrusted folder", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person(
        { ...git, "work/vendor/x.md": "evil", "work/CLAUDE.md": "good" },
        { memory: piAgentDefaults.memory, isTrusted: answered({ work: "trusted", "work/vendor": "untrusted" }) }
      )
      yield* fs.symlink("vendor/x.md", place("work/AGENTS.md"))
      assert.deepStrictEqual(shownIn(yield* memory.load), ["CLAUDE.md"])
    })

    it.effect("what is read of long files is bounded, also where a tool touches them", function* () {
      const { memory, place } = yield* person(
        { ...git, "work/AGENTS.md": "x".repeat(500), "work/a/AGENTS.md": "y".repeat(500) },
        { memory: { fileChars: 100, downward: false } }
      )
      const { blocks, problems } = yield* memory.load
      assert.match(blocks[0]?.text ?? "", /^x{75}\n\[400 of 500 characters are left out here; they are in AGENTS\.md/)
      assert.deepStrictEqual(problems, ["AGENTS.md: has 500 characters, of which 100 are read (memory.fileChars)"])
      assert.match((yield* memory.touched(place("work/a/b.txt"))) ?? "", /y{75}\n\[400 of 500 characters/)
    })

    it.effect("loads nothing from an untrusted folder", function* () {
      const files = {
        ...git,
        ".gemini/GEMINI.md": "global",
        "GEMINI.md": "parent",
        "work/GEMINI.md": "work",
        "lib/GEMINI.md": "lib"
      }
      const trusted = yield* Ref.make(false)
      const { memory, place } = yield* person(files, { isTrusted: () => Ref.get(trusted) })
      assert.deepStrictEqual(shownIn(yield* memory.load), ["~/.gemini/GEMINI.md"])
      assert.isUndefined(yield* memory.touched(place("work/a.txt")))
      yield* Ref.set(trusted, true)
      assert.deepStrictEqual(shownIn(yield* memory.refresh), ["~/.gemini/GEMINI.md", "~/GEMINI.md", "GEMINI.md"])
    })

    it.effect.each([
      [
        "all that is trusted",
        { ".": "trusted" },
        "a/work",
        ["~/a/GEMINI.md", "GEMINI.md", "own/GEMINI.md", "vendor/GEMINI.md", "vendor/mine/GEMINI.md"]
      ],
      [
        "nothing above the folder that was trusted",
        { "a/work": "trusted" },
        "a/work",
        ["GEMINI.md", "own/GEMINI.md", "vendor/GEMINI.md", "vendor/mine/GEMINI.md"]
      ],
      ["above it in one project neither", { "a/work/own": "trusted" }, "a/work/own", ["GEMINI.md"]],
      [
        "nothing of a folder below that was refused",
        { "a/work": "trusted", "a/work/vendor": "untrusted" },
        "a/work",
        ["GEMINI.md", "own/GEMINI.md"]
      ],
      [
        "in that what is trusted again",
        { "a/work": "trusted", "a/work/vendor": "untrusted", "a/work/vendor/mine": "trusted" },
        "a/work",
        ["GEMINI.md", "own/GEMINI.md", "vendor/mine/GEMINI.md"]
      ],
      [
        "a folder above that is trusted, over one that is not",
        { a: "trusted", "a/work": "untrusted", "a/work/own": "trusted" },
        "a/work/own",
        ["~/a/GEMINI.md", "GEMINI.md"]
      ]
    ] satisfies ReadonlyArray<readonly [string, Readonly<Record<string, TrustAnswer>>, string, ReadonlyArray<string>]>)(
      "trust is checked for each folder, and the nearest decision applies: %s",
      function* ([, answers, cwd, taken]) {
        const { memory, place } = yield* person(
          {
            "a/GEMINI.md": "above",
            "a/work/.git/HEAD": "",
            "a/work/GEMINI.md": "root",
            "a/work/own/GEMINI.md": "own",
            "a/work/vendor/GEMINI.md": "vendor",
            "a/work/vendor/mine/GEMINI.md": "mine"
          },
          { cwd, isTrusted: answered(answers) }
        )
        const { blocks, problems, untrusted } = yield* memory.load
        assert.deepStrictEqual(shownIn({ blocks }), [...taken])
        // Where one would look for it in vain it is told.
        assert.deepStrictEqual([problems, untrusted], [[], cwd === "a/work" ? [] : ["~/a/work/GEMINI.md"]])
        // What a tool touches is no way around.
        for (const folder of ["", "own", "vendor", "vendor/mine"]) {
          assert.isUndefined(yield* memory.touched(place(`a/work/${folder}/x`)), folder)
        }
        assert.deepStrictEqual(shownIn(yield* memory.refresh), [...taken])
      }
    )

    it.effect("trust is checked for what a tool touches, too", function* () {
      const files = { ...git, "work/a/GEMINI.md": "a", "work/a/b/GEMINI.md": "b", "work/a/b/c/GEMINI.md": "c" }
      const answers: Record<string, TrustAnswer> = { work: "trusted", "work/a/b": "untrusted" }
      const { memory, place } = yield* person(files, {
        memory: { downward: false },
        isTrusted: (folder) => Effect.suspend(() => answered(answers)(folder))
      })
      const text = yield* memory.touched(place("work/a/b/c/x"))
      assert.include(text ?? "", "a/GEMINI.md")
      assert.notInclude(text ?? "", "b/GEMINI.md")
      assert.notInclude(text ?? "", "c/GEMINI.md")
      assert.deepStrictEqual(shownIn(yield* memory.refresh), ["a/GEMINI.md"])
      answers["work/a"] = "untrusted"
      assert.deepStrictEqual(shownIn(yield* memory.refresh), [])
    })

    it.effect("does not follow links or imports into an untrusted folder", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person(
        { ...git, "work/vendor/x.md": "evil", "work/docs/y.md": "good", "work/AGENTS.md": "@vendor/x.md @docs/y.md" },
        { isTrusted: answered({ work: "trusted", "work/vendor": "untrusted" }) }
      )
      yield* fs.symlink("vendor/x.md", place("work/GEMINI.md"))
      const { blocks, problems } = yield* memory.load
      assert.deepStrictEqual(shownIn({ blocks }), ["AGENTS.md"])
      assert.include(blocks[0]?.text ?? "", "good")
      assert.notInclude(blocks[0]?.text ?? "", "evil")
      assert.deepStrictEqual(problems, [
        "GEMINI.md: it leads into a folder that is not trusted",
        "AGENTS.md: @vendor/x.md was not imported: its folder is not trusted"
      ])
      const { message } = yield* Effect.flip(memory.plan("x", "project"))
      assert.include(message, "leads into a folder that is not trusted")
    })

    it.effect("a project marker does not extend imports beyond the trusted folder", function* () {
      const { blocks } = yield* loadedOf(
        {
          ".ssh/key": "secret",
          "a/other/plan.md": "secret",
          "a/work/GEMINI.md": "@../other/plan.md @../../.ssh/key"
        },
        { cwd: "a/work", memory: { boundaries: ["other", ".ssh"] }, isTrusted: answered({ "a/work": "trusted" }) }
      )
      assert.lengthOf(blocks, 1)
      assert.notInclude(blocks[0]?.text ?? "", "secret")
    })

    it.effect("needs no trust for the user's own files and their imports", function* () {
      const { blocks, problems } = yield* loadedOf(
        {
          ...git,
          ".gemini/GEMINI.md": "@style.md",
          ".gemini/style.md": "style",
          ".gemini/extensions/e/gemini-extension.json": "{}",
          ".gemini/extensions/e/GEMINI.md": "extension"
        },
        { isTrusted: answered({ ".": "untrusted" }) }
      )
      assert.deepStrictEqual(shownIn({ blocks }), ["~/.gemini/GEMINI.md", "~/.gemini/extensions/e/GEMINI.md"])
      assert.include(blocks[0]?.text ?? "", "style")
      assert.deepStrictEqual(problems, [])
    })

    it.effect("a folder cannot choose which of the user's files are memory, nor which is written", function* () {
      const files = {
        ...git,
        ".gemini/oauth_creds.json": "secret",
        ".palimpsest/settings.json": "secret",
        ".palimpsest/GEMINI.md": "global",
        ".palimpsest/MINE.md": "mine",
        ".gemini/extensions/e/gemini-extension.json": "{}",
        ".gemini/extensions/e/settings.json": "secret",
        "work/settings.json": "theirs"
      }
      const memory = { fileNames: ["settings.json", "oauth_creds.json"] }
      const usual = yield* person(files, { memory })
      assert.deepStrictEqual(shownIn(yield* usual.memory.load), ["~/.palimpsest/GEMINI.md", "settings.json"])
      assert.strictEqual((yield* usual.memory.plan("x", "global")).shown, "~/.palimpsest/GEMINI.md")
      assert.strictEqual((yield* usual.memory.plan("x", "project")).shown, "settings.json")
      const own = yield* person(files, { memory, ownFileNames: ["MINE.md"] })
      assert.deepStrictEqual(shownIn(yield* own.memory.load), ["~/.palimpsest/MINE.md", "settings.json"])
      assert.strictEqual((yield* own.memory.plan("x", "global")).shown, "~/.palimpsest/MINE.md")
    })

    it.effect("loads added folders on request, before the workspace", function* () {
      const files = { ...git, "work/GEMINI.md": "work", "lib/.git/HEAD": "", "lib/GEMINI.md": "lib" }
      const { home } = yield* person({})
      assert.isNotEmpty(home)
      const withAdded = Effect.fnUntraced(function* (loadFromIncludeDirectories: boolean) {
        const fs = yield* FileSystem.FileSystem
        const other = yield* temporaryFolder
        yield* fs.writeFileString(`${other}/GEMINI.md`, "other")
        const loaded = yield* loadedOf(files, {
          includeDirectories: [other],
          loadFromIncludeDirectories,
          memory: { boundaries: [] }
        })
        return loaded.blocks.map(({ text }) => text)
      })
      assert.deepStrictEqual(yield* withAdded(true), ["other", "work"])
      assert.deepStrictEqual(yield* withAdded(false), ["work"])
    })
  })

  describe("imports", () => {
    it.effect("tree: in the place of the token, from the folder of the file that asks", function* () {
      const { blocks, problems } = yield* loadedOf({
        ...git,
        "work/GEMINI.md": "see @docs/a.md now `@docs/no.md`\n```\n@docs/no.md\n```",
        "work/docs/a.md": "A @./b.md",
        "work/docs/b.md": "B"
      })
      assert.strictEqual(
        blocks[0]?.text,
        "see <!-- Imported from: docs/a.md -->\nA <!-- Imported from: ./b.md -->\nB\n<!-- End of import from: ./b.md -->\n<!-- End of import from: docs/a.md --> now `@docs/no.md`\n```\n@docs/no.md\n```"
      )
      assert.deepStrictEqual(
        blocks[0]?.imports.map((file) => file.split("/").slice(-2).join("/")),
        ["docs/a.md", "docs/b.md"]
      )
      assert.deepStrictEqual(problems, [])
    })

    it.effect("flat: the file, then its imports, the last first, each once; the tokens stay", function* () {
      const { blocks, problems } = yield* loadedOf(
        {
          ...git,
          "work/GEMINI.md": "R @a.md @b.md @no.md\n",
          "work/a.md": "A @c.md",
          "work/b.md": "B @c.md",
          "work/c.md": "C @a.md"
        },
        { memory: { importFormat: "flat" } }
      )
      const block = (name: string, text: string) => `--- File: ${name} ---\n${text}\n--- End of File: ${name} ---`
      assert.strictEqual(
        blocks[0]?.text,
        [
          block("GEMINI.md", "R @a.md @b.md @no.md"),
          block("b.md", "B @c.md"),
          block("c.md", "C @a.md"),
          block("a.md", "A @c.md")
        ].join("\n\n")
      )
      assert.deepStrictEqual(problems, [
        "GEMINI.md: @no.md was not imported: there is no such file",
        "a.md: @c.md was not imported: it is already being imported, so it imports itself"
      ])
    })

    for (const importFormat of ["tree", "flat"] as const) {
      it.effect(`a token that is not a path and names no file stays, without a problem: ${importFormat}`, function* () {
        const text = "use @effect/vitest@4.0.5, @types/node. ask @wren @socket.io/redis-adapter"
        const plain = yield* loadedOf({ ...git, "work/GEMINI.md": text }, { memory: { importFormat } })
        assert.deepStrictEqual([plain.blocks[0]?.text, plain.problems], [text, []])
        const deep = yield* loadedOf({ ...git, "work/GEMINI.md": text }, { memory: { importFormat, importDepth: 0 } })
        assert.deepStrictEqual([deep.blocks[0]?.text, deep.problems], [text, []])
        // One that has a file is meant.
        const { blocks, problems } = yield* loadedOf(
          {
            ...git,
            "work/GEMINI.md": "@docs/STYLE @docs @docs/gone/../../../x @gone.md, @./gone",
            "work/docs/STYLE": "style"
          },
          { memory: { importFormat } }
        )
        assert.include(blocks[0]?.text ?? "", "style")
        assert.sameMembers(
          [...problems],
          [
            "GEMINI.md: @docs was not imported: it is a folder",
            "GEMINI.md: @docs/gone/../../../x was not imported: it leads out of ~/work",
            "GEMINI.md: @gone.md was not imported: there is no such file",
            "GEMINI.md: @./gone was not imported: there is no such file"
          ]
        )
      })

      it.effect(`files that import one another are loaded once: ${importFormat}`, function* () {
        const { problems } = yield* loadedOf(
          {
            ...git,
            "work/GEMINI.md": "@a.md @b.md @c.md @gone.md @gone.md",
            "work/a.md": "@b.md",
            "work/b.md": "@c.md",
            "work/c.md": "@a.md",
            "work/x/GEMINI.md": "@../b.md",
            "work/y/GEMINI.md": "@../c.md @self.md",
            "work/y/self.md": "@self.md"
          },
          { memory: { importFormat } }
        )
        const circles = problems.filter((line) => line.endsWith("it is already being imported, so it imports itself"))
        assert.lengthOf(circles, 2)
        assert.include(
          circles,
          "y/self.md: @self.md was not imported: it is already being imported, so it imports itself"
        )
        assert.deepStrictEqual(
          problems.filter((line) => !circles.includes(line)),
          ["GEMINI.md: @gone.md was not imported: there is no such file"]
        )
      })
    }

    it.effect("reach the whole workspace without a project marker, and no further", function* () {
      const { blocks, problems } = yield* loadedOf(
        {
          "work/src/GEMINI.md": "Look at @../docs/more.md and @../../outside.md",
          "work/docs/more.md": "all of it",
          "outside.md": "nothing of yours"
        },
        { cwd: "work" }
      )
      assert.include(blocks[0]?.text, "all of it")
      assert.notInclude(blocks[0]?.text, "nothing of yours")
      assert.lengthOf(problems, 1)
    })

    it.effect("respect the depth limit", function* () {
      const chain = Object.fromEntries(
        Array.from({ length: 7 }, (_, n) => [`work/${n === 0 ? "GEMINI" : `l${n}`}.md`, `level ${n} @l${n + 1}.md`])
      )
      const { blocks, problems } = yield* loadedOf({ ...git, ...chain, "work/l7.md": "end" })
      assert.include(blocks[0]?.text ?? "", "level 5 @l6.md")
      assert.notInclude(blocks[0]?.text ?? "", "level 6")
      assert.deepStrictEqual(problems, ["l5.md: its imports were left out: more than 5 files import one another"])
      const flatter = yield* loadedOf({ ...git, ...chain }, { memory: { importDepth: 0 } })
      assert.strictEqual(flatter.blocks[0]?.text, "level 0 @l1.md")
    })

    it.effect("a global file imports from its own folder, also through a link", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({
        ".git/HEAD": "",
        "secret.md": "secret",
        "dotfiles/GEMINI.md": "@style.md @../secret.md",
        "dotfiles/style.md": "style",
        ".gemini/style.md": "here"
      })
      yield* fs.symlink(place("dotfiles/GEMINI.md"), place(".gemini/GEMINI.md"))
      const { blocks, problems } = yield* memory.load
      assert.include(blocks[0]?.text ?? "", "here")
      assert.lengthOf(problems, 1)
      assert.include(problems[0] ?? "", "@../secret.md was not imported: it leads out of ~/.gemini and ~/dotfiles")
    })

    it.effect("a file that the user's own memory imports is none for a folder that may not import it", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person(
        {
          ...git,
          ".gemini/README": "",
          "work/docs/mine.md": "mine @../work/docs/style.md",
          "work/docs/style.md": "style",
          "work/GEMINI.md": "theirs @docs/style.md"
        },
        { isTrusted: answered({ work: "trusted", "work/docs": "untrusted" }) }
      )
      yield* fs.symlink(place("work/docs/mine.md"), place(".gemini/GEMINI.md"))
      const { blocks, problems } = yield* memory.load
      assert.deepStrictEqual(
        blocks.map(({ imports }) => imports.length),
        [1, 0]
      )
      assert.match(problems.join("\n"), /^GEMINI\.md: @docs\/style\.md was not imported: [^\n]*not trusted[^\n]*$/)
    })

    /** What is read for a memory file and these. */
    const readFor = Effect.fnUntraced(function* (
      files: Readonly<Record<string, string>>,
      memory: FileMemoryOptions["memory"]
    ) {
      const { layer: here, watched } = yield* watchedFiles
      const loaded = yield* Effect.gen(function* () {
        const made = yield* person({ ...git, ...files }, { memory })
        watched.opened.length = 0
        return yield* made.memory.load
      }).pipe(Effect.provide(here))
      return { loaded, read: watched.opened.filter((file) => file.endsWith(".md")) }
    })

    it.effect("a diamond of 33 files reads each once, in both formats", function* () {
      const middle = Array.from({ length: 31 }, (_, n) => `m${n}.md`)
      const files = {
        "work/GEMINI.md": middle.map((name) => `@${name}`).join("\n"),
        ...Object.fromEntries(middle.map((name) => [`work/${name}`, `${name} @bottom.md`])),
        "work/bottom.md": "bottom"
      }
      for (const importFormat of ["tree", "flat"] as const) {
        const { loaded, read } = yield* readFor(files, { importFormat })
        assert.deepStrictEqual(loaded.problems, [])
        assert.strictEqual(loaded.blocks[0]?.text.split("bottom\n").length, importFormat === "tree" ? 32 : 2)
        assert.lengthOf(read, 33)
        assert.strictEqual(new Set(read).size, 33)
      }
    })

    it.effect("chained diamonds have limited size", function* () {
      const level = (n: number) => [0, 1, 2].map((i) => `d${n}-${i}.md`)
      const asking = (n: number) =>
        level(n)
          .map((name) => `@${name}`)
          .join(" ")
      const files = {
        "work/GEMINI.md": asking(0),
        ...Object.fromEntries(
          Array.from({ length: 11 }, (_, n) =>
            level(n).map((name) => [`work/${name}`, n === 10 ? "end" : asking(n + 1)])
          ).flat()
        )
      }
      const { loaded, read } = yield* readFor(files, { importDepth: 12 })
      assert.isBelow(loaded.blocks[0]?.text.length ?? Infinity, 2 * 1_048_576)
      assert.include(loaded.problems.join("\n"), "would have more than 1 MiB")
      assert.strictEqual(new Set(read).size, read.length)
      const flat = yield* readFor(files, { importFormat: "flat" })
      assert.lengthOf(flat.loaded.blocks[0]?.imports ?? [], 33)
      assert.lengthOf(flat.read, 34)
    })
  })

  describe("invalid input: one line each, and the rest is loaded", () => {
    const enough = "x".repeat(1_048_577)
    const cases: ReadonlyArray<
      readonly [what: string, files: Readonly<Record<string, string | Uint8Array>>, problem: RegExp]
    > = [
      ["binary", { "work/AGENTS.md": new Uint8Array([1, 0, 2]) }, /^AGENTS\.md: it is binary, and memory is text$/],
      ["a byte more than 1 MiB", { "work/AGENTS.md": enough }, /^AGENTS\.md: .*1 MiB/],
      ["importing an address", { "work/AGENTS.md": "@http://x.y/z" }, /@http:\/\/x\.y\/z was not imported: only files/],
      [
        "importing /etc/passwd",
        { "work/AGENTS.md": "@/etc/passwd" },
        /@\/etc\/passwd was not imported: it leads out of ~\/work$/
      ],
      ["traversing", { "work/AGENTS.md": "@../../../../../etc/passwd" }, /was not imported: it leads out of ~\/work$/],
      [
        "too much in all",
        {
          "work/AGENTS.md": "@b.md @b.md @c.md",
          "work/b.md": enough.slice(0, 400_000),
          "work/c.md": enough.slice(0, 400_000)
        },
        /@c\.md was not imported: AGENTS\.md with its imports would have more than 1 MiB$/
      ],
      [
        "a broken extension",
        { ".gemini/extensions/x/gemini-extension.json": "{" },
        /extensions\/x\/gemini-extension\.json: \S/
      ],
      [
        "an extension without its file",
        { ".gemini/extensions/x/gemini-extension.json": `{"contextFileName":"gone.md"}` },
        /extensions\/x\/gone\.md: there is no such file$/
      ],
      [
        "an extension that reaches out",
        { ".gemini/extensions/x/gemini-extension.json": `{"contextFileName":"../../../secret"}`, secret: "s" },
        /secret: it leads out of/
      ]
    ]
    it.effect.each(cases)("%s", function* ([, files, problem]) {
      const loaded = yield* loadedOf({ ...git, "work/GEMINI.md": "good", ...files })
      assert.include(memoryText(loaded), "good")
      assert.lengthOf(loaded.problems, 1)
      assert.match(loaded.problems[0] ?? "", problem)
      assert.notInclude(loaded.problems[0] ?? "", "\n")
      assert.notInclude(memoryText(loaded), "root:")
    })

    it.effect("a file of 1 MiB is read, and none that changes its length meanwhile", function* () {
      const whole = "x".repeat(1_048_576)
      assert.deepStrictEqual(
        (yield* loadedOf({ ...git, "work/GEMINI.md": whole })).blocks.map(({ text }) => text),
        [whole]
      )
      const real = yield* FileSystem.FileSystem
      for (const changed of ["", "two and more"]) {
        const readFile = () => Effect.succeed(new TextEncoder().encode(changed))
        const { blocks, problems } = yield* loadedOf({ ...git, "work/GEMINI.md": "two" }).pipe(
          Effect.provideService(FileSystem.FileSystem, FileSystem.make({ ...real, readFile }))
        )
        assert.deepStrictEqual([blocks.length, problems.length], [0, 1])
      }
    })

    it.effect("pipes, cyclic links and links that lead out are not opened", function* () {
      const fs = yield* FileSystem.FileSystem
      const { layer: here, watched } = yield* watchedFiles
      const loaded = yield* Effect.gen(function* () {
        const { memory, place } = yield* person({
          ...git,
          outside: "secret",
          "work/GEMINI.md": "good @pipe @loop @out @dir/outside @/dev/zero",
          "work/a/x": "",
          "work/b/x": "",
          "work/c/x": ""
        })
        execFileSync("mkfifo", [place("work/pipe"), place("work/a/GEMINI.md")])
        yield* fs.symlink("loop", place("work/loop"))
        yield* fs.symlink("GEMINI.md", place("work/b/GEMINI.md"))
        yield* fs.symlink(place("outside"), place("work/out"))
        yield* fs.symlink(place("."), place("work/dir"))
        yield* fs.symlink(place("outside"), place("work/c/GEMINI.md"))
        watched.opened.length = 0
        return yield* memory.load
      }).pipe(Effect.provide(here))
      assert.deepStrictEqual(
        watched.opened.map((file) => file.split("/").slice(-2).join("/")),
        ["work/GEMINI.md"]
      )
      assert.lengthOf(loaded.problems, 8)
      const lines = loaded.problems.join("\n")
      assert.match(lines, /^a\/GEMINI\.md: it is a named pipe, and only regular files are read$/m)
      assert.match(lines, /^b\/GEMINI\.md: its links form a cycle$/m)
      assert.match(lines, /^c\/GEMINI\.md: it leads out of ~\/work$/m)
      assert.match(lines, /@pipe was not imported: it is a named pipe/)
      assert.match(lines, /@loop was not imported: its links form a cycle$/m)
      for (const out of ["@out", "@dir/outside", "@/dev/zero"])
        assert.include(lines, `${out} was not imported: it leads out of ~/work`)
    })
  })

  describe("files a tool touches", () => {
    it.effect("load new memory on their path once, never ignored files or those outside", function* () {
      const { memory, place } = yield* person(
        {
          ...git,
          "work/.geminiignore": "out\n",
          "work/GEMINI.md": "root",
          "work/a/GEMINI.md": "in a",
          "work/a/b/GEMINI.md": "in b @c.md",
          "work/a/b/c.md": "in c",
          "work/out/GEMINI.md": "ignored",
          "work/node_modules/x/AGENTS.md": "others",
          "other/GEMINI.md": "outside"
        },
        { memory: { downward: false } }
      )
      assert.deepStrictEqual(shownIn(yield* memory.load), ["GEMINI.md"])
      const text = yield* memory.touched(place("work/a/b/new/file.ts"))
      assert.match(
        text ?? "",
        /--- Context from: a\/GEMINI\.md ---\nin a\n[^]*--- Context from: a\/b\/GEMINI\.md ---\nin b [^]*in c/
      )
      assert.notInclude(text ?? "", "root")
      assert.isUndefined(yield* memory.touched(place("work/a/b/c.md")))
      assert.isUndefined(yield* memory.touched(place("work/out/x")))
      assert.isUndefined(yield* memory.touched(place("work/node_modules/x/index.js")))
      assert.isUndefined(yield* memory.touched(place("other/x")))
      assert.deepStrictEqual(shownIn(yield* memory.load), ["GEMINI.md"])
      const version = yield* memory.version
      assert.deepStrictEqual(shownIn(yield* memory.refresh), ["GEMINI.md", "a/GEMINI.md", "a/b/GEMINI.md"])
      assert.strictEqual(yield* memory.version, version + 1)
      assert.isUndefined(yield* memory.touched(place("work/a/b/c.md")))
    })

    it.effect("are looked at once until memory is read again, whether they are trusted or not", function* () {
      const asked: Array<string> = []
      let trusted: (folder: string) => boolean = (folder) => !folder.endsWith("/b")
      const { memory, place } = yield* person(
        { ...git, "work/a/GEMINI.md": "in a", "work/a/b/GEMINI.md": "in b" },
        {
          memory: { downward: false },
          isTrusted: (folder) =>
            Effect.sync(() => {
              asked.push(folder)
              return trusted(folder)
            })
        }
      )
      assert.include((yield* memory.touched(place("work/a/x"))) ?? "", "in a")
      asked.length = 0
      assert.isUndefined(yield* memory.touched(place("work/a/y")))
      assert.isUndefined(yield* memory.touched(place("work/a")))
      assert.deepStrictEqual(asked, [])
      assert.isUndefined(yield* memory.touched(place("work/a/b/x")))
      assert.isAbove(asked.length, 0)
      trusted = () => true
      asked.length = 0
      assert.isUndefined(yield* memory.touched(place("work/a/b/y")))
      assert.deepStrictEqual(asked, [])
      yield* memory.refresh
      assert.isUndefined(yield* memory.touched(place("work/a/y")))
      assert.include((yield* memory.touched(place("work/a/b/x"))) ?? "", "in b")
      assert.deepStrictEqual(shownIn(yield* memory.refresh), ["a/GEMINI.md", "a/b/GEMINI.md"])
      trusted = (folder) => !folder.endsWith("/b")
      const { blocks, problems } = yield* memory.refresh
      assert.deepStrictEqual([shownIn({ blocks }), problems], [["a/GEMINI.md"], []])
    })

    it.effect("load nothing when disabled, nor what was already imported", function* () {
      const files = { ...git, "work/GEMINI.md": "@a/AGENTS.md", "work/a/AGENTS.md": "a", "work/b/AGENTS.md": "b" }
      const off = yield* person(files, { memory: { downward: false, onTouch: false } })
      assert.isUndefined(yield* off.memory.touched(off.place("work/b/x")))
      const on = yield* person(files, { memory: { downward: false } })
      assert.isUndefined(yield* on.memory.touched(on.place("work/a/x")))
      assert.include((yield* on.memory.touched(on.place("work/b/x"))) ?? "", "b")
    })
  })

  describe("adding a fact", () => {
    const header = "## Gemini Added Memories"
    const planned = (memory: Memory["Service"], fact: string, scope: "global" | "project" = "project") =>
      Effect.flatMap(memory.plan(fact, scope), (change) => Effect.as(memory.save(change), change))
    const refused = (memory: Memory["Service"], fact: string, scope: "global" | "project" = "project") =>
      Effect.map(Effect.flip(planned(memory, fact, scope)), ({ message }) => message)

    it.effect("writes what was shown, and loads it at once", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({ ...git, "work/AGENTS.md": "mine\n" })
      yield* memory.load
      const version = yield* memory.version
      const change = yield* memory.plan("tests: make check", "project")
      assert.strictEqual(change.shown, "AGENTS.md")
      assert.strictEqual(
        change.diff.diff,
        `--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1,4 @@\n mine\n+\n+${header}\n+- tests: make check\n`
      )
      assert.strictEqual(yield* fs.readFileString(place("work/AGENTS.md")), "mine\n")
      yield* memory.save(change)
      assert.strictEqual(yield* fs.readFileString(place("work/AGENTS.md")), change.after)
      assert.include(memoryText(yield* memory.load), "- tests: make check")
      assert.strictEqual(yield* memory.version, version + 1)
      const again = yield* planned(memory, "tests:  make check")
      assert.strictEqual(again.diff.diff, "")
    })

    it.effect("writes global facts to this program's private folder, and creates it", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({ ...git, ".gemini/GEMINI.md": "theirs" })
      const { file } = yield* planned(memory, "I like tea", "global")
      assert.strictEqual(file, place(".palimpsest/GEMINI.md"))
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      assert.strictEqual((yield* fs.stat(place(".palimpsest"))).mode & 0o777, 0o700)
      assert.strictEqual(yield* fs.readFileString(place(".gemini/GEMINI.md")), "theirs")
      assert.deepStrictEqual(shownIn(yield* memory.load), ["~/.gemini/GEMINI.md", "~/.palimpsest/GEMINI.md"])
    })

    it.effect("keeps a file's mode and content, and a link", function* () {
      const fs = yield* FileSystem.FileSystem
      const before = new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff, 0x0d, 0x0a])
      const { memory, place } = yield* person({ ...git, "work/docs/ai.md": before })
      yield* fs.symlink(place("work/docs/ai.md"), place("work/GEMINI.md"))
      yield* fs.chmod(place("work/docs/ai.md"), 0o640)
      yield* planned(memory, "x")
      const after = yield* fs.readFile(place("work/docs/ai.md"))
      assert.deepStrictEqual([...after.subarray(0, 5)], [...before.subarray(0, 5)])
      assert.isTrue(new TextDecoder().decode(after).endsWith(`\r\n\r\n${header}\r\n- x\r\n`))
      assert.strictEqual((yield* fs.stat(place("work/docs/ai.md"))).mode & 0o777, 0o640)
      assert.strictEqual(yield* fs.readLink(place("work/GEMINI.md")), place("work/docs/ai.md"))
      assert.deepStrictEqual(yield* fs.readDirectory(place("work/docs")), ["ai.md"])
    })

    it.effect("refuses an invalid fact or a missing target, with a reason", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({ ...git, "outside.md": "o" })
      assert.match(yield* refused(memory, " \n"), /the fact is empty/)
      assert.match(yield* refused(memory, "x".repeat(4_001)), /4003 characters is too long/)
      yield* fs.symlink(place("outside.md"), place("work/GEMINI.md"))
      assert.match(yield* refused(memory, "x"), /GEMINI\.md leads out of the workspace through a link/)
      yield* fs.remove(place("work/GEMINI.md"))
      yield* fs.symlink(place("gone.md"), place("work/GEMINI.md"))
      assert.match(yield* refused(memory, "x"), /GEMINI\.md is a broken link/)
      yield* fs.remove(place("work/GEMINI.md"))
      yield* writeFiles(place("work"), { "GEMINI.md": new Uint8Array([0, 1]) })
      assert.match(yield* refused(memory, "x"), /GEMINI\.md is not UTF-8 text/)
      yield* writeFiles(place("work"), { "GEMINI.md": "## Gemini Added Memories\n- see ` and @docs.md\n" })
      assert.match(yield* refused(memory, "a ` b"), /would import different files/)
      yield* writeFiles(place("work"), { "GEMINI.md": "y".repeat(1_048_570) })
      assert.match(yield* refused(memory, "x"), /would have more than 1 MiB/)
      const untrusted = yield* person(git, { isTrusted: () => Effect.succeed(false) })
      assert.match(yield* refused(untrusted.memory, "x"), /is not trusted/)
      const home = yield* person({}, { cwd: "." })
      assert.match(yield* refused(home.memory, "x"), /is the home folder and no project/)
    })

    it.effect("keeps what others wrote between question and answer", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({ ...git, "work/GEMINI.md": "one" })
      const change = yield* memory.plan("x", "project")
      yield* fs.writeFileString(place("work/GEMINI.md"), "two")
      assert.include((yield* memory.save(change)).diff.diff, "-two")
      assert.strictEqual(yield* fs.readFileString(place("work/GEMINI.md")), `two\n\n${header}\n- x\n`)
      const another = yield* memory.plan("y", "project")
      yield* fs.remove(place("work/GEMINI.md"))
      yield* fs.writeFileString(place("work/other.md"), "three")
      yield* fs.symlink(place("work/other.md"), place("work/GEMINI.md"))
      assert.match((yield* Effect.flip(memory.save(another))).message, /was replaced by another file/)
      assert.strictEqual(yield* fs.readFileString(place("work/other.md")), "three")
    })

    it.effect("interrupted or failing anywhere, leaves a complete file and no temporary one", function* () {
      const fs = yield* FileSystem.FileSystem
      const made: Array<string> = []
      const check = Effect.fnUntraced(function* (isDone: boolean) {
        const folder = made.at(-1)
        if (folder === undefined) return
        const text = yield* fs.readFileString(`${folder}/GEMINI.md`)
        assert.include(["old\n", `old\n\n${header}\n- x\n`], text)
        if (isDone) assert.include(text, "- x")
        assert.deepStrictEqual((yield* fs.readDirectory(folder)).toSorted(), [".git", "GEMINI.md"])
      })
      const setup = Effect.gen(function* () {
        const { memory, place } = yield* person({ ...git, "work/GEMINI.md": "old\n" })
        made.push(place("work"))
        return memory
      })
      const points = yield* interruptSweep(
        () => Effect.flatMap(setup, (memory) => planned(memory, "x")),
        (exit) => check(exit._tag === "Success"),
        3 * strideOf(59)
      )
      assert.isAbove(points, 0)
      for (const verdict of ["fail", "half"] as const) {
        for (let n = 1; ; n += 1) {
          const faulty = yield* FaultyFileSystem.make((call) => {
            const isOurs = made.length > 0 && call.mutating !== undefined && counting
            if (!isOurs) return "pass"
            seen += 1
            return seen === n ? verdict : "pass"
          })
          let counting = false
          let seen = 0
          const exit = yield* Effect.gen(function* () {
            const memory = yield* setup
            const change = yield* memory.plan("x", "project")
            counting = true
            return yield* memory.save(change)
          }).pipe(Effect.provide(faulty.layer), Effect.exit)
          counting = false
          yield* check(exit._tag === "Success")
          if (seen < n) break
        }
      }
    })
  })

  describe("loading", () => {
    it.effect("happens once; the version grows only on a change", function* () {
      const fs = yield* FileSystem.FileSystem
      const { memory, place } = yield* person({ ...git, "work/GEMINI.md": "one" })
      const first = yield* memory.load
      yield* fs.writeFileString(place("work/GEMINI.md"), "two")
      assert.strictEqual(yield* memory.load, first)
      assert.strictEqual(yield* memory.version, 0)
      assert.strictEqual((yield* memory.refresh).blocks[0]?.text, "two")
      assert.strictEqual(yield* memory.version, 1)
      yield* memory.refresh
      assert.strictEqual(yield* memory.version, 1)
    })

    it.effect("reports an unreadable file in one line, and loads the rest", function* () {
      const real = yield* FileSystem.FileSystem
      const faulty = FileSystem.make({
        ...real,
        readFile: (file) => real.readFile(placeOf(file).endsWith("AGENTS.md") ? `${file}.gone` : file)
      })
      const { blocks, problems } = yield* Effect.gen(function* () {
        const { memory } = yield* person({
          ...git,
          "work/GEMINI.md": "@a.md",
          "work/a.md": "a",
          "work/AGENTS.md": "b"
        })
        return yield* memory.load
      }).pipe(Effect.provideService(FileSystem.FileSystem, faulty))
      assert.lengthOf(blocks, 1)
      assert.lengthOf(problems, 1)
      assert.match(problems[0] ?? "", /^AGENTS\.md: [^\n]+$/)
    })

    it.effect("can be interrupted anywhere without effect", function* () {
      const made: Array<Memory["Service"]> = []
      const points = yield* interruptSweep(
        () =>
          Effect.gen(function* () {
            const { memory } = yield* person({
              ...git,
              "work/GEMINI.md": "@a.md",
              "work/a.md": "a",
              "work/b/GEMINI.md": "b"
            })
            made.push(memory)
            return yield* memory.load
          }),
        () =>
          Effect.gen(function* () {
            const last = made.at(-1)
            if (last !== undefined) assert.deepStrictEqual(shownIn(yield* last.load), ["GEMINI.md", "b/GEMINI.md"])
          }),
        7 * strideOf(29)
      )
      assert.isAbove(points, 0)
    })

    it.effect("uses files above the workspace only if the workspace's owner or root owns them", function* () {
      const real = yield* FileSystem.FileSystem
      const owned = (uid: number) =>
        FileSystem.make({
          ...real,
          stat: (place) =>
            Effect.map(real.stat(place), (info) => ({
              ...info,
              uid: Option.some(place.endsWith("me/GEMINI.md") ? uid : 1_000)
            }))
        })
      const texts = Effect.fnUntraced(function* (uid: number) {
        const { memory } = yield* person({ ...git, "GEMINI.md": "above", "work/GEMINI.md": "here" }).pipe(
          Effect.provideService(FileSystem.FileSystem, owned(uid))
        )
        const { blocks, problems } = yield* memory.load
        return { texts: blocks.map(({ text }) => text), problems }
      })
      assert.deepStrictEqual(yield* texts(1_000), { texts: ["above", "here"], problems: [] })
      assert.deepStrictEqual(yield* texts(0), { texts: ["above", "here"], problems: [] })
      assert.deepStrictEqual(yield* texts(1_001), {
        texts: ["here"],
        problems: ["~/GEMINI.md: its owner is not the owner of ~/work, so it was left out"]
      })
    })

    it.effect("concurrently reads each file once", function* () {
      const { layer: here, watched } = yield* watchedFiles
      yield* Effect.gen(function* () {
        const { memory } = yield* person({ ...git, "work/GEMINI.md": "one" })
        watched.opened.length = 0
        yield* Effect.all([memory.load, memory.load, memory.version, memory.load], { concurrency: "unbounded" })
      }).pipe(Effect.provide(here))
      assert.lengthOf(watched.opened, 1)
    })
  })
})

layer(NodeServices.layer)("any set of files", (it) => {
  const folders = ["", "a/", "a/b/", "c/"]
  const names = ["GEMINI.md", "AGENTS.md", "x.md"]
  const targets = [
    ...folders.flatMap((folder) => names.map((name) => `work/${folder}${name}`)),
    "work/a",
    "work",
    ".",
    "secret.md",
    "other/GEMINI.md",
    "/etc/passwd",
    "gone.md"
  ]
  const Choice = (all: ReadonlyArray<string>) => Schema.Literals(all)
  const Made = Schema.Struct({
    folder: Choice(folders),
    name: Choice([...names, "dir"]),
    /** What it leads to; undefined: it is a file that imports. */
    link: Schema.UndefinedOr(Choice(targets)),
    imports: Schema.Array(Choice([...targets, "dir/secret.md", "../secret.md", "./dir/../../secret.md"]))
  })

  it.effect.prop(
    "opens no file outside of the project, and none twice",
    [Schema.Array(Made), Schema.Literals(["tree", "flat"])],
    ([made, importFormat]) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const { layer: here, watched } = yield* watchedFiles
        const {
          home,
          made: again,
          place
        } = yield* person(
          {
            ...git,
            "secret.md": "secret",
            "other/GEMINI.md": "other",
            ...Object.fromEntries(folders.map((folder) => [`work/${folder}.keep`, ""]))
          },
          { memory: { importFormat } }
        )
        for (const { folder, imports, link, name } of made) {
          const file = place(`work/${folder}${name}`)
          const there = link === undefined ? "" : path.resolve(home, link)
          yield* Effect.ignore(
            link === undefined
              ? fs.writeFileString(
                  file,
                  imports
                    .map((to) => `@${to.startsWith("/") ? to : path.relative(path.dirname(file), place(to)) || "."}`)
                    .join(" "),
                  { flag: "wx" }
                )
              : fs.symlink(there, file)
          )
        }
        const memory = yield* Effect.provide(again, here)
        const { problems } = yield* memory.load
        const outside = watched.opened.filter((file) => !file.startsWith(`${home}/work/`))
        assert.deepStrictEqual(outside, [])
        const texts = watched.opened.filter((file) => file.endsWith(".md"))
        for (const file of texts) assert.strictEqual(yield* fs.realPath(file), file)
        assert.strictEqual(new Set(texts).size, texts.length)
        for (const problem of problems) assert.notInclude(problem, "\n")
      }),
    { arbitrary: { runs: runsOf(100, 15) } }
  )

  it.effect.prop(
    "a text without imports is unchanged, in both formats and resolved again",
    [
      Schema.Array(
        Schema.Literals(["word", " ", "\n", "`@a.md`", "me@x.org", "@1", "--- x", "<!-- c -->", "\n```\n@b.md\n```\n"])
      )
    ],
    ([pieces]) =>
      Effect.gen(function* () {
        const text = `x ${pieces.join(" ")}`
        for (const importFormat of ["tree", "flat"] as const) {
          const { blocks, problems } = yield* loadedOf({ ...git, "work/GEMINI.md": text }, { memory: { importFormat } })
          assert.strictEqual(blocks[0]?.text, text)
          assert.deepStrictEqual(problems, [])
        }
      }),
    { arbitrary: { runs: runsOf(50, 10) } }
  )
})

layer(
  Layer.merge(
    MemoryFileSystem.layer(
      Object.fromEntries([
        ["/home/work/.git/HEAD", ""],
        ["/home/work/.geminiignore", "build/\n"],
        ["/home/work/src/a/GEMINI.md", "a"],
        ...Array.from({ length: 60_000 }, (_, n) => [`/home/work/node_modules/p${n % 3_000}/${n}.js`, ""]),
        ...Array.from({ length: 30_000 }, (_, n) => [`/home/work/build/d${n % 1_000}/${n}.o`, ""]),
        ...Array.from({ length: 10_000 }, (_, n) => [`/home/work/src/m${n % 2_500}/${n}.ts`, ""])
      ])
    ),
    Path.layer
  )
)("a tree of 100,000 files", (it) => {
  it.effect("is searched within the limit, without ignored folders", function* () {
    const { layer: here, watched } = yield* watchedFiles
    const make = (maxDirs: number) =>
      FileMemory.make({
        home: "/home/.palimpsest",
        geminiHome: "/home/.gemini",
        extensions: [],
        root: "/home/work",
        isTrusted: () => Effect.succeed(true),
        memory: { maxDirs }
      })
    for (const [maxDirs, read] of [
      [200, 200],
      [10_000, 2_503]
    ] as const) {
      watched.folders.length = 0
      const { blocks } = yield* Effect.flatMap(make(maxDirs), ({ load }) => load).pipe(Effect.provide(here))
      assert.deepStrictEqual(shownIn({ blocks }), ["src/a/GEMINI.md"])
      assert.lengthOf(watched.folders, read)
      assert.isFalse(watched.folders.some((folder) => /node_modules|build/.test(folder)))
    }
  })
})
