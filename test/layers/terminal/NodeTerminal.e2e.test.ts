import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { TestClock } from "effect/testing"
import { appendFile, mkdtemp, readFile, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { PassThrough } from "node:stream"
import * as NodeTerminal from "../../../src/layers/terminal/NodeTerminal.ts"
import { ChatTerminal, type Inquiry, type Question } from "../../../src/services/terminal/ChatTerminal.ts"
import * as Tmux from "../../cli/tmux.ts"
import { needs } from "../../support/machine.ts"
import { root } from "../../support/paths.ts"
import { virtualScreen } from "../../support/virtualScreen.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const folder = Effect.promise(() => mkdtemp(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "terminal-")))
const historyFile = Effect.map(folder, (made) => path.join(made, "home", "history.jsonl"))
const echo = path.join(root, "test", "cli", "chat", "terminal.ts")

/** Streams without a terminal behind them, everything that was written, and how it looks on a screen. */
const streams = (size?: { readonly columns: number; readonly rows: number }) => {
  const input = new PassThrough()
  const output = Object.assign(new PassThrough(), size)
  const error = new PassThrough()
  const on = virtualScreen(size?.columns, size?.rows)
  let shown = ""
  let told = ""
  output.setEncoding("utf8").on("data", (text: string) => {
    shown += text
    on.write(text)
  })
  error.setEncoding("utf8").on("data", (text: string) => (told += text))
  return { input, output, error, shown: () => shown, told: () => told, screen: on.shown, everything: on.everything }
}

/** This ends a wait for what never comes, and nothing else. */
const patienceMillis = 120_000

/** Waits until what is written makes a condition true. */
const untilWritten = (over: ReturnType<typeof streams>, holds: () => boolean) =>
  Effect.callback<void>((resume) => {
    const done = () => {
      clearTimeout(giveUp)
      over.output.off("data", look)
      // After the frame that is being drawn.
      setImmediate(() => resume(Effect.void))
    }
    const look = () => {
      if (holds()) done()
    }
    const giveUp = setTimeout(done, patienceMillis)
    over.output.on("data", look)
    look()
    return Effect.sync(done)
  })

/** Waits until a screen shows something, however long the next frame takes. */
const until = (over: ReturnType<typeof streams>, expected: string | RegExp) =>
  Effect.map(
    untilWritten(over, () =>
      typeof expected === "string" ? over.screen().endsWith(expected) : expected.test(over.screen())
    ),
    () => {
      if (typeof expected === "string") assert.strictEqual(over.screen().slice(-expected.length), expected)
      else assert.match(over.screen(), expected)
    }
  )

const screen = { columns: 80, rows: 24 }

/** A terminal over such streams. */
const terminal = Effect.fnUntraced(function* (
  over: ReturnType<typeof streams>,
  options: { readonly history?: string; readonly isTerminal?: boolean; readonly canColor?: boolean } = {}
) {
  const { canColor = false, history = yield* historyFile, isTerminal = true } = options
  const capabilities = Layer.succeed(TerminalCapabilities.TerminalCapabilities, {
    canColor,
    canAnimate: isTerminal,
    canPrompt: isTerminal
  })
  const built = yield* Layer.build(
    NodeTerminal.layer(history, false, over).pipe(Layer.provide(capabilities), Layer.provide(NodeServices.layer))
  )
  return yield* Effect.provide(ChatTerminal, built)
})

const question: Question = { prompt: "> " }

/** What a person types, key by key as it arrives, and the messages that come of it. */
const messagesOf = Effect.fnUntraced(function* (...typed: ReadonlyArray<string | Uint8Array>) {
  const over = streams(screen)
  const { ask } = yield* terminal(over)
  const messages = yield* Effect.forkChild(
    Effect.gen(function* () {
      const all: Array<string> = []
      for (;;) {
        const next = yield* Effect.exit(ask(question))
        if (Exit.isFailure(next)) return all
        all.push(next.value)
      }
    })
  )
  for (const keys of typed) {
    over.input.write(keys)
    // Between the pieces of one key no timer may run: the first would become a key.
    // oxlint-disable-next-line no-control-regex
    const isPiece = typeof keys === "string" && /\u001b(?:\[\d*)?$/.test(keys)
    yield* Effect.promise(() => new Promise((resolve) => (isPiece ? process.nextTick : setImmediate)(resolve)))
  }
  over.input.end()
  return yield* Fiber.join(messages)
})

const paste = (text: string) => `\u001b[200~${text}\u001b[201~`

describe("typed input", () => {
  const cases: ReadonlyArray<readonly [rule: string, typed: ReadonlyArray<string>, messages: ReadonlyArray<string>]> = [
    ["a line is a message", ["hello\r"], ["hello"]],
    ["blank lines are none", ["\r", "  \r", "a \r"], ["a"]],
    ["a final backslash continues the line", ["a\\\r", "b\\\r", "c\r"], ["a\nb\nc"]],
    ["Shift+Enter, Alt+Enter and Ctrl+J begin a line", ["a\u001b[13;2u", "b\u001b\r", "c\n", "d\r"], ["a\nb\nc\nd"]],
    ["two backslashes do not", ["a\\\\\r"], ["a\\\\"]],
    ["three quotes begin and end a block", ['"""\r', "a\\\r", "\r", "  b\r", '"""\r'], ["a\\\n\n  b"]],
    ["several lines pasted are one message", [paste("one\ntwo\r\nthree"), "\r"], ["one\ntwo\nthree"]],
    ["a paste lands at the cursor", ["ad", "\u001b[D", paste("b\nc"), "\r"], ["ab\ncd"]],
    ["a paste comes in pieces", ["x\u001b[20", "0~a\nb\u001b[2", "01~y\r"], ["xa\nby"]],
    ["even after the first character", ["\u001b", "[200~a\nb\u001b", "[201~", "\r"], ["a\nb"]],
    ["keys in a paste are none", [paste("a\u0003\u001b[Ab\tc\u0004"), "\r"], ["ab\tc"]],
    ["Ctrl+C ends a paste without an end", ["\u001b[200~a", "\u0003", "\r"], ["a"]],
    ["a paste of its own line break sign keeps it", [paste("a↵b"), "\r"], ["a↵b"]],
    [
      "a long paste is sent whole",
      ["see ", paste("line\n".repeat(400)), "\r"],
      [`see ${"line\n".repeat(400).trimEnd()}`]
    ],
    ["a cursor key is no paste", ["ac\u001b", "[D", "b\r"], ["abc"]],
    ["Ctrl+C clears a line", ["abc", "\u0003", "d\r"], ["d"]],
    ["Ctrl+C clears all lines of a message", ["a\\\r", "b", "\u0003", "d\r"], ["d"]],
    ["Ctrl+C twice on an empty line leaves", ["a\r", "\u0003", "\u0003", "b\r"], ["a"]],
    ["Ctrl+C once does not", ["\u0003", "a\r", "\u0003", "b\r"], ["a", "b"]],
    ["Ctrl+D on an empty line leaves", ["a\r", "\u0004", "b\r"], ["a"]],
    ["a paste after that is not taken", ["a\r", "\u0004", paste("b"), "\r"], ["a"]],
    ["Ctrl+D within a message does not", ["a\\\r", "\u0004", "b\r"], ["a\nb"]],
    ["Up recalls a message with its lines", [paste("a\nb"), "\r", "\u001b[A", "c\r"], ["a\nb", "a\nbc"]]
  ]
  for (const [rule, typed, messages] of cases) {
    it.effect(rule, () => Effect.map(messagesOf(...typed), (found) => assert.deepStrictEqual(found, messages)))
  }

  it.effect("a character may arrive in several chunks", () =>
    Effect.map(messagesOf(Uint8Array.of(0xe2, 0x82), Uint8Array.of(0xac, 13)), (found) =>
      assert.deepStrictEqual(found, ["€"])
    )
  )
})

describe("during work", () => {
  it.effect("Ctrl+C cancels the work, and returns typed-ahead text to the line unsent", function* () {
    const over = streams(screen)
    const { ask, during } = yield* terminal(over)
    const ended = yield* during("thinking", (interrupted) => {
      over.input.write("whole\rnext\\\rhal\u0003")
      return Effect.as(interrupted, "cancelled")
    })
    assert.strictEqual(ended, "cancelled")
    const next = yield* Effect.forkChild(ask({ ...question, prefill: "first" }), { startImmediately: true })
    yield* until(over, "> first\n  whole\n  next\n  hal")
    over.input.write("f\r")
    assert.strictEqual(yield* Fiber.join(next), "first\nwhole\nnext\nhalf")
  })

  it.effect("a message that may not steer the work waits for a prompt, and is shown so", function* () {
    const over = streams(screen)
    const { ask, during, takeTyped } = yield* terminal(over)
    over.input.write("begin\r")
    const steers = (text: string) => !text.startsWith("/")
    assert.strictEqual(yield* ask({ ...question, steers }), "begin")
    yield* during("thinking", () =>
      Effect.gen(function* () {
        over.input.write("/context\r")
        over.input.write("next\r")
        yield* until(over, "\nafter this: /context\nat the next step: next\n↑ takes back\n\n>")
        assert.deepStrictEqual(yield* takeTyped, ["next"])
      })
    )
    assert.strictEqual(yield* ask(question), "/context")
  })

  it.effect("queued messages are below the output, which continues; Up takes the last one back", function* () {
    const over = streams(screen)
    const { answer, ask, during, note } = yield* terminal(over)
    yield* during("thinking", () =>
      Effect.gen(function* () {
        yield* answer("An answ")
        over.input.write("first\r")
        over.input.write("next\rmore")
        yield* until(over, "\nat the next step: first\nat the next step: next\n↑ takes back\n\n> more")
        yield* answer("er\n")
        yield* until(over, /^An answer\n/)
        over.input.write("\u0015")
        over.input.write("\u001b[A")
        yield* until(over, "\nat the next step: first\n↑ takes back\n\n> next")
        yield* note("told")
        yield* until(over, /^An answer\n+told\n/)
      })
    )
    assert.strictEqual(yield* ask(question), "first")
    yield* until(over, "told\n\n> first\n\n> next")
  })

  it.effect("an interrupted question keeps typed text", function* () {
    const over = streams(screen)
    const { ask } = yield* terminal(over)
    const first = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write("half")
    yield* Fiber.interrupt(first)
    const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write(" a word\r")
    assert.strictEqual(yield* Fiber.join(next), "half a word")
  })

  it.effect("a prefill waits for whole lines, and precedes the rest", function* () {
    const over = streams(screen)
    const { ask, during } = yield* terminal(over)
    yield* during("thinking", () =>
      Effect.promise(() => new Promise((resolve) => over.input.write("whole\rrest", () => setImmediate(resolve))))
    )
    assert.strictEqual(yield* ask({ ...question, prefill: "one\ntwo" }), "whole")
    const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write("\r")
    assert.strictEqual(yield* Fiber.join(next), "one\ntwo\nrest")
    yield* until(over, /> one\n {2}two\n {2}rest\n/)
  })

  it.effect("a line says what goes on and for how long, and is gone at the end", function* () {
    const over = streams(screen)
    const { during, note, working } = yield* terminal(over)
    const go = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(
      during("thinking", () => Deferred.await(go)),
      { startImmediately: true }
    )
    yield* until(over, /^⠋ thinking · Esc cancels$/m)
    yield* TestClock.adjust("3 seconds")
    yield* until(over, /^. thinking · 3 s · Esc cancels$/m)
    yield* working("compressing\u001b[2J")
    yield* note("told\nso")
    yield* until(over, /^told so\n\n. compressing · 3 s · Esc cancels$/m)
    yield* Deferred.succeed(go, undefined)
    yield* Fiber.join(fiber)
    yield* until(over, "told so\n\n>")
  })

  it.effect("Tab that comes with the text, before the menu, completes; after Esc it opens that", function* () {
    const over = streams(screen)
    const { ask } = yield* terminal(over)
    const complete = (line: string) =>
      Effect.succeed({ candidates: ["/context ", "/copy "].filter((name) => name.startsWith(line)), replaced: line })
    const next = yield* Effect.forkChild(ask({ ...question, complete }), { startImmediately: true })
    over.input.write("/co\t")
    yield* until(over, /> \/context$/)
    over.input.write("\u0015/co")
    yield* until(over, /> \/co\n +→ \/context\n +\/copy$/)
    over.input.write("\u001b")
    yield* until(over, /> \/co$/)
    over.input.write("\t")
    yield* until(over, /> \/co\n +→ \/context\n +\/copy$/)
    over.input.write("\t")
    yield* until(over, /> \/context$/)
    over.input.write("all\r")
    assert.strictEqual(yield* Fiber.join(next), "/context all")
  })

  it.effect("a hung completion is given up", function* () {
    const over = streams(screen)
    const { ask } = yield* terminal(over)
    const begun = yield* Deferred.make<void>()
    const complete = () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
    const next = yield* Effect.forkChild(ask({ ...question, complete }), { startImmediately: true })
    over.input.write("a\t")
    yield* Deferred.await(begun)
    yield* TestClock.adjust("2 seconds")
    over.input.write("b\r")
    assert.strictEqual(yield* Fiber.join(next), "ab")
  })
})

describe("a question during work", () => {
  const soon = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  const may: Inquiry<string> = {
    text: "rm -r build\n",
    prompt: "run? ",
    keys: ["y"],
    read: (line) => (/^[yn]/.test(line) ? { _tag: "Answer", value: line } : { _tag: "Again", text: "y or n\n" })
  }

  it.effect("is answered by text typed after it appeared; earlier text returns", function* () {
    const over = streams(screen)
    const { ask, during, inquire } = yield* terminal(over)
    const answer = yield* during("thinking", () =>
      Effect.gen(function* () {
        over.input.write("y\rnext ")
        yield* soon
        const asked = yield* Effect.forkChild(inquire(may), { startImmediately: true })
        yield* until(over, "rm -r build\nrun?")
        over.input.write("later\r")
        yield* until(over, "rm -r build\nrun? later\ny or n\nrun?")
        over.input.write("n not that one\r")
        return yield* Fiber.join(asked)
      })
    )
    assert.strictEqual(answer, "n not that one")
    assert.strictEqual(yield* ask(question), "y")
    const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write("word\r")
    assert.strictEqual(yield* Fiber.join(next), "next word")
  })

  it.effect("Ctrl+C cancels the work and closes the question", function* () {
    const over = streams(screen)
    const { ask, during, inquire } = yield* terminal(over)
    const ended = yield* during("thinking", (interrupted) =>
      Effect.raceFirst(
        inquire(may),
        Effect.as(
          Effect.andThen(
            Effect.sync(() => over.input.write("y\u0003")),
            interrupted
          ),
          "cancelled"
        )
      )
    )
    assert.strictEqual(ended, "cancelled")
    const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write("go on\r")
    assert.strictEqual(yield* Fiber.join(next), "go on")
  })

  it.effect("interrupts a message that is being typed, which returns afterwards", function* () {
    const over = streams(screen)
    const { ask, inquire } = yield* terminal(over)
    const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
    over.input.write("half")
    yield* soon
    const asked = yield* Effect.forkChild(inquire(may), { startImmediately: true })
    over.input.write("\u0004")
    yield* soon
    // A word was on its way: one key is no answer.
    over.input.write("y")
    yield* until(over, "run? y")
    over.input.write("\r")
    assert.strictEqual(yield* Fiber.join(asked), "y")
    over.input.write(" a word\r")
    assert.strictEqual(yield* Fiber.join(next), "half a word")
  })

  it.effect("fails without a terminal: on a pipe, and after the end of input", function* () {
    const pipe = yield* terminal(streams(), { isTerminal: false })
    assert.strictEqual((yield* Effect.flip(pipe.inquire(may)))._tag, "Closed")
    const over = streams(screen)
    const { inquire } = yield* terminal(over)
    const asked = yield* Effect.forkChild(Effect.flip(inquire(may)), { startImmediately: true })
    over.input.end()
    assert.strictEqual((yield* Fiber.join(asked))._tag, "Closed")
    assert.strictEqual((yield* Effect.flip(inquire(may)))._tag, "Closed")
  })
})

describe("the layer", () => {
  it.effect("restores the terminal", function* () {
    const over = streams(screen)
    const modes: Array<boolean> = []
    Object.assign(over.input, { setRawMode: (raw: boolean) => modes.push(raw) })
    const scope = yield* Scope.make()
    yield* Scope.provide(terminal(over), scope)
    assert.deepStrictEqual(modes, [true])
    yield* Scope.close(scope, Exit.void)
    assert.deepStrictEqual(modes, [true, false])
    assert.include(over.shown(), "\u001b[?25h\u001b[?2004l")
    assert.strictEqual(over.input.listenerCount("data"), 0)
  })

  it.effect("dims notes where colours are enabled", function* () {
    const over = streams(screen)
    const { canColor, note } = yield* terminal(over, { canColor: true })
    yield* note("told")
    assert.isTrue(canColor)
    yield* until(over, /told/)
    assert.include(over.shown(), "\u001b[2mtold\u001b[22m")
  })

  for (const [background, dimmed] of [
    ["rgb:ffff/ffff/ffff\u001b\\", "\u001b[90m"],
    ["rgb:1111/1111/1111\u0007", "\u001b[2m"]
  ] as const) {
    it.effect(`asks for the background, and takes the colours for ${background.slice(0, 18)}`, function* () {
      const over = streams(screen)
      const { configure, note } = yield* terminal(over, { canColor: true })
      // At once: the question has a deadline.
      over.output.on("data", (text: string) => {
        if (text.includes("\u001b]11;?")) over.input.write(`\u001b]11;${background}`)
      })
      yield* note("told")
      yield* configure({ theme: "auto", keys: "default", bellAfter: 0 })
      yield* untilWritten(over, () => over.shown().includes(`${dimmed}told`))
      assert.include(over.shown(), `${dimmed}told`)
      assert.notInclude(over.screen(), "11;rgb")
    })
  }

  it.effect("starts a new line only after a partial one", function* () {
    const over = streams(screen)
    const { note, write } = yield* terminal(over)
    yield* write("\u001b]52;c;YQ==\u0007\u001b[2J\n")
    yield* note("a")
    yield* write("b")
    yield* write("c")
    yield* note("d")
    yield* until(over, "\\u{1b}]52;c;YQ==\\u{7}\\u{1b}[2J\na\nbc\nd\n\n>")
    assert.notInclude(over.shown(), "\u001b]52")
    assert.notInclude(over.shown(), "\u001b[2J")
  })
})

describe("a narrow screen", () => {
  it.effect("loses nothing that came since the last frame when the size changes", function* () {
    const over = streams({ columns: 80, rows: 24 })
    const { answer } = yield* terminal(over)
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at) => `line ${from + at} ends\n\n`).join("")
    yield* answer(lines(0, 40))
    yield* until(over, /line 39 ends/)
    yield* answer(lines(40, 60))
    Object.assign(over.output, { columns: 79 })
    over.output.emit("resize")
    yield* until(over, /line 59 ends/)
    const all = over.everything()
    for (let at = 0; at < 60; at += 1) assert.include(all, `line ${at} ends`)
  })

  it.effect.each([6, 20, 40])("of %s columns holds all that is drawn", function* (columns) {
    const over = streams({ columns, rows: 30 })
    const { answer, ask, card, choose, during, note, status } = yield* terminal(over)
    yield* status(() => "a status line that does not know the width of its screen")
    yield* answer(
      "| one | two | three |\n|---|---|---|\n| words and words | 中文中文 | 😀 |\n\n- [ ] open\n\n```ts\nconst a = 1\n```\n"
    )
    yield* note("a note of many words that has to be wrapped")
    yield* during("thinking about something for long", () =>
      Effect.gen(function* () {
        const one = {
          key: "1",
          head: "run a command with a long name",
          body: ["中文中文中文中文"],
          more: ["x".repeat(99)]
        }
        yield* card({ ...one, isRunning: true })
        over.input.write("a message of several words\r")
        yield* until(over, /⠋/)
        yield* card({ ...one, isRunning: false })
        over.input.write("\u000f")
      })
    )
    yield* ask(question)
    const chosen = yield* Effect.forkChild(
      choose("A list of things to choose from", [
        { value: 1, label: "the first of all things", about: "more about it" }
      ]),
      { startImmediately: true }
    )
    yield* until(over, columns < 20 ? /A list|first|→/ : /the first/)
    over.input.write("\r")
    assert.strictEqual(Option.getOrUndefined(yield* Fiber.join(chosen)), 1)
  })
})

