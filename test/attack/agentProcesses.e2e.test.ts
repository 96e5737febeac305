import { Deferred, Effect } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import {
  type Args,
  bodyOf,
  calls,
  instructionOf,
  type Place,
  place,
  results,
  runs,
  says,
  type There
} from "../cli/scene.ts"
import { untilThere } from "../support/processGroups.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Models, hooks and servers that start agents again and again, in processes. What would go on without an end is stopped here after some
 * levels more than are allowed.
 */

const maxStarts = 8

/** An agent's file. Its requests are recognised by its prompt. */
const agent = (name: string, tools: ReadonlyArray<string>, more = "runner: process\n") =>
  `---\nname: ${name}\ndescription: Does things.\n${more}tools: ${JSON.stringify(tools)}\n---\nYou are ${name}.`

/** The agent of a request: `main` where no agent's prompt stands first. */
const whose = (request: FakeGemini.FakeRequest): string =>
  /^You are (\w+)\./.exec(instructionOf(request))?.[1] ?? "main"

const toolsOf = (request: FakeGemini.FakeRequest | undefined): ReadonlyArray<string> =>
  (bodyOf(request).tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name))

/** How often the model answered in this conversation. */
const turnOf = (request: FakeGemini.FakeRequest): number =>
  bodyOf(request).contents.filter(({ role }) => role === "model").length

const done = (result: string) => calls(["complete_task", { result }])

/** A server that answers the turns by agent, until too many were started; with the requests of each agent so far. */
const serve = Effect.fnUntraced(function* (
  answer: (who: string, request: FakeGemini.FakeRequest) => FakeGemini.Answer
) {
  const seen: Array<FakeGemini.FakeRequest> = []
  const of = (who: string) => seen.filter((request) => whose(request) === who)
  const fake = yield* FakeGemini.make((request) => {
    if (request.method === "countTokens") return FakeGemini.tokens(100)
    if (request.method === "generateContent") return FakeGemini.json(FakeGemini.response([{ text: "A title" }]))
    seen.push(request)
    const starts = seen.filter((one) => turnOf(one) === 0).length
    return starts <= maxStarts ? answer(whose(request), request) : says("There were too many.")
  })
  return { fake, of }
})

const scene = (name: string, agents: Readonly<Record<string, string>>, settings: object = {}, more: There = {}) =>
  place(`processes-${name}`, {
    trust: "trusted",
    ...more,
    home: {
      "settings.json": { titles: false, passEnvironment: ["GEMINI_API_KEY"], ...settings },
      ...Object.fromEntries(Object.entries(agents).map(([file, text]) => [`agents/${file}.md`, text]))
    }
  })

/** The files that count running agents. */
const slotsIn = ({ home }: Place) =>
  existsSync(path.join(home, "running")) ? readdirSync(path.join(home, "running")) : []

const output = (value: Args | undefined): string => JSON.stringify(value ?? null)

