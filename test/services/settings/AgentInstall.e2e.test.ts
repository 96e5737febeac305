import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Option, Path, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { truncateSync } from "node:fs"
import { createServer } from "node:net"
import { agentFiles, type InstallAgent, installAgents } from "../../../src/domain/settings/AgentFiles.ts"
import { decode, encode } from "../../../src/domain/text/Bytes.ts"
import {
  applyPlan,
  type InstallPlaces,
  isChange,
  locateFiles,
  type LocatedFile,
  planFiles
} from "../../../src/services/settings/AgentInstall.ts"
import { needs } from "../../support/machine.ts"
import { assert, describe, layer } from "../../support/vitest.ts"
import { temporaryFolder } from "../../support/workspaces.ts"

/** What install and uninstall do on a disk. */

const plugins = { pi: `const command = ["palimpsest"]\n`, opencode: `const command = ["palimpsest"]\n\n` }
const parts = { command: ["palimpsest"], separator: "/", plugins } as const

const ground = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* temporaryFolder
  const at = (...names: ReadonlyArray<string>) => path.join(folder, ...names)
  yield* fs.makeDirectory(at("work"))
  const places: InstallPlaces = { folder: at("work"), codex: at("codex"), records: at("home", "installed.json") }
  const put = Effect.fnUntraced(function* (file: string, content: string, mode = 0o644) {
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* fs.writeFile(file, encode(content))
    yield* fs.chmod(file, mode)
  })
  /** Bytes and rights of the files below the folder, but for those of this program's home folder. */
  const files = Effect.gen(function* () {
    const names = (yield* fs.readDirectory(folder, { recursive: true })).filter((name) => !name.startsWith("home"))
    const all = yield* Effect.forEach(names.toSorted(), (name) =>
      Effect.gen(function* () {
        const { mode, type } = yield* fs.lstat(at(name))
        if (type !== "File") return []
        return [[name, (mode & 0o777).toString(8), decode(yield* fs.readFile(at(name))).text] as const]
      })
    )
    return all.flat()
  })
  const plan = (agent: InstallAgent, isAdded: boolean) =>
    Effect.flatMap(locateFiles(agentFiles(agent, parts), places), (located) => planFiles(located, isAdded, places))
  const run = (agent: InstallAgent, isAdded: boolean) =>
    Effect.tap(plan(agent, isAdded), (planned) => applyPlan(planned, places))
  return { at, files, fs, folder, places, plan, put, run }
})

const namedIn = (places: InstallPlaces, agent: InstallAgent) =>
  agentFiles(agent, parts).map(({ base, path }) => `${base === "codex" ? places.codex : places.folder}/${path}`)

const refusal = (work: Effect.Effect<unknown, { readonly message: string }, FileSystem.FileSystem | Path.Path>) =>
  Effect.map(Effect.flip(work), ({ message }) => {
    assert.notInclude(message, "\n")
    return message
  })

/** What a settings file may contain before. */
const contents = [
  "",
  "\n\n",
  "\uFEFF",
  "{}",
  "{\n}\n",
  "\uFEFF{\r\n}\r\n",
  `{"hooks": {}, "x": 1 }`,
  `{\n\t"theme": "dark",\n\t"deep": { "a": [1, 2.50, -0, 1e3] }\n}`,
  `{"theme":"dark","hooks":{"PreCompact":[]}}`,
  `// top\n{\n  "list": [1, 2,], /* why */\n} // end\n`,
  `{ "mcpServers": {}, "mcp": {}, "servers": {} }\n`,
  `{"mcpServers": {\n // none\n}}\n`,
  `{"mcpServers": {"docs": {"command": "docs"}},\r\n"mcp": {"docs": {"type": "local"}}, "servers": {"docs": {}}}\r\n`,
  `{"theme": 1, "theme": 2}\n`,
  `{"note": "\\"mcpServers\\": {\\"palimpsest\\": 1}"}\n`,
  `{"__proto__": {"mcp": 1}, "constructor": 1}\n`,
  JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, { n }])), undefined, 2)
]
const modes = [0o600, 0o640, 0o644, 0o755]
/** For a plugin and for a TOML file, whose own texts `InstalledFile.test.ts` has: something of the user's. */
const textFor = (file: string, text: string) =>
  file.endsWith(".toml") ? `# ${JSON.stringify(text)}` : file.endsWith(".js") ? "" : text

