import { assert, describe, it } from "@effect/vitest"
import { type KeyAction, keyAction, type KeyState } from "../../../src/layers/terminal/TerminalKeys.ts"

const idle: KeyState = {
  isWorking: false,
  isAsked: false,
  isEmpty: true,
  hasQueued: false,
  takesTab: false,
  takesEscape: false
}

const escape = "\u001b"
const up = "\u001b[A"

describe("keyAction", () => {
  const cases: ReadonlyArray<readonly [rule: string, key: string, state: Partial<KeyState>, KeyAction | undefined]> = [
    ["Ctrl+C has a decision of its own", "\u0003", {}, "ctrlC"],
    ["Ctrl+C also while a question is open", "\u0003", { isAsked: true }, "ctrlC"],
    ["Escape cancels work", escape, { isWorking: true }, "cancel"],
    ["Escape cancels work with a question open", escape, { isWorking: true, isAsked: true }, "cancel"],
    ["Escape without work goes to the editor", escape, {}, undefined],
    ["Escape goes to an editor that needs it", escape, { isWorking: true, takesEscape: true }, undefined],
    ["Ctrl+D leaves on an empty line", "\u0004", {}, "leave"],
    ["Ctrl+D does nothing while a question is open", "\u0004", { isAsked: true }, "none"],
    ["Ctrl+D within a message goes to the editor", "\u0004", { isEmpty: false }, undefined],
    ["Up takes the last queued message back", up, { hasQueued: true }, "takeLastQueued"],
    ["Up within a message goes to the editor", up, { hasQueued: true, isEmpty: false }, undefined],
    ["Up without a queue goes to the editor", up, {}, undefined],
    ["Up while a question is open goes to the editor", up, { hasQueued: true, isAsked: true }, undefined],
    ["Ctrl+L clears the screen", "\u000c", { isAsked: true, isEmpty: false }, "clearScreen"],
    ["Ctrl+O opens and closes cards", "\u000f", { isAsked: true, isEmpty: false }, "toggleCards"],
    ["Ctrl+R searches messages", "\u0012", {}, "searchMessages"],
    ["Ctrl+G opens another editor", "\u0007", { isWorking: true }, "editOutside"],
    ["Ctrl+V pastes an image", "\u0016", { isEmpty: false }, "pasteImage"],
    ["Ctrl+R while a question is open goes to the editor", "\u0012", { isAsked: true }, undefined],
    ["Ctrl+Z stops the program", "\u001a", { isWorking: true, isAsked: true }, "suspend"],
    ["Ctrl+G while a question is open goes to the editor", "\u0007", { isAsked: true }, undefined],
    ["Ctrl+V while a question is open goes to the editor", "\u0016", { isAsked: true }, undefined],
    ["Shift+Tab changes the mode, also while a question is open", "\u001b[Z", { isAsked: true }, "cycleMode"],
    ["Tab queues a message during work", "\t", { isWorking: true, isEmpty: false }, "sendLater"],
    [
      "Tab completes where there is something to complete",
      "\t",
      { isWorking: true, isEmpty: false, takesTab: true },
      undefined
    ],
    ["Tab without work goes to the editor", "\t", { isEmpty: false }, undefined],
    ["a letter goes to the editor", "a", { isWorking: true, hasQueued: true }, undefined]
  ]
  it.each(cases)("%s", (_rule, key, state, action) => assert.strictEqual(keyAction(key, { ...idle, ...state }), action))
})