describe("an agent in a process", () => {
  it.live("that always delegates makes a chain as long as the limit, and has what its definition says", function* () {
    const where = yield* scene("chain", {
      rev: agent("rev", ["read_file", "rev"], "runner: process\nmodel: gemini-2.5-pro\nmax_turns: 3\n")
    })
    const { fake, of } = yield* serve((_, request) =>
      toolsOf(request).includes("rev") && turnOf(request) === 0
        ? calls(["rev", { query: "Do it" }])
        : toolsOf(request).includes("complete_task")
          ? done("done")
          : says("Thanks.")
    )
    const ended = yield* runs(where, fake, ["ask", "--approve", "all", "Begin"])
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [0, "Thanks.\n"])
    const first = of("rev").filter((request) => turnOf(request) === 0)
    assert.deepStrictEqual(first.map(toolsOf), [
      ["read_file", "rev", "recall", "complete_task"],
      ["read_file", "recall", "complete_task"]
    ])
    assert.deepStrictEqual([...new Set(of("rev").map(({ model }) => model))], ["gemini-2.5-pro"])
    assert.deepStrictEqual(slotsIn(where), [])
  })

  it.live("takes no more turns than its definition allows, and cannot run what it does not have", function* () {
    const where = yield* scene("bounds", { rev: agent("rev", ["read_file"], "runner: process\nmax_turns: 2\n") })
    const { fake, of } = yield* serve((who, request) => {
      if (who === "main") return turnOf(request) === 0 ? calls(["rev", { query: "Do it" }]) : says("Thanks.")
      return turnOf(request) === 0
        ? calls(["run_shell_command", { command: "touch PWNED" }])
        : calls(["read_file", { file_path: `${turnOf(request)}.txt` }])
    })
    yield* runs(where, fake, ["ask", "--approve", "all", "Begin"])
    assert.include(output(results(of("main").at(-1))[0]), "The agent rev used up its turns")
    assert.include(output(results(of("rev")[1])[0]), "there is no tool run_shell_command")
    assert.isFalse(existsSync(path.join(where.cwd, "PWNED")))
  })

  it.live.each([
    ["none", false],
    ["edits", true]
  ] as const)("has the approval mode of its parent: %s", function* ([mode, isWritten]) {
    // What it runs starts as a main agent that asks for more.
    const where = yield* scene(`mode-${mode}`, { rev: agent("rev", ["write_file"]) }, { approve: "all" })
    const { fake, of } = yield* serve((who, request) => {
      if (who === "main") return turnOf(request) === 0 ? calls(["rev", { query: "Do it" }]) : says("Thanks.")
      return turnOf(request) === 0 ? calls(["write_file", { file_path: "a.txt", content: "x" }]) : done("done")
    })
    yield* runs(where, fake, ["ask", "--approve", mode, "Begin"])
    assert.include(output(results(of("main").at(-1))[0]), "The agent rev reached its goal")
    assert.strictEqual(existsSync(path.join(where.cwd, "a.txt")), isWritten)
  })

  it.live("is counted with all others, those of run_agents and those that it starts itself", function* () {
    const where = yield* scene(
      "running",
      { wide: agent("wide", ["leaf"]), leaf: agent("leaf", [], "") },
      { subagents: { depth: 3, running: 3, children: 8, tasks: 8, parallel: 8 } }
    )
    // All that may run do so until each was refused another one.
    const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const { fake, of } = yield* serve((who, request) => {
      const turn = turnOf(request)
      if (who === "leaf") return done("leaf")
      if (who === "main") {
        const tasks = Array.from({ length: 6 }, () => ({ agent: "wide", task: "Do it" }))
        return turn === 0 ? calls(["run_agents", { tasks }]) : says("Thanks.")
      }
      const gate = gates[turn]
      if (gate === undefined) return done("done")
      if (of("wide").filter((one) => turnOf(one) === turn).length === 3) {
        Deferred.doneUnsafe(gate, Effect.void)
      }
      return [FakeGemini.wait(Deferred.await(gate)), ...(turn === 0 ? calls(["leaf", { query: "x" }]) : done("done"))]
    })
    yield* runs(where, fake, ["ask", "Begin"])
    const answer = output(results(of("main").at(-1))[0])
    assert.include(answer, "3 of 6 tasks reached their goal")
    assert.lengthOf(answer.match(/3 agents are already running/g) ?? [], 3)
    const refusals = of("wide").filter((request) => turnOf(request) === 1)
    assert.deepStrictEqual(
      refusals.map((request) => output(results(request)[0]).includes("3 agents are already running")),
      [true, true, true]
    )
    assert.deepStrictEqual(of("leaf"), [])
    assert.deepStrictEqual(slotsIn(where), [])
  })

  it.live("gives its place back when it is killed", function* () {
    const where = yield* scene(
      "killed",
      { dies: agent("dies", ["read_file"]), lives: agent("lives", []) },
      {
        subagents: { running: 1 },
        // The parent of a hook is the process of the agent.
        hooks: { BeforeTool: [{ matcher: "read_file", hooks: [{ type: "command", command: "kill -9 $PPID" }] }] }
      }
    )
    const { fake, of } = yield* serve((who, request) => {
      if (who === "dies") return calls(["read_file", { file_path: "a.txt" }])
      if (who === "lives") return done("alive")
      const next = ["dies", "lives"][turnOf(request)]
      return next === undefined ? says("Thanks.") : calls([next, { query: "Do it" }])
    })
    const ended = yield* runs(where, fake, ["ask", "Begin"])
    assert.strictEqual(String(ended.stdout), "Thanks.\n")
    const [, dead, alive] = of("main")
    assert.include(output(results(dead)[0]), "was ended by a signal")
    assert.include(output(results(alive)[0]), "alive")
    assert.deepStrictEqual(slotsIn(where), [])
  })

  it.live("is started by an agent only", function* () {
    const where = yield* scene("alone", {})
    const task = {
      definition: {
        name: "rev",
        description: "x",
        prompt: "You are rev.",
        tools: [],
        mcpServers: {},
        model: "inherit",
        temperature: 1,
        topP: 1,
        maxTurns: 1,
        timeoutMinutes: 1
      },
      prompt: "Do it",
      model: "gemini-2.5-flash"
    }
    const { fake, of } = yield* serve(() => done("done"))
    for (const input of ["Do it", JSON.stringify(task)]) {
      const ended = yield* runs(where, fake, ["agents", "run", "--process", "rev", "-"], { input })
      assert.strictEqual(ended.status, 2, ended.stderr)
    }
    assert.deepStrictEqual(of("rev"), [])
  })
})

