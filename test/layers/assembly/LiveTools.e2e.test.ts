import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Effect, FileSystem, Layer, PlatformError, Schema } from "effect"
import { Dns, NetAddress } from "effect/net"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { type AgentDefinition, localDefaults, type RemoteAgent } from "../../../src/domain/agent/AgentDefinition.ts"
import { unusableFileText } from "../../../src/domain/agent/UnusableFile.ts"
import { withDefaults } from "../../../src/domain/settings/Settings.ts"
import * as LiveTools from "../../../src/layers/assembly/LiveTools.ts"
import * as MemoryTrust from "../../../src/layers/testing/MemoryTrust.ts"
import type { AgentSource, KnownAgent } from "../../../src/services/agent/AgentDefinitions.ts"
import type { Task } from "../../../src/services/agent/AgentRunner.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { Settings } from "../../../src/services/settings/Settings.ts"
import { Trust } from "../../../src/services/workspace/Trust.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const task: Task = { prompt: "x", activity: () => Effect.void, waiting: (work) => work }
const share = { tools: [], model: "m" }

/** A machine that starts nothing, and notes what it should have; all names stand for a place in its network. */
const machine = (commands: Array<ChildProcess.Command>, allowPrivateNetwork = false) =>
  Layer.mergeAll(
    Layer.succeed(
      ChildProcessSpawner.ChildProcessSpawner,
      ChildProcessSpawner.make((command) => {
        commands.push(command)
        return Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" }))
      })
    ),
    Layer.succeed(Environment, { variables: Effect.succeed({ PATH: "/bin" }) }),
    Layer.provide(MemoryTrust.layer(), NodeServices.layer),
    Layer.mock(Settings, {
      read: Effect.succeed({
        settings: { allowPrivateNetwork },
        notices: [],
        written: {},
        sources: new Map(),
        files: { home: { allowPrivateNetwork }, workspace: {} }
      })
    }),
    Layer.succeed(Dns.Dns, Dns.make({ lookup: () => Effect.succeed([NetAddress.ipFromStringUnsafe("10.0.0.1")]) }))
  ).pipe(Layer.provideMerge(NodeServices.layer))

/** Starts an agent, which fails here; what is said of it. */
const said = (definition: AgentDefinition, source: AgentSource) =>
  Effect.gen(function* () {
    const { externalRunner } = yield* LiveTools.makePlatform
    const runner = yield* externalRunner({ definition, source, file: "x.md" })
    if (runner === undefined) return yield* Effect.die("nothing runs it")
    const { result } = yield* runner.start(task, share)
    return yield* result
  }).pipe(
    Effect.scoped,
    Effect.flip,
    Effect.map(({ message }) => message)
  )

describe("an agent in its own process", () => {
  const definition: AgentDefinition = {
    ...localDefaults,
    kind: "local",
    name: "one",
    description: "x",
    prompt: "x",
    runner: "process"
  }

  it.effect(
    "is started with the spawner of the agent that starts it, which passes on the place of that agent",
    function* () {
      const captured: Array<ChildProcess.Command> = []
      const { externalRunner } = yield* LiveTools.makePlatform.pipe(Effect.provide(machine(captured)))
      const commands: Array<ChildProcess.Command> = []
      const runner = yield* externalRunner({ definition, source: "user", file: "x.md" }).pipe(
        Effect.provide(machine(commands))
      )
      assert.isDefined(runner)
      yield* Effect.flip(runner.start(task, share))
      assert.deepStrictEqual(
        commands.map((command) => (ChildProcess.isStandardCommand(command) ? command.args.slice(-5) : [])),
        [["agents", "run", "--process", "one", "-"]]
      )
      assert.deepStrictEqual(captured, [])
    }
  )

  const unfit: ReadonlyArray<readonly [part: string, agent: Partial<KnownAgent>]> = [
    ["tools of its own", { own: { reads: true, open: Effect.succeed([]) } }],
    [
      "a structured result",
      { definition: { ...definition, output: { name: "a", description: "b", schema: Schema.String } } }
    ],
    ["inputs of its own", { definition: { ...definition, inputs: { word: Schema.String } } }]
  ]
  for (const [part, of] of unfit) {
    it.effect(`has no ${part}, as they cannot be passed on`, machine([]), function* () {
      const { externalRunner } = yield* LiveTools.makePlatform
      assert.isUndefined(yield* externalRunner({ definition, source: "user", file: "x.md", ...of }))
    })
  }
})

