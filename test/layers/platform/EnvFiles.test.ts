import { NodeServices } from "@effect/platform-node"
import { Config, ConfigProvider, Effect, FileSystem, Layer, Option, Path } from "effect"
import { execFileSync } from "node:child_process"
import * as EnvFilesLayer from "../../../src/layers/platform/EnvFiles.ts"
import * as MemoryTrust from "../../../src/layers/testing/MemoryTrust.ts"
import { EnvFiles } from "../../../src/services/platform/Environment.ts"
import type { TrustAnswer } from "../../../src/services/workspace/Trust.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A person's home with a project in it; what files there are, by their path below the folder of this test. */
const ground = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  yield* fs.makeDirectory(at("me/work/app/src"), { recursive: true })
  yield* fs.makeDirectory(at("kept"))
  for (const [file, text] of Object.entries(files)) {
    yield* fs.makeDirectory(path.dirname(at(file)), { recursive: true })
    yield* fs.writeFileString(at(file), text)
  }
  return at
})

type At = (...parts: ReadonlyArray<string>) => string

/** What is found from `work/app/src`, and the model that counts then. */
const found = (
  at: At,
  trusted: Readonly<Record<string, TrustAnswer>>,
  environment: Readonly<Record<string, string>> = {},
  workspace = at("me/work/app/src")
) => {
  const answers = Object.fromEntries(Object.entries(trusted).map(([folder, answer]) => [at(folder), answer]))
  return Effect.gen(function* () {
    const files = yield* EnvFiles
    const model = yield* Config.option(Config.NonEmptyString("GEMINI_MODEL"))
    return {
      ...files,
      notices: files.notices,
      file: files.file?.slice(at().length + 1),
      model: Option.getOrUndefined(model)
    }
  }).pipe(
    Effect.provide(
      EnvFilesLayer.layer({ home: at("kept"), user: at("me"), workspace }).pipe(
        Layer.provide(MemoryTrust.layer(answers)),
        Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ ...environment })))
      )
    )
  )
}

const says = (model: string) => `GEMINI_MODEL=${model}\n`
const all = { "me/work": "trusted" } as const

describe("choosing the file", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, files: ReadonlyArray<string>, trusted: Readonly<Record<string, TrustAnswer>>, file: string]
  > = [
    [
      "our own first",
      ["me/work/app/src/.palimpsest/.env", "me/work/app/src/.gemini/.env"],
      all,
      "me/work/app/src/.palimpsest/.env"
    ],
    [
      "then that of Gemini CLI",
      ["me/work/app/src/.gemini/.env", "me/work/app/src/.env"],
      all,
      "me/work/app/src/.gemini/.env"
    ],
    ["then the plain one", ["me/work/app/src/.env", "me/work/app/.gemini/.env"], all, "me/work/app/src/.env"],
    ["then those above", ["me/work/.env", "me/.gemini/.env"], all, "me/work/.env"],
    ["then our home", ["kept/.env", "me/.gemini/.env"], all, "kept/.env"],
    ["then the user's folder of Gemini CLI", ["me/.gemini/.env", "me/.env"], all, "me/.gemini/.env"],
    ["last the user's", ["me/.env", ".env"], all, "me/.env"],
    ["one that is not trusted is passed over", ["me/work/app/src/.env", "me/.env"], {}, "me/.env"],
    [
      "the nearest answer counts",
      ["me/work/app/.env", "me/work/.env"],
      { ...all, "me/work/app": "untrusted" },
      "me/work/.env"
    ]
  ]
  it.effect.each(cases)("%s", NodeServices.layer, function* ([, files, trusted, file]) {
    const at = yield* ground(Object.fromEntries(files.map((each) => [each, says(each)])))
    const { file: first, model, notices } = yield* found(at, trusted)
    assert.deepStrictEqual([first, model, notices], [file, file, []])
  })

  it.effect("skips a file without variables of this program", NodeServices.layer, function* () {
    const at = yield* ground({ "me/work/app/.env": "DB=1\nDEBUG=true\nGEMINI_API_KEY=\n", "me/.env": says("mine") })
    const { file, variables } = yield* found(at, all)
    assert.deepStrictEqual([file, variables], ["me/.env", { GEMINI_MODEL: "mine" }])
  })

  it.effect("remembers skipped files without reading their values", NodeServices.layer, function* () {
    const at = yield* ground({ "me/work/.env": "GOOGLE_GEMINI_BASE_URL=https://evil.example\n" })
    const { notices, untrusted, variables } = yield* found(at, {})
    assert.deepStrictEqual([untrusted, notices, variables], [[at("me/work/.env")], [], {}])
  })
})

