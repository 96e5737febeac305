import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import type * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { calls, chat, gone, lineOf, living, type Place, place, runs, says, serve } from "./scene.ts"

/**
 * What is left at work when the built program is killed and can end nothing itself. How often each is tried:
 * `PALIMPSEST_TEST_KILLS=100`; the moments of the kills spread over the first 200 ms of the work.
 */

const times = Number(process.env["PALIMPSEST_TEST_KILLS"] ?? "1")
const spread = 200

/** Four processes over three generations, one of which takes no SIGTERM; each writes its number, the last one a line. */
const script = `sh -c 'trap "" TERM; echo $$ >> pids; while :; do echo beat > beat; sleep 0.05; done' &
sh -c 'sh -c "echo \\$\\$ >> pids; exec sleep 1000" & echo $$ >> pids; wait' &
echo $$ >> pids
while [ "$(wc -l < pids)" -lt 4 ]; do sleep 0.02; done
echo there > there
wait
`
const tree = "exec sh tree.sh"

const pidsIn = (where: Place): ReadonlyArray<number> => {
  const file = path.join(where.cwd, "pids")
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : []
}

/** The parent of a process. Small systems have `/proc` and no `ps`. */
const parentOf = (pid: string): number => {
  if (!existsSync("/proc/self/stat"))
    return Number(execFileSync("ps", ["-o", "ppid=", "-p", pid], { encoding: "utf8" }))
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
}

/** Runs `ask`, kills it a while after all of the work is there, and waits until all of that is gone. Answers how long that took. */
const killed = Effect.fnUntraced(function* (where: Place, fake: FakeGemini.FakeGemini, after: number) {
  let kill = (_signal: NodeJS.Signals): unknown => undefined
  const running = runs(where, fake, ["ask", "Do it", "--approve", "all"], {
    started: (child) => {
      kill = child.kill
    }
  })
  const killing = Effect.gen(function* () {
    yield* lineOf(path.join(where.cwd, "there"))
    yield* Effect.sleep(after)
    assert.strictEqual(pidsIn(where).length, 4)
    assert.strictEqual(living(pidsIn(where)).length, 4)
    kill("SIGKILL")
  })
  const [ended] = yield* Effect.all([running, killing], { concurrency: 2 })
  assert.strictEqual(ended.status, null)
  const at = performance.now()
  yield* gone(pidsIn(where))
  return performance.now() - at
})

interface Scene {
  readonly name: string
  readonly settings?: object
  readonly answers: ReadonlyArray<FakeGemini.Answer>
}

const scenes: ReadonlyArray<Scene> = [
  { name: "a command", answers: [calls(["run_shell_command", { command: tree }])] },
  {
    name: "what a command left running",
    answers: [
      calls(["run_shell_command", { command: "sh tree.sh >/dev/null 2>&1 &" }]),
      calls(["run_shell_command", { command: "sleep 1000" }])
    ]
  },
  {
    name: "a hook's command",
    settings: { hooks: { BeforeAgent: [{ hooks: [{ type: "command", command: tree }] }] } },
    answers: [says("Never said.")]
  },
  {
    name: "an MCP server that does not mind the end of its input",
    // It is spoken to once the program knows that it runs.
    settings: { mcpServers: { stubborn: { command: "/bin/sh", args: ["-c", `read -r line; ${tree}`] } } },
    answers: [says("Never said.")]
  }
]

describe("after kill -9 of `ask`", () => {
  for (const { answers, name, settings = {} } of scenes) {
    it.live(`no process of ${name} survives`, function* () {
      const took: Array<number> = []
      for (let time = 0; time < times; time += 1) {
        const fake = yield* serve(...answers)
        const where = yield* place(`killed-${scenes.findIndex((scene) => scene.name === name)}-${time}`, {
          home: { "settings.json": settings },
          work: { "tree.sh": script },
          trust: "trusted"
        })
        took.push(yield* killed(where, fake, (spread * time) / times))
      }
      if (times > 2) {
        const sorted = took.toSorted((one, other) => one - other)
        const [middle = 0, last = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
        yield* Effect.logInfo(
          `${name}: ${times} kills, gone after ${middle.toFixed(0)} ms, at most ${last.toFixed(0)} ms`
        )
      }
    })
  }
})

needs("tmux")("after kill -9 of chat", () => {
  it.live("no process of a command survives, and the terminal's own shell does", function* () {
    const fake = yield* serve(calls(["run_shell_command", { command: `echo $PPID > wrapper; ${tree}` }]))
    const where = yield* place("killed-chat", { work: { "tree.sh": script }, trust: "trusted" })
    const screen = yield* chat(fake, where, "--approve", "all")
    yield* screen.prompt()
    yield* screen.say("Do it")
    yield* lineOf(path.join(where.cwd, "there"))
    // The parent of the shell that wraps the command.
    process.kill(parentOf(yield* lineOf(path.join(where.cwd, "wrapper"))), "SIGKILL")
    yield* gone(pidsIn(where))
  })
})
