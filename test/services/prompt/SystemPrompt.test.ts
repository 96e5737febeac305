import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { sectionKeys } from "../../../src/domain/prompt/PromptInputs.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { build, type BuildOptions, togglesOf } from "../../../src/services/prompt/SystemPrompt.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { assert, describe, layer } from "../../support/vitest.ts"
import { temporaryFolder, writeFiles } from "../../support/workspaces.ts"

const options: Omit<BuildOptions, "folder"> = {
  size: "full",
  model: "gemini-3-pro",
  interactive: true,
  mode: "none",
  agents: [{ name: "generalist", description: "Does a task" }],
  skills: [],
  tools: ["read_file", "recall"],
  hasHooks: false,
  isGit: true,
  isTrusted: true,
  memory: "Use tabs."
}

type Variables = Readonly<Record<string, string>>

/** What an `.env` file says, and whose it is. */
interface DotEnv {
  readonly variables: Variables
  readonly folder: string | undefined
}

/** A working folder with these files, and what builds a prompt there. */
const at = Effect.fnUntraced(function* (files: Readonly<Record<string, string | Uint8Array>>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* temporaryFolder
  const folder = path.join(top, "work")
  yield* fs.makeDirectory(folder)
  yield* writeFiles(top, files)
  const made = (variables: Variables, change: Partial<BuildOptions> = {}, of?: DotEnv) =>
    Effect.provideService(build({ ...options, folder, ...change }), Environment, {
      variables: Effect.succeed({ HOME: path.join(top, "home"), ...variables }),
      ...(of === undefined ? {} : { beneath: { ...of, hidden: [] } })
    })
  return { folder, fs, made, path, top }
})

