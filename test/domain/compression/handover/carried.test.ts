import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { requestSpans, witnessOf } from "../../../../src/domain/compression/evidence/UserRequests.ts"
import { composeSnapshot } from "../../../../src/domain/compression/handover/Extractive.ts"
import { type SectionName, type Snapshot, userWordsIn } from "../../../../src/domain/compression/Snapshot.ts"
import { writtenOut } from "../../../../src/domain/compression/SnapshotShorthand.ts"
import { call, type Content, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Entry } from "../../../../src/domain/conversation/Conversation.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../../src/domain/tokens/Tokens.ts"
import { entryOf } from "../../../support/entries.ts"
import { isUnitTier } from "../../../support/runs.ts"

/** What a snapshot says after many compressions, each of which read the one before. */

const cwd = "/work/app"

let called = 0
const turn = (tool: string, args: unknown, answer: object): ReadonlyArray<Content> => {
  called += 1
  return [model(call(tool, args, `c${called}`)), user(response(tool, answer, `c${called}`))]
}

/** One stretch of work: a wish, a change, a commit, a failure that stays, and one that is mended. */
const stretch = (round: number): ReadonlyArray<Content> => [
  user(text(`Round ${round}: build part${round}. Never touch legacy${round}.`)),
  ...turn(
    "Edit",
    { file_path: `${cwd}/src/part${round}.ts`, old_string: "", new_string: `function part${round}() {}` },
    { output: "ok" }
  ),
  ...turn("Bash", { command: `tool${round} check` }, { error: `Exit code 1\nerror: part${round} is wrong` }),
  ...turn("Bash", { command: "npm test" }, { error: "Exit code 1\nerror: 1 failed" }),
  ...turn("Edit", { file_path: `${cwd}/src/part${round}.ts`, old_string: "a", new_string: "b" }, { output: "ok" }),
  ...turn("Bash", { command: "npm test" }, { output: "Tests  3 passed (3)" }),
  ...turn(
    "Bash",
    { command: `git commit -am 'Build part${round}'` },
    { output: `[main ${(0xabc0000 + round).toString(16)}] Build part${round}` }
  ),
  model(text(`Part ${round} is built. Next I will look at part ${round + 1}, which needs its own table.`))
]

/** Compresses again and again, with the log at hand, as in a chat. */
const compressed = (
  rounds: number,
  { begin, budget, first = [] }: { budget: number; first?: ReadonlyArray<Content>; begin?: string | undefined }
): { text: string; snapshot: Snapshot } => {
  const log: Array<Entry> = []
  // The log of a session that was taken over with a summary alone begins with it.
  let earlier = begin === undefined ? undefined : entryOf(2, user(text(begin)), { author: "summary" })
  let made: { text: string; snapshot: Snapshot } | undefined
  for (let round = 1; round <= rounds; round += 1) {
    const fresh = [...(round === 1 ? first : []), ...stretch(round)].map((content, at) =>
      entryOf(round * 1_000 + at, content)
    )
    const dropped = round === 1 ? [] : [...log]
    if (round === 1 && earlier !== undefined)
      log.push(entryOf(1, user(text("On Linux.")), { author: "environment" }), earlier)
    log.push(...fresh)
    const evidence = Work.runSync(
      gatherEvidence(earlier === undefined ? fresh : [earlier, ...fresh], {
        cwd,
        userWords: witnessOf(log),
        earlier: dropped
      })
    )
    made = Work.runSync(
      composeSnapshot(evidence, {
        budget,
        kept: [],
        cwd,
        messages: ofUser(log),
        pins: begin === undefined ? { original: ofUser(log)[0] } : {}
      })
    )
    earlier = entryOf(round * 1_000 + 999, user(text(made.text)), { author: "summary" })
  }
  if (made === undefined) throw new Error("no round")
  return made
}

const ofUser = (log: ReadonlyArray<Entry>) =>
  log.flatMap((each) => (each.author === undefined ? requestSpans(each) : []))

const lines = (snapshot: Snapshot, name: SectionName): ReadonlyArray<string> => snapshot[name].map((item) => item.text)
const rounds = [1, 2, 3, 5, 10, 20]
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