layer(NodeServices.layer)("install and uninstall on a disk", (it) => {
  for (const agent of installAgents) {
    it.effect(`${agent}: give back every byte and the rights of each file`, function* () {
      for (const [number, text] of contents.entries()) {
        const { files, places, put, run } = yield* ground
        const mode = modes[number % modes.length]
        for (const file of namedIn(places, agent)) yield* put(file, textFor(file, text), mode)
        const before = yield* files
        assert.isTrue((yield* run(agent, true)).every(isChange))
        const after = yield* files
        assert.deepStrictEqual(
          after.map(([name, rights]) => [name, rights]),
          before.map(([name, rights]) => [name, rights])
        )
        assert.isFalse((yield* run(agent, true)).some(isChange))
        assert.deepStrictEqual(yield* files, after)
        yield* run(agent, false)
        assert.deepStrictEqual(yield* files, before)
      }
    })

    it.effect(`${agent}: new files are private, and go again`, function* () {
      const { files, run } = yield* ground
      yield* run(agent, true)
      for (const [name, mode] of yield* files) assert.strictEqual(mode, "600", name)
      yield* run(agent, false)
      assert.deepStrictEqual(yield* files, [])
      assert.isFalse((yield* run(agent, false)).some(isChange))
    })
  }

  it.effect("the records are private, and nothing is recorded that is not installed", function* () {
    const { fs, places, run } = yield* ground
    yield* run("claude", false)
    assert.isFalse(yield* fs.exists(places.records))
    yield* run("claude", true)
    assert.strictEqual((yield* fs.stat(places.records)).mode & 0o777, 0o600)
    yield* run("claude", false)
    assert.deepStrictEqual(JSON.parse(yield* fs.readFileString(places.records)).files, {})
  })

  it.effect("records that are damaged are an error that names them", function* () {
    const { places, put, run } = yield* ground
    for (const text of ["", "{}", "[", `{"version": 2, "files": {}}`]) {
      yield* put(places.records, text)
      assert.include(yield* refusal(run("claude", true)), places.records)
    }
  })
})

layer(NodeServices.layer)("a link in the place of a settings file", (it) => {
  it.effect("stays a link, and its target is changed and given back", function* () {
    const { at, files, fs, put, run } = yield* ground
    yield* put(at("work", "config", "mcp.json"), "{ }", 0o600)
    yield* fs.symlink("config/mcp.json", at("work", ".mcp.json"))
    const before = yield* files
    const planned = yield* run("claude", true)
    assert.deepStrictEqual(
      planned.map(({ file, isOutside }) => [file, isOutside]),
      [
        [at("work", "config", "mcp.json"), false],
        [at("work", ".claude", "settings.json"), false]
      ]
    )
    assert.strictEqual(yield* fs.readLink(at("work", ".mcp.json")), "config/mcp.json")
    yield* run("claude", false)
    assert.deepStrictEqual(yield* files, before)
  })

  const outside = (files: ReadonlyArray<LocatedFile>) => files.filter(({ isOutside }) => isOutside)

  it.effect("is reported when it leads out of the folder, as a file or folder, or to nothing yet", function* () {
    for (const make of ["file", "folder", "empty folder"] as const) {
      const { at, fs, places, put } = yield* ground
      yield* fs.makeDirectory(at("user"))
      if (make !== "empty folder") yield* put(at("user", "settings.json"), "{}")
      if (make === "file") {
        yield* fs.makeDirectory(at("work", ".claude"))
        yield* fs.symlink("../../user/settings.json", at("work", ".claude", "settings.json"))
      } else yield* fs.symlink("../user", at("work", ".claude"))
      assert.deepStrictEqual(
        outside(yield* locateFiles(agentFiles("claude", parts), places)).map(({ expectedPath, file }) => [
          expectedPath,
          file
        ]),
        [[at("work", ".claude", "settings.json"), at("user", "settings.json")]],
        make
      )
    }
  })

  it.effect("does not count where the working folder itself, or Codex's, is linked", function* () {
    const { at, fs, places } = yield* ground
    yield* fs.makeDirectory(at("dotfiles"))
    yield* fs.symlink("dotfiles", at("codex"))
    yield* fs.symlink("work", at("here"))
    for (const agent of installAgents) {
      assert.deepStrictEqual(
        outside(yield* locateFiles(agentFiles(agent, parts), { ...places, folder: at("here") })),
        [],
        agent
      )
    }
  })

  it.effect("is refused when it leads nowhere or in a circle", function* () {
    const { at, fs, run } = yield* ground
    for (const target of ["none", ".mcp.json"]) {
      yield* fs.symlink(target, at("work", ".mcp.json"))
      assert.include(yield* refusal(run("claude", true)), ".mcp.json")
      assert.strictEqual(yield* fs.readLink(at("work", ".mcp.json")), target)
      yield* fs.remove(at("work", ".mcp.json"))
    }
    yield* fs.symlink("none", at("work", ".claude"))
    yield* refusal(run("claude", true))
    assert.deepStrictEqual(yield* fs.readDirectory(at("work")), [".claude"])
  })
})

