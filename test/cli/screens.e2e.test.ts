import { Effect } from "effect"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { expect, it } from "../support/vitest.ts"
import { program } from "./program.ts"
import { calls, environment, place, serve } from "./scene.ts"
import * as Tmux from "./tmux.ts"

/**
 * What a first session looks like on terminals of three sizes. Screens that are meant to look different now are taken again with
 * `vitest run test/cli/screens.e2e.test.ts -u`, and looked at.
 */

const document = `# A list

With **bold**, \`code\` and a [link](https://example.com/).

- [x] done
- [ ] open

| name | value |
|------|------:|
| view | 12 |
| 中文 | 1,000 |

\`\`\`ts
export const add = (one: number, other: number) => one + other
\`\`\`
`

const before = `const greeting = "hello"\nconst name = "world"\nconsole.log(greeting, name)\n`

/** An answer in pieces. */
const streamed = (text: string): FakeGemini.Answer =>
  FakeGemini.sse(
    ...(text.match(/[^]{1,20}/g) ?? []).map((piece) => FakeGemini.response([{ text: piece }], { finishReason: null })),
    FakeGemini.response([{ text: "" }])
  )

/** What differs from run to run: counts of tokens, and seconds. */
const settled = (screen: string) =>
  screen
    .replace(/[\d,]+ of [\d,]+ tokens \(\d+ %\)/g, "N of M tokens (1 %)")
    .replace(/\d+k? of 1M \(\d+ %\)/g, "N of 1M (1 %)")
    .replace(/ · \d+ s(?= ▸|$)/gm, "")

needs("tmux")("a first session", () => {
  it.live.each([
    [80, 24],
    [40, 20],
    [200, 50]
  ] as const)("looks as recorded on %s by %s", function* ([width, height]) {
    const { bundle } = yield* program
    const fake = yield* serve(
      streamed(document),
      calls(["replace", { file_path: "hello.js", old_string: `"world"`, new_string: `"everybody who reads this"` }]),
      calls(["run_shell_command", { command: "seq 1 12", description: "Count" }]),
      streamed("Done.")
    )
    const where = yield* place(`screens-${width}`, {
      home: { "settings.json": { titles: false, allowed: ["shell:seq"], terminal: { bellAfter: 0 } } },
      work: { "hello.js": before }
    })
    const { capture, press, resize, say, type, until } = yield* Tmux.start({
      command: [process.execPath, bundle, "chat"],
      width,
      height,
      cwd: where.cwd,
      env: environment(where, fake)
    })
    const taken: Array<string> = []
    /** Takes the screen, or what stands on it from a text on: how far it has scrolled depends on what was drawn between. */
    const take = (name: string, from?: string) =>
      Effect.map(capture, (screen) => {
        const shown = from === undefined ? screen : screen.slice(screen.lastIndexOf(from))
        taken.push(`===== ${name}\n${settled(shown)}\n`)
      })
    /** Waits for a text above the prompt, and for the status line that follows it. */
    const idleWith = (text: string) =>
      until((screen) => Tmux.isIdle(screen) && screen.includes(text) && / · asks first[^\n]*\n>$/.test(screen))

    yield* until(/ · [^\n]*\n>$/)
    yield* take("start")
    yield* type("/re")
    // The last two rows differ from those of the menu for "/r".
    yield* until(/> \/re\n[^]*\/rate[^\n]*\n +\/approve[^\n]*$/)
    yield* take("menu")
    yield* press("Escape")
    // Sent together, both are one key.
    yield* until((screen) => !screen.includes("/redo"))
    yield* press("C-c")
    yield* until((screen) => screen.endsWith("\n>"))
    yield* say("show all")
    yield* idleWith("one + other")
    yield* take("Markdown with a table and code")
    yield* say("greet everybody", /\nallow\?$/)
    yield* take("approval with a diff")
    yield* press("y")
    yield* idleWith("Done.")
    yield* take("tool calls", "✓ Edit")
    yield* press("C-o")
    yield* idleWith("\n  12\n")
    yield* take("tool calls opened", "✓ Run")
    yield* press("C-o")
    yield* until((screen) => !/\n {2}12\n/.test(screen))
    yield* say("/theme", "Esc closes")
    yield* take("picker")
    yield* press("Escape")
    yield* until(Tmux.isIdle)
    // Narrow, and wide again: the last answer and the status line are still there.
    yield* resize(30, 12)
    yield* until((screen) => screen.includes("Done.") && screen.endsWith("\n>"))
    yield* resize(width, height)
    yield* until((screen) => screen.includes("Done.") && Tmux.isIdle(screen))
    yield* Effect.promise(() =>
      expect(taken.join("\n")).toMatchFileSnapshot(
        path.join(import.meta.dirname, "screens", `session-${width}x${height}.txt`)
      )
    )
  })
})