describe("precedence", () => {
  it.effect("the environment comes first; variables a file must not set stay unset", NodeServices.layer, function* () {
    const at = yield* ground({
      "me/work/.env": "GEMINI_MODEL=file\nGEMINI_CLI_TRUST_WORKSPACE=true\nPALIMPSEST_HOME=/tmp\nPATH=/evil\n"
    })
    const { model, variables } = yield* found(at, all, { GEMINI_MODEL: "real" })
    assert.deepStrictEqual([model, variables], ["real", { GEMINI_MODEL: "file" }])
  })

  it.effect("a key is hidden, and an invalid line is reported by its number", NodeServices.layer, function* () {
    const at = yield* ground({ "me/.gemini/.env": "what is this\nGEMINI_API_KEY=some-key-or-other\nsk-live" })
    const { hidden, notices } = yield* found(at, {})
    assert.deepStrictEqual(hidden, [{ value: "some-key-or-other", instead: "[redacted: GEMINI_API_KEY]" }])
    assert.deepStrictEqual(notices, [
      `${at("me/.gemini/.env")}, line 1: expected NAME=value; this line and 1 more are ignored`
    ])
  })
})

describe("a folder's file cannot set the paths of the user's files", () => {
  const url = "GOOGLE_GEMINI_BASE_URL=https://user:secret@theirs.example/x"
  const used = (at: At, file: string) =>
    `the model is asked at https://theirs.example, as GOOGLE_GEMINI_BASE_URL in ${at(file)} says`
  const leftOut = (at: At, file: string, why: string) =>
    `${at(file)}: GOOGLE_GEMINI_BASE_URL is ignored: ${why}; set it in the environment to use it`
  const noKey = "the file sets no key for it"
  const cases: ReadonlyArray<
    readonly [
      rule: string,
      file: string,
      text: string,
      environment: Readonly<Record<string, string>>,
      told: (at: At, file: string) => ReadonlyArray<string>,
      isTaken: boolean
    ]
  > = [
    ["alone it is ignored", "me/work/.env", url, {}, (at, file) => [leftOut(at, file, noKey)], false],
    [
      "with a key of its own it counts, and is told without what is secret in it",
      "me/work/.palimpsest/.env",
      `${url}\nGEMINI_API_KEY=theirs-of-length`,
      {},
      (at, file) => [used(at, file)],
      true
    ],
    [
      "with a key that does not count, as the user has one, it is ignored",
      "me/work/.env",
      `${url}\nGEMINI_API_KEY=theirs-of-length`,
      { GEMINI_API_KEY: "mine" },
      (at, file) => [leftOut(at, file, "GEMINI_API_KEY from the environment would be sent there")],
      false
    ],
    [
      "where the environment has an address nothing is told",
      "me/work/.env",
      `${url}\nGEMINI_API_KEY=theirs-of-length`,
      { GOOGLE_GEMINI_BASE_URL: "http://localhost:1" },
      () => [],
      true
    ],
    ["in a file of the user's it is theirs", "me/.gemini/.env", url, { GEMINI_API_KEY: "mine" }, () => [], true]
  ]
  it.effect.each(cases)("an address: %s", NodeServices.layer, function* ([, file, text, environment, told, isTaken]) {
    const at = yield* ground({ [file]: `${text}\nGEMINI_MODEL=m\n` })
    const { notices, variables } = yield* found(at, all, environment)
    assert.deepStrictEqual(notices, told(at, file))
    assert.strictEqual("GOOGLE_GEMINI_BASE_URL" in variables, isTaken)
    assert.strictEqual(variables["GEMINI_MODEL"], "m")
  })

  it.effect("a file whose only variable is an ignored address is skipped", NodeServices.layer, function* () {
    const at = yield* ground({ "me/work/.env": url, "me/.env": "GEMINI_API_KEY=mine-of-length\n" })
    const { file, variables } = yield* found(at, all)
    assert.deepStrictEqual([file, variables], ["me/.env", { GEMINI_API_KEY: "mine-of-length" }])
  })

  it.effect("ignores variables for files, hooks and home settings; says it once", NodeServices.layer, function* () {
    const at = yield* ground({
      "me/work/.gemini/.env":
        "GEMINI_WRITE_SYSTEM_MD=~/.bashrc\nGEMINI_EXP=/dev/zero\nPALIMPSEST_HOME=/tmp\nPALIMPSEST_IDE_FILE=/etc/passwd\nPALIMPSEST_HOOKS_CONFIG_ENABLED=false\nPALIMPSEST_MAX_TURNS=5\n"
    })
    const { folder, notices, variables } = yield* found(at, all)
    assert.deepStrictEqual([folder, variables], [at("me/work"), { PALIMPSEST_MAX_TURNS: "5" }])
    assert.deepStrictEqual(notices, [
      `${at("me/work/.gemini/.env")}: GEMINI_WRITE_SYSTEM_MD, GEMINI_EXP, PALIMPSEST_HOME, PALIMPSEST_IDE_FILE, PALIMPSEST_HOOKS_CONFIG_ENABLED cannot be set in such a file`
    ])
  })

  const prompts: ReadonlyArray<readonly [rule: string, value: (at: At) => string, isTaken: boolean]> = [
    ["the usual one", () => "1", true],
    ["one in the file's folder", (at) => at("me/work/own.md"), true],
    ["one above", (at) => at("me/own.md"), false],
    ["one above by dots", () => " ../../../own.md ", false],
    ["one that a link leads to", () => "link.md", false],
    ["one that a link to its folder leads to", () => "out/own.md", false],
    ["one in a part that was refused", (at) => at("me/work/vendor/own.md"), false],
    ["one in a folder that begins like it", (at) => at("me/work2/own.md"), false]
  ]
  for (const [rule, value, isTaken] of prompts) {
    it.effect(`a system prompt, ${rule}: ${isTaken ? "taken" : "left out"}`, NodeServices.layer, function* () {
      const fs = yield* FileSystem.FileSystem
      const at = yield* ground({
        "me/work/app/src/own.md": "",
        "me/work/own.md": "",
        "me/work/vendor/own.md": "",
        "me/work2/own.md": "",
        "me/own.md": ""
      })
      yield* fs.symlink(at("me/own.md"), at("me/work/app/src/link.md"))
      yield* fs.symlink(at("me"), at("me/work/app/src/out"))
      yield* fs.writeFileString(at("me/work/.env"), `GEMINI_SYSTEM_MD="${value(at)}"\nGEMINI_MODEL=m\n`)
      const { notices, variables } = yield* found(at, { ...all, "me/work/vendor": "untrusted" })
      assert.deepStrictEqual(variables, { ...(isTaken ? { GEMINI_SYSTEM_MD: value(at) } : {}), GEMINI_MODEL: "m" })
      assert.deepStrictEqual(
        notices,
        isTaken
          ? []
          : [
              `${at("me/work/.env")}: GEMINI_SYSTEM_MD is ignored: it leads out of ${at("me/work")}; set it in the environment to use it`
            ]
      )
    })
  }
})

