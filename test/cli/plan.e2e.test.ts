import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import {
  calls,
  chat,
  environmentOf,
  instructionOf,
  place,
  results,
  runs,
  says,
  serve,
  textsOf,
  turnsOf
} from "./scene.ts"

/** Plans, through the built program: nothing is changed before a person approved one, and it is not forgotten. */

const plan = "# The plan\n\n- Rename the vents.\n- Tell Wren.\n"
/** About 20,000 tokens. */
const long = Array.from({ length: 3_000 }, (_, at) => `Line ${at}: value ${at * 7_919}.\n`).join("")

describe("ask --approve plan", () => {
  it.live("denies every change but that of the plan's file, and cannot be approved without a terminal", function* () {
    const where = yield* place("plan-ask")
    const file = path.join(where.home, "plans", "work.md")
    const fake = yield* serve(
      calls(
        ["write_file", { file_path: "a.txt", content: "x\n" }],
        ["run_shell_command", { command: "touch ran" }],
        ["write_file", { file_path: file, content: plan }]
      ),
      calls(["exit_plan_mode", {}]),
      says("The plan waits.")
    )
    const { status, stdout } = yield* runs(where, fake, ["ask", "Plan it", "--session", "work", "--approve", "plan"])
    assert.deepStrictEqual([status, String(stdout)], [0, "The plan waits.\n"])
    assert.strictEqual(readFileSync(file, "utf8"), plan)
    assert.isFalse(existsSync(path.join(where.cwd, "a.txt")) || existsSync(path.join(where.cwd, "ran")))
    assert.isFalse(existsSync(path.join(where.home, "plans", "work.approved.md")))
    const [one, two, three] = yield* turnsOf(fake)
    assert.include(instructionOf(one), file)
    const answers = results(two)
    assert.match(String(answers[0]?.["error"]), /plan/)
    assert.match(String(answers[1]?.["error"]), /plan/)
    assert.isUndefined(answers[2]?.["error"])
    assert.match(String(results(three)[0]?.["error"]), /denied/)
  })
})

needs("tmux")("a plan in a chat", () => {
  it.live("is shown and approved; a compression keeps the plan and its path", function* () {
    const where = yield* place("plan-chat", { work: { "long.txt": long } })
    const file = path.join(where.home, "plans", "work.md")
    const kept = path.join(where.home, "plans", "work.approved.md")
    const fake = yield* serve(
      calls(["write_file", { file_path: "a.txt", content: "x\n" }], ["write_file", { file_path: file, content: plan }]),
      calls(["exit_plan_mode", {}]),
      calls(["write_file", { file_path: "a.txt", content: "x\n" }]),
      says("It is carried out.")
    )
    const screen = yield* chat(fake, where, "--session", "work", "--approve", "plan")
    yield* screen.prompt()
    yield* screen.say("Plan it by @long.txt")
    const asked = yield* screen.asked
    assert.match(asked, /✗ Write[^\n]* · not allowed/)
    assert.match(asked, /Carry out this plan\?[^]*# The plan[^]*- Rename the vents\.[^]*- Tell Wren\./)
    yield* screen.say("y")
    // From then on everything is as usual: an edit is asked for.
    yield* screen.until(/Change a\.txt\?/)
    assert.strictEqual(readFileSync(kept, "utf8"), plan)
    yield* screen.asked
    yield* screen.ask("y", "It is carried out.")
    yield* screen.ask("/compress", /Compressed/)
    yield* screen.say("And now?", "There is nothing more to say.")
    const turns = yield* turnsOf(fake)
    const last = turns.at(-1)
    assert.include(environmentOf(last), kept)
    assert.isFalse(textsOf(last).some((text) => text.includes("Line 1500:")))
    assert.notInclude(environmentOf(turns[0]), "approved the plan")
    assert.strictEqual(readFileSync(kept, "utf8"), plan)
  })
})
