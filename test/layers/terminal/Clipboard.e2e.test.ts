import { Effect } from "effect"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as Clipboard from "../../../src/layers/terminal/Clipboard.ts"
import { newFolder } from "../../support/paths.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Programs of the clipboard on the path: shell scripts that keep what they are given, and hand out an image. */

const names = ["PATH", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "SSH_TTY", "SSH_CONNECTION"]

/** Runs work with these programs and variables alone. */
const within = <A, E>(
  programs: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string>>,
  work: (folder: string) => Effect.Effect<A, E>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = names.map((name) => [name, process.env[name]] as const)
      const folder = newFolder("clipboard-")
      for (const [name, script] of Object.entries(programs)) {
        writeFileSync(path.join(folder, name), `#!/bin/sh\ncd '${folder}' && ${script}\n`)
        chmodSync(path.join(folder, name), 0o755)
      }
      for (const name of names) delete process.env[name]
      Object.assign(process.env, { PATH: `${folder}:/usr/bin:/bin`, ...variables })
      return { before, folder }
    }),
    ({ folder }) => work(folder),
    ({ before }) =>
      Effect.sync(() => {
        for (const [name, value] of before) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

const keeps = "cat > copied"

describe.skipIf(process.platform !== "linux")("the clipboard", () => {
  const display = { DISPLAY: ":0" }
  it.live.each([
    ["of X", { xclip: keeps }, display, true],
    // xclip goes on in the background to serve the clipboard, and keeps its output open.
    ["of X, whose program stays behind", { xclip: `${keeps}; sleep 30 &` }, display, true],
    ["of Wayland", { "wl-copy": keeps }, { WAYLAND_DISPLAY: "wayland-0" }, true],
    [
      "of X where that of Wayland fails",
      { "wl-copy": "exit 1", xclip: keeps },
      { WAYLAND_DISPLAY: "w", ...display },
      true
    ],
    ["of Windows behind WSL", { "clip.exe": keeps }, { WSL_DISTRO_NAME: "Ubuntu" }, true],
    ["of another machine: the terminal's", { xclip: keeps }, { SSH_TTY: "/dev/pts/1", ...display }, false],
    ["without a program: the terminal's", {}, display, false]
  ] as const)("%s", ([, programs, variables, copied]) =>
    within(programs, variables, (folder) =>
      Effect.gen(function* () {
        const text = "words, 中文\n"
        let written = ""
        assert.isTrue(yield* Clipboard.copy(text, (sequence) => (written += sequence)))
        assert.strictEqual(written, `\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`)
        if (copied) assert.strictEqual(readFileSync(path.join(folder, "copied"), "utf8"), text)
        else assert.throws(() => readFileSync(path.join(folder, "copied")))
      })
    )
  )

  it.live("takes a text that is too long for the terminal with a program only", function* () {
    const long = "x".repeat(100_000)
    let written = ""
    const copy = Clipboard.copy(long, (sequence) => (written += sequence))
    assert.isFalse(yield* within({}, display, () => copy))
    const copied = within({ xclip: keeps }, display, (folder) =>
      Effect.map(copy, (isCopied) => isCopied && readFileSync(path.join(folder, "copied"), "utf8") === long)
    )
    assert.isTrue(yield* copied)
    assert.strictEqual(written, "")
  })

  it.live.each([
    ["hands out an image", { xclip: "[ $4 = image/png ] && printf PNG" }, "PNG"],
    ["hands out none where there is none", { xclip: "exit 1" }, undefined],
    ["hands out none without a program", {}, undefined]
  ] as const)("%s", function* ([, programs, expected]) {
    const bytes = yield* within(programs, display, () => Clipboard.image)
    assert.strictEqual(bytes === undefined ? undefined : Buffer.from(bytes).toString(), expected)
  })
})
