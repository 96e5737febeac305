import { Effect, Layer, Path } from "effect"
import { askOnce } from "../../../src/cli/chat/ChatSessions.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import * as MemoryTrust from "../../../src/layers/testing/MemoryTrust.ts"
import { Settings } from "../../../src/services/settings/Settings.ts"
import { Trust, type TrustAnswer } from "../../../src/services/workspace/Trust.ts"
import { recorded, type Typing } from "../../support/chatTerminal.ts"
import { assert, it } from "../../support/vitest.ts"

const folder = process.cwd()
const memory = { "GEMINI.md": "Be brief." }
const readable = Layer.mock(Settings, { read: Effect.succeed({ settings: {} } as never) })

const rows: ReadonlyArray<
  readonly [
    rule: string,
    files: Readonly<Record<string, string>>,
    before: TrustAnswer | undefined,
    typing: Omit<Typing, "picks">,
    pick: string | undefined,
    asked: number,
    after: TrustAnswer | "unknown"
  ]
> = [
  ["y: what the folder offers is used", memory, undefined, {}, "y", 1, "trusted"],
  ["another word: asked again", memory, undefined, {}, "x Yes", 2, "trusted"],
  ["n: the folder is not asked about again", memory, undefined, {}, "n", 1, "untrusted"],
  ["left without an answer: asked again the next time", memory, undefined, {}, undefined, 1, "unknown"],
  ["nothing is offered", { "README.md": "x" }, undefined, {}, "y", 0, "unknown"],
  ["trusted already", memory, "trusted", {}, "n", 0, "trusted"],
  ["declined already", memory, "untrusted", {}, "y", 0, "untrusted"],
  ["no terminal", memory, undefined, { isTerminal: false }, "y", 0, "unknown"]
]

it.effect.each(rows)("the question about a folder %s", ([, files, before, typing, pick, asked, after]) => {
  const { done, terminal } = recorded({ ...typing, picks: pick?.split(" ") ?? [] })
  const disk = Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))
  return Effect.gen(function* () {
    yield* askOnce(terminal)
    assert.lengthOf(
      done.filter((line) => line.startsWith("trust? ")),
      asked
    )
    assert.strictEqual(yield* Trust.use((trust) => trust.of(folder)), after)
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        MemoryFileSystem.layer(disk),
        MemoryTrust.layer(before === undefined ? {} : { [folder]: before }),
        readable
      ).pipe(Layer.provideMerge(Path.layer))
    )
  )
})
