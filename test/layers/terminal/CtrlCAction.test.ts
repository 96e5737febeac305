import { assert, describe, it } from "@effect/vitest"
import { ctrlCAction } from "../../../src/layers/terminal/CtrlCAction.ts"

describe("ctrlCAction", () => {
  const idle = { isWorking: false, hasInput: false, wasPressed: false }

  it("cancels work before anything else", () =>
    assert.strictEqual(ctrlCAction({ isWorking: true, hasInput: true, wasPressed: true }), "cancelWork"))
  it("clears the typed text", () =>
    assert.strictEqual(ctrlCAction({ ...idle, hasInput: true, wasPressed: true }), "clearPrompt"))
  it("leaves when pressed twice on an empty prompt", () => {
    assert.strictEqual(ctrlCAction(idle), "warn")
    assert.strictEqual(ctrlCAction({ ...idle, wasPressed: true }), "leave")
  })
})
