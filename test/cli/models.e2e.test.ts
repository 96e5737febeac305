import { Effect } from "effect"
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { anthropic, chat } from "../support/ProviderDialects.ts"
import * as ProviderServer from "../support/ProviderServer.ts"
import { sessionFile } from "../support/sessions.ts"
import { strict } from "../support/StrictProviders.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

/** Which models are taken, and what is told of their windows, by the program as it is built. */

const answer = FakeGemini.sse(
  FakeGemini.response([{ text: "fine" }], { usage: { promptTokenCount: 5, totalTokenCount: 5 } })
)
/** A provider that has one model more than the table. */
const serve = FakeGemini.make(
  ({ method }) =>
    method === "countTokens"
      ? FakeGemini.tokens(5)
      : method === "generateContent"
        ? FakeGemini.json(FakeGemini.response([{ text: "A title" }]))
        : answer,
  {
    describe: (name) =>
      name === "gemini-9-pro" ? FakeGemini.description(name, 48_000, 8_192) : FakeGemini.noModel(name)
  }
)

const folders = Effect.fnUntraced(function* (name: string, settings: object = {}) {
  const { folder } = yield* program
  const home = path.join(folder, `models-${name}`, "home")
  const cwd = path.join(folder, `models-${name}`, "work")
  mkdirSync(home, { recursive: true })
  mkdirSync(cwd, { recursive: true })
  const all = { prompt: { size: "none" }, titles: false, ...settings }
  writeFileSync(path.join(home, "settings.json"), JSON.stringify(all))
  return { home, cwd }
})
type Folders = Effect.Success<ReturnType<typeof folders>>

/** Nobody listens there. */
const nowhere = "http://127.0.0.1:9"

const shell = ({ cwd, home }: Folders, args: ReadonlyArray<string>, url: string | undefined, input = "") =>
  run(args, {
    cwd,
    input,
    env: {
      PALIMPSEST_HOME: home,
      HOME: home,
      ...(url === undefined ? {} : { GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: url })
    }
    // What takes more than half a second, as on a busy machine, is announced by a line of its own.
  }).pipe(Effect.map((ended) => ({ ...ended, stderr: ended.stderr.replace(/^.* …\n/gm, "") })))

const sessionsIn = ({ home }: Folders) => {
  try {
    return readdirSync(path.join(home, "sessions"))
  } catch {
    return []
  }
}

