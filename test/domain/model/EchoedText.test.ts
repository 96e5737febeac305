import { assert, describe, it } from "@effect/vitest"
import { withoutEcho } from "../../../src/domain/model/EchoedText.ts"

const request = ["Please move the harbour lights, then pay with 4111222233334444.", "灯りを港へ", "zum Beispiel"]

const messages: ReadonlyArray<readonly [what: string, message: string, shown: string]> = [
  ["nothing of the request", "The model is overloaded.", "The model is overloaded."],
  ["two words in a row", "we move the model", "we move the model"],
  ["three words in a row", "cannot move the harbour yet", "cannot … yet"],
  ["more words in a row", "cannot move the harbour lights yet", "cannot … yet"],
  ["at the beginning", "move the harbour", "…"],
  ["two runs", "move the harbour or pay with 4111222233334444 now", "… or … now"],
  ["with other capitals", "MOVE The Harbour!", "…!"],
  ["with other signs between", "move: the, harbour", "…"],
  ["line breaks as JSON writes them", "at move\\nthe\\nharbour end", "at … end"],
  ["characters as JSON writes them", "at \\u006dove the harbour end", "at … end"],
  ["a slash as JSON writes it", "at move\\/the harbour end", "at … end"],
  ["as a URL writes it", "at move%20the%20harbour end", "at … end"],
  ["a number alone", "card 4111222233334444 refused", "card … refused"],
  ["a number of another", "card 4111222233335555 refused", "card 4111222233335555 refused"],
  ["one word in quotation marks", 'value "harbour office" is invalid', 'value "…" is invalid'],
  ["a word of three letters in quotation marks", 'value "pay office" is invalid', 'value "pay office" is invalid'],
  ["a word of four letters in quotation marks", 'value "move office" is invalid', 'value "…" is invalid'],
  ["a name in quotation marks", 'parameter "harbour" is unknown', 'parameter "harbour" is unknown'],
  ["a quotation without its end", 'at "harbour office', 'at "…'],
  ["a sign of a script without spaces, quoted", 'at "港 x"', 'at "…"'],
  ["three of them in a row", "at 灯りを", "at …"],
  ["JSON", 'got {"a": "harbour x"}', "got {…"]
]

describe("a server's message", () => {
  it.each(messages)("%s", (_, message, shown) => {
    assert.strictEqual(
      withoutEcho(message, () => request),
      shown
    )
  })

  it("without words is not looked for in the request", () => {
    const refused = () => {
      throw new Error("asked for")
    }
    for (const message of ["", "…", "?!"]) assert.strictEqual(withoutEcho(message, refused), message)
  })
})
