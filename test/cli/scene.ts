import { Effect, Schedule } from "effect"
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { processes, untilNone } from "../support/processGroups.ts"
import { type Around, type Ended, program, run } from "./program.ts"
import * as Tmux from "./tmux.ts"

/** The built program with a home, a person's folder and a working folder of a test's own, against a Gemini API on loopback. */

/** Arguments of a call. */
export type Args = Readonly<Record<string, unknown>>

/** An answer in which the model calls tools. */
export const calls = (...made: ReadonlyArray<readonly [name: string, args: Args]>): FakeGemini.Answer =>
  FakeGemini.sse(
    FakeGemini.response(
      made.map(([name, args], index) => ({ functionCall: { id: `${name}-${index}`, name, args } })),
      { finishReason: "STOP" }
    )
  )

/** An answer in words. */
export const says = (text: string): FakeGemini.Answer => FakeGemini.sse(FakeGemini.response([{ text }]))

/** A part as it is sent. */
export interface Part {
  readonly text?: string
  readonly inlineData?: { readonly mimeType: string; readonly data: string }
  readonly functionCall?: { readonly name: string; readonly args: Args }
  readonly functionResponse?: { readonly name: string; readonly response: Args }
}

/** What is read of a request. */
export interface Body {
  readonly systemInstruction?: { readonly parts: ReadonlyArray<Part> }
  readonly contents: ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<Part> }>
  readonly tools?: ReadonlyArray<{ readonly functionDeclarations?: ReadonlyArray<{ readonly name: string }> }>
}

/** A request's body. */
export const bodyOf = (request: FakeGemini.FakeRequest | undefined): Body =>
  JSON.parse(JSON.stringify(request?.body ?? { contents: [] }))

/** A request's system instruction. */
export const instructionOf = (request: FakeGemini.FakeRequest | undefined): string =>
  (bodyOf(request).systemInstruction?.parts ?? []).map(({ text = "" }) => text).join("")

/** The message about the surroundings that opens a request; empty: another one does. */
export const environmentOf = (request: FakeGemini.FakeRequest | undefined): string => {
  const text = bodyOf(request).contents[0]?.parts[0]?.text ?? ""
  return text.includes("<session_context>") ? text : ""
}

/** All that a request says, in order. */
export const textsOf = (request: FakeGemini.FakeRequest | undefined): ReadonlyArray<string> =>
  bodyOf(request).contents.flatMap(({ parts }) => parts.flatMap(({ text }) => (text === undefined ? [] : [text])))

/** What the tools answered that were called last. */
export const results = (request: FakeGemini.FakeRequest | undefined): ReadonlyArray<Args> =>
  (bodyOf(request).contents.at(-1)?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse === undefined ? [] : [functionResponse.response]
  )

/** Answers the turns of a conversation in order; titles and counts are answered as they come. */
export const serve = (...answers: ReadonlyArray<FakeGemini.Answer>) => {
  let turn = 0
  return FakeGemini.make((request) => {
    if (request.method === "countTokens") return FakeGemini.tokens(100)
    if (request.method === "generateContent") return FakeGemini.json(FakeGemini.response([{ text: "A title" }]))
    return answers[turn++] ?? says("There is nothing more to say.")
  })
}

/** The requests of turns. */
export const turnsOf = (fake: FakeGemini.FakeGemini) =>
  Effect.map(fake.requests, (all) => all.filter(({ method }) => method === "streamGenerateContent"))

/** Where a test's person is at home and works. */
export interface Place {
  /** This program's home. */
  readonly home: string
  /** The user's own folder. */
  readonly user: string
  readonly cwd: string
}

/** Files by their path: text, or an object that is written as JSON. */
export type Files = Readonly<Record<string, string | Uint8Array | object>>

/** Writes files below a folder. */
export const write = (folder: string, files: Files): void => {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    const isPlain = typeof content === "string" || content instanceof Uint8Array
    writeFileSync(file, isPlain ? content : JSON.stringify(content))
  }
}

/** What lies there before the program runs. */
export interface There {
  readonly home?: Files
  readonly user?: Files
  readonly work?: Files
  /** Whether the working folder was answered for; absent: nobody was asked. */
  readonly trust?: "trusted" | "untrusted"
}

/** A home, a person's folder and a working folder, links followed. */
export const place = Effect.fnUntraced(function* (
  name: string,
  { home = {}, trust, user = {}, work = {} }: There = {}
) {
  const { folder } = yield* program
  const base = path.join(realpathSync(folder), name)
  const made: Place = { home: path.join(base, "home"), user: path.join(base, "user"), cwd: path.join(base, "work") }
  for (const each of Object.values(made)) mkdirSync(each, { recursive: true })
  write(made.home, home)
  write(made.user, user)
  write(made.cwd, work)
  if (trust !== undefined) {
    write(made.home, { "trusted-folders.json": { version: 1, folders: { [made.cwd]: trust } } })
  }
  return made
})

/** The variables of the program there; without a server it has no key. An Ollama of this machine is not asked. */
export const environment = ({ home, user }: Place, fake?: FakeGemini.FakeGemini): Readonly<Record<string, string>> => ({
  PALIMPSEST_HOME: home,
  GEMINI_CLI_HOME: user,
  HOME: user,
  OLLAMA_HOST: "127.0.0.1:9",
  ...(fake === undefined ? {} : { GEMINI_API_KEY: "AIza-not-a-real-key", GOOGLE_GEMINI_BASE_URL: fake.url })
})

/** Runs the program there. */
export const runs = (
  where: Place,
  fake: FakeGemini.FakeGemini | undefined,
  args: ReadonlyArray<string>,
  { env, ...around }: Around = {}
): Effect.Effect<Ended> => run(args, { cwd: where.cwd, ...around, env: { ...environment(where, fake), ...env } })

/** A chat on a screen, there. */
export const chat = Effect.fnUntraced(function* (
  fake: FakeGemini.FakeGemini,
  where: Place,
  ...args: ReadonlyArray<string>
) {
  const { bundle } = yield* program
  const screen = yield* Tmux.start({
    command: [process.execPath, bundle, "chat", ...args],
    width: 100,
    height: 60,
    cwd: where.cwd,
    env: environment(where, fake)
  })
  return { ...screen, asked: screen.until((shown) => shown.endsWith("\nallow?")) }
})

/** Waits until a file holds a whole line, and answers that. */
export const lineOf = (file: string) =>
  Effect.sync(() => (existsSync(file) ? readFileSync(file, "utf8") : "")).pipe(
    Effect.filterOrFail(
      (text) => text.endsWith("\n"),
      (text) => `waited for a line in ${file}, which holds ${JSON.stringify(text)}`
    ),
    Effect.retry(Schedule.max([Schedule.spaced(20), Schedule.recurs(9_000)])),
    Effect.map((text) => text.trim())
  )

/** Those of the processes that are at work; dead ones that nobody has reaped yet are not. */
export const living = (pids: ReadonlyArray<number>): ReadonlyArray<number> => {
  const now = new Set(processes().map(({ pid }) => pid))
  return pids.filter((pid) => now.has(pid))
}

/** Waits until none of these processes is at work. */
export const gone = (pids: ReadonlyArray<number>) => untilNone(() => living(pids))

/** The lines of a file, each JSON. */
export const jsonLines = (file: string): ReadonlyArray<Args> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