layer(NodeServices.layer)("what is no settings file", (it) => {
  const specials: Readonly<
    Record<string, (file: string) => Effect.Effect<unknown, unknown, FileSystem.FileSystem | Scope.Scope>>
  > = {
    "a named pipe": (file) => Effect.sync(() => execFileSync("mkfifo", [file])),
    "a link to a device without end": (file) => FileSystem.FileSystem.use((fs) => fs.symlink("/dev/zero", file)),
    "a link to a terminal": (file) => FileSystem.FileSystem.use((fs) => fs.symlink("/dev/tty", file)),
    "a folder": (file) => FileSystem.FileSystem.use((fs) => fs.makeDirectory(file)),
    "a socket": (file) =>
      Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer().listen(file, () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      ),
    "a file of 100 MB": (file) =>
      Effect.andThen(
        FileSystem.FileSystem.use((fs) => fs.writeFileString(file, "{}")),
        Effect.sync(() => truncateSync(file, 100_000_000))
      ),
    "a file that is not UTF-8": (file) =>
      FileSystem.FileSystem.use((fs) => fs.writeFile(file, new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])))
  }
  it.effect.each(Object.entries(specials))(
    "%s is refused in one line without being read, by every agent",
    function* ([, make]) {
      for (const agent of installAgents) {
        const { fs, places, run } = yield* ground
        for (const file of namedIn(places, agent)) {
          yield* fs.makeDirectory(file.slice(0, file.lastIndexOf("/")), { recursive: true })
          yield* make(file)
          for (const isAdded of [true, false]) assert.include(yield* refusal(run(agent, isAdded)), file)
          yield* fs.remove(file, { recursive: true, force: true })
        }
        assert.isFalse(yield* fs.exists(places.records))
      }
    }
  )
})

layer(NodeServices.layer)("between plan and change", (it) => {
  it.effect("a file that another program changed stops all of it", function* () {
    const { at, files, fs, places, plan, put } = yield* ground
    yield* put(at("work", ".claude", "settings.json"), "{}")
    const planned = yield* plan("claude", true)
    yield* put(at("work", ".claude", "settings.json"), `{"theirs": 1}`)
    const before = yield* files
    assert.include(yield* refusal(applyPlan(planned, places)), "changed meanwhile")
    assert.deepStrictEqual(yield* files, before)
    yield* fs.remove(at("work", ".claude", "settings.json"))
    yield* refusal(applyPlan(planned, places))
    assert.deepStrictEqual(yield* files, [])
  })
})

needs("root")("files of another user", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("stay theirs", function* () {
      for (const agent of installAgents) {
        const { fs, places, put, run } = yield* ground
        const named = namedIn(places, agent)
        for (const file of named) {
          yield* put(file, "", 0o640)
          yield* fs.chown(file, 1_234, 2_345)
        }
        for (const isAdded of [true, false]) {
          yield* run(agent, isAdded)
          for (const file of named) {
            const { gid, mode, uid } = yield* fs.stat(file)
            assert.deepStrictEqual([uid, gid, mode & 0o777], [Option.some(1_234), Option.some(2_345), 0o640])
          }
        }
      }
    })
  })
})

describe("read-only files", () => {
  needs("a user who is not root")("are left alone", () => {
    layer(NodeServices.layer)((it) => {
      it.effect("and named", function* () {
        const { at, files, put, run } = yield* ground
        yield* put(at("work", ".mcp.json"), "{}", 0o444)
        const before = yield* files
        assert.include(yield* refusal(run("claude", true)), ".mcp.json")
        assert.deepStrictEqual(yield* files, before)
      })
    })
  })
})
