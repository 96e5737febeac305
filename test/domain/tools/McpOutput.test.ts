import { assert, describe, it } from "@effect/vitest"
import { MessageLines, ServerWords } from "../../../src/domain/tools/McpOutput.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const texts = (lines: ReadonlyArray<Uint8Array>) => lines.map((line) => new TextDecoder().decode(line))

const answer = '{"jsonrpc":"2.0","id":1,"result":{}}\n'
const request = '{"jsonrpc":"2.0","id":"a","method":"ping"}\n'
const notification = '{"jsonrpc":"2.0","method":"note"}\n'

describe("the output of a server", () => {
  const cases: ReadonlyArray<readonly [name: string, chunks: ReadonlyArray<string>, messages: string, words: string]> =
    [
      ["passes messages on", [answer + notification + request], answer + notification + request, ""],
      ["joins a message that comes in pieces", [answer.slice(0, 5), answer.slice(5, 9), answer.slice(9)], answer, ""],
      ["holds back a line without its end", [answer + answer.slice(0, -1)], answer, ""],
      ["keeps greetings as last words", ["welcome\n", answer, "bye\n"], answer, "; it said: bye"],
      ["prefers the line that names an error", ["TypeError: x\n", "bye\n\n"], "", "; it said: TypeError: x"],
      ["puts last words on one line", ["a\u001b[1m\tb\n"], "", "; it said: a [1m b"]
    ]
  it.each(cases)("%s", (_name, chunks, messages, words) => {
    const said = new ServerWords()
    const lines = new MessageLines(said)
    assert.strictEqual(chunks.flatMap((chunk) => texts(lines.add(bytes(chunk), 0))).join(""), messages)
    assert.strictEqual(said.lastWords, words)
  })

  it("passes on 100 requests a second, and all answers and notifications", () => {
    const lines = new MessageLines(new ServerWords())
    const others = answer + (notification + answer.replace("{}", '{"method":"x"}')).repeat(100)
    const counts = [0, 999, 1_000].map((now) => lines.add(bytes(request.repeat(80) + others), now).length)
    assert.deepStrictEqual(counts, [281, 221, 281])
  })

  it("passes on a line of more than 16 MiB in pieces, so that the reader refuses it", () => {
    const lines = new MessageLines(new ServerWords())
    const mebibytes = new Uint8Array(10 * 1024 * 1024)
    const sizes = [mebibytes, mebibytes, bytes("x"), bytes("\nwords\n" + answer)].map((chunk) =>
      lines.add(chunk, 0).map(({ length }) => length)
    )
    assert.deepStrictEqual(sizes, [[], [2 * mebibytes.length], [1], [1, answer.length]])
  })
})
