import { assert, describe, it } from "@effect/vitest"
import { loopWindow, routingWindow } from "../../../src/domain/agent/RoutingWindow.ts"
import { call, type Content, model, response, text, user } from "../../../src/domain/content/Content.ts"

/** A message by a letter: words of the user and model, calls, answers, and both beside words. */
const messages = (letters: string): ReadonlyArray<Content> =>
  [...letters].map((letter, n) => {
    if (letter === "u") return user(text(`u${n}`))
    if (letter === "m") return model(text(`m${n}`))
    if (letter === "c") return model(call("tool", { n }))
    if (letter === "t") return model({ text: "thinking", thought: true }, call("tool", { n }))
    if (letter === "C") return model(text(`C${n}`), call("tool", { n }))
    if (letter === "R") return user(response("tool", { n }), text(`R${n}`))
    if (letter === "e") return model()
    return user(response("tool", { n }))
  })

const places = (all: ReadonlyArray<Content>, shown: ReadonlyArray<Content>) =>
  shown.map((content) => all.indexOf(content)).join(" ")

describe("the window of the router", () => {
  const cases: ReadonlyArray<readonly [rule: string, letters: string, kept: string]> = [
    ["the last four messages", "umumumum", "4 5 6 7"],
    ["fewer where there are no more", "um", "0 1"],
    ["calls and answers are left out", "umcrcrum", "0 1 6 7"],
    ["a call that was thought about is left out", "utrm", "0 3"],
    ["what says something beside it stays", "uCRm", "0 1 2 3"],
    ["a message that says nothing is left out", "uem", "0 2"],
    ["no more than the last twenty are looked at", `uuuu${"cr".repeat(9)}um`, "22 23"],
    ["nothing but traffic leaves nothing", "crcrcr", ""],
    ["nothing leaves nothing", "", ""]
  ]
  it.each(cases)("%s", (_, letters, kept) => {
    const all = messages(letters)
    assert.strictEqual(places(all, routingWindow(all)), kept)
  })
})

describe("the router's window with other limits", () => {
  const cases: ReadonlyArray<readonly [search: number, turns: number, kept: string]> = [
    [20, 4, "5 6 7 10"],
    [20, 2, "7 10"],
    [20, 1, "10"],
    [20, 100, "0 1 2 3 4 5 6 7 10"],
    [4, 4, "7 10"],
    [1, 4, "10"],
    [0, 4, ""],
    [20, 0, ""]
  ]
  for (const [search, turns, kept] of cases) {
    it(`has the last ${turns} of the last ${search} messages, without tool traffic`, () => {
      const all = messages("umumumumcrm")
      assert.strictEqual(places(all, routingWindow(all, { search, turns })), kept)
    })
  }
})

describe("the window of the loop check", () => {
  const cases: ReadonlyArray<readonly [rule: string, letters: string, kept: string]> = [
    ["calls at the end are left out", "umcrc", "0 1 2 3"],
    ["answers at the beginning are left out", "rrumcr", "2 3 4 5"],
    ["calls and answers between stay", "ucrcrm", "0 1 2 3 4 5"],
    ["the last twenty, then trimmed", `u${"cr".repeat(12)}`, "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"],
    ["nothing but one half of the traffic leaves nothing", "ccc", ""],
    ["nothing leaves nothing", "", ""]
  ]
  it.each(cases)("%s", (_, letters, kept) => {
    const all = messages(letters)
    assert.strictEqual(places(all, loopWindow(all)), kept)
  })
})
