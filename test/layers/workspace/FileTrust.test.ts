import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, FileSystem, Layer, Path } from "effect"
import * as MemoryTrust from "../../../src/layers/testing/MemoryTrust.ts"
import * as FileTrust from "../../../src/layers/workspace/FileTrust.ts"
import {
  type TrustState,
  standing,
  Trust,
  type TrustAnswer,
  withParents
} from "../../../src/services/workspace/Trust.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Folders of this test's own: a person's home with two projects, one with a folder of somebody else's. */
const ground = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  yield* fs.makeDirectory(at("home", "work", "vendor", "deep"), { recursive: true })
  yield* fs.makeDirectory(at("home", "other"), { recursive: true })
  return { at, file: at("kept", "trusted-folders.json"), user: at("home") }
})

const made = (file: string, options: FileTrust.FileTrustOptions) =>
  Effect.map(Trust, (trust) => trust).pipe(Effect.provide(FileTrust.layer(file, { environment: {}, ...options })))

const cases: ReadonlyArray<
  readonly [
    rule: string,
    answers: Readonly<Record<string, TrustAnswer>>,
    folder: string,
    isWide: boolean,
    means: TrustState
  ]
> = [
  ["no decision", {}, "/home/me/a", false, "unknown"],
  ["a folder's own answer", { "/home/me/a": "trusted" }, "/home/me/a", false, "trusted"],
  ["it counts for what lies below", { "/home/me/a": "trusted" }, "/home/me/a/b/c", false, "trusted"],
  ["it does not count for one that begins alike", { "/home/me/a": "trusted" }, "/home/me/ab", false, "unknown"],
  ["it does not count above", { "/home/me/a": "trusted" }, "/home/me", false, "unknown"],
  ["the nearest counts: no", { "/a": "trusted", "/a/b": "untrusted" }, "/a/b/c", false, "untrusted"],
  ["the nearest counts: yes", { "/a": "untrusted", "/a/b": "trusted" }, "/a/b/c", false, "trusted"],
  ["the root's answer counts below", { "/": "trusted" }, "/a", false, "trusted"],
  ["home is not trusted because of a folder above", { "/": "trusted" }, "/home/me", true, "unknown"],
  ["home is trusted by its own answer", { "/home/me": "trusted" }, "/home/me", true, "trusted"],
  ["home is untrusted because of a folder above", { "/": "untrusted" }, "/home/me", true, "untrusted"]
]
it.each(cases)("the meaning of decisions %s", (_rule, answers, folder, isWide, means) => {
  const parent = (at: string) => at.replace(/\/[^/]*$/, "") || "/"
  assert.strictEqual(standing(new Map(Object.entries(answers)), withParents(folder, parent), isWide), means)
})

