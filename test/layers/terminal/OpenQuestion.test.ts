import { Effect, Fiber, Semaphore } from "effect"
import { ChatOutput } from "../../../src/layers/terminal/ChatOutput.ts"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import { OpenQuestion } from "../../../src/layers/terminal/OpenQuestion.ts"
import * as Theme from "../../../src/layers/terminal/Theme.ts"
import { Transcript } from "../../../src/layers/terminal/Transcript.ts"
import type { Inquiry } from "../../../src/services/terminal/ChatTerminal.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const theme = Theme.make(
  false,
  Highlight.make(() => {})
)

/** A question without a screen: an editor that only holds its text. */
const scene = Effect.fnUntraced(function* (typed = "") {
  const transcript = new Transcript(theme)
  const output = new ChatOutput(transcript, theme, () => {})
  let text = typed
  const editor = {
    wholeText: () => text,
    fill: (next: string) => {
      text = next
    },
    prompt: "> "
  }
  const question = new OpenQuestion(yield* Semaphore.make(1), {
    output,
    editor,
    theme,
    restorePrompt: () => {
      editor.prompt = "> "
    },
    afterWord: (run) => {
      pending = run
      return () => {
        pending = undefined
      }
    }
  })
  let pending: (() => void) | undefined
  /** Lets the time pass in which another key would belong to the same word. */
  const pause = () => pending?.()
  const ask = <A>(inquiry: Inquiry<A>, isInputOpen = true) =>
    Effect.forkChild(
      question.ask(inquiry, () => isInputOpen),
      { startImmediately: true }
    )
  return { ask, editor, output, pause, question, shown: () => transcript.render(40) }
})

const hint = "Esc cancels the turn"

const may: Inquiry<string> = {
  text: "Run it?\n",
  prompt: "run? ",
  keys: ["y"],
  read: (line) => (/^[yn]/.test(line) ? { _tag: "Answer", value: line } : { _tag: "Again", text: "y or n\n" })
}

