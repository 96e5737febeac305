import { assert, describe, it } from "@effect/vitest"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { type Entry, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { plantFacts } from "../../../src/domain/evaluation/PlantedFacts.ts"
import { StateAnswers, type Verdict } from "../../../src/domain/evaluation/StateAnswers.ts"
import { type QuestionKind, type StateQuestion, WorkState } from "../../../src/domain/evaluation/StateQuestions.ts"
import { entriesOf } from "../../support/entries.ts"
import { runsOf } from "../../support/runs.ts"

const entries = (...contents: ReadonlyArray<Content>): ReadonlyArray<Entry> => entriesOf(contents)

/** What Claude Code answers for a call that the user did not allow. */
const refusedCall =
  "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."

/** A call and its result. */
const did = (name: string, args: unknown, output: string, failed = false): ReadonlyArray<Content> => [
  model(call(name, args)),
  user(response(name, failed ? { error: output } : { output }))
]
const ran = (command: string, exit: number, output = ""): ReadonlyArray<Content> =>
  did("Bash", { command }, exit === 0 ? output : `Exit code ${exit}\n${output}`, exit !== 0)
const says = (part: Part): Content => user(part)

/** The questions about the state after these entries. */
const stateQuestions = (conversation: ReadonlyArray<Entry>, folders: ReadonlyArray<string>) => {
  const state = new WorkState(conversation, folders)
  conversation.forEach((entry, item) => state.read(entry, item))
  return state.questions()
}

const asked = (...contents: ReadonlyArray<Content>): ReadonlyArray<StateQuestion> =>
  stateQuestions(entries(...contents), ["/work"])

const brief = (questions: ReadonlyArray<StateQuestion>, kind: QuestionKind): ReadonlyArray<string> =>
  questions
    .filter((question) => question.kind === kind)
    .map(({ earlier, expected, subject }) => `${subject}: ${[expected, ...earlier].join(" < ")}`)

describe("the questions", () => {
  it("are about the last forty of a kind, and fewer of what never happened", () => {
    const names = Array.from({ length: 45 }, (_, n) => `src/part${n}.ts`)
    const made = names.flatMap((name) => did("Write", { file_path: `/work/${name}`, content: "a" }, "ok"))
    const subjects = asked(...made).map(({ subject }) => subject)
    assert.deepStrictEqual(
      subjects.filter((subject) => names.includes(subject)),
      names.slice(-40)
    )
    const read = names.flatMap((name) => did("Read", { file_path: `/work/${name}` }, "a"))
    const decoys = asked(...read).filter(({ expected }) => expected === "not changed")
    assert.deepStrictEqual(
      decoys.map(({ subject }) => subject),
      names.slice(-8)
    )
  })

  const made: ReadonlyArray<
    readonly [what: string, kind: QuestionKind, contents: ReadonlyArray<Content>, questions: ReadonlyArray<string>]
  > = [
    [
      "ask for the last exit code of a command",
      "exit code",
      [...ran("npm run build", 2), ...ran("cd /work && npm run build", 0)],
      ["npm run build: 0 < 2"]
    ],
    [
      "do not ask for the result of a command whose last output does not tell",
      "exit code",
      [...ran("npm run build", 2), ...ran("npm run build | tail -3", 0, "bye")],
      []
    ],
    ["do not ask for the result of a look", "exit code", [...ran("git status", 0), ...ran("ls", 0)], []],
    [
      "ask whether the last test run passed",
      "test run",
      [...ran("npm test", 0), ...ran("npm test", 1)],
      ["tests: failed < passed"]
    ],
    [
      "ask for changed files by their relative paths",
      "file",
      [
        ...did("Edit", { file_path: "/work/src/a.ts", old_string: "a", new_string: "b" }, "updated"),
        ...did("Read", { file_path: "/work/src/b.ts" }, "text"),
        ...ran("rm src/a.ts", 0)
      ],
      ["src/a.ts: deleted < changed"]
    ],
    [
      "ask for the last value of a setting",
      "value",
      [
        ...did("Edit", { file_path: "c.env", old_string: "PORT=8080\nHOST=a", new_string: "PORT=9090\nHOST=a" }, "ok"),
        ...did("Edit", { file_path: "c.env", old_string: "PORT=9090", new_string: "PORT=7070" }, "ok")
      ],
      ["PORT: 7070 < 8080 < 9090"]
    ],
    [
      "ask for the items of the last list",
      "item",
      did(
        "TodoWrite",
        {
          todos: [
            { content: "Write the parser", status: "completed" },
            { content: "Test it", status: "in_progress" }
          ]
        },
        "ok"
      ),
      ["Write the parser: done < open", "Test it: open"]
    ],
    [
      "follow single tasks",
      "item",
      [
        ...did("TaskCreate", { subject: "Write docs" }, "Task #1 created"),
        ...did("TaskUpdate", { taskId: "1", status: "completed" }, "ok")
      ],
      ["Write docs: done < open"]
    ],
    [
      "ask for constraints word for word",
      "constraint",
      [says(text(`Fix it. ${"Read the code first. ".repeat(20)}Never touch the API.`))],
      ["Never touch the API.: said"]
    ],
    ["ask for a short message once, as an order", "constraint", [says(text("Fix it. Never touch the API."))], []],
    [
      "ask for every message of the user",
      "order",
      [says(text("Fix the build.")), says(text("yes"))],
      ["Fix the build.: said"]
    ],
    [
      "ask for what never happened",
      "never happened",
      [
        ...did("Read", { file_path: "/work/src/b.ts" }, "text"),
        ...ran("git push", 128, "rejected"),
        says(text("No git push --force, please"))
      ],
      ["src/b.ts: not changed", "git push: not done", "git reset --hard HEAD~1: not run", "npm publish: not run"]
    ],
    [
      "ask for the choices of the user in a question, however short",
      "decision",
      did(
        "AskUserQuestion",
        { questions: [{ question: "Which cache?" }] },
        'User has answered your questions: "Which cache?"="Redis". You can now continue with the user\'s answers in mind.'
      ),
      ["Redis: said"]
    ],
    [
      "ask for what the user did not allow, unless it ran later",
      "refusal",
      [
        ...did("Bash", { command: "git push" }, refusedCall, true),
        ...did("Bash", { command: "npm publish" }, refusedCall, true),
        ...ran("git push", 0)
      ],
      ["npm publish: said"]
    ],
    [
      "name a command by its words, where one of them is a here-document",
      "refusal",
      did("Bash", { command: "git commit -m \"$(cat <<'EOF'\nClose it\n\nAt last.\nEOF\n)\"" }, refusedCall, true),
      ['git commit -m "Close it At last.": said']
    ],
    [
      "ask for the latest commits by their subjects",
      "commit",
      ran('git commit -am "Close the socket"', 0, "[main 1a2b3c4] Close the socket\n 1 file changed"),
      ["Close the socket: said"]
    ],
    [
      "ask for no commit that was taken back",
      "commit",
      [
        ...ran('git commit -am "Open it"', 0, "[main 1a2b3c4] Open it"),
        ...ran('git commit -am "Close it"', 0, "[main 2b3c4d5] Close it"),
        ...ran("git reset --hard HEAD~1", 0),
        ...ran("git revert HEAD", 0, '[main 3c4d5e6] Revert "Open it"')
      ],
      ['Revert "Open it": said']
    ],
    [
      "ask only for exit codes of open failures, of what was published, and of the last run of each check",
      "exit code",
      [
        ...ran("npm run old", 1),
        ...ran("npm run old", 0),
        ...ran("npm test a", 0),
        ...ran("npm test b", 0),
        ...ran("make docs", 2),
        ...ran("git push", 0)
      ],
      ["npm test b: 0", "make docs: 2", "git push: 0"]
    ],
    [
      "do not ask for a failure that a later success ended",
      "never happened",
      [
        ...ran("git push", 128),
        ...ran("git push -u origin main", 0),
        ...ran("npm publish; git push --force; git reset --hard HEAD~1; docker system prune -af", 0),
        ...ran("terraform apply; kubectl delete namespace staging", 0)
      ],
      []
    ]
  ]
  it.each(made)("%s", (_, kind, contents, questions) =>
    assert.deepStrictEqual(brief(asked(...contents), kind), questions)
  )
})

describe("the answers", () => {
  const question = (kind: QuestionKind, subject: string, expected: string, ...earlier: ReadonlyArray<string>) => ({
    kind,
    subject,
    expected,
    earlier,
    entry: entryId(1)
  })
  const build = question("exit code", "npm run build", "0", "2")
  const broken = question("exit code", "npm run build", "2", "0")
  const tests = question("test run", "tests", "passed", "failed")
  const file = question("file", "lib/spotter/annotation.ex", "changed")
  const gone = question("file", "src/old.ts", "deleted", "changed")
  const port = question("value", "PORT", "9090", "8080")
  const chosen = question("decision", "Redis", "said")
  const refusal = question("refusal", "git push --force", "said")
  const commit = question("commit", "Close the socket", "said")
  const open = question("item", "Write the parser", "open")
  const done = question("item", "Write the parser", "done", "open")
  const rule = question("constraint", "Never touch the <system> API.", "said")
  const long = question(
    "order",
    `Do it like this: ${"word ".repeat(80)}and that is all of it, no more and no less.`,
    "said"
  )
  const read = question("never happened", "src/b.ts", "not changed")
  const push = question("never happened", "git push", "not done")
  const published = question("never happened", "npm publish", "not run")

  const cases: ReadonlyArray<readonly [verdict: Verdict, asked: StateQuestion, context: string]> = [
    [
      "right",
      build,
      "- commands, latest first; they succeeded if no result stands beside:\n    npm run build\n    npm test → exit 1"
    ],
    [
      "stale",
      build,
      "- commands, latest first; they succeeded if no result stands beside:\n    npm run build → exit 2 (e4)"
    ],
    ["right", broken, "- commands:\n    npm run build → exit 2 (e4 h_aaaaaaaaaa)"],
    ["right", broken, "- unresolved failure of npm run build (e4 h_aaaaaaaaaa):\n    error: no"],
    ["right", build, "I ran `npm run build`: 0 errors"],
    [
      "absent",
      build,
      "- commands, latest first; they succeeded if no result stands beside:\n    npm run build:docs\n    cd docs && npm run build"
    ],
    ["absent", build, "Next: `npm run build`"],
    [
      "absent",
      question("exit code", "go test ./a -run TestTheFirstThing", "0"),
      "- done:\n  go test ./a -run TestTheFirst… passed\n- x: go test ./b"
    ],
    ["right", tests, "- tests passed: npm test (e9)"],
    ["stale", tests, "- tests failed: npm test (e9)"],
    ["right", tests, "Two tests failed at first.\nAfter the fix all tests pass."],
    ["absent", tests, "Make sure that the tests pass."],
    ["right", file, "- lib/spotter/{annotation.ex (3 changes: +state, +resolve/2), message.ex}"],
    ["right", file, "- changed:\n  lib/spotter/{message.ex, annotation.ex}"],
    ["right", file, "- changed below lib/spotter:\n    annotation.ex (3 changes)"],
    ["right", file, "- lib/spotter/annotation.ex: modified (3 changes; e5)"],
    ["right", file, "- **`/work/lib/spotter/annotation.ex`**\n  - Added the state"],
    ["wrong", file, "- read, but not changed:\n    lib/spotter/annotation.ex"],
    ["absent", file, "- other files that were named:\n    lib/spotter/annotation.ex"],
    ["absent", file, "the names of lib/spotter/annotation.ex: resolve"],
    ["right", gone, "- src/old.ts: deleted (e9)"],
    ["right", gone, "- commands; they succeeded if no result stands beside:\n    git rm -f src/old.ts"],
    ["right", file, "- last written to lib/spotter/annotation.ex (e5):\n    def x"],
    ["stale", gone, "- src/old.ts: modified (1 change; e3)"],
    ["stale", gone, "- src/old.ts: modified (1 change; e3)\n- read, but not changed:\n    src/old.ts"],
    ["right", port, "PORT was changed from 8080 to 9090"],
    ["stale", port, "- PORT is 8080"],
    ["right", port, "- last written to a (e9):\n    PORT=9090\n- last written to a (e4):\n    PORT=8080"],
    ["absent", port, "names: PORT HOST 80800"],
    ["right", port, '<user_words entry="e1">PORT=8080</user_words>\n- PORT=9090'],
    ["right", open, "- [in_progress] Write the parser"],
    ["wrong", open, "- [completed] Write the parser"],
    ["right", done, "Done:\n- Write the parser"],
    ["stale", done, "- [ ] Write the parser"],
    ["right", rule, '<user_words entry="e1">Fix it. Never touch the &lt;system> API.</user_words>'],
    ["absent", rule, "- the API is never to be touched"],
    ["right", long, long.subject],
    [
      "right",
      long,
      `<user_words entry="e1">${long.subject.slice(0, 60)}</user_words>\n- … 300 more characters …\n<user_words entry="e1">${long.subject.slice(-50)}</user_words>`
    ],
    ["absent", long, long.subject.slice(0, 60)],
    ["right", chosen, '<user_words entry="e1">Redis</user_words>'],
    ["absent", chosen, "- a cache was chosen"],
    ["right", refusal, "- git push --force → refused by the user, not run (e3)"],
    ["absent", refusal, "- git push --force → exit 1"],
    ["right", commit, "- commit 1a2b3c4: Close the socket (e7)"],
    ["absent", commit, "- commit 1a2b3c4"],
    ["right", read, "- read, but not changed:\n    src/b.ts"],
    ["wrong", read, "- changed files:\n    src/b.ts"],
    ["right", read, "- key findings: they are simple dependencies added to src/b.ts"],
    ["wrong", read, "- last action (e9): Edit edited src/b.ts"],
    ["wrong", read, "After that I updated `src/b.ts`."],
    ["right", push, "- git push → exit 128"],
    ["wrong", push, "- git push: succeeded"],
    ["right", published, "do not run npm publish"],
    ["wrong", published, "- commands:\n    npm publish"]
  ]
  for (const [verdict, asked, context] of cases) {
    it(`say ${verdict}: ${asked.subject.slice(0, 30)} in ${JSON.stringify(context.slice(0, 60))}`, () => {
      const others = [question("exit code", "go test ./a -run TestTheFirstOther", "1")]
      assert.strictEqual(new StateAnswers([asked, ...others], context, ["/work"]).verdictOf(asked), verdict)
    })
  }
})

describe("questions about a whole conversation", () => {
  /** What a perfect snapshot says about a question. */
  const told = ({ expected, kind, subject }: StateQuestion): string => {
    switch (kind) {
      case "exit code":
        return `- ${subject} → exit ${expected === "failed" ? "1" : expected}`
      case "test run":
        return `- tests ${expected}`
      case "file":
        return `- ${subject}: ${expected === "changed" ? "modified" : expected}`
      case "value":
        return `- ${subject}: ${expected}`
      case "item":
        return `- [${expected}] ${subject}`
      case "refusal":
        return `- ${subject} → refused by the user, not run`
      case "commit":
        return `- commit 1a2b3c4: ${subject}`
      case "constraint":
      case "decision":
      case "order":
        return `<user_words entry="e1">${subject}</user_words>`
      case "never happened":
        return ""
    }
  }
  const conversations = Array.from({ length: runsOf(20, 4) }, (_, seed) =>
    entries(...plantFacts(seed).rounds.flatMap((round) => round.map(({ content }) => content)))
  )
  const answered = (conversation: ReadonlyArray<Entry>, write: (asked: ReadonlyArray<StateQuestion>) => string) => {
    const asked = stateQuestions(conversation, ["/work/app"])
    const answers = new StateAnswers(asked, write(asked), ["/work/app"])
    return asked.map((question) => ({ question, verdict: answers.verdictOf(question) }))
  }

  it("are all answered by a complete text, which states nothing that never happened", () => {
    for (const conversation of conversations) {
      const wrong = answered(conversation, (asked) => asked.map(told).join("\n")).filter(
        ({ verdict }) => verdict !== "right"
      )
      assert.deepStrictEqual(wrong, [])
    }
  })

  it("are not answered by an empty text, which states nothing wrong", () => {
    for (const conversation of conversations) {
      for (const { question, verdict } of answered(conversation, () => "")) {
        assert.strictEqual(verdict, question.kind === "never happened" ? "right" : "absent")
      }
    }
  })
})