describe("again and again", () => {
  describe.each(rounds)("after %i compressions", (count) => {
    const { snapshot, text } = compressed(count, {
      budget: 16_000,
      first: [
        ...turn(
          "TodoWrite",
          {
            todos: [
              { content: "ship the first release", status: "pending" },
              { content: "draw a plan", status: "completed" }
            ]
          },
          { output: "ok" }
        )
      ]
    })

    const whole = writtenOut(text)

    it("every message of the user is there once, in order", () => {
      assert.deepStrictEqual(
        userWordsIn(whole).map((words) => words.text),
        numbers(count).map((n) => `Round ${n}: build part${n}. Never touch legacy${n}.`)
      )
      assert.strictEqual(whole.split("latest request:").length, count === 1 ? 1 : 2)
    })
    it("every changed file, commit and open failure is there once", () => {
      for (const n of numbers(count)) {
        assert.strictEqual(whole.split(`\n    src/part${n}.ts\n`).length, 2, `part${n}`)
        assert.strictEqual(whole.split(`: Build part${n} (`).length, 2, `commit ${n}`)
        assert.strictEqual(whole.split(`- unresolved failure of tool${n} check (`).length, 2, `failure ${n}`)
      }
    })
    it("the open item is there", () => {
      assert.strictEqual(whole.split("[pending] ship the first release").length, 2)
    })
    it("a fixed failure is not open", () => {
      assert.notInclude(whole, "unresolved failure of npm test")
    })
    it("states the progress of the work once", () => {
      const task = lines(snapshot, "task_state")
      assert.strictEqual(task.filter((line) => line.startsWith("- now (")).length, 1)
      assert.isAtMost(task.filter((line) => line.startsWith("- last action (")).length, 1)
      assert.include(task.find((line) => line.startsWith("- now (")) ?? "", `Part ${count} is built`)
    })
    it("nothing occurs twice", () => {
      for (const name of Object.keys(snapshot) as ReadonlyArray<SectionName>) {
        const all = lines(snapshot, name)
        assert.deepStrictEqual(
          all.filter((line, index) => all.indexOf(line) !== index),
          [],
          name
        )
      }
      assert.notInclude(whole, "written by a model")
    })
  })

  it.each(isUnitTier ? [1_500] : [600, 1_500, 4_000])(
    "twenty compressions within %i tokens keep the first and the latest wish",
    (budget) => {
      const { snapshot, text: whole } = compressed(20, { budget })
      assert.isAtMost(estimateText(whole), budget)
      const words = snapshot.overall_goal.flatMap((item) => userWordsIn(item.text)).map((each) => each.text)
      assert.include(words[0], "Round 1")
      assert.include(words.at(-1), "Round 20")
    }
  )
})

