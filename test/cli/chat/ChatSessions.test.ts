import { ConfigProvider, Context, Effect, Layer, type Scope, Sink, Stdio } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { converse, sessionFlags } from "../../../src/cli/chat/ChatSessions.ts"
import type { ChatOptions } from "../../../src/cli/flags/ChatFlags.ts"
import { call, model, plainText, text, user } from "../../../src/domain/content/Content.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import * as LiveRuntime from "../../../src/layers/assembly/LiveRuntime.ts"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { ChatDefaults } from "../../../src/services/chat/ChatSettings.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError } from "../../../src/services/model/Model.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { ChatTerminal } from "../../../src/services/terminal/ChatTerminal.ts"
import { recorded } from "../../support/chatTerminal.ts"
import * as Processes from "../../support/processes.ts"
import { assert, describe, expect, it } from "../../support/vitest.ts"

describe("sessionFlags", () => {
  const options = { model: "gemini-2.5-pro", session: "work", threshold: 0.5, plain: true }

  it("opens the first session as asked, a new one with the same model, and a resumed one with its own", () =>
    assert.deepStrictEqual(sessionFlags(options, false), {
      first: options,
      begun: { model: "gemini-2.5-pro", threshold: 0.5 },
      resumed: { threshold: 0.5 }
    }))

  it("does not save a recording as the model of a session", () =>
    assert.deepStrictEqual(sessionFlags({ ...options, model: "replay:a.jsonl" }, true), {
      first: { ...options, model: undefined },
      begun: { threshold: 0.5 },
      resumed: { threshold: 0.5 }
    }))
})

/** Answers by what the last message says. Titles are asked for without a stream. */
const answers: ScriptedModel.Answers = ({ contents, model: asked, systemInstruction }) => {
  const { parts = [] } = contents.at(-1) ?? {}
  const said = parts.some((part) => part.functionResponse !== undefined)
    ? "results"
    : // What the program adds names files of the test's folder.
      plainText(user(...parts.filter((part) => part.text?.startsWith(runtimeMark) !== true)))
  if (systemInstruction?.includes("titles") === true) return `Title_${/"text":"(\w+)/.exec(said)?.[1]}`
  if (said.includes("fail")) return new ModelError({ reason: new InvalidRequestError({ detail: "no_1" }) })
  if (said.includes("wait")) return ScriptedModel.hang
  if (contents.some(({ parts }) => parts.some((part) => part.text === "turn in circles")))
    return { content: model(call("list_directory", { path: "." })), finishReason: "STOP", usage: null }
  const usage = { prompt: 8_000 + JSON.stringify(contents).length, answer: 100_000, thoughts: 0, cached: 0 }
  if (said.includes("list"))
    return {
      content: model(call("list_directory", { path: "." }, "c1"), call("read_file", { path: "none" }, "c2")),
      finishReason: "STOP",
      usage: null
    }
  return { content: model(text(`${asked} answers\n${said.slice(-30)}`)), finishReason: "STOP", usage }
}

/** A shell whose commands print themselves. */
const shell = Processes.layer(({ args }) => ({
  out: Array.from(
    { length: String(args.at(-1)).includes("long") ? 400 : 12 },
    (_, at) => `${args.join(" ")} ${at}\n`
  ).join(""),
  ends: String(args.at(-1)).includes("bad") ? 3 : String(args.at(-1)).includes("stopped") ? Effect.never : 0
}))

/** No server answers: an Ollama of this machine would be offered. */
const noServer = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: 404 }))))
)

type Services = Exclude<Effect.Services<ReturnType<typeof converse>>, ChatTerminal | Scope.Scope>