describe("what an agent runs", () => {
  /** A command line that runs the program again, and notes its start and its status. It stops after some starts. */
  const again = Effect.fnUntraced(function* (where: Place, args: string) {
    const { bundle } = yield* program
    const [starts, ends] = ["starts", "ends"].map((name) => path.join(where.home, name))
    const line = `echo start >> '${starts}'; if [ "$(wc -l < '${starts}')" -le ${maxStarts} ]; then '${process.execPath}' '${bundle}' ${args} < /dev/null > /dev/null 2>> '${where.home}/words'; echo $? >> '${ends}'; fi`
    const linesOf = (name: string) => {
      const file = path.join(where.home, name)
      return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []
    }
    return { line, ends: () => linesOf("ends"), words: () => linesOf("words").join("\n") }
  })

  const command = (line: string) => [{ hooks: [{ type: "command", command: line }] }]

  it.live("as a hook is an agent: a chain of them ends, and none has a wider mode", function* () {
    const where = yield* scene("hooks", {})
    const { ends, line, words } = yield* again(where, "ask --approve all Again")
    yield* scene("hooks", {}, { hooks: { BeforeAgent: command(line) } })
    const { fake, of } = yield* serve((_, request) =>
      turnOf(request) === 0 ? calls(["write_file", { file_path: "a.txt", content: "x" }]) : says("Thanks.")
    )
    yield* runs(where, fake, ["ask", "Begin"])
    assert.deepStrictEqual(ends(), ["1", "0", "0"])
    assert.include(words(), "agents may be nested at most 2 levels deep")
    assert.include(words(), "approve is none and not all")
    assert.notInclude(words(), "no variable of this program")
    assert.lengthOf(
      of("main").filter((request) => turnOf(request) === 0),
      3
    )
    assert.isFalse(existsSync(path.join(where.cwd, "a.txt")))
    assert.deepStrictEqual(slotsIn(where), [])
  })

  it.live("as a command of the shell tool is an agent: a chain of them ends", function* () {
    const where = yield* scene("shell", {})
    const { ends, line } = yield* again(where, "ask --approve all Again")
    const { fake, of } = yield* serve((_, request) =>
      turnOf(request) === 0 ? calls(["run_shell_command", { command: line }]) : says("Thanks.")
    )
    yield* runs(where, fake, ["ask", "--approve", "all", "Begin"])
    assert.deepStrictEqual(ends(), ["1", "0", "0"])
    assert.lengthOf(
      of("main").filter((request) => turnOf(request) === 0),
      3
    )
  })

  it.live("as a command of an agent in a process is below that agent", function* () {
    const where = yield* scene("below", { rev: agent("rev", ["run_shell_command"]) })
    const { ends, line } = yield* again(where, "ask Again")
    const { fake } = yield* serve((who, request) => {
      if (turnOf(request) > 0) return who === "rev" ? done("done") : says("Thanks.")
      if (who === "rev") return calls(["run_shell_command", { command: line }])
      return toolsOf(request).includes("rev") ? calls(["rev", { query: "Do it" }]) : says("No agents.")
    })
    yield* runs(where, fake, ["ask", "--approve", "all", "Begin"])
    assert.deepStrictEqual(ends(), ["0"])
  })

  it.live("at once is as many agents as may run", function* () {
    const where = yield* scene("shells", {}, { subagents: { running: 1 } })
    const { bundle } = yield* program
    const words = path.join(where.home, "words")
    const ask = `'${process.execPath}' '${bundle}' ask Again 2>> '${words}'`
    const refused = Effect.sync(() => existsSync(words) && /already running/.test(readFileSync(words, "utf8")))
    const { fake, of } = yield* serve((_, request) => {
      if (!JSON.stringify(request.body).includes("Begin")) {
        return [FakeGemini.wait(untilThere(refused)), ...says("One of two.")]
      }
      return turnOf(request) === 0
        ? calls(["run_shell_command", { command: `${ask} & ${ask} & wait` }])
        : says("Thanks.")
    })
    yield* runs(where, fake, ["ask", "--approve", "all", "Begin"])
    assert.lengthOf(output(results(of("main").at(-1))[0]).match(/One of two/g) ?? [], 1)
    assert.deepStrictEqual(slotsIn(where), [])
  })

  it.live("as an MCP server is an agent: a chain of them ends", function* () {
    const where = yield* scene("server", {})
    const { ends, line } = yield* again(where, "ask Again")
    yield* scene("server", {}, { mcpServers: { again: { command: "sh", args: ["-c", line] } } })
    const { fake } = yield* serve(() => says("Thanks."))
    yield* runs(where, fake, ["ask", "Begin"])
    // The outer servers end with the programs that started them.
    assert.isAtMost(ends().length, 3)
    assert.isAtMost(readFileSync(path.join(where.home, "starts"), "utf8").trim().split("\n").length, 3)
  })

  it.live("as a hook of compress does not go on without an end", function* () {
    const where = yield* scene("compress", {})
    const talk = Array.from({ length: 40 }, (_, at) => ({
      role: at % 2 === 0 ? "user" : "model",
      parts: [{ text: `Message ${at}: ${"words ".repeat(200)}` }]
    }))
    const { ends, line, words } = yield* again(where, "compress talk.json --force --summarizer extractive")
    yield* scene("compress", {}, { hooks: { PreCompress: command(line) } }, { work: { "talk.json": talk } })
    yield* runs(where, undefined, ["compress", "talk.json", "--force", "--summarizer", "extractive"])
    assert.deepStrictEqual(ends(), ["1", "0", "0"])
    assert.include(words(), "agents may be nested at most 2 levels deep")
  })
})
