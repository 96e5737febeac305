import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, FileSystem, Layer, Path, Schema } from "effect"
import { Command } from "effect/cli"
import { config } from "../../src/cli/commands/config.ts"
import { defaults } from "../../src/domain/settings/Settings.ts"
import { setValues } from "../../src/domain/settings/SettingsKey.ts"
import * as FileSettings from "../../src/layers/settings/FileSettings.ts"
import * as MemoryTrust from "../../src/layers/testing/MemoryTrust.ts"
import { EnvFiles } from "../../src/services/platform/Environment.ts"
import { GeminiImport } from "../../src/services/settings/GeminiImport.ts"
import { Trust, type TrustAnswer } from "../../src/services/workspace/Trust.ts"
import { assert, layer } from "../support/vitest.ts"
import { recordedStdio } from "./recordedStdio.ts"

interface Around {
  readonly home?: string
  readonly here?: string
  readonly env?: Readonly<Record<string, string>>
  readonly trust?: TrustAnswer
  /** What a `.env` file says. */
  readonly dotEnv?: Readonly<Record<string, string>>
}

const fromJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

/** A home folder and a working folder, and the command run among them. */
const among = Effect.fnUntraced(function* ({ dotEnv = {}, env = {}, here, home, trust = "trusted" }: Around) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const files = { home: `${root}/home/settings.json`, here: `${root}/here/.palimpsest/settings.json` }
  yield* fs.makeDirectory(`${root}/home`)
  yield* fs.makeDirectory(`${root}/here/.palimpsest`, { recursive: true })
  if (home !== undefined) yield* fs.writeFileString(files.home, home)
  if (here !== undefined) yield* fs.writeFileString(files.here, here)
  const inFolder = Layer.succeed(Path.Path, { ...path, resolve: (...parts) => path.resolve(`${root}/here`, ...parts) })
  const services = Layer.unwrap(Effect.map(Trust, (answers) => FileSettings.layer(`${root}/home`, answers.of))).pipe(
    Layer.provideMerge(MemoryTrust.layer({ [`${root}/here`]: trust })),
    Layer.provideMerge(inFolder),
    Layer.provideMerge(Layer.mock(GeminiImport, {})),
    Layer.provideMerge(
      Layer.succeed(EnvFiles, {
        file: Object.keys(dotEnv).length === 0 ? undefined : `${root}/here/.env`,
        variables: dotEnv,
        hidden: [],
        untrusted: [],
        notices: []
      })
    ),
    Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ ...dotEnv, ...env })))
  )
  const run = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const { layer: stdio, texts } = recordedStdio()
    const status = yield* Command.runWith(config, { version: "0" })(args).pipe(
      Effect.as(0),
      Effect.catchTag("ExitError", ({ message, status: code }) =>
        Effect.sync(() => {
          texts.err += message === "" ? "" : `palimpsest: ${message}\n`
          return code
        })
      ),
      Effect.provide(Layer.merge(services, stdio))
    )
    const plain = (text: string) => text.replaceAll(root, "")
    return { status, out: plain(texts.out), err: plain(texts.err) }
  })
  return { run, files, root, fs }
})

layer(NodeServices.layer)("config list", (it) => {
  it.effect("shows only what is set, with its source", function* () {
    const { run } = yield* among({
      home: `{"model": "m", "window": 1}`,
      here: `{"window": 2}`,
      env: { PALIMPSEST_SHELL_IDLE: "5" }
    })
    assert.deepStrictEqual(yield* run("list"), {
      status: 0,
      out: [
        "KEY        VALUE  FROM",
        "model      m      /home/settings.json",
        "window     2      /here/.palimpsest/settings.json",
        "shellIdle  5      PALIMPSEST_SHELL_IDLE",
        ""
      ].join("\n"),
      err: ""
    })
  })

  it.effect("--all lists every setting and marks the unset ones", function* () {
    const { run } = yield* among({ home: `{"memory": {"maxDirs": 7}}` })
    const { out } = yield* run("list", "--all")
    for (const { path } of setValues(defaults)) assert.include(out, `\n${path.join(".")} `)
    assert.match(out, /\nmemory\.maxDirs +7 +\/home\/settings\.json\n/)
    assert.match(out, /\nmemory\.importDepth +5 +default\n/)
  })

  it.effect("--json prints one document; no output shows secrets", function* () {
    const secret = "s3cr3t"
    const { run } = yield* among({
      home: `{"mcpServers": {"a": {"command": "x", "env": {"K": "${secret}"}}}, "ide": {"file": "$FILE"}}`,
      env: { FILE: secret }
    })
    const { out } = yield* run("list", "--json")
    assert.deepStrictEqual(yield* fromJson(out), {
      settings: [
        { key: "mcpServers.a.command", value: "x", from: ["/home/settings.json"] },
        { key: "mcpServers.a.env.K", value: "••• (6 characters)", from: ["/home/settings.json"] },
        { key: "ide.file", value: "$FILE", from: ["/home/settings.json"] }
      ]
    })
    for (const args of [
      ["list"],
      ["list", "--all"],
      ["get", "mcpServers"],
      ["get", "mcpServers.a.env"],
      ["get", "mcpServers.a.env", "--json"],
      ["get", "mcpServers.a.env.K"],
      ["doctor"]
    ]) {
      const { err, out: shown } = yield* run(...args)
      assert.notInclude(shown + err, secret, args.join(" "))
    }
  })

  it.effect("warns about unknown keys on stderr, and exits with 2 for invalid values", function* () {
    const { run } = yield* among({ home: `{"modle": "m"}` })
    assert.deepStrictEqual(yield* run("list"), {
      status: 0,
      out: "",
      err: [
        "palimpsest: /home/settings.json: there is no setting modle (did you mean model?); it is ignored",
        "palimpsest: nothing is set; use --all to include defaults",
        ""
      ].join("\n")
    })
    const { run: broken } = yield* among({ here: `{"memory": {"maxDirs": "many"}}` })
    assert.deepStrictEqual(yield* broken("list"), {
      status: 2,
      out: "",
      err: "palimpsest: /here/.palimpsest/settings.json, memory.maxDirs: expected a whole number of folders above 0, such as 200\n"
    })
  })
})

