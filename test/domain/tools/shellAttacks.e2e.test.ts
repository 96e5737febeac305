import { assert, it } from "@effect/vitest"
import { execFile, execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { corpus } from "../../support/corpus.ts"
import { type Kind, needs, programOf } from "../../support/machine.ts"
import { isAsked } from "../../support/shellGrammar.ts"

/**
 * Attacks with real programs: each does what it is said to do when bash runs it, and each is asked about although every harmless
 * command of these programs was allowed.
 */

interface Place {
  readonly folder: string
  readonly cwd: string
}

/** An existing folder whose path is arithmetic for bash once its names are variables: no dash, dot or leading digit. */
const plainFolder =
  [process.env["PALIMPSEST_TEST_FOLDER"], tmpdir(), "/tmp"].find((folder) =>
    /^(\/[A-Za-z_]\w*)+$/.test(folder ?? "")
  ) ?? "/tmp"

/** A folder whose very name is code, as a clone can bring it. */
const place = (): Place => {
  const folder = mkdtempSync(path.join(plainFolder, "attack"))
  const cwd = path.join(folder, "x[$(touch PWNED)]")
  mkdirSync(path.join(cwd, "sub"), { recursive: true })
  writeFileSync(path.join(cwd, "a"), "one\ntwo\n")
  writeFileSync(path.join(cwd, "b"), "two\none\n")
  writeFileSync(path.join(cwd, "big"), "0123456789abcdef\n".repeat(2_000))
  writeFileSync(path.join(folder, "evil"), `#!/bin/sh\ntouch '${cwd}/PWNED'\ncat\n`)
  chmodSync(path.join(folder, "evil"), 0o755)
  return { folder, cwd }
}

const inBash = (line: string, { cwd }: Place): Promise<void> =>
  new Promise((resolve) => {
    const child = execFile(programOf("bash") ?? "bash", ["-c", line], { cwd, timeout: 60_000 }, () => resolve())
    child.stdin?.end()
  })

/** Lines by what they need. EVIL is a program of the attacker's; what is written is called `made`. */
const attacks = Map.groupBy(corpus<readonly [Kind, line: string]>("shell-attacks-that-work"), ([kind]) => kind)

for (const [kind, lines] of attacks) {
  needs(kind)(`${kind}: an attack that works is asked about`, () => {
    it.each(lines)("%s: %s", async (_, written) => {
      const here = place()
      const { cwd, folder } = here
      const names = [...new Set(folder.match(/[A-Za-z_]\w*/g) ?? [])].map((name) => `${name}=1`).join(" ")
      const line = written.replaceAll("EVIL", path.join(folder, "evil")).replace("NAMES", names)
      if (kind === "git") {
        const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd, stdio: "ignore" })
        git("init")
        // Not everybody who runs the tests has told git who they are.
        git("config", "user.name", "a")
        git("config", "user.email", "a@b.c")
        git("add", "a", "b")
        git("commit", "-m", "first")
        if (!line.includes("rebase")) writeFileSync(path.join(cwd, "a"), "changed\none\n")
      }
      await inBash(line, here)
      assert.isTrue(existsSync(path.join(cwd, "PWNED")) || existsSync(path.join(cwd, "made")), "the attack works")
      assert.isTrue(isAsked(line), "it is asked about")
      rmSync(folder, { recursive: true, force: true })
    })
  })
}

needs("bash")("bash: a connection is asked about", () => {
  it.each([
    "cat </dev/tcp/127.0.0.1/PORT",
    "cat < /dev/tcp/127.0.0.1/PORT",
    "cat 0</dev/tcp/localhost/PORT",
    "wc -l </dev/tcp/127.0.0.1/PORT"
  ])("%s", async (written) => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const line = written.replace("PORT", String(typeof address === "object" ? address?.port : 0))
    const here = place()
    await inBash(line, here)
    await new Promise((resolve) => server.close(resolve))
    assert.strictEqual(connections, 1, "the attack works")
    // `Shell.ts` judges what a redirection reads: it is no file of the workspace. As a device it is asked about before that.
    assert.isTrue(isAsked(line), "it is asked about")
    rmSync(here.folder, { recursive: true, force: true })
  })
})
