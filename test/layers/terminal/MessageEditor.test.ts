import type { TUI } from "@earendil-works/pi-tui"
import { assert, describe, it } from "@effect/vitest"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import { MessageEditor } from "../../../src/layers/terminal/MessageEditor.ts"
import * as Theme from "../../../src/layers/terminal/Theme.ts"

const up = "\u001b[A"
const down = "\u001b[B"

const edited = () => {
  const sent: Array<readonly [text: string, waits: boolean]> = []
  const editor = new MessageEditor(
    { requestRender: () => {}, terminal: { rows: 24, columns: 80 } } as unknown as TUI,
    Theme.make(
      false,
      Highlight.make(() => {})
    )
  )
  editor.onMessage = (text, waits) => void sent.push([text, waits])
  editor.render(80)
  return { editor, sent }
}

describe("the editor of messages", () => {
  const long = Array.from({ length: 500 }, (_, at) => `line ${at}`).join("\n")

  it("passes on an Enter with nothing typed, which answers some questions", () => {
    const { editor, sent } = edited()
    editor.handleInput("\r")
    assert.deepStrictEqual(sent, [["", false]])
  })

  it("keeps a long message folded among those that Up recalls, and sends all of it", () => {
    const { editor, sent } = edited()
    editor.addToHistory("earlier")
    editor.addToHistory(long)
    editor.handleInput(up)
    assert.strictEqual(editor.getText(), "[message #1 +500 lines]")
    editor.handleInput(up)
    assert.strictEqual(editor.getText(), "earlier")
    editor.handleInput(down)
    assert.strictEqual(editor.wholeText(), long)
    editor.handleInput("\r")
    assert.deepStrictEqual(sent, [[long, false]])
  })

  it("counts the lines of a paste without the end of the last one", () => {
    const { editor } = edited()
    editor.handleInput(`\u001b[200~${long}\n\u001b[201~`)
    assert.strictEqual(editor.getText(), "[paste #1 +500 lines]")
  })

  it("completes a message for a prompt with Tab, where there is nothing to complete", () => {
    const { editor, sent } = edited()
    editor.fill("later")
    assert.isFalse(editor.takesTab())
    editor.sendLater()
    assert.deepStrictEqual(sent, [["later", true]])
    for (const text of ["/comp", "!ls", "see @src", "@"]) {
      editor.fill(text)
      assert.isTrue(editor.takesTab(), text)
    }
  })
})