describe.each([1, 3, 10])("a log that begins with a summary, after %i compressions", (count) => {
  it("a snapshot: what it alone knows of the work stays", () => {
    const { text: begin } = Work.runSync(
      composeSnapshot(
        Work.runSync(
          gatherEvidence(
            [
              user(text("Build part0.")),
              ...turn("Write", { file_path: `${cwd}/src/new.ts`, content: "a" }, { output: "created" }),
              ...turn("Read", { file_path: `${cwd}/src/seen.ts` }, { output: "b" }),
              ...turn("Bash", { command: "deploy all" }, { error: "Exit code 1\nerror: no such host" }),
              ...turn("Bash", { command: "tool1 check" }, { error: "Exit code 1\nerror: part0 is wrong" }),
              ...turn("Bash", { command: "npm test" }, { error: "Exit code 1\nerror: 1 failed" }),
              ...turn("TodoWrite", { todos: [{ content: "ship it", status: "pending" }] }, { output: "ok" }),
              ...turn("Bash", { command: "git commit -am 'Begin'" }, { output: "[main abc1234] Begin" }),
              model(
                text("I chose SQLite over Postgres because no server has to run beside it. Shall I go on with it?")
              ),
              user(text("yes")),
              model(text("On it: next I will look at the tables of the database, one after the other."))
            ].map((content, at) => entryOf(1 + at, content)),
            { cwd }
          )
        ),
        { budget: 4_000, kept: [], cwd }
      )
    )
    const whole = writtenOut(compressed(count, { budget: 6_000, begin }).text)
    for (const [fact, times] of [
      ["    src/new.ts (created)\n", 1],
      ["    src/seen.ts", 1],
      ["- unresolved failure of deploy all (", 1],
      ["no such host", 1],
      // The log has a later failure of it.
      ["- unresolved failure of tool1 check (", 1],
      ["unresolved failure of npm test", 0],
      ["[pending] ship it", 1],
      ["- commit abc1234: Begin (", 1],
      ["original request: Build part0.", 1],
      ["- the user said yes (", 1]
    ] as const)
      assert.strictEqual(whole.split(fact).length - 1, times, fact)
  })
  it("a snapshot of snapshots: the first and the latest words stay", () => {
    let begin = ""
    for (let round = 1; round <= count; round += 1) {
      const said = entryOf(2, user(text(`Wish ${round}. ${"It is long. ".repeat(40)}`)))
      const log = begin === "" ? [said] : [entryOf(1, user(text(begin)), { author: "summary" }), said]
      begin = Work.runSync(composeSnapshot(Work.runSync(gatherEvidence(log)), { budget: 1_000, kept: [] })).text
    }
    for (const wish of [1, count - 1, count].filter((each) => each > 0)) assert.include(begin, `Wish ${wish}.`)
    assert.isAtMost(begin.split("latest request").length, 2)
  })
  it("one by another program: its facts stay", () => {
    const begin = "The host is db7.example.com. Milan decided to keep SQLite. ".repeat(4)
    const whole = writtenOut(compressed(count, { budget: 3_000, begin }).text)
    assert.include(whole, "db7.example.com")
    assert.strictEqual(whole.split("- an earlier summary (e2 ").length, 2)
    assert.strictEqual(whole.split("- the goal, as an earlier summary has it (e2 ").length, 2)
  })
})

it.each([
  "the user said no to Redux",
  "commit messages: in the imperative",
  "tests in test/slow run at night alone",
  "next.config.mjs: holds the redirects",
  "names of tables are plural",
  "build artefacts lie in out/"
])("what a model wrote stays: %s", (said) => {
  const begin = `<state_snapshot>\n<key_knowledge>\n- ${said}\n</key_knowledge>\n</state_snapshot>`
  const log = stretch(1).map((content, at) => entryOf(1 + at, content))
  const evidence = Work.runSync(
    gatherEvidence([entryOf(50, user(text(begin)), { author: "summary" })], { cwd, earlier: log })
  )
  assert.include(Work.runSync(composeSnapshot(evidence, { budget: 2_000, kept: [], cwd })).text, `- ${said}\n`)
})

it.each([
  {
    agent: "Claude Code",
    ids: ["1", "2"],
    make: (id: string, subject: string) =>
      turn("TaskCreate", { subject }, { output: `Task #${id} created successfully: ${subject}` }),
    end: (taskId: string) =>
      turn("TaskUpdate", { taskId, status: "completed" }, { output: `Updated task #${taskId} status` })
  },
  {
    agent: "Gemini CLI",
    ids: ["a1b2c3", "0f9e8d"],
    make: (id: string, title: string) =>
      turn(
        "tracker_create_task",
        { title, description: "x", type: "task" },
        { output: `Created task ${id}: ${title}` }
      ),
    end: (id: string) =>
      turn("tracker_update_task", { id, status: "closed" }, { output: `Updated task ${id}. Status: closed` })
  }
])("items that $agent keeps one by one keep their numbers", ({ end, ids: [one = "", two = ""], make }) => {
  const first = [
    entryOf(1, user(text("Go."))),
    ...[...make(one, "Write it"), ...make(two, "Test it")].map((content, at) => entryOf(2 + at, content))
  ]
  const once = Work.runSync(composeSnapshot(Work.runSync(gatherEvidence(first)), { budget: 2_000, kept: [] }))
  const later = end(one)
  const { todos } = Work.runSync(
    gatherEvidence(
      [
        entryOf(50, user(text(once.text)), { author: "summary" }),
        ...later.map((content, at) => entryOf(51 + at, content))
      ],
      { earlier: first }
    )
  )
  assert.deepStrictEqual(todos?.todos, [
    { text: `#${one} Write it`, status: "completed" },
    { text: `#${two} Test it`, status: "pending" }
  ])
})