layer(NodeServices.layer)("config get", (it) => {
  it.effect.each([
    ["model", "m\n"],
    ["memory.maxDirs", "200\n"],
    ["attempts", `{"calls":10,"answers":4}\n`],
    ["loopDetection", `{"calls":3,"content":10,"chunk":50,"history":5000,"checkAfter":30}\n`],
    ["loopDetection.calls", "3\n"],
    ["models.a.b.window", "5\n"]
  ] as const)("%s: prints the effective value, set or not", function* ([key, out]) {
    const { run } = yield* among({
      home: `{"model": "m", "loopDetection": {"calls": 3}, "models": {"a.b": {"window": 5}}}`
    })
    assert.deepStrictEqual(yield* run("get", key), { status: 0, out, err: "" })
  })

  it.effect("exits with 1 for a setting without a value, with 2 for an unknown setting", function* () {
    const { run } = yield* among({})
    assert.deepStrictEqual(yield* run("get", "window"), {
      status: 1,
      out: "",
      err: "palimpsest: window is not set\n"
    })
    assert.deepStrictEqual(yield* run("get", "windwo"), {
      status: 2,
      out: "",
      err: `palimpsest: there is no setting windwo (did you mean window?); "palimpsest config list --all" lists all settings\n`
    })
    assert.deepStrictEqual(yield* fromJson((yield* run("get", "window", "--json")).out), {
      key: "window",
      value: null,
      from: []
    })
  })
})

