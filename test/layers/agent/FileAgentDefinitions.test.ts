import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer } from "effect"
import { localDefaults } from "../../../src/domain/agent/AgentDefinition.ts"
import { unusableFileText } from "../../../src/domain/agent/UnusableFile.ts"
import { folders } from "../../../src/layers/agent/DefinitionFolders.ts"
import * as FileAgentDefinitions from "../../../src/layers/agent/FileAgentDefinitions.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { AgentDefinitions, type KnownAgent } from "../../../src/services/agent/AgentDefinitions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const definition = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\nYou do it.\n`

const builtIn: KnownAgent = {
  source: "built-in",
  file: undefined,
  definition: { ...localDefaults, kind: "local", name: "one", description: "built in", prompt: "x" }
}

const files = {
  "/work/.gemini/agents/one.md": definition("one", "project, gemini"),
  "/work/.palimpsest/agents/two.md": definition("two", "project, ours"),
  "/work/.gemini/agents/two.md": definition("two", "project, gemini"),
  "/work/.gemini/agents/three.md": definition("three", "project"),
  "/work/.gemini/agents/_draft.md": "nothing of this is right",
  "/work/.gemini/agents/notes.txt": "nor this",
  "/work/.gemini/agents/broken.md": "---\nname: Broken\ndescription: x\n---\nx",
  "/home/me/.palimpsest/agents/three.md": definition("three", "user"),
  "/data/palimpsest/agents/_hidden.md": definition("four", "x"),
  "/data/palimpsest/agents/five.md": definition("five", "user, data")
}

const trusted = () => Effect.succeed(true)

const read = Effect.gen(function* () {
  const places = yield* folders("agents", { home: "/data/palimpsest", workspace: "/work", user: "/home/me" })
  const services = yield* Layer.build(FileAgentDefinitions.layer([builtIn], places, trusted))
  return yield* AgentDefinitions.use(({ all }) => all).pipe(Effect.provideContext(services))
}).pipe(Effect.scoped)

describe("agents from files", () => {
  it.effect(
    "override by name: built-in, workspace, user",
    Layer.merge(NodeServices.layer, MemoryFileSystem.layer(files)),
    function* () {
      const { agents } = yield* read
      assert.deepStrictEqual(
        agents.map(({ definition: { description, name }, source }) => `${name}: ${source}, ${description ?? ""}`),
        ["five: user, user, data", "one: project, project, gemini", "three: user, user", "two: project, project, ours"]
      )
    }
  )

  it.effect(
    "report a broken file by name, and load the rest; names with _ are ignored",
    Layer.merge(NodeServices.layer, MemoryFileSystem.layer(files)),
    function* () {
      const { problems } = yield* read
      assert.deepStrictEqual(problems, [
        {
          file: "/work/.gemini/agents/broken.md",
          reason: "name: expected lower-case letters, digits, hyphens and underscores"
        }
      ])
    }
  )

  it.effect(
    "are the built-in ones without folders",
    Layer.merge(NodeServices.layer, MemoryFileSystem.layer()),
    function* () {
      const { agents, problems } = yield* read
      assert.deepStrictEqual(agents, [builtIn])
      assert.deepStrictEqual(problems, [])
    }
  )

  it.effect(
    "are not read through a link into an untrusted folder, except the user's own",
    NodeServices.layer,
    function* () {
      const fs = yield* FileSystem.FileSystem
      const top = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
      for (const [name, text] of [
        ["work/.gemini/agents/good.md", definition("good", "x")],
        ["bad/one.md", definition("one", "x")],
        ["bad/agents/two.md", definition("two", "x")],
        ["bad/three.md", definition("three", "x")],
        ["home/agents/x", ""]
      ] as const) {
        yield* fs.makeDirectory(`${top}/${name.replace(/[^/]*$/, "")}`, { recursive: true })
        yield* fs.writeFileString(`${top}/${name}`, text)
      }
      yield* fs.symlink(`${top}/bad/one.md`, `${top}/work/.gemini/agents/one.md`)
      yield* fs.symlink(`${top}/bad`, `${top}/work/.palimpsest`)
      yield* fs.symlink(`${top}/bad/three.md`, `${top}/home/agents/three.md`)
      const places = yield* folders("agents", { home: `${top}/home`, workspace: `${top}/work`, user: `${top}/me` })
      const isTrusted = (folder: string) => Effect.succeed(!/\/(?:bad|home)(?:\/|$)/.test(folder))
      const services = yield* Layer.build(FileAgentDefinitions.layer([], places, isTrusted))
      const { agents, problems } = yield* AgentDefinitions.use(({ all }) => all).pipe(Effect.provideContext(services))
      assert.deepStrictEqual(
        agents.map(({ definition: { name } }) => name),
        ["good", "three"]
      )
      assert.deepStrictEqual(problems.map(unusableFileText), [
        `${top}/work/.gemini/agents/one.md: it is in ${top}/bad, which is not trusted; it is ignored`,
        `${top}/work/.palimpsest/agents: it is in ${top}/bad/agents, which is not trusted; it is ignored`
      ])
    }
  )

  it.effect("are read once, on first use", Layer.merge(NodeServices.layer, MemoryFileSystem.layer()), function* () {
    const fs = yield* FileSystem.FileSystem
    const places = yield* folders("agents", { home: "/data/palimpsest", workspace: "/work", user: "/home/me" })
    const services = yield* Layer.build(FileAgentDefinitions.layer([], places, trusted))
    const all = AgentDefinitions.use((known) => known.all).pipe(Effect.provideContext(services))
    const file = "/work/.gemini/agents/late.md"
    yield* fs.makeDirectory("/work/.gemini/agents", { recursive: true })
    yield* fs.writeFileString(file, definition("late", "first"))
    assert.strictEqual((yield* all).agents[0]?.definition.description, "first")
    yield* fs.writeFileString(file, definition("late", "second"))
    assert.strictEqual((yield* all).agents[0]?.definition.description, "first")
  })

  it.effect(
    "report a file that is too large; a file in place of a folder is empty",
    Layer.merge(
      NodeServices.layer,
      MemoryFileSystem.layer({
        "/work/.gemini/agents/big.md": "x".repeat(1024 * 1024 + 1),
        "/work/.palimpsest/agents/folder.md/inside.txt": "x"
      })
    ),
    function* () {
      const { agents, problems } = yield* read
      assert.deepStrictEqual(agents, [builtIn])
      assert.deepStrictEqual(problems.map(unusableFileText), ["/work/.gemini/agents/big.md: expected at most 1 MiB"])
    }
  )

  it.effect(
    "are limited to 100 per folder; the rest is reported",
    Layer.merge(
      NodeServices.layer,
      MemoryFileSystem.layer({
        ...Object.fromEntries(
          Array.from({ length: 101 }, (_, i) => `file-${String(i).padStart(3, "0")}`).map((name) => [
            `/work/.gemini/agents/${name}.md`,
            definition(name, "x")
          ])
        ),
        "/work/.palimpsest/agents/many.md": `---\n${Array.from(
          { length: 101 },
          (_, i) => `- kind: remote\n  name: listed-${i}\n  agent_card_url: https://example.org\n`
        ).join("")}---\n`,
        "/home/me/.gemini/agents/mine.md": definition("mine", "x")
      })
    ),
    function* () {
      const { agents, problems } = yield* read
      assert.strictEqual(agents.length, 202)
      assert.isTrue(agents.some(({ definition: { name } }) => name === "file-099"))
      assert.deepStrictEqual(problems.map(unusableFileText), [
        "/work/.gemini/agents: expected at most 100 agents; the rest is ignored",
        "/work/.palimpsest/agents: expected at most 100 agents; the rest is ignored"
      ])
    }
  )
})