layer(NodeServices.layer)("the system prompt", (it) => {
  describe("section switches", () => {
    it("are off by 0 and false", () => {
      for (const value of ["0", "false", " FALSE ", "1", "true", "no", ""]) {
        const { notices, toggles } = togglesOf({ GEMINI_PROMPT_GIT: value })
        const isOff = /0|false/i.test(value)
        assert.deepStrictEqual([toggles.git ?? true, notices], [!isOff, []], value)
      }
    })

    it.effect("each section has its variable; the agents' section has the one of its contexts", () =>
      Effect.sync(() => {
        for (const key of sectionKeys) {
          const { notices, toggles } = togglesOf({ [`GEMINI_PROMPT_${key.toUpperCase()}`]: "0" })
          assert.deepStrictEqual([toggles, notices], [{ [key]: false }, []])
        }
        assert.include(sectionKeys, "agentContexts")
      })
    )

    it.effect("settings switch too, and the environment overrides them", function* () {
      const { made } = yield* at({})
      const keys = (variables: Variables) =>
        Effect.map(made(variables, { toggles: { git: false } }), ({ sections }) => sections.map(({ key }) => key))
      assert.notInclude(yield* keys({}), "git")
      assert.notInclude(yield* keys({ GEMINI_PROMPT_GIT: "" }), "git")
      assert.include(yield* keys({ GEMINI_PROMPT_GIT: "1" }), "git")
    })

    it.effect("an unknown section name is reported with a suggestion", function* () {
      const { made } = yield* at({})
      const { notices } = yield* made({ GEMINI_PROMPT_CORE_MANDATES: "0", GEMINI_PROMPT_WEATHER: "0", GEMINI_X: "0" })
      assert.deepStrictEqual(notices, [
        "GEMINI_PROMPT_CORE_MANDATES has no effect: the system prompt has no such section; did you mean GEMINI_PROMPT_COREMANDATES?",
        "GEMINI_PROMPT_WEATHER has no effect: the system prompt has no such section"
      ])
    })

    it.effect("SANDBOX names where commands run", function* () {
      const { made } = yield* at({})
      const texts = yield* Effect.forEach(["", "sandbox-exec", "docker"], (SANDBOX) =>
        Effect.map(made({ SANDBOX }), ({ text }) => text)
      )
      assert.include(texts[0], "There is no sandbox")
      assert.include(texts[1], "Seatbelt")
      assert.include(texts[2], "such as a container")
    })
  })

  it.effect("its sections make up its text, and it is deterministic", function* () {
    const { made } = yield* at({})
    const one = yield* made({})
    assert.deepStrictEqual(yield* made({}), one)
    assert.strictEqual(one.sections.map(({ text }) => text).join("\n\n"), one.text)
    assert.deepStrictEqual(one.sections.at(-1), { key: "memory", text: "Use tabs." })
  })

  describe("the user's own text: GEMINI_SYSTEM_MD", () => {
    const files = {
      "work/.palimpsest/system.md": "ours",
      "work/.gemini/system.md": "gemini's",
      "work/own.md": "in the folder",
      "home/own.md": "at home"
    }
    const { "work/.palimpsest/system.md": _, ...onlyGemini } = files
    const cases: ReadonlyArray<readonly [value: string, expected: string, files: Readonly<Record<string, string>>]> = [
      ["1", "ours", files],
      [" TRUE ", "ours", files],
      ["true", "gemini's", onlyGemini],
      ["own.md", "in the folder", files],
      ["./own.md", "in the folder", files],
      [" own.md ", "in the folder", files],
      ["~/own.md", "at home", files]
    ]
    it.effect.each(cases)('"%s" reads what is %s', function* ([value, expected, those]) {
      const { made } = yield* at(those)
      const { sections, text } = yield* made({ GEMINI_SYSTEM_MD: value })
      assert.strictEqual(text, `${expected}\n\nUse tabs.`)
      assert.deepStrictEqual(
        sections.map(({ key }) => key),
        ["systemMd", "memory"]
      )
    })

    it.effect.each(["", "  ", "0", "false", "FALSE"])('"%s" disables it', function* (value) {
      const { made } = yield* at(files)
      assert.deepStrictEqual(yield* made({ GEMINI_SYSTEM_MD: value }), yield* made({}))
    })

    it.effect("an absolute path is used as it is; sections and their switches do not matter", function* () {
      const { made, path, top } = yield* at({
        "elsewhere/p.md": "\uFEFFa\r\n\n\n\nb ${AvailableTools} ${recall_ToolName}\n"
      })
      const file = path.join(top, "elsewhere", "p.md")
      const { text } = yield* made({ GEMINI_SYSTEM_MD: file, GEMINI_PROMPT_PREAMBLE: "0" }, { memory: "" })
      assert.strictEqual(text, "a\n\nb - read_file\n- recall recall")
    })

    it.effect("from an untrusted folder the default file is ignored, and a named one is read", function* () {
      const { made } = yield* at(files)
      const { notices, text } = yield* made({ GEMINI_SYSTEM_MD: "1" }, { isTrusted: false })
      assert.strictEqual(text, (yield* made({})).text)
      assert.match(notices.join("\n"), /^GEMINI_SYSTEM_MD is ignored: this folder is not trusted[^\n]*$/)
      const named = yield* made({ GEMINI_SYSTEM_MD: "own.md" }, { isTrusted: false })
      assert.strictEqual(named.text, "in the folder\n\nUse tabs.")
    })

    it.effect("the default file is ignored where a link leads out of the folder", function* () {
      const { folder, fs, made, top } = yield* at({ "elsewhere/system.md": "secret" })
      const none = yield* made({})
      for (const link of [`${folder}/.palimpsest`, `${folder}/.gemini/system.md`]) {
        yield* fs.makeDirectory(`${folder}/.gemini`, { recursive: true })
        yield* fs.symlink(link.endsWith(".md") ? `${top}/elsewhere/system.md` : `${top}/elsewhere`, link)
        const { notices, text } = yield* made({ GEMINI_SYSTEM_MD: "1" })
        assert.strictEqual(text, none.text)
        assert.lengthOf(notices, 1)
        assert.match(notices[0] ?? "", /^GEMINI_SYSTEM_MD is ignored: \S+system\.md leads out of the folder; /)
        yield* fs.remove(link)
      }
      yield* writeFiles(top, { "work/.gemini/real.md": "inside" })
      yield* fs.symlink("real.md", `${folder}/.gemini/system.md`)
      assert.strictEqual((yield* made({ GEMINI_SYSTEM_MD: "1" }, { memory: "" })).text, "inside")
    })

    for (const [value, isTaken] of [
      ["own.md", true],
      ["in.md", true],
      ["out.md", false],
      ["../elsewhere/own.md", false],
      ["~/own.md", false]
    ] as const) {
      it.effect(`from a folder's .env "${value}" is ${isTaken ? "used" : "ignored, with a notice"}`, function* () {
        const { folder, fs, made, top } = yield* at({ ...files, "elsewhere/own.md": "elsewhere" })
        yield* fs.symlink(`${top}/elsewhere/own.md`, `${folder}/out.md`)
        yield* fs.symlink("own.md", `${folder}/in.md`)
        const variables = { GEMINI_SYSTEM_MD: value }
        const { notices, text } = yield* made({}, {}, { variables, folder })
        assert.strictEqual(text, isTaken ? "in the folder\n\nUse tabs." : (yield* made({})).text)
        assert.lengthOf(notices, isTaken ? 0 : 1)
        // The user may name what they like, in the environment and in files of their own.
        assert.deepStrictEqual((yield* made({}, {}, { variables, folder: undefined })).notices, [])
        const own = yield* made(variables, {}, { variables: { GEMINI_SYSTEM_MD: "own.md" }, folder })
        assert.deepStrictEqual(own.notices, [])
      })
    }

    const bad: ReadonlyArray<
      readonly [rule: string, value: string, files: Readonly<Record<string, string | Uint8Array>>, expected: RegExp]
    > = [
      ["the file is missing", "none.md", {}, /^missing system prompt file '\S+\/work\/none\.md'; [^\n]+$/],
      ["the default file is missing", "1", {}, /^missing system prompt file '\S+\/work\/\.palimpsest\/system\.md'; /],
      ["it is a folder", "own", { "work/own/a.md": "" }, /own is a folder; GEMINI_SYSTEM_MD has to name a file$/],
      ["it is more than 1 MiB", "big.md", { "work/big.md": "x".repeat(1_048_577) }, /big\.md has more than 1 MiB/],
      ["it is no text", "a.bin", { "work/a.bin": new Uint8Array([0xff, 0xfe, 0x00]) }, /a\.bin is not UTF-8 text$/],
      ["it holds a null", "a.bin", { "work/a.bin": "a\0b" }, /a\.bin is not UTF-8 text$/]
    ]
    it.effect.each(bad)("reports in one line where %s", function* ([, value, those, expected]) {
      const { made } = yield* at(those)
      const error = yield* Effect.flip(made({ GEMINI_SYSTEM_MD: value }))
      assert.strictEqual(error._tag, "SystemPromptError")
      assert.match(error.message, expected)
      assert.notInclude(error.message, "\n")
    })

    it.effect("reads exactly 1 MiB", function* () {
      const { made } = yield* at({ "work/big.md": "x".repeat(1_048_576) })
      assert.lengthOf((yield* made({ GEMINI_SYSTEM_MD: "big.md" }, { memory: "" })).text, 1_048_576)
    })

    it.effect("never opens a named pipe", function* () {
      const { folder, made } = yield* at({})
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      yield* spawner.exitCode(ChildProcess.make("mkfifo", [`${folder}/pipe`]))
      const { message } = yield* Effect.flip(made({ GEMINI_SYSTEM_MD: "pipe" }))
      assert.match(message, /pipe is a named pipe; only regular files can be read$/)
    })

    it.effect("without HOME rejects a path with ~", function* () {
      const { made } = yield* at(files)
      const { message } = yield* Effect.flip(made({ GEMINI_SYSTEM_MD: "~/own.md", HOME: "" }))
      assert.match(message, /HOME is not set; give an absolute path$/)
    })
  })

  describe("writing the prompt to a file: GEMINI_WRITE_SYSTEM_MD", () => {
    it.effect("writes all of it with memory, each time; creates folders; keeps it private", function* () {
      const { folder, fs, made } = yield* at({})
      const file = `${folder}/deep/er/p.md`
      const { text } = yield* made({ GEMINI_WRITE_SYSTEM_MD: "deep/er/p.md" })
      assert.strictEqual(yield* fs.readFileString(file), `${text}\n`)
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      assert.strictEqual((yield* fs.stat(`${folder}/deep`)).mode & 0o777, 0o700)
      const again = yield* made({ GEMINI_WRITE_SYSTEM_MD: "deep/er/p.md" }, { memory: "Use blanks." })
      assert.strictEqual(yield* fs.readFileString(file), `${again.text}\n`)
      assert.notStrictEqual(again.text, text)
      assert.deepStrictEqual(yield* fs.readDirectory(`${folder}/deep/er`), ["p.md"])
      yield* fs.chmod(file, 0o644)
      yield* made({ GEMINI_WRITE_SYSTEM_MD: "deep/er/p.md" })
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o644)
    })

    it.effect.each(["1", "TRUE"])('"%s" writes the default file, in a trusted folder only', function* (value) {
      const { folder, fs, made } = yield* at({})
      const { notices } = yield* made({ GEMINI_WRITE_SYSTEM_MD: value }, { isTrusted: false })
      assert.match(notices.join("\n"), /^GEMINI_WRITE_SYSTEM_MD is ignored: this folder is not trusted/)
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [])
      const { text } = yield* made({ GEMINI_WRITE_SYSTEM_MD: value })
      assert.strictEqual(yield* fs.readFileString(`${folder}/.palimpsest/system.md`), `${text}\n`)
    })

    it.effect("does not write the default file where a link leads out of the folder", function* () {
      const { folder, fs, made, top } = yield* at({ "elsewhere/system.md": "mine", "empty/x": "" })
      const links = [
        [`${top}/elsewhere/system.md`, `${folder}/.palimpsest/system.md`],
        [`${top}/elsewhere`, `${folder}/.palimpsest`],
        [`${top}/empty`, `${folder}/.palimpsest`]
      ] as const
      for (const [to, link] of links) {
        if (link.endsWith(".md")) yield* fs.makeDirectory(`${folder}/.palimpsest`)
        yield* fs.symlink(to, link)
        const { notices } = yield* made({ GEMINI_WRITE_SYSTEM_MD: "1" })
        assert.lengthOf(notices, 1)
        assert.match(notices[0] ?? "", /^GEMINI_WRITE_SYSTEM_MD is ignored: \S+ leads out of the folder; /)
        yield* fs.remove(`${folder}/.palimpsest`, { recursive: true })
      }
      // What a link leads to that is not there is not made.
      yield* fs.symlink(`${top}/none`, `${folder}/.palimpsest`)
      yield* Effect.exit(made({ GEMINI_WRITE_SYSTEM_MD: "1" }))
      assert.strictEqual(yield* fs.readFileString(`${top}/elsewhere/system.md`), "mine")
      assert.deepStrictEqual(yield* fs.readDirectory(`${top}/empty`), ["x"])
      assert.isFalse(yield* fs.exists(`${top}/none`))
    })

    it.effect("no .env file can request it, whoever owns it", function* () {
      const { folder, fs, made } = yield* at({})
      const variables = { GEMINI_WRITE_SYSTEM_MD: `${folder}/p.md` }
      for (const one of [folder, undefined]) yield* made({}, {}, { variables, folder: one })
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [])
    })

    it.effect.each(["", "0", "false"])('"%s" writes nothing', function* (value) {
      const { folder, fs, made } = yield* at({})
      yield* made({ GEMINI_WRITE_SYSTEM_MD: value })
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [])
    })

    it.effect("any failure keeps the old file, without leftovers", function* () {
      const { folder, fs, made } = yield* at({ "work/p.md": "old" })
      for (let n = 1; ; n += 1) {
        const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, "half"))
        const result = yield* Effect.result(made({ GEMINI_WRITE_SYSTEM_MD: "p.md" }).pipe(Effect.provide(faulty.layer)))
        const calls = yield* faulty.calls
        if (calls.every(({ mutating }) => mutating !== n)) {
          assert.isAbove(n, 3)
          break
        }
        const text = yield* fs.readFileString(`${folder}/p.md`)
        if (result._tag === "Failure") assert.strictEqual(text, "old")
        assert.deepStrictEqual(yield* fs.readDirectory(folder), ["p.md"])
        yield* fs.writeFileString(`${folder}/p.md`, "old")
      }
    })

    it.effect("follows a link to a file", function* () {
      const { folder, fs, made, top } = yield* at({ "elsewhere/p.md": "old" })
      yield* fs.symlink(`${top}/elsewhere/p.md`, `${folder}/p.md`)
      const { text } = yield* made({ GEMINI_WRITE_SYSTEM_MD: "p.md" })
      assert.strictEqual(yield* fs.readFileString(`${top}/elsewhere/p.md`), `${text}\n`)
      assert.strictEqual(yield* fs.readLink(`${folder}/p.md`), `${top}/elsewhere/p.md`)
    })

    it.effect("never overwrites the file that is read, under any name", function* () {
      const { folder, fs, made } = yield* at({ "work/.palimpsest/system.md": "ours" })
      yield* fs.symlink(`${folder}/.palimpsest/system.md`, `${folder}/link.md`)
      for (const value of ["1", ".palimpsest/system.md", "link.md"]) {
        const { notices, text } = yield* made({ GEMINI_SYSTEM_MD: "1", GEMINI_WRITE_SYSTEM_MD: value })
        assert.strictEqual(text, "ours\n\nUse tabs.")
        assert.match(notices.join("\n"), /was not written: GEMINI_SYSTEM_MD reads it/)
      }
      assert.strictEqual(yield* fs.readFileString(`${folder}/.palimpsest/system.md`), "ours")
    })

    const bad: ReadonlyArray<readonly [rule: string, value: string, expected: RegExp]> = [
      ["it is a folder", "folder", /folder is not a regular file; let GEMINI_WRITE_SYSTEM_MD name another$/],
      ["it is a device", "/dev/null", /^\/dev\/null is not a regular file/],
      [
        "a file is in the way",
        "a.txt/p.md",
        /^the system prompt cannot be written \(.+\); let GEMINI_WRITE_SYSTEM_MD name another file$/
      ]
    ]
    it.effect.each(bad)("reports in one line where %s", function* ([, value, expected]) {
      const { folder, fs, made } = yield* at({ "work/a.txt": "mine", "work/folder/b.txt": "" })
      const { message } = yield* Effect.flip(made({ GEMINI_WRITE_SYSTEM_MD: value }))
      assert.match(message, expected)
      assert.notInclude(message, "\n")
      assert.strictEqual(yield* fs.readFileString(`${folder}/a.txt`), "mine")
    })
  })
})