layer(NodeServices.layer)("config set and unset", (it) => {
  it.effect("writes to the user's file, or with --workspace to the folder's, and keeps the rest", function* () {
    const { files, fs, run } = yield* among({ home: `{\n  "model": "m" // mine\n}\n` })
    const set = yield* run("set", "compressionThreshold", "70%")
    assert.deepStrictEqual(set, {
      status: 0,
      out: "",
      err: "palimpsest: compressionThreshold is 0.7 in /home/settings.json\n"
    })
    yield* run("set", "memory.fileNames", "A.md,B.md", "--workspace")
    assert.deepStrictEqual(
      [yield* fs.readFileString(files.home), yield* fs.readFileString(files.here)],
      [
        `{\n  "model": "m", // mine\n  "compressionThreshold": 0.7\n}\n`,
        `{\n  "memory": {"fileNames": ["A.md", "B.md"]}\n}\n`
      ]
    )
    yield* run("unset", "compressionThreshold")
    assert.strictEqual(yield* fs.readFileString(files.home), `{\n  "model": "m" // mine\n}\n`)
    assert.deepStrictEqual(yield* run("unset", "compressionThreshold"), {
      status: 0,
      out: "",
      err: "palimpsest: compressionThreshold was not set in /home/settings.json\n"
    })
  })

  it.effect.each([
    [
      "a value out of range",
      ["set", "window", "0"],
      /^palimpsest: window: expected a whole number of tokens, such as 200000\n$/
    ],
    ["no setting", ["set", "windwo", "5"], /did you mean window\?/],
    ["what is yours alone, in a folder", ["set", "approve", "all", "--workspace"], /your own settings only/],
    ["no setting, taken out", ["unset", "windwo"], /did you mean window\?/],
    ["something else that is wrong", ["set", "model", "m"], /\/home\/settings\.json, titles: expected true or false/]
  ] as const)("%s exits with 2 and leaves the file unchanged", function* ([, args, err]) {
    const home = `{"titles": "perhaps"}`
    const { files, fs, run } = yield* among({ home })
    const ended = yield* run(...args)
    assert.strictEqual(ended.status, 2)
    assert.match(ended.err, err)
    assert.strictEqual(yield* fs.readFileString(files.home), home)
    assert.isFalse(yield* fs.exists(files.here))
  })

  it.effect("replaces an invalid value and removes unknown keys", function* () {
    const { files, fs, run } = yield* among({ home: `{"titles": "perhaps", "theme": 1}` })
    assert.strictEqual((yield* run("set", "titles", "on")).status, 0)
    assert.strictEqual((yield* run("unset", "theme")).status, 0)
    assert.strictEqual(yield* fs.readFileString(files.home), `{"titles": true}`)
  })

  it.effect("says what overrides the new value", function* () {
    const { run } = yield* among({ env: { PALIMPSEST_WINDOW: "9" } })
    assert.include(
      (yield* run("set", "window", "5")).err,
      "\npalimpsest: PALIMPSEST_WINDOW also sets it and takes precedence\n"
    )
    const { run: elsewhere } = yield* among({ trust: "untrusted" })
    assert.include(
      (yield* elsewhere("set", "window", "5", "--workspace")).err,
      "it has no effect yet: the folder is not trusted"
    )
  })

  it.effect("exits with 1 when the disk fails", function* () {
    const { fs, root, run } = yield* among({})
    yield* fs.remove(`${root}/home`, { recursive: true })
    yield* fs.writeFileString(`${root}/home`, "")
    const { err, status } = yield* run("set", "window", "5")
    assert.strictEqual(status, 1)
    assert.match(err, /^palimpsest: \/home\/settings\.json: cannot be written: [^\n]+\n$/)
    const { out, status: health } = yield* run("doctor")
    assert.strictEqual(health, 1)
    assert.match(out, /problem +home folder +\/home is not a folder/)
  })

  it.effect("does not print the secret it wrote", function* () {
    const { run } = yield* among({})
    const ended = yield* run("set", "mcpServers.a", `{"command": "x", "env": {"K": "s3cr3t"}}`)
    assert.strictEqual(ended.status, 0)
    assert.notInclude(ended.err, "s3cr3t")
    for (const [name, value] of [
      ["mcpServers.a.env", `{"K": "s3cr3t"}`],
      ["mcpServers.a.env.K", "s3cr3t"],
      ["mcpServers.a.args", `["--token", "s3cr3t"]`],
      ["telemetry.endpoint", "https://s3cr3t@h.example/?key=s3cr3t"]
    ] as const) {
      const { err, status } = yield* run("set", name, value)
      assert.strictEqual(status, 0, err)
      assert.notInclude(err, "s3cr3t")
      assert.include(err, "•••")
    }
  })

  it.effect("escapes control characters in texts, objects and lists", function* () {
    const csi = "\u009b"
    const over = "\u202e"
    const odd = `a${csi}31m${over}b`
    const { run } = yield* among({
      home: JSON.stringify({
        model: odd,
        memory: { fileNames: [odd] },
        mcpServers: { [odd]: { command: odd, args: [odd] } }
      })
    })
    for (const args of [
      ["list"],
      ["list", "--all"],
      ["get", "model"],
      ["get", "memory"],
      ["get", "memory.fileNames"],
      ["get", "mcpServers"],
      ["set", "memory.fileNames", odd],
      ["unset", `mcpServers.${odd}`],
      ["doctor"],
      ["path"]
    ]) {
      const { err, out } = yield* run(...args)
      assert.notMatch(out + err, /[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/, args.join(" "))
    }
    const { out } = yield* run("get", "model")
    assert.strictEqual(yield* fromJson(out), odd)
  })
})

layer(NodeServices.layer)("config path and schema", (it) => {
  it.effect("path prints the files, with which exist and which apply", function* () {
    const { run } = yield* among({ here: "{}", trust: "untrusted", dotEnv: { PALIMPSEST_WINDOW: "5" } })
    assert.strictEqual(
      (yield* run("path")).out,
      [
        "home       /home/settings.json              missing",
        `workspace  /here/.palimpsest/settings.json  ignored: the folder is not trusted; to trust it: palimpsest trust`,
        ".env       /here/.env                       in use",
        ""
      ].join("\n")
    )
    assert.deepStrictEqual(yield* fromJson((yield* run("path", "--json")).out), {
      files: [
        { place: "home", file: "/home/settings.json", exists: false, counts: false },
        { place: "workspace", file: "/here/.palimpsest/settings.json", exists: true, counts: false },
        { place: ".env", file: "/here/.env", exists: true, counts: true }
      ]
    })
  })

  it.effect("schema prints one JSON document", function* () {
    const { run } = yield* among({ home: "{" })
    const { err, out, status } = yield* run("schema")
    assert.deepStrictEqual([status, err], [0, ""])
    assert.isTrue(Schema.is(Schema.Record(Schema.String, Schema.Json))(yield* fromJson(out)))
  })
})

layer(NodeServices.layer)("config doctor", (it) => {
  it.effect("reports no problem for a good set-up, and shows no key", function* () {
    const key = `AIza${"x".repeat(35)}`
    const { run } = yield* among({
      home: `{"hooks": {"AfterTool": [{"hooks": [{"type": "command", "command": "true"}]}]}}`,
      env: { GEMINI_API_KEY: key },
      dotEnv: { PALIMPSEST_WINDOW: "5" }
    })
    const { err, out, status } = yield* run("doctor")
    assert.deepStrictEqual([status, err], [0, ""])
    assert.strictEqual(
      out,
      [
        "OK  home folder         /home",
        "OK  trust               /here is trusted",
        "OK  home settings       /home/settings.json",
        "OK  workspace settings  /here/.palimpsest/settings.json does not exist; nothing is set there",
        "OK  .env                /here/.env sets PALIMPSEST_WINDOW",
        "OK  environment         PALIMPSEST_WINDOW sets window",
        "OK  model               gemini-2.5-flash",
        "OK  key                 GEMINI_API_KEY is set",
        "OK  hooks               1 hook",
        ""
      ].join("\n")
    )
  })

  it.effect("treats a blank key as missing", function* () {
    const { run } = yield* among({ env: { GEMINI_API_KEY: "  ", GOOGLE_API_KEY: "AIza-x" } })
    assert.match((yield* run("doctor")).out, /\nOK +key +GOOGLE_API_KEY is set\n/)
    const { run: without } = yield* among({ env: { GEMINI_API_KEY: "  " } })
    assert.match((yield* without("doctor")).out, /\nwarning +key +no API key/)
  })

  it.effect("finds a model whose provider is not known, or whose key is missing", function* () {
    const env = { ANTHROPIC_API_KEY: "x" }
    const { run: unknown } = yield* among({ home: `{"model": "antropic/claude-sonnet-5"}`, env })
    const { out, status } = yield* unknown("doctor")
    assert.strictEqual(status, 1)
    assert.match(
      out,
      /\nproblem +model +antropic\/claude-sonnet-5: there is no provider antropic; did you mean anthropic\?/
    )
    const { run: keyless } = yield* among({ home: `{"model": "gpt-5.1"}`, env })
    assert.match(
      (yield* keyless("doctor")).out,
      /\nwarning +model +gpt-5\.1 needs OPENAI_API_KEY; with the key that is set: palimpsest config set model claude-sonnet-5\n/
    )
  })

  it.effect("explains how to resolve every problem, and exits with 1", function* () {
    const { run } = yield* among({
      home: `{"window": 5,,}`,
      here: `{"hooks": {"Never": []}, "theme": 1, "model": "no model"}`,
      env: { PALIMPSEST_TITLES: "perhaps", PALIMPSEST_APPROVE: "all", PALIMPSEST_MODLE: "x" }
    })
    const { out, status } = yield* run("doctor", "--json")
    assert.strictEqual(status, 1)
    const { checks } = yield* Schema.decodeEffect(
      Schema.fromJsonString(
        Schema.Struct({
          checks: Schema.Array(Schema.Struct({ check: Schema.String, status: Schema.String, message: Schema.String }))
        })
      )
    )(out)
    const wrong = checks.filter((check) => check.status !== "ok")
    assert.deepStrictEqual(
      wrong.map(({ check, status: how }) => `${how}: ${check}`),
      [
        "problem: home settings",
        "warning: workspace settings",
        "problem: environment",
        "warning: environment",
        "warning: environment",
        "problem: model",
        "warning: key",
        "warning: hooks"
      ]
    )
    const messages = wrong.map(({ message }) => message).join("\n")
    for (const words of [
      "expected JSON",
      "no setting theme",
      "PALIMPSEST_TITLES: expected true or false",
      "did you mean PALIMPSEST_MODEL?",
      "GEMINI_API_KEY",
      "Never"
    ]) {
      assert.include(messages, words)
    }
    assert.match((yield* run("doctor")).err, /3 problems found/)
  })

  it.effect("warns about an untrusted folder", function* () {
    const { run } = yield* among({ trust: "untrusted", here: "{}" })
    const { out, status } = yield* run("doctor")
    assert.strictEqual(status, 0)
    assert.match(out, /warning +trust +\/here is not trusted/)
    assert.match(out, /warning +workspace settings +\/here\/\.palimpsest\/settings\.json is ignored/)
  })
})
