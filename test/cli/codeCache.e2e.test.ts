import { Effect } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { newFolder } from "../support/paths.ts"
import { ended, startProcess } from "../support/serverProcess.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { type Around, example, program, run as runs } from "./program.ts"

/** What the build prepares for a fast start, and what the program does where that does not fit. */

const run = (args: ReadonlyArray<string>, around: Around) => runs(args, { ...around, isAlone: true })

const folder = () => newFolder("code-")

const inspect = (cache: string) => run(["inspect", example, "--json"], { env: { PALIMPSEST_CODE_CACHE: cache } })

const written = (cache: string) =>
  globSync("**/*", { cwd: cache, withFileTypes: true }).filter((entry) => entry.isFile())

/** The compiled code in a cache, by the name of its part. */
const codesOf = (bytes: Buffer): ReadonlyMap<string, Buffer> => {
  const end = bytes.indexOf("\n\n")
  let at = end + 2
  return new Map(
    bytes
      .toString("latin1", bytes.indexOf("\n") + 1, end)
      .split("\n")
      .map((line) => {
        const [name = "", size] = line.split(" ")
        at += Number(size)
        return [name, bytes.subarray(at - Number(size), at)]
      })
  )
}

describe("the compiled code", () => {
  it.effect("is saved once for each version of Node, and makes no difference", function* () {
    const cache = folder()
    const first = yield* inspect(cache)
    assert.strictEqual(first.status, 0, first.stderr)
    const [file, ...others] = written(cache)
    assert.deepStrictEqual(others, [])
    assert.strictEqual(file?.name, "inspect.cache")
    assert.include(file?.parentPath ?? "", process.version)
    const saved = readFileSync(path.join(file?.parentPath ?? "", file?.name ?? ""))
    assert.deepStrictEqual(yield* inspect(cache), first)
    assert.isTrue(saved.equals(readFileSync(path.join(file?.parentPath ?? "", file?.name ?? ""))))
  })

  it.effect("keeps what an earlier run saved when another loads more of the program", function* () {
    const cache = folder()
    assert.strictEqual((yield* inspect(cache)).status, 0)
    const [entry] = written(cache)
    const file = path.join(entry?.parentPath ?? "", entry?.name ?? "")
    const before = codesOf(readFileSync(file))
    const page = ["inspect", example, "--html", path.join(cache, "page.html")]
    assert.strictEqual((yield* run(page, { env: { PALIMPSEST_CODE_CACHE: cache } })).status, 0)
    const after = codesOf(readFileSync(file))
    assert.isAbove(after.size, before.size)
    for (const [name, code] of before) assert.isTrue(after.get(name)?.equals(code), name)
    const { ino } = statSync(file)
    assert.strictEqual((yield* inspect(cache)).status, 0)
    assert.strictEqual(statSync(file).ino, ino)
  })

  it.effect("fits the next run of a command that changes V8's flags", function* () {
    const fake = yield* FakeGemini.make(() => FakeGemini.sse(FakeGemini.response([{ text: "hello" }])))
    const cache = folder()
    const env = { PALIMPSEST_CODE_CACHE: cache, GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: fake.url }
    const again = run(["ask", "hello"], { env })
    assert.strictEqual((yield* again).status, 0)
    const [entry] = written(cache)
    const file = path.join(entry?.parentPath ?? "", entry?.name ?? "")
    const { ino } = statSync(file)
    const saved = readFileSync(file)
    assert.strictEqual((yield* again).status, 0)
    // Another file would have been put in its place.
    assert.strictEqual(statSync(file).ino, ino)
    assert.isTrue(saved.equals(readFileSync(file)))
  })

  it.effect("is saved by a server, which only a signal ends", function* () {
    const { bundle } = yield* program
    const cache = folder()
    const args = ["--store", "files"]
    const env = { PALIMPSEST_CODE_CACHE: cache }
    const code = yield* Effect.promise(async () =>
      ended(await startProcess(bundle, { args, env, home: folder(), model: "http://127.0.0.1:9" }), "SIGTERM")
    )
    assert.strictEqual(code, 143)
    assert.deepStrictEqual(
      written(cache).map(({ name }) => name),
      ["serve.cache"]
    )
  })

  it.effect("is saved by a chat whose terminal is closed", function* () {
    const { bundle } = yield* program
    const cache = folder()
    const env = { ...process.env, PALIMPSEST_CODE_CACHE: cache, PALIMPSEST_HOME: folder(), GEMINI_API_KEY: "none" }
    const chat = spawn(process.execPath, [bundle, "chat"], { cwd: folder(), env, stdio: ["pipe", "pipe", "inherit"] })
    chat.stdin.write("/help\n")
    yield* Effect.promise(() => once(chat.stdout, "data"))
    chat.kill("SIGHUP")
    assert.deepStrictEqual(yield* Effect.promise(() => once(chat, "exit")), [129, null])
    assert.deepStrictEqual(
      written(cache).map(({ name }) => name),
      ["chat.cache"]
    )
  })

  it.effect("is kept from a failed run until one succeeds", function* () {
    const cache = folder()
    const env = { PALIMPSEST_CODE_CACHE: cache }
    const missing = 2
    const failed = run(["inspect", path.join(cache, "missing.jsonl")], { env })
    assert.strictEqual((yield* failed).status, missing)
    const [entry] = written(cache)
    const file = path.join(entry?.parentPath ?? "", entry?.name ?? "")
    const { ino } = statSync(file)
    assert.strictEqual((yield* failed).status, missing)
    assert.strictEqual(statSync(file).ino, ino)
    assert.strictEqual((yield* inspect(cache)).status, 0)
    assert.notStrictEqual(statSync(file).ino, ino)
  })

  it.effect("is rebuilt when it is damaged or belongs to other code", function* () {
    const cache = folder()
    const first = yield* inspect(cache)
    const [entry] = written(cache)
    const file = path.join(entry?.parentPath ?? "", entry?.name ?? "")
    const saved = readFileSync(file)
    const mainSize = Number(/^main\.js (\d+)$/m.exec(saved.toString("latin1"))?.[1])
    assert.isAbove(mainSize, 0)
    const flipped = Buffer.from(saved)
    const middle = flipped.length >> 1
    flipped.writeUInt8(flipped.readUInt8(middle) ^ 1, middle)
    for (const broken of [Buffer.alloc(0), saved.subarray(0, -1), flipped]) {
      writeFileSync(file, broken)
      const again = yield* inspect(cache)
      assert.deepStrictEqual(again, first)
      assert.isAbove(readFileSync(file).length, mainSize)
    }
  })

  it.effect.skipIf(process.platform === "win32")(
    "belongs to the user alone, and is not used where another user could change it",
    function* () {
      const cache = path.join(folder(), "own")
      const first = yield* inspect(cache)
      const [entry] = written(cache)
      const place = entry?.parentPath ?? ""
      const file = path.join(place, entry?.name ?? "")
      assert.strictEqual(statSync(cache).mode & 0o777, 0o700)
      assert.strictEqual(statSync(place).mode & 0o777, 0o700)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const { ino } = statSync(file)
      chmodSync(file, 0o666)
      assert.deepStrictEqual(yield* inspect(cache), first)
      // It was made again.
      assert.notStrictEqual(statSync(file).ino, ino)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    }
  )

  it.effect("is left out where nothing can be written", function* () {
    const cache = path.join(folder(), "file")
    writeFileSync(cache, "")
    const { status, stderr } = yield* inspect(cache)
    assert.strictEqual(status, 0)
    assert.strictEqual(stderr, "")
    const other = path.join(folder(), "none")
    mkdirSync(other)
    const unused = yield* run(["inspect", example, "--json"], {
      env: { PALIMPSEST_CODE_CACHE: other, NODE_DISABLE_COMPILE_CACHE: "1" }
    })
    assert.strictEqual(unused.status, 0)
    assert.deepStrictEqual(written(other), [])
  })
})

describe("the saved help pages", () => {
  for (const words of [[], ["config", "import", "gemini"]]) {
    it.effect(`equal what the program prints: ${["palimpsest", ...words].join(" ")}`, function* () {
      for (const env of [{ FORCE_COLOR: "1" }, { FORCE_COLOR: "1", NO_COLOR: "1" }] as const) {
        const saved = yield* run([...words, "--help"], { env })
        // Only arguments that end in --help are answered with a saved page.
        const printed = yield* run([...words, "--help", "--log-level", "info"], { env })
        assert.strictEqual(String(saved.stdout), String(printed.stdout))
        assert.strictEqual(saved.status, printed.status)
        assert.strictEqual(saved.stderr, printed.stderr)
      }
    })
  }
})
