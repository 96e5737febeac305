import { Effect, Exit, Fiber } from "effect"
import { PassThrough } from "node:stream"
import * as PlainTerminal from "../../../src/layers/terminal/PlainTerminal.ts"
import type { Inquiry } from "../../../src/services/terminal/ChatTerminal.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A chat in lines, its input, and what it has written. */
const chat = Effect.gen(function* () {
  const input = new PassThrough()
  const output: PassThrough & { columns?: number } = new PassThrough()
  let written = ""
  output.on("data", (piece: Buffer) => (written += piece.toString()))
  const stored: Array<string> = []
  const history = {
    entries: ["earlier"],
    add: (message: string) => Effect.sync(() => void stored.push(message))
  }
  const terminal = yield* PlainTerminal.lines(
    { input, output: Object.assign(output, { isTTY: true }), error: output },
    history
  )
  const type = (text: string) => Effect.sync(() => void input.write(text))
  const ask = (prefill?: string) =>
    Effect.forkChild(terminal.ask({ prompt: "> ", prefill }), { startImmediately: true })
  // oxlint-disable-next-line no-control-regex
  const shown = () => written.replace(/\u001b\[[\d;?]*[A-Za-z]/g, "").replaceAll("\r", "")
  return { terminal, type, ask, shown, stored, input, output }
})

const yesOrNo: Inquiry<boolean> = {
  text: "Really?\n",
  prompt: "? ",
  read: (line) =>
    line === "y" || line === "n"
      ? { _tag: "Answer", value: line === "y" }
      : line === "e"
        ? { _tag: "Then", inquiry: { ...yesOrNo, text: "Edit it.\n", prompt: "it: ", fill: "n" } }
        : { _tag: "Again", text: "Type y or n.\n" }
}

describe("a chat in lines", () => {
  it.live("reads a message a line, stores it, and never changes what was written", function* () {
    const { ask, shown, stored, terminal, type } = yield* chat
    const first = yield* ask()
    yield* type("hello  \n")
    assert.strictEqual(yield* Fiber.join(first), "hello")
    yield* terminal.answer("# An *answer*")
    yield* terminal.answer(" in\u001b[2J pieces")
    yield* terminal.endAnswer(false)
    yield* terminal.note("a note")
    yield* terminal.card({ key: "1", isRunning: true, head: "running", body: [], more: [] })
    yield* terminal.card({ key: "1", isRunning: false, head: "ran", body: ["line"], more: ["hidden"] })
    assert.include(shown(), "# An *answer* in\\u{1b}[2J pieces\na note\nran\nline\n")
    assert.notInclude(shown(), "running")
    assert.deepStrictEqual(stored, ["hello"])
  })

  it.live("wraps to the width that the terminal has when an answer begins, within 40 and 200 columns", function* () {
    const { output, shown, terminal } = yield* chat
    const words = Array.from({ length: 100 }, () => "word").join(" ")
    const widths: Array<number> = []
    for (const columns of [0, 20, 60, 300, undefined]) {
      const before = shown().length
      Object.assign(output, { columns })
      yield* terminal.answer(words)
      yield* terminal.endAnswer(false)
      const lines = shown().slice(before).split("\n")
      widths.push(Math.max(...lines.map(({ length }) => length)))
    }
    assert.deepStrictEqual(widths, [499, 39, 59, 199, 499])
  })

  it.live("puts a text to edit into the line, and recalls earlier messages", function* () {
    const { ask, type } = yield* chat
    const edited = yield* ask("say it")
    yield* type(" again\n")
    assert.strictEqual(yield* Fiber.join(edited), "say it again")
    const recalled = yield* ask()
    // Up, over the message before.
    yield* type("\u001b[A\u001b[A\n")
    assert.strictEqual(yield* Fiber.join(recalled), "earlier")
  })

  it.live("asks until the answer is understood, and lets a text be edited", function* () {
    const { shown, terminal, type } = yield* chat
    const asked = yield* Effect.forkChild(terminal.inquire(yesOrNo), { startImmediately: true })
    const until = (end: string) => Effect.repeat(Effect.sleep(5), { until: () => shown().endsWith(end) })
    yield* until("? ")
    yield* type("what\n")
    yield* until("Type y or n.\n? ")
    yield* type("y\n")
    assert.isTrue(yield* Fiber.join(asked))
    assert.include(shown(), "Really?\n? what\nType y or n.\n? ")
    const again = yield* Effect.forkChild(terminal.inquire(yesOrNo), { startImmediately: true })
    yield* type("e\n")
    yield* until("it: n")
    yield* type("\n")
    assert.isFalse(yield* Fiber.join(again))
  })

  it.live.each([
    ["Ctrl+C", "\u0003"],
    ["Esc", "\u001b"]
  ] as const)("cancels work with %s, and ends with the input", function* ([, key]) {
    const { ask, input, terminal, type } = yield* chat
    const working = yield* Effect.forkChild(
      terminal.during("thinking", (interrupted) => Effect.as(interrupted, "cancelled")),
      { startImmediately: true }
    )
    yield* type(key)
    assert.strictEqual(yield* Fiber.join(working), "cancelled")
    const last = yield* ask()
    input.end()
    const exit = yield* Fiber.await(last)
    assert.isTrue(Exit.isFailure(exit))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(terminal.choose("", []))))
  })

  it.live("Ctrl+C on an empty line warns, clears what was typed since, and leaves at the second", function* () {
    const { ask, shown, type } = yield* chat
    const until = (end: string) => Effect.repeat(Effect.sleep(5), { until: () => shown().endsWith(end) })
    const asked = yield* ask()
    yield* type("\u0003")
    yield* until("press Ctrl+C again to leave\n> ")
    // The cursor is within the text: all of it goes.
    yield* type("not sent\u001b[D\u001b[D\u0003")
    yield* until("not sent> \n> ")
    yield* type("sent\n")
    assert.strictEqual(yield* Fiber.join(asked), "sent")
    const last = yield* ask()
    yield* type("\u0003\u0003")
    assert.isTrue(Exit.isFailure(yield* Fiber.await(last)))
  })
})
