import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { Readable } from "node:stream"
import * as zlib from "node:zlib"
import { wire } from "../../../src/domain/gateway/WireDialects.ts"
import { countsIn, usageOf } from "../../../src/domain/wire/AnswerUsage.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { meter, type Metered } from "../../../src/layers/gateway/AnswerMeter.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What is read of an answer that passes by: whole or cut, encoded or damaged. */

const encoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  identity: (bytes) => bytes,
  gzip: zlib.gzipSync,
  "x-gzip": zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  ...("zstdCompressSync" in zlib ? { zstd: zlib.zstdCompressSync } : {})
}

/** What a meter reads of a body that arrives in these pieces, and then ends or breaks. */
const metered = (encoding: string, pieces: ReadonlyArray<Buffer>, isBroken = false) =>
  Effect.callback<Metered, Error>((resume) => {
    const body = new Readable({ read: () => {} })
    for (const piece of pieces) body.push(piece)
    if (!isBroken) body.push(null)
    const headers = encoding === "identity" ? [] : ["Content-Encoding", encoding]
    let times = 0
    meter({ status: 200, statusText: "", headers, body }, (found) => {
      times += 1
      resume(times === 1 ? Effect.succeed(found) : Effect.fail(new Error("called twice")))
    })
    if (isBroken) setImmediate(() => void body.destroy())
  }).pipe(Effect.timeout("20 seconds"))

const counts = { input: 1_234, output: 56 }
const streamOf = (dialect: Dialect, filling = "") =>
  Buffer.from(
    codecs[dialect].events({ blocks: [{ kind: "text", text: `It is so. ${filling}` }], counts, number: 1 }).join("")
  )
const isCounted = (dialect: Dialect, found: Metered) => {
  const usage = usageOf(wire[dialect].answers.usage, found.counts)
  assert.deepStrictEqual({ input: usage?.prompt, output: usage?.answer }, counts)
}

describe.each(dialects)("an answer in the dialect %s", (dialect) => {
  it.live.each(Object.keys(encoders))("is counted in any pieces (%s)", function* (encoding) {
    const whole = streamOf(dialect)
    const body = encoders[encoding]?.(whole) ?? whole
    for (const size of [1, 7, 100, body.length]) {
      const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
        body.subarray(at * size, (at + 1) * size)
      )
      isCounted(dialect, yield* metered(encoding, pieces))
    }
  })

  it.live("is counted by its beginning and its end, however long it is", function* () {
    isCounted(dialect, yield* metered("gzip", [zlib.gzipSync(streamOf(dialect, "word ".repeat(20_000)))]))
  })
})

it("counts are found behind what looks like counts without an end, in linear time", () => {
  const texts = ['"usage":{"a":'.repeat(20_000), '{"usage":{"usage":{"input_tokens":9},"input_tokens":1}}']
  assert.deepStrictEqual(countsIn(texts), { usage: { input_tokens: 9 }, input_tokens: 1 })
})

describe("an answer that breaks off or is damaged", () => {
  const body = streamOf("anthropic", "word ".repeat(2_000))

  it.live.each(Object.keys(encoders))("is told once, with what could be read (%s)", function* (encoding) {
    const encoded = encoders[encoding]?.(body) ?? body
    for (const share of [0, 0.1, 0.5, 0.9]) {
      const cut = encoded.subarray(0, Math.floor(encoded.length * share))
      for (const isBroken of [false, true]) {
        assert.isAtMost((yield* metered(encoding, [cut], isBroken)).tokens, body.length)
      }
      // The error of a decoder that nobody listens to would end the process.
      const { tokens } = yield* metered(encoding, [cut, Buffer.alloc(1_000, "no such encoding")])
      assert.isAtLeast(tokens, 0)
    }
  })

  it.live("is estimated by its events, or by its bytes", function* () {
    const events = Buffer.from('data: {"a":1}\n\n'.repeat(30))
    assert.strictEqual((yield* metered("identity", [events])).tokens, 30)
    assert.strictEqual((yield* metered("br", [zlib.brotliCompressSync(events)])).tokens, 30)
    // A server may put all of its answer into one event.
    const long = Buffer.from(`data: {"text":"${"word ".repeat(5_000)}"}\n\n`)
    assert.isAtLeast((yield* metered("identity", [long])).tokens, 5_000)
    assert.strictEqual((yield* metered("identity", [Buffer.alloc(401, "x")])).tokens, 101)
    // No decoder of Node: what passes by is taken as it is.
    assert.strictEqual((yield* metered("unheard-of", [Buffer.alloc(400, "x")])).tokens, 100)
  })
})