// oxlint-disable-next-line no-control-regex
const frame = /\u001b\[\?2026h[^]*?\u001b\[\?2026l/gu
// oxlint-disable-next-line no-control-regex
const cursorMoves = /\u001b\[(?:\?25[hl]|\d*G)/gu
// oxlint-disable-next-line no-control-regex
const clearing = /\u001b\[[0-3]?J/u

it.effect.each([40, 80, 120, 200])("a streamed answer does not flicker on %s columns", function* (columns) {
  const over = streams({ columns, rows: 20 })
  const { answer, status } = yield* terminal(over)
  yield* status(() => "a status line")
  yield* until(over, /a status line/)
  const drawn = over.shown().length
  let seen: ReadonlyArray<string> = []
  for (let at = 0; at < 40; at += 1) {
    yield* answer(`- item ${at} with **bold** words, \`code\` and 中文\n`)
    yield* until(over, new RegExp(`item ${at} `))
    const rows = over.everything().split("\n")
    const items = rows.filter((row) => /• item \d+ with bold words/.test(row))
    // What was there stays as it was, and each item is there once.
    assert.deepStrictEqual(items.slice(0, seen.length), seen)
    assert.strictEqual(items.length, at + 1)
    seen = items
  }
  // Each frame is drawn at once, and none clears more than single rows.
  const written = over.shown().slice(drawn)
  assert.isAtLeast(written.match(frame)?.length ?? 0, 2)
  assert.strictEqual(written.replace(frame, "").replace(cursorMoves, ""), "")
  assert.notMatch(written, clearing)
})

describe("the history", () => {
  const typed = Effect.fnUntraced(function* (history: string, ...keys: ReadonlyArray<string>) {
    const over = streams(screen)
    const { ask } = yield* terminal(over, { history })
    const messages: Array<string> = []
    for (const each of keys) {
      const next = yield* Effect.forkChild(ask(question), { startImmediately: true })
      over.input.write(each)
      messages.push(yield* Fiber.join(next))
    }
    return messages
  }, Effect.scoped)
  const lines = (file: string) =>
    Effect.promise(async () =>
      (await readFile(file, "utf8"))
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    )

  it.effect("persists across runs, with line breaks, privately", function* () {
    const file = yield* historyFile
    yield* typed(file, "first\r", `${paste("a\nb")}\r`, `${paste("a\nb")}\r`, " secret\r")
    assert.deepStrictEqual(yield* lines(file), ["first", "a\nb"])
    const [home, own] = yield* Effect.promise(() => Promise.all([stat(path.dirname(file)), stat(file)]))
    assert.deepStrictEqual([home.mode & 0o777, own.mode & 0o777], [0o700, 0o600])
    assert.deepStrictEqual(yield* typed(file, "\u001b[A!\r", `${"\u001b[A".repeat(5)}\r`), ["a\nb!", "first"])
  })

  it.effect("of concurrent chats has the messages of both", function* () {
    const file = yield* historyFile
    const turns = Array.from({ length: 20 }, (_, turn) => turn)
    yield* Effect.forEach(["a", "b"], (chat) => typed(file, ...turns.map((turn) => `${chat}${turn}\r`)), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(new Set(yield* lines(file)), new Set(turns.flatMap((turn) => [`a${turn}`, `b${turn}`])))
  })

  it.effect("is limited, and skips damaged lines", function* () {
    const file = path.join(yield* folder, "history.jsonl")
    const stored = Array.from({ length: 1_300 }, (_, index) => `"message ${index}"\n`)
    yield* Effect.promise(() => writeFile(file, stored.join("")))
    yield* Effect.promise(() => appendFile(file, 'torn"\n17\n'))
    assert.deepStrictEqual(yield* typed(file, "\u001b[A\r"), ["message 1299"])
    const kept = yield* lines(file)
    assert.lengthOf(kept, 1_000)
    assert.strictEqual(kept[0], "message 300")
  })

  it.effect("that cannot be used loses no message", function* () {
    const file = yield* folder
    assert.deepStrictEqual(yield* typed(file, "a\r", "b\r", "\u001b[A\u001b[A\r"), ["a", "b", "a"])
  })
})

const inTmux = () => {
  const chat = Effect.fnUntraced(function* (history: string, size?: { width: number; height: number }) {
    const started = yield* Tmux.start({
      command: [process.execPath, "--disable-warning=ExperimentalWarning", echo, history],
      ...size
    })
    yield* started.until(/^>$/m)
    return started
  })

  it.live("a paste of three lines is one message, also when wider than the screen", function* () {
    const { paste, press, until } = yield* chat(yield* historyFile, { width: 40, height: 12 })
    yield* paste("const one = 1\n\tconst two = 2\nconst three = 3")
    yield* until("> const one = 1\n  ␉const two = 2\n  const three = 3")
    yield* press("C-a", "C-e", "Left", "Right", "Enter")
    const shown = yield* until(/echo[^]*\n>$/)
    assert.include(shown, String.raw`echo "const one = 1\n\tconst two =`)
    assert.lengthOf(shown.split("\n"), 7)
  })

  it.live("a line of several rows is erased and edited in place, also wide characters", function* () {
    const { press, type, until } = yield* chat(yield* historyFile, { width: 40, height: 12 })
    yield* type("寿司".repeat(20))
    yield* press("C-a")
    yield* type("x")
    yield* press("C-e", "BSpace")
    yield* type("y")
    yield* press("Enter")
    const shown = yield* until(/echo[^]*\n>$/)
    assert.include(shown.replaceAll("\n", "").replaceAll("  ", ""), `echo "x${"寿司".repeat(20).slice(0, -1)}y"`)
  })
}

needs("tmux")("on a terminal", inTmux)