describe("a model name", () => {
  const ways: ReadonlyArray<readonly [how: string, args: ReadonlyArray<string>, settings: object, where: string]> = [
    ["ask --model", ["ask", "x", "--model", "gemini-2.5-prro"], {}, ""],
    ["chat --model", ["chat", "--model", "gemini-2.5-prro"], {}, ""],
    [
      "the settings",
      ["ask", "x", "--session", "s"],
      { model: "gemini-2.5-prro" },
      "; it comes from the settings or PALIMPSEST_MODEL"
    ],
    [
      "compress --model",
      ["compress", sessionFile("claude-code-short"), "--force", "--summarizer", "model", "--model", "gemini-2.5-prro"],
      {},
      ""
    ]
  ]
  it.effect.each(ways)(
    "%s: an unknown model is refused with a suggestion, before anything starts",
    function* ([how, args, settings, where]) {
      const fake = yield* serve
      const own = yield* folders(how.replace(/\W+/g, "-"), settings)
      const { status, stderr, stdout } = yield* shell(own, args, fake.url, "x\n")
      assert.deepStrictEqual(
        [status, String(stdout), stderr],
        [2, "", `palimpsest: there is no model gemini-2.5-prro; did you mean gemini-2.5-pro?${where}\n`]
      )
      assert.isEmpty(yield* fake.requests)
      assert.isEmpty(sessionsIn(own))
    }
  )

  it.effect.each([
    ["ask", "x", "--model", "antropic/claude-sonnet-5"],
    ["ask", "x", "--compression-model", "gemini-2.5-flash,antropic/claude-sonnet-5"],
    ["chat", "--model", "antropic/claude-sonnet-5"],
    ["compress", sessionFile("claude-code-short"), "--force", "--summarizer", "model", "--model", "antropic/claude"]
  ])("a provider that is not known is refused, and nothing is asked: %j", function* (args) {
    const fake = yield* serve
    const own = yield* folders(`provider-${args.join("").replace(/\W+/g, "")}`.slice(0, 60))
    const { status, stderr } = yield* shell(own, args, fake.url, "x\n")
    assert.match(stderr, /^palimpsest: there is no provider antropic; did you mean anthropic\? \(known: [a-z, ]+\)/)
    assert.deepStrictEqual([status, yield* fake.requests, yield* fake.lookups], [2, [], []])
  })

  it.effect("a model is asked at its maker only: without the maker's key, nothing is sent", function* () {
    const fake = yield* serve
    const { status, stderr } = yield* shell(
      yield* folders("maker"),
      ["ask", "x", "--model", "claude-sonnet-5"],
      fake.url
    )
    assert.strictEqual(status, 1)
    assert.match(
      stderr,
      /^palimpsest: claude-sonnet-5 needs a key: set ANTHROPIC_API_KEY\npalimpsest: GEMINI_API_KEY is set: /
    )
    assert.deepStrictEqual([yield* fake.requests, yield* fake.lookups], [[], []])
  })

  it.effect("uses the provider's window for a model that is not in the table", function* () {
    const fake = yield* serve
    const own = yield* folders("provider")
    const { status, stderr, stdout } = yield* shell(own, ["ask", "x", "--model", "gemini-9-pro", "--json"], fake.url)
    assert.deepStrictEqual([status, stderr], [0, ""])
    const { limit, model } = JSON.parse(String(stdout))
    assert.deepStrictEqual([model, limit], ["gemini-9-pro", 48_000])
    assert.deepStrictEqual(yield* fake.lookups, ["gemini-9-pro"])
  })

  it.effect("uses an assumed window when the provider cannot be asked, and says how to set it", function* () {
    const own = yield* folders("offline", { attempts: { calls: 1 } })
    const { status, stderr } = yield* shell(own, ["ask", "x", "--model", "gemini-9-pro"], nowhere)
    const [first, ...rest] = stderr.split("\n")
    assert.strictEqual(
      first,
      "palimpsest: the model gemini-9-pro is not known here; a window of 32,768 tokens is assumed (to set it: palimpsest config set models.gemini-9-pro.window N)"
    )
    // The question itself could not be asked either.
    assert.strictEqual(status, 1)
    assert.match(rest.join("\n"), /could not be reached/)
    // As it is told it can be done.
    const set = yield* shell(own, ["config", "set", "models.gemini-9-pro.window", "64k"], nowhere)
    assert.strictEqual(set.status, 0)
    const again = yield* shell(own, ["ask", "x", "--model", "gemini-9-pro"], nowhere)
    assert.notInclude(again.stderr, "is not known")
  })

  it.effect("/model refuses an unknown model and keeps the current one", function* () {
    const fake = yield* serve
    const own = yield* folders("slash")
    const input = "/model nope\n/model gemini-2.5-flsh\n/model claude-opus-4-5\n/model\n/model gemini-9-pro\nhello\n"
    const { status, stderr, stdout } = yield* shell(own, ["chat"], fake.url, input)
    assert.deepStrictEqual(stderr.trimEnd().split("\n"), [
      "There is no model nope.",
      "There is no model gemini-2.5-flsh; did you mean gemini-2.5-flash?",
      "claude-opus-4-5 needs a key: set ANTHROPIC_API_KEY. The model is unchanged.",
      "The model is gemini-2.5-flash, with a window of 1,048,576 tokens.",
      "The model is now gemini-9-pro, with a window of 48,000 tokens."
    ])
    assert.deepStrictEqual([status, String(stdout)], [0, "fine\n"])
    assert.deepStrictEqual(
      (yield* fake.requests).filter(({ method }) => method === "streamGenerateContent").map(({ model }) => model),
      ["gemini-9-pro"]
    )
  })

  it.effect("/model says by the provider's count what the next message will do in a smaller window", function* () {
    const sizeOf = (body: unknown) => Math.ceil(JSON.stringify(body).length / 4)
    const fake = yield* FakeGemini.make(({ body, method }) => {
      const size = sizeOf(body)
      return method === "streamGenerateContent"
        ? FakeGemini.sse(
            FakeGemini.response([{ text: "fine" }], { usage: { promptTokenCount: size, totalTokenCount: size + 1 } })
          )
        : FakeGemini.tokens(size)
    })
    const own = yield* folders("smaller", { models: { "gemini-2.5-pro": { window: 16_000 } } })
    // Words whose estimate is far from a server's count.
    const words = Array.from({ length: 2_000 }, (_, at) => `m${at}`).join(" ")
    const talk = `say ${words}\n`.repeat(4)
    const { stderr } = yield* shell(own, ["chat"], fake.url, `${talk}/model gemini-2.5-pro\n`)
    const counted = sizeOf((yield* fake.requests).findLast(({ method }) => method === "streamGenerateContent")?.body)
    const [, told = "", next = ""] =
      /about ([\d,]+) tokens, more than its threshold of 8,000: (.*)\.$/.exec(
        stderr.trimEnd().split("\n").at(-1) ?? ""
      ) ?? []
    assert.closeTo(Number(told.replaceAll(",", "")), counted, counted * 0.1)
    assert.strictEqual(next, "the next message compresses it if that makes it smaller")
  })

  it.live("/model goes on with the models of other providers, and back", function* () {
    const google = yield* serve
    const claude = yield* ProviderServer.make(() => anthropic.answer([{ thought: "hm" }, { text: "Claude says fine" }]))
    const gpt = yield* ProviderServer.make(() => chat.answer([{ text: "GPT says fine" }]))
    const own = yield* folders("providers")
    const { status, stderr, stdout } = yield* run(["chat", "--model", "gemini-2.5-flash"], {
      cwd: own.cwd,
      input: [
        "one",
        "/model claude-sonnet-4-5",
        "two",
        "/model openai/gpt-4o",
        "three",
        "/model gemini-2.5-flash",
        "four",
        ""
      ].join("\n"),
      env: {
        PALIMPSEST_HOME: own.home,
        HOME: own.home,
        GEMINI_API_KEY: "AIza-not-a-key",
        GOOGLE_GEMINI_BASE_URL: google.url,
        ANTHROPIC_API_KEY: "sk-ant-none",
        ANTHROPIC_BASE_URL: claude.url,
        OPENAI_API_KEY: "sk-none",
        OPENAI_BASE_URL: `${gpt.url}/v1`
      }
    })
    assert.deepStrictEqual([status, String(stdout)], [0, "fine\nClaude says fine\nGPT says fine\nfine\n"], stderr)
    const answers = claude.requests.filter(({ path }) => path === "/v1/messages").map(({ body }) => body)
    const last = (yield* google.requests).findLast(({ method }) => method === "streamGenerateContent")?.body
    // Each sees what was said before it, in the form that its provider takes.
    for (const [name, body, words] of [
      ["Messages", answers[0], ["one", "fine", "two"]],
      ["Chat Completions", gpt.requests[0]?.body, ["one", "two", "Claude says fine", "three"]],
      ["Gemini", last, ["one", "two", "Claude says fine", "three", "GPT says fine", "four"]]
    ] as const) {
      assert.strictEqual(strict[name](body), undefined, name)
      for (const word of words) assert.include(JSON.stringify(body), `"${word}"`)
    }
  })
})

