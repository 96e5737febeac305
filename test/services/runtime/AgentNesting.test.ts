import { Effect, Layer, PlatformError, Redacted } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import {
  type AgentPlace,
  firstPlace,
  parsePlace,
  placeBelow,
  placeText,
  placeVariable
} from "../../../src/domain/agent/AgentPlace.ts"
import type { SettingsFile } from "../../../src/domain/settings/Settings.ts"
import { AgentDepth, AgentFailure } from "../../../src/services/agent/AgentRunner.ts"
import * as AgentSlots from "../../../src/services/agent/AgentSlots.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import * as AgentNesting from "../../../src/services/runtime/AgentNesting.ts"
import { RuntimePlatform } from "../../../src/services/runtime/RuntimePlatform.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const first = firstPlace({ depth: 2, running: 8 }, "/slots/new")
const at = (depth: number, of: Partial<AgentPlace> = {}): AgentPlace => ({
  ...placeBelow(first, depth - 1, "none"),
  ...of
})

/** A process that inherited this value, with its slots. */
const machine = (inherited: string | undefined, slots: AgentSlots.AgentSlots) =>
  Layer.merge(
    Layer.succeed(Environment, {
      variables: Effect.succeed(inherited === undefined ? {} : { [placeVariable]: inherited }),
      beneath: { variables: { [placeVariable]: placeText(at(2)) }, hidden: [] }
    }),
    Layer.mock(RuntimePlatform, {
      version: "0",
      platform: "linux",
      home: "/home",
      slots: (name = "/slots/new") => Effect.succeed({ ...slots, name })
    })
  )

const entered = Effect.fnUntraced(function* (
  inherited: string | undefined,
  settings: SettingsFile = {},
  options: Parameters<typeof AgentNesting.enter>[1] = {}
) {
  const slots = AgentSlots.inMemory()
  const nesting = yield* AgentNesting.enter(settings, options).pipe(Effect.provide(machine(inherited, slots)))
  return { nesting, isCounted: !(yield* Effect.scoped(slots.take(1))) }
})

describe("the position of an agent", () => {
  it.effect("that the user started is the first, and it is not counted; no file can set another", function* () {
    const { isCounted, nesting } = yield* entered(undefined)
    assert.deepStrictEqual(nesting.place, first)
    assert.deepStrictEqual(nesting.bounds, { depth: 2, children: 8, running: 8 })
    assert.isFalse(isCounted)
  })

  it.effect("that another started is inherited, with the narrower limits, and it is counted", function* () {
    const { isCounted, nesting } = yield* entered(placeText(at(1, { slots: "/slots/old" })), {
      subagents: { depth: 5, running: 3, children: 2 }
    })
    assert.deepStrictEqual(nesting.place, at(1, { slots: "/slots/old", limits: { depth: 2, running: 3 } }))
    assert.deepStrictEqual(nesting.bounds, { depth: 2, children: 2, running: 3 })
    assert.isTrue(isCounted)
  })

  it.effect("of an agent's process has the limits of its parent", function* () {
    const { nesting } = yield* entered(
      placeText(at(1)),
      { subagents: { depth: 1, running: 3 } },
      { isAgentProcess: true }
    )
    assert.deepStrictEqual(nesting.place, at(1))
  })

  const uncounted = [{ isAgentProcess: true }, { isPreview: true }]
  for (const options of uncounted) {
    it.effect(`is not counted again: ${JSON.stringify(options)}`, function* () {
      assert.isFalse((yield* entered(placeText(at(1)), {}, options)).isCounted)
    })
  }

  const refused: ReadonlyArray<
    readonly [
      name: string,
      inherited: string | undefined,
      settings: SettingsFile,
      options: Parameters<typeof AgentNesting.enter>[1],
      problem: string
    ]
  > = [
    ["deeper than the limit that it inherited", placeText(at(3)), { subagents: { depth: 5 } }, {}, "TooDeep"],
    ["deeper than its own limit", placeText(at(2)), { subagents: { depth: 1 } }, {}, "TooDeep"],
    ["deeper, as a preview, which starts servers too", placeText(at(3)), {}, { isPreview: true }, "TooDeep"],
    ["one more than may run", placeText(at(1, { limits: { depth: 2, running: 0 } })), {}, {}, "TooMany"],
    ["a place that cannot be read", "{", {}, {}, "Unreadable"],
    ["the process of an agent that no agent started", undefined, {}, { isAgentProcess: true }, "Unreadable"]
  ]
  it.effect.each(refused)("is refused: %s", function* ([, inherited, settings, options, problem]) {
    const error = yield* Effect.flip(entered(inherited, settings, options))
    assert.propertyVal(error, "problem", problem)
  })

  it.effect("is refused where running agents cannot be counted", function* () {
    const broken = { take: () => new AgentFailure({ message: "the disk is full" }) }
    const error = yield* Effect.flip(AgentNesting.enter({}, {}).pipe(Effect.provide(machine(placeText(at(1)), broken))))
    assert.deepStrictEqual([error.problem, error.message], ["Uncounted", "the disk is full"])
  })
})

describe("a process that an agent starts", () => {
  /** The environments of processes that are started in this place. */
  const started = Effect.fnUntraced(function* (place: AgentPlace, depth: number, command: ChildProcess.Command) {
    const commands: Array<ChildProcess.Command> = []
    const spawner = ChildProcessSpawner.make((made) => {
      commands.push(made)
      return Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" }))
    })
    yield* ChildProcessSpawner.ChildProcessSpawner.use((passing) => Effect.exit(passing.spawn(command))).pipe(
      AgentNesting.passOn(place, Effect.succeed("edits" as const)),
      Effect.provideService(AgentDepth, depth),
      Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner)
    )
    return commands
  })

  /** The variables of a command, and whether it also gets those of this process. */
  const optionsOf = (command: ChildProcess.Command | undefined) => {
    if (command === undefined || !ChildProcess.isStandardCommand(command)) return assert.fail("no command")
    const { env = {}, extendEnv = false } = command.options
    const text = env[placeVariable]
    return { extendEnv, names: Object.keys(env), place: Redacted.isRedacted(text) ? undefined : parsePlace(text ?? "") }
  }

  it.effect("inherits the place below, whatever its environment says", function* () {
    const forged = { A: "1", [placeVariable]: placeText(first) }
    const [command] = yield* started(at(1), 0, ChildProcess.make("x", [], { env: forged }))
    assert.deepStrictEqual(optionsOf(command), {
      extendEnv: false,
      names: ["A", placeVariable],
      place: at(2, { approve: "edits" })
    })
  })

  it.effect("of an agent within another is below that one", function* () {
    const [command] = yield* started(first, 2, ChildProcess.make("x", [], { env: {} }))
    assert.deepStrictEqual(optionsOf(command).place, at(3, { approve: "edits" }))
  })

  it.effect("keeps the environment of this process, if it is given no other", function* () {
    const [command] = yield* started(first, 0, ChildProcess.make("x", []))
    assert.deepStrictEqual(optionsOf(command), {
      extendEnv: true,
      names: [placeVariable],
      place: at(1, { approve: "edits" })
    })
  })
})
