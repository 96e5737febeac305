import { assert, describe, it } from "@effect/vitest"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { copyPrograms, imagePrograms } from "../../../src/layers/terminal/Clipboard.ts"
import { imagePath, withReference } from "../../../src/layers/terminal/PastedImages.ts"
import { newFolder } from "../../support/paths.ts"

describe("a pasted path", () => {
  const rows: ReadonlyArray<readonly [pasted: string, expected: string | undefined]> = [
    ["/home/me/shot.png", "/home/me/shot.png"],
    ["  /home/me/shot.PNG\n", "/home/me/shot.PNG"],
    ["'/home/me/my shot.jpg'", "/home/me/my shot.jpg"],
    ["/home/me/my\\ shot.webp", "/home/me/my shot.webp"],
    ["file:///home/me/my%20shot.png", "/home/me/my shot.png"],
    ["shot.png", undefined],
    ["/home/me/notes.md", undefined],
    ["look at /home/me/shot.png", undefined],
    ["/a.png\n/b.png", undefined]
  ]
  for (const [pasted, expected] of rows) {
    it(`${JSON.stringify(pasted)} is ${expected ?? "no image"}`, () => assert.strictEqual(imagePath(pasted), expected))
  }

  it("becomes a reference to a private copy, and any other text stays", () => {
    const folder = newFolder("pasted-")
    const image = path.join(folder, "my shot.png")
    writeFileSync(image, "not really an image")
    const reference = withReference(image, path.join(folder, "copies"))
    const copy = /^@(\S+\.png) $/.exec(reference)?.[1] ?? ""
    assert.strictEqual(readFileSync(copy, "utf8"), "not really an image")
    assert.strictEqual(statSync(copy).mode & 0o777, 0o600)
    assert.strictEqual(withReference("/none.png", folder), "/none.png")
    assert.strictEqual(withReference("words", folder), "words")
  })
})

describe("programs of the clipboard", () => {
  const names = (programs: ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>) => programs.map(([name]) => name)
  for (const [platform, variables, copies, images] of [
    ["darwin", {}, ["pbcopy"], ["sh"]],
    ["win32", {}, ["clip.exe"], []],
    ["linux", {}, [], []],
    ["linux", { WAYLAND_DISPLAY: "wayland-0", DISPLAY: ":0" }, ["wl-copy", "xclip"], ["wl-paste", "xclip"]],
    ["linux", { WSL_DISTRO_NAME: "Ubuntu" }, ["clip.exe"], []],
    ["darwin", { SSH_TTY: "/dev/pts/1" }, [], []]
  ] as const) {
    it(`${platform} with ${JSON.stringify(variables)}: ${copies.join(", ") || "none"}`, () => {
      assert.deepStrictEqual(names(copyPrograms(platform, variables)), [...copies])
      assert.deepStrictEqual(names(imagePrograms(platform, variables)), [...images])
    })
  }
})