/** Plays a chat in a folder, and returns what its terminal showed. */
const play = Effect.fnUntraced(function* (
  { folder, sessions }: { readonly folder: string; readonly sessions: SessionStore["Service"] },
  typed: string,
  options: ChatOptions = {},
  picks: Array<string> = [],
  isTerminal = true,
  keys: Record<string, string> = { GEMINI_API_KEY: "not-a-real-key" }
) {
  const lines = typed === "" ? [] : typed.trim().split(/[\n;]\s*/)
  const { done, terminal } = recorded({ isTerminal, lines, picks, canColor: isTerminal })
  const home = path.join(folder, "home")
  const printed = () => Sink.forEach((text) => Effect.sync(() => void done.push(`printed ${String(text)}`)))
  const printing = { stdout: printed, stderr: printed }
  const services = Layer.mergeAll(
    // Time passes only while the user types.
    Layer.succeed(ChatTerminal, {
      ...terminal,
      ask: (question) => Effect.andThen(TestClock.adjust("1 minute"), terminal.ask(question))
    }),
    Layer.succeed(ChatDefaults, { model: "gemini-2.5-flash", policy: { summarizer: "extractive" } }),
    Layer.effect(
      Stdio.Stdio,
      Effect.map(Stdio.Stdio, (stdio) => Stdio.make({ ...stdio, ...printing }))
    ),
    ConfigProvider.layer(ConfigProvider.fromUnknown({ ...keys, PALIMPSEST_HOME: home })),
    Layer.succeed(SessionStore, sessions),
    noServer,
    shell
  ).pipe(
    Layer.provideMerge(
      // It has all that the program has: its type names what an agent needs.
      LiveRuntime.layer({ folder, home, model: ScriptedModel.layer(answers) }) as Layer.Layer<Services>
    )
  )
  const program = Effect.gen(function* () {
    const hooks = yield* HookSystem
    yield* hooks.subscribe("clearing", (event) =>
      Effect.sync(() => {
        if (event._tag === "SessionStart") done.push(`starts: ${event.source}`)
        if (event._tag === "SessionEnd") done.push(`ends: ${event.reason}`)
        if (event._tag === "BeforeAgent" && event.prompt.includes("refuse"))
          return { decision: "block" as const, reason: "No_2" }
        if (event._tag === "AfterAgent" && event.prompt.includes("stop"))
          return { continue: false, stopReason: "Stop_3" }
        return event._tag === "AfterAgent" && event.prompt.includes("clear")
          ? { decision: "block" as const, reason: "Go_on", hookSpecificOutput: { clearContext: true } }
          : undefined
      })
    )
    return yield* converse(options)
  })
  const exit = yield* program.pipe(Effect.exit, Effect.provide(services), Effect.scoped)
  const ids = new Map<string, string>()
  const named = done
    .join("\n")
    .replaceAll(folder, "FOLDER")
    .replaceAll("\u001b", "^")
    .replace(
      /([\da-f]{8}-[\da-f]{4}-7[\da-f]{3})(?:-[\da-f-]{17})?/g,
      (_, id: string) => ids.get(id) ?? `id_${ids.set(id, `id_${ids.size + 1}`).size}`
    )
  return `${named}\n${exit._tag} ${exit._tag === "Failure" ? String(exit.cause.reasons) : ""}\n`
})

describe("a chat", () => {
  it.effect("does this on its terminal: see `test/golden/chat.txt`, and take a new one with `vitest -u`", function* () {
    const above = mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "chat-"))
    const folder = path.join(above, "work_1")
    mkdirSync(folder)
    const here = { folder, sessions: Context.get(yield* Layer.build(MemorySessionStore.layer), SessionStore) }
    writeFileSync(path.join(folder, "AGENTS.md"), "Be brief.")
    const first = `
        ?/comp; ?/export AG; ?see @AG; hello; go on; list; ^M; /nosuch 1; /clea; fail now; =; ^C; wait; ^C; !stopped 1; !good 1; !bad 2; !long 3
        /approve plan; then; /approve all; /model gemini-2.5-pro; /resume nothing_1; /clear; second; +/copy; +also 1; list; clear this
        //third; /resume first; last; /export first_1.jsonl; /quit`
    const played = yield* play(here, first, { session: "first" }, ["y", "y", "n", "n"])
    // Pages are drawn of files.
    cpSync(path.join(folder, "first_1.jsonl"), path.join(folder, "home", "sessions", "first.jsonl"))
    const shown = [
      played,
      yield* play(here, "more; refuse; stop; fail; !bad 4; /export page_1.html", { resume: "" }, ["0"]),
      yield* play(here, "", { resume: "" }, ["none"]),
      yield* play(here, "hi; !no command; fail", { session: "piped" }, [], false),
      yield* play(here, "hi; fail; hi", { resume: "piped" }, [], false),
      yield* play(here, "hi; stop", { resume: "piped" }, [], false),
      yield* play(here, "turn in circles", { session: "circles" }, [], false),
      yield* play(here, "", { resume: "nothing_1" }),
      yield* play(here, "=; =; =; x; /clear; =", { model: `replay:${folder}/first_1.jsonl` }),
      yield* play(here, "", { model: "replay:none" }),
      yield* play(here, "", {}, [], true, {}),
      yield* play(here, "", { model: "ollama/x" }, [], true, {})
    ]
    writeFileSync(path.join(folder, "home", "settings.json"), '{"model":"claude-sonnet-4-5"}')
    shown.push(yield* play(here, "", {}, [], true, {}))
    yield* Effect.promise(() => expect(shown.join("\n")).toMatchFileSnapshot("../../golden/chat.txt"))
  })
})