describe("unreadable files", () => {
  const cases: ReadonlyArray<readonly [what: string, make: (file: string) => void, told: RegExp]> = [
    ["a pipe", (file) => execFileSync("mkfifo", [file]), /\.env is a named pipe; [^\n]*; it is ignored$/],
    ["a link to itself", (file) => execFileSync("ln", ["-s", ".env", file]), /\.env[^\n]*; it is ignored$/],
    ["what is long", (file) => execFileSync("truncate", ["-s", "65537", file]), /has more than 64 KiB; it is ignored$/]
  ]
  it.effect.each(cases)("%s is reported in one line and skipped", NodeServices.layer, function* ([, make, told]) {
    const at = yield* ground({ "me/.env": says("mine") })
    make(at("me/work/.env"))
    const { model, notices } = yield* found(at, all)
    assert.strictEqual(model, "mine")
    assert.lengthOf(notices, 1)
    assert.match(notices[0] ?? "", told)
  })

  it.effect("a link from a trusted folder to a declined one is skipped", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const at = yield* ground({ "me/work/app/vendor/settings": says("theirs") })
    yield* fs.symlink(at("me/work/app/vendor/settings"), at("me/work/.env"))
    const { model, untrusted } = yield* found(at, { ...all, "me/work/app/vendor": "untrusted" })
    assert.deepStrictEqual([model, untrusted], [undefined, [at("me/work/.env")]])
  })
})
