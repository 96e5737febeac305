import { type Editor, TuiMainScreen } from "@earendil-works/pi-tui"
import { assert, describe, it } from "@effect/vitest"
import { Readable, Writable } from "node:stream"
import * as Highlight from "../../../src/layers/terminal/Highlight.ts"
import { MessageEditor } from "../../../src/layers/terminal/MessageEditor.ts"
import * as StreamTerminal from "../../../src/layers/terminal/StreamTerminal.ts"
import * as Theme from "../../../src/layers/terminal/Theme.ts"
import * as VimKeys from "../../../src/layers/terminal/VimKeys.ts"

/** An editor that nobody sees. */
const editor = () => {
  const nowhere = new Writable({ write: (_piece, _encoding, done) => done() })
  const terminal = StreamTerminal.make({ input: Readable.from([]), output: nowhere, error: nowhere }, () => {})
  const made = new MessageEditor(
    new TuiMainScreen(terminal),
    Theme.make(
      false,
      Highlight.make(() => {})
    )
  )
  made.vim = VimKeys.initial
  return made
}

const type = (into: Editor, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) into.handleInput(key)
}

describe("vim's keys", () => {
  for (const [keys, expected] of [
    ["0x", "ne two three"],
    ["0dw", " two three"],
    ["bD", "one two "],
    ["0wwiX", "one twoX three"],
    ["bi-", "one two -three"],
    ["IX", "Xone two three"],
    ["AX", "one two threeX"],
    ["0aX", "oXne two three"],
    ["hhiX", "one two thXree"],
    ["ddiX", "X"],
    ["ddu", "one two three"],
    ["ccX", "X"],
    ["oX", "one two three\nX"],
    ["OX", "X\none two three"],
    ["qzZ", "one two three"],
    ["dqx", "one two thre"]
  ] as const) {
    it(`${keys} makes ${JSON.stringify(expected)} of "one two three"`, () => {
      const made = editor()
      type(made, ..."one two three", "\u001b", ...keys)
      assert.strictEqual(made.getText(), expected)
    })
  }

  it("begins to insert again after a message was sent", () => {
    const made = editor()
    const sent: Array<string> = []
    made.onMessage = (text) => sent.push(text)
    type(made, ..."one", "\u001b", "\r", ..."dx")
    assert.deepStrictEqual([sent, made.getText()], [["one"], "dx"])
  })
})