describe("an open question", () => {
  it.effect("takes the editor until it is answered, and holds output back", function* () {
    const { ask, editor, output, question, shown } = yield* scene("half a message")
    const answer = yield* ask({ ...may, fill: "no" })
    assert.deepStrictEqual([question.isOpen, editor.prompt, editor.wholeText()], [true, "run? ", "no"])
    output.show(() => output.addNote("told"))
    // Enter takes the line out of the editor.
    editor.fill("")
    question.answer("what?")
    question.answer("n")
    assert.strictEqual(yield* Fiber.join(answer), "n")
    assert.deepStrictEqual(shown(), ["Run it?", "run? what?", "y or n", "run? n", "told"])
    assert.deepStrictEqual([question.isOpen, editor.prompt, editor.wholeText()], [false, "> ", "half a message"])
  })

  it.effect("is answered by one key, and takes an Enter after it", function* () {
    const { ask, pause, question } = yield* scene()
    const answer = yield* ask(may)
    assert.isUndefined(question.takesKey("y", false))
    assert.isUndefined(question.takesKey("x", true))
    assert.strictEqual(question.takesKey("Y", true), "taken")
    pause()
    assert.strictEqual(yield* Fiber.join(answer), "y")
    assert.strictEqual(question.takesKey("\r", true), "taken")
    assert.isUndefined(question.takesKey("\r", true))
  })

  it.effect("is answered at once by a key and Enter", function* () {
    const { ask, question } = yield* scene()
    const answer = yield* ask(may)
    assert.strictEqual(question.takesKey("y", true), "taken")
    assert.strictEqual(question.takesKey("\r", true), "taken")
    assert.strictEqual(yield* Fiber.join(answer), "y")
  })

  it.effect("is not answered by the first letter of a word, which stays in the editor", function* () {
    const { ask, editor, pause, question } = yield* scene()
    const answer = yield* ask(may)
    assert.strictEqual(question.takesKey("y", true), "taken")
    assert.isUndefined(question.takesKey("e", true))
    assert.strictEqual(editor.wholeText(), "y")
    pause()
    assert.isTrue(question.isOpen)
    editor.fill("")
    question.answer("no")
    assert.strictEqual(yield* Fiber.join(answer), "no")
  })

  it.effect("keeps what is typed after the answer", function* () {
    const { ask, editor, question } = yield* scene("draft, ")
    const answer = yield* ask(may)
    question.answer("y")
    editor.fill("more")
    assert.strictEqual(yield* Fiber.join(answer), "y")
    assert.strictEqual(editor.wholeText(), "draft, more")
  })

  it.effect("is not answered by one key where a message was being typed", function* () {
    const { ask, question } = yield* scene("half a mess")
    const answer = yield* ask(may)
    assert.isUndefined(question.takesKey("y", true))
    question.answer("yes")
    assert.strictEqual(yield* Fiber.join(answer), "yes")
  })

  it.effect("can be replaced by another one", function* () {
    const { ask, editor, question, shown } = yield* scene()
    const edit: Inquiry<string> = { ...may, text: "Edit it.\n", prompt: "edit: ", fill: "y now" }
    const answer = yield* ask({ ...may, read: () => ({ _tag: "Then", inquiry: edit }) })
    question.answer("e")
    yield* Effect.yieldNow
    assert.deepStrictEqual([editor.prompt, editor.wholeText()], ["edit: ", "y now"])
    question.answer("y now")
    assert.strictEqual(yield* Fiber.join(answer), "y now")
    assert.deepStrictEqual(shown(), ["Run it?", "run? e", "Edit it.", "edit: y now"])
  })

  it.effect("opens another one by a letter, at once, and what is typed after it belongs to that", function* () {
    const { ask, editor, question, shown } = yield* scene()
    const because: Inquiry<string> = { text: "", prompt: "because: ", read: (value) => ({ _tag: "Answer", value }) }
    const answer = yield* ask({ ...may, opens: { n: because } })
    assert.strictEqual(question.takesKey("n", true), "taken")
    // The next key belongs to the reason, even before the other question is there.
    assert.isUndefined(question.takesKey("y", true))
    editor.fill("y n")
    yield* Effect.yieldNow
    assert.deepStrictEqual([editor.prompt, editor.wholeText()], ["because: ", "y n"])
    question.answer("y not")
    assert.strictEqual(yield* Fiber.join(answer), "y not")
    assert.deepStrictEqual(shown(), ["Run it?", "because: y not"])
  })

  it.effect("is answered by Escape where it says what that means", function* () {
    const { ask, question } = yield* scene()
    const answer = yield* ask({ ...may, escape: "n" })
    assert.strictEqual(question.takesKey("\u001b", true), "taken")
    assert.strictEqual(yield* Fiber.join(answer), "n")
    const other = yield* ask(may)
    assert.isUndefined(question.takesKey("\u001b", true))
    question.answer("y")
    yield* Fiber.join(other)
  })

  it.effect("is not answered by such a letter where a message was being typed", function* () {
    const { ask, question } = yield* scene("half a mess")
    const answer = yield* ask({ ...may, opens: { n: { ...may, prompt: "because: " } } })
    assert.isUndefined(question.takesKey("n", true))
    question.answer("n")
    assert.strictEqual(yield* Fiber.join(answer), "n")
  })

  it.effect("about more than the screen holds is scrolled, and leaves its beginning in the conversation", function* () {
    const { ask, question, shown } = yield* scene()
    const lines = Array.from({ length: 60 }, (_, at) => `line ${at}`)
    const answer = yield* ask({ ...may, detail: { head: "Write?", lines, options: [["y", "once"]], hint } })
    assert.deepStrictEqual(shown(), [])
    assert.deepStrictEqual(question.rows(60, 6).slice(0, 2), ["Write?", "  line 0"])
    assert.strictEqual(question.takesKey("\u001b[B", true), "changed")
    assert.deepStrictEqual(question.rows(60, 6).slice(0, 2), ["Write?", "  line 1"])
    question.answer("y")
    yield* Fiber.join(answer)
    assert.deepStrictEqual(shown().slice(-2), ["  … 30 more rows", "run? y"])
  })

  const up = "\u001b[A"
  const down = "\u001b[B"
  const options = [
    ["y", "yes"],
    ["n", "no"]
  ] as const

  it.effect("is answered by Enter at an answer that the arrows marked, and by nothing before", function* () {
    const { ask, question } = yield* scene()
    const answer = yield* ask({ ...may, detail: { head: "Run?", lines: ["ls"], options, hint } })
    const rows = () => question.rows(60, 20).slice(2)
    assert.deepStrictEqual(rows(), ["", "y  yes", "n  no · Esc cancels the turn"])
    assert.isUndefined(question.takesKey("\r", true))
    question.takesKey(down, true)
    assert.deepStrictEqual(rows(), ["", "y▸ yes", "n  no · Esc cancels the turn"])
    question.takesKey(up, true)
    assert.isUndefined(question.takesKey("\r", true))
    for (const key of [down, down, down]) assert.strictEqual(question.takesKey(key, true), "changed")
    assert.deepStrictEqual(rows(), ["", "y  yes", "n▸ no · Esc cancels the turn"])
    // What is typed is an answer of its own.
    assert.isUndefined(question.takesKey("\r", false))
    assert.strictEqual(question.takesKey("\r", true), "taken")
    assert.strictEqual(yield* Fiber.join(answer), "n")
  })

  it.effect(
    "has its answers below the last row of what scrolls, and a marked one may open another question",
    function* () {
      const { ask, editor, question } = yield* scene()
      const lines = Array.from({ length: 12 }, (_, at) => `line ${at}`)
      const why: Inquiry<string> = { text: "", prompt: "because: ", read: (value) => ({ _tag: "Answer", value }) }
      const answer = yield* ask({ ...may, opens: { n: why }, detail: { head: "Write?", lines, options, hint } })
      const marks = () => question.rows(60, 10).filter((row) => row.includes("▸"))
      marks()
      question.takesKey("\u001b[F", true)
      assert.deepStrictEqual(marks(), [])
      question.takesKey(down, true)
      assert.deepStrictEqual(marks(), ["y▸ yes"])
      question.takesKey(down, true)
      assert.strictEqual(question.takesKey("\r", true), "taken")
      // Another Enter belongs to the other question, even before that is there.
      assert.isUndefined(question.takesKey("\r", true))
      yield* Effect.yieldNow
      assert.strictEqual(editor.prompt, "because: ")
      question.answer("not now")
      assert.strictEqual(yield* Fiber.join(answer), "not now")
    }
  )

  it.effect("is not answered by arrows and Enter where a message was being typed", function* () {
    const { ask, question } = yield* scene("/mo")
    const answer = yield* ask({ ...may, detail: { head: "Run?", lines: ["ls"], options, hint } })
    question.rows(60, 20)
    question.takesKey(down, true)
    assert.isUndefined(question.takesKey("\r", true))
    question.answer("n")
    assert.strictEqual(yield* Fiber.join(answer), "n")
  })

  it.effect("is not answered by arrows and Enter where its answers are not in view", function* () {
    const { ask, question } = yield* scene()
    const answer = yield* ask({ ...may, detail: { head: "Run?", lines: ["ls"], options, hint } })
    // Nothing is drawn yet; then the screen has fewer rows than there are answers.
    for (const draw of [() => [], () => question.rows(60, 2)]) {
      draw()
      question.takesKey(down, true)
      assert.isUndefined(question.takesKey("\r", true))
    }
    question.answer("n")
    assert.strictEqual(yield* Fiber.join(answer), "n")
  })

  it.effect("fails when the input ends, and when it has ended", function* () {
    const { ask, question } = yield* scene()
    const asked = yield* ask(may)
    question.close()
    assert.strictEqual((yield* Effect.flip(Fiber.join(asked)))._tag, "Closed")
    assert.strictEqual((yield* Effect.flip(Fiber.join(yield* ask(may, false))))._tag, "Closed")
    assert.isFalse(question.isOpen)
  })
})