describe("the window of a conversation from a file", () => {
  const claude = (model: string) =>
    [
      { type: "user", uuid: "1", parentUuid: null, message: { role: "user", content: "Say one." } },
      {
        type: "assistant",
        uuid: "2",
        parentUuid: "1",
        message: { id: "m", role: "assistant", model, content: [{ type: "text", text: "One." }] }
      }
    ]
      .map((line) =>
        JSON.stringify({ ...line, sessionId: "s", timestamp: "2026-01-01T00:00:00Z", cwd: "/", version: "2" })
      )
      .join("\n")
  const contents = JSON.stringify([{ role: "user", parts: [{ text: "Say one." }] }])
  const unknown = (model: string, hint: string) =>
    `palimpsest: the model ${model} is not known here; a window of 32,768 tokens is assumed (to set it: palimpsest config set models.${model}.window N)${hint}\n`
  const hint = "; set it once with --window N"

  const rows: ReadonlyArray<
    readonly [what: string, text: string, settings: object, args: ReadonlyArray<string>, limit: number, told: string]
  > = [
    ["an unknown one", claude("nope"), {}, [], 32_768, unknown("nope", hint)],
    ["an unknown one that the settings know", claude("nope"), { models: { nope: { window: 9_000 } } }, [], 9_000, ""],
    ["contents, another model set", contents, { model: "gemma-4-31b-it" }, [], 256_000, ""],
    [
      "Claude's that names none",
      claude("<synthetic>"),
      {},
      [],
      32_768,
      `palimpsest: the file names no model; assuming a window of 32,768 tokens${hint}\n`
    ]
  ]
  for (const [index, [what, text, settings, args, limit, told]] of rows.entries()) {
    it.effect(what, function* () {
      const own = yield* folders(`file-${index}`, settings)
      const file = path.join(own.cwd, "talk.jsonl")
      writeFileSync(file, text)
      const { stderr, stdout } = yield* shell(own, ["compress", file, ...args, "--json"], undefined)
      assert.deepStrictEqual([JSON.parse(String(stdout)).tokens.limit, stderr], [limit, told])
      const inspected = yield* shell(own, ["inspect", file], undefined)
      if (args.length === 0) assert.strictEqual(inspected.stderr, told.replace(hint, ""))
    })
  }

  it.effect("inspect calls no provider, whatever model a file names", function* () {
    const fake = yield* serve
    const own = yield* folders("quiet")
    const file = path.join(own.cwd, "talk.jsonl")
    writeFileSync(file, claude("gemini-9-pro"))
    yield* shell(own, ["inspect", file], fake.url)
    yield* shell(own, ["compress", file, "--summarizer", "extractive"], fake.url)
    yield* shell(own, ["compress", file, "--plan"], fake.url)
    yield* shell(own, ["prompt", "--model", "gemini-9-pro"], fake.url)
    assert.isEmpty(yield* fake.lookups)
    const { stdout } = yield* shell(own, ["compress", file, "--summarizer", "model", "--json"], fake.url)
    assert.strictEqual(JSON.parse(String(stdout)).tokens.limit, 48_000)
    assert.deepStrictEqual(yield* fake.lookups, ["gemini-9-pro"])
  })
})

const definition = (model: string) =>
  `---\nname: helper\ndescription: Helps\nmodel: ${model}\ntools: [read_file]\nmax_turns: 1\n---\nYou help.\n`
const start = Effect.fnUntraced(function* (name: string, model: string, url: string) {
  const own = yield* folders(name, { attempts: { calls: 1 } })
  mkdirSync(path.join(own.home, "agents"), { recursive: true })
  writeFileSync(path.join(own.home, "agents", "helper.md"), definition(model))
  return yield* shell(own, ["agents", "run", "helper", "help"], url)
})

it.effect("an agent's model is refused when the provider does not have it", function* () {
  const fake = yield* serve
  const { status, stderr } = yield* start("agent-missing", "gemini-2.5-prro", fake.url)
  assert.strictEqual(status, 1)
  assert.include(
    stderr,
    "the agent helper cannot start: there is no model gemini-2.5-prro; did you mean gemini-2.5-pro?; its definition names it"
  )
  assert.isEmpty(yield* fake.requests)
})