describe("decisions in a file", () => {
  it.effect("are kept with those of others, private to their owner", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, file, user } = yield* ground
    const trust = yield* made(file, { user })
    assert.strictEqual(yield* trust.of(at("home", "work")), "unknown")
    assert.strictEqual(yield* trust.set(at("home", "work"), "trusted"), at("home", "work"))
    yield* trust.set(at("home", "work", "vendor"), "untrusted")
    const other = yield* made(file, { user })
    assert.strictEqual(yield* other.of(at("home", "work")), "trusted")
    assert.strictEqual(yield* other.of(at("home", "work", "vendor", "deep")), "untrusted")
    assert.strictEqual(yield* other.of(at("home", "work", "not", "yet", "there")), "trusted")
    assert.deepStrictEqual(yield* other.list, [
      { folder: at("home", "work"), answer: "trusted" },
      { folder: at("home", "work", "vendor"), answer: "untrusted" }
    ])
    assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
    assert.deepStrictEqual(yield* fs.readDirectory(at("kept")), ["trusted-folders.json"])
  })

  it.effect("can be removed, also for a deleted folder", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, file, user } = yield* ground
    const trust = yield* made(file, { user })
    yield* trust.set(at("home", "other"), "trusted")
    yield* fs.remove(at("home", "other"), { recursive: true })
    yield* trust.set(at("home", "other"), "forgotten")
    assert.deepStrictEqual(yield* trust.list, [])
  })

  it.effect("apply to the folder a link leads to, not to the link", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, file, user } = yield* ground
    yield* fs.symlink(at("home", "work"), at("link"))
    const trust = yield* made(file, { user })
    assert.strictEqual(yield* trust.set(at("link"), "trusted"), at("home", "work"))
    yield* fs.remove(at("link"))
    yield* fs.symlink(at("home", "other"), at("link"))
    assert.strictEqual(yield* trust.of(at("link")), "unknown")
    // A link in a trusted folder leads out of it.
    yield* fs.symlink(at("home", "other"), at("home", "work", "out"))
    assert.strictEqual(yield* trust.of(at("home", "work", "out")), "unknown")
  })

  it.effect("are refused for a path that is not a folder", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, file, user } = yield* ground
    yield* fs.writeFileString(at("home", "text"), "")
    const trust = yield* made(file, { user })
    for (const place of ["text", "missing"]) {
      const error = yield* Effect.flip(trust.set(at("home", place), "trusted"))
      assert.strictEqual(error.message, `there is no folder ${at("home", place)}`)
    }
    assert.isFalse(yield* fs.exists(file))
  })

  it.effect("cover the user's home and its parents only by name", NodeServices.layer, function* () {
    const { at, file, user } = yield* ground
    const trust = yield* made(file, { user })
    const wide = yield* Effect.forEach(["/", at(), at("home"), at("home", "work")], trust.isWide)
    assert.deepStrictEqual(wide, [true, true, true, false])
    yield* trust.set(at(), "trusted")
    assert.strictEqual(yield* trust.of(user), "unknown")
    assert.strictEqual(yield* trust.of(at("home", "work")), "trusted")
    yield* trust.set(user, "trusted")
    assert.strictEqual(yield* trust.of(user), "trusted")
  })

  it.effect.each([
    ["half a document", `{"version": 1, "fold`],
    ["an invalid decision", `{"version": 1, "folders": {"/a": "maybe"}}`],
    ["another version", `{"version": 2, "folders": {}}`],
    ["a list", "[]"],
    ["nothing", ""]
  ] as const)("a file with %s trusts nothing, is reported and left alone", NodeServices.layer, function* ([, text]) {
    const fs = yield* FileSystem.FileSystem
    const { at, user } = yield* ground
    const file = at("broken.json")
    yield* fs.writeFileString(file, text)
    const trust = yield* made(file, { user })
    for (const asked of [
      Effect.asVoid(trust.of(user)),
      Effect.asVoid(trust.list),
      Effect.asVoid(trust.set(at("home", "work"), "trusted"))
    ]) {
      const error = yield* Effect.flip(asked)
      assert.strictEqual(error._tag, "TrustError")
      assert.match(error.message, /broken\.json: expected [^\n]*no folder is trusted$/)
    }
    assert.strictEqual(yield* fs.readFileString(file), text)
  })

  it.effect("are unchanged or complete after any failed write", NodeServices.layer, function* () {
    let broken = 0
    for (let n = 1; ; n += 1) {
      const { at, file, user } = yield* ground
      const sound = yield* made(file, { user })
      yield* sound.set(at("home", "other"), "untrusted")
      const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, n % 2 === 0 ? "fail" : "half"))
      const trust = yield* Effect.provide(made(file, { user }), faulty.layer)
      const exit = yield* Effect.exit(trust.set(at("home", "work"), "trusted"))
      const known = (yield* sound.list).map(({ answer }) => answer)
      assert.deepStrictEqual(known, Exit.isSuccess(exit) ? ["untrusted", "trusted"] : ["untrusted"])
      if (Exit.isFailure(exit)) broken += 1
      if ((yield* faulty.calls).every(({ mutating = 0 }) => mutating < n)) break
    }
    assert.isAbove(broken, 2)
  })

  it.effect("a folder in place of the file trusts nothing", NodeServices.layer, function* () {
    const { at, user } = yield* ground
    const trust = yield* made(at("home"), { user })
    assert.match((yield* Effect.flip(trust.of(user))).message, /home: expected a file; /)
  })

  for (const [value, means] of [
    ["true", "trusted"],
    ["TRUE ", "trusted"],
    ["false", "unknown"],
    ["", "unknown"],
    ["1", "unknown"]
  ] as const) {
    it.effect(
      `GEMINI_CLI_TRUST_WORKSPACE=${JSON.stringify(value)}: the working folder is ${means}, for this run`,
      NodeServices.layer,
      function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const { at, file, user } = yield* ground
        const trust = yield* made(file, { user, environment: { GEMINI_CLI_TRUST_WORKSPACE: value } })
        assert.strictEqual(yield* trust.of("."), means)
        assert.strictEqual(yield* trust.of(path.join("test", "layers")), means)
        assert.strictEqual(yield* trust.of(at("home", "work")), "unknown")
        assert.isFalse(yield* fs.exists(file))
      }
    )
  }

  it.effect("with checks disabled, everything is trusted that was not declined", NodeServices.layer, function* () {
    const { at, file, user } = yield* ground
    const trust = yield* made(file, { user, isOff: Effect.succeed(true) })
    yield* trust.set(at("home", "work", "vendor"), "untrusted")
    assert.strictEqual(yield* trust.of(at("home", "work")), "trusted")
    assert.strictEqual(yield* trust.of(at("home", "work", "vendor")), "untrusted")
  })
})

it.effect(
  "decisions in memory have the same meaning as those in a file",
  Layer.provideMerge(MemoryTrust.layer({ "/work": "trusted" }), NodeServices.layer),
  function* () {
    const trust = yield* Trust
    assert.strictEqual(yield* trust.of("/work/a"), "trusted")
    yield* trust.set("/work/a/b", "untrusted")
    assert.strictEqual(yield* trust.of("/work/a/b/c"), "untrusted")
    yield* trust.set("/work/a/b", "forgotten")
    assert.deepStrictEqual(yield* trust.list, [{ folder: "/work", answer: "trusted" }])
  }
)