describe("the user's own files", () => {
  /** A home of this program and a working folder that is trusted, with these files. */
  const laid = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>) {
    const fs = yield* FileSystem.FileSystem
    const top = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
    for (const [name, text] of Object.entries({ "home/x": "", "work/x": "", ...files })) {
      yield* fs.makeDirectory(`${top}/${name.replace(/[^/]*$/, "")}`, { recursive: true })
      yield* fs.writeFileString(`${top}/${name}`, text)
    }
    const { set } = yield* Trust
    yield* set(`${top}/work`, "trusted")
    const ground = yield* LiveTools.makePlatform.pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ PALIMPSEST_HOME: `${top}/home` })))
    )
    return { fs, ground, top }
  })

  it.effect("are named by the home folder's settings, a folder's files by all settings", machine([]), function* () {
    const { ground, top } = yield* laid({ "home/MINE.md": "mine", "home/key": "secret", "work/key": "theirs" })
    const memory = yield* ground.memory({
      root: `${top}/work`,
      added: [],
      settings: withDefaults({ memory: { fileNames: ["key"] } }),
      own: withDefaults({ memory: { fileNames: ["MINE.md"] } })
    })
    const { blocks } = yield* memory.load
    assert.deepStrictEqual(
      blocks.filter(({ file }) => file.startsWith(top)).map(({ text }) => text),
      ["mine", "theirs"]
    )
  })

  it.effect("of the editor and of telemetry are relative to the home folder", machine([]), function* () {
    const state = { workspaceState: { openFiles: [{ path: "/a.ts", timestamp: 1, isActive: true }] } }
    const { fs, ground, top } = yield* laid({ "home/deep/editor.json": JSON.stringify(state) })
    const { ide } = withDefaults({ ide: { file: "deep/editor.json" } })
    const editor = yield* ground.ide(`${top}/work`, ide)
    assert.deepStrictEqual(
      (yield* editor.state)?.openFiles.map(({ path }) => path),
      ["/a.ts"]
    )
    const sink = yield* ground.sink("deep/events.jsonl")
    yield* sink({ name: "turn", at: 5, session: "s", attributes: {} })
    assert.isTrue(yield* fs.exists(`${top}/home/deep/events.jsonl`))
  })

  it.effect("links of a trusted folder bring no agents and skills of an untrusted one", machine([]), function* () {
    const { fs, ground, top } = yield* laid({
      "bad/agents/evil.md": "---\nname: evil\ndescription: x\n---\nx",
      "bad/skills/evil/SKILL.md": "---\nname: evil\ndescription: x\n---\nx"
    })
    yield* fs.symlink("../bad", `${top}/work/.palimpsest`)
    const read = Effect.gen(function* () {
      const agents = yield* Effect.flatMap(ground.agents(`${top}/work`, true), ({ all }) => all)
      const skills = yield* Effect.flatMap(ground.skills(`${top}/work`, true), ({ all }) => all)
      return {
        agents: agents.agents.filter(({ definition: { name } }) => name === "evil").length,
        skills: skills.skills.filter(({ name }) => name === "evil").length,
        told: [...agents.problems, ...skills.problems]
          .map(unusableFileText)
          .filter((line) => line.includes(`it is in ${top}/bad`)).length
      }
    })
    assert.deepStrictEqual(yield* read, { agents: 0, skills: 0, told: 2 })
    const { set } = yield* Trust
    yield* set(`${top}/bad`, "trusted")
    assert.deepStrictEqual(yield* read, { agents: 1, skills: 1, told: 0 })
  })
})

describe("a remote agent", () => {
  const remote = (card: RemoteAgent["card"]): RemoteAgent => ({
    kind: "remote",
    name: "one",
    displayName: undefined,
    description: undefined,
    auth: undefined,
    card
  })
  const place = remote({ url: "http://127.0.0.1:9/" })
  const named = remote({
    json: JSON.stringify({
      name: "one",
      supportedInterfaces: [{ url: "http://10.0.0.1/", protocolBinding: "JSONRPC", protocolVersion: "1.0" }]
    })
  })
  const refused: ReadonlyArray<readonly [rule: string, agent: RemoteAgent, said: string]> = [
    [
      "metadata of a cloud",
      remote({ url: "http://169.254.169.254/latest" }),
      "169.254.169.254 is an address of a private"
    ],
    ["this machine by its address", place, "127.0.0.1:9 is an address of a private network"],
    ["this machine by its name", remote({ url: "http://localhost:9/" }), "localhost:9 is this machine"],
    ["a name that leads inside", remote({ url: "http://a.example.org/" }), "a.example.org leads to a private network"],
    ["what its card names", named, "10.0.0.1 is an address of a private network"]
  ]
  for (const [rule, agent, words] of refused) {
    it.effect(`defined in the workspace must be on the public internet: not ${rule}`, machine([]), function* () {
      const message = yield* said(agent, "project")
      assert.isTrue(message.startsWith(`agent one: ${words}`), message)
    })
  }

  it.effect("defined by the user may be anywhere", machine([]), function* () {
    assert.include(yield* said(place, "user"), "cannot be reached")
  })

  it.effect("defined in the workspace may be where the settings allow it", machine([], true), function* () {
    assert.include(yield* said(place, "project"), "cannot be reached")
  })
})