it("an edit ends the failure of an earlier one on the same file", () => {
  const edit = (answer: object) => turn("Edit", { file_path: `${cwd}/a.ts`, old_string: "a", new_string: "b" }, answer)
  const told = (entries: ReadonlyArray<Entry>): string =>
    Work.runSync(composeSnapshot(Work.runSync(gatherEvidence(entries, { cwd })), { budget: 2_000, kept: [], cwd })).text
  const once = told(edit({ error: "String to replace not found" }).map((content, at) => entryOf(1 + at, content)))
  assert.include(once, "unresolved failure of Edit a.ts (")
  const twice = told([
    entryOf(50, user(text(once)), { author: "summary" }),
    ...edit({ output: "ok" }).map((content, at) => entryOf(51 + at, content))
  ])
  assert.notInclude(twice, "unresolved failure")
})

it("a check that has run again is no longer told as older than a change", () => {
  const test = turn("Bash", { command: "npm test" }, { output: "3 tests passed" })
  const edit = turn("Edit", { file_path: "a.ts", old_string: "a", new_string: "b" }, { output: "ok" })
  const told = (entries: ReadonlyArray<Entry>): string =>
    Work.runSync(composeSnapshot(Work.runSync(gatherEvidence(entries)), { budget: 2_000, kept: [] })).text
  const once = told([...test, ...edit].map((content, at) => entryOf(1 + at, content)))
  assert.include(once, "- since tests passed, a.ts changed\n")
  const twice = told([
    entryOf(50, user(text(once)), { author: "summary" }),
    ...test.map((content, at) => entryOf(51 + at, content))
  ])
  assert.notInclude(twice, "since tests passed")
})

it("a constraint that was shown whole is stated when its message no longer fits", () => {
  const first = [user(text(`Begin with the parser. Never push to main. ${"It reads dates. ".repeat(200)}`))]
  const { text: whole } = compressed(20, { budget: 2_500, first })
  assert.include(whole, "Never push to main.")
})

it("a snapshot without statements is no summary by another program", () => {
  const { text: nothing } = Work.runSync(composeSnapshot(Work.runSync(gatherEvidence([])), { budget: 500, kept: [] }))
  const { previous, summaries } = Work.runSync(
    gatherEvidence([entryOf(1, user(text(`The rest: ${nothing}`)), { author: "summary" })])
  )
  assert.deepStrictEqual(summaries, [])
  assert.isDefined(previous)
})

it("a pinned message that is shown by its ends does not pile up", () => {
  const long = `Keep this. ${"It is long. ".repeat(3_000)}The end.`
  const log = [entryOf(1, user(text(long)))]
  const pinned = log.flatMap((each) => requestSpans(each))
  let entries: ReadonlyArray<Entry> = log
  let whole = ""
  for (let round = 0; round < 5; round += 1) {
    const evidence = Work.runSync(gatherEvidence(entries, { userWords: witnessOf(log) }))
    whole = Work.runSync(
      composeSnapshot(evidence, { budget: 2_000, kept: [], messages: pinned, pins: { pinned } })
    ).text
    entries = [entryOf(100 + round, user(text(whole)), { author: "summary" })]
  }
  assert.strictEqual(whole.split(" more characters").length, 3)
  assert.notInclude(whole, "written by a model")
})

it("of many items of each kind the latest are told", () => {
  const log = numbers(90)
    .flatMap(stretch)
    .map((content, at) => entryOf(at + 1, content))
  const evidence = Work.runSync(gatherEvidence(log, { cwd }))
  const { text: short } = Work.runSync(composeSnapshot(evidence, { budget: 2_400, kept: [], cwd }))
  const whole = writtenOut(short)
  for (const last of ["Round 90:", "src/part90.ts", ": Build part90 (", "tool90 check", "Part 90 is built"])
    assert.include(whole, last)
  for (const first of [": Build part1 (", "tool1 check", "Part 1 is built"]) assert.notInclude(whole, first)
})
