import { Duration, Effect, Layer } from "effect"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import { Approval } from "../../../../src/services/tools/Approval.ts"
import { activateSkill } from "../../../../src/services/tools/builtin/ActivateSkill.ts"
import { askUser } from "../../../../src/services/tools/builtin/AskUser.ts"
import { glob } from "../../../../src/services/tools/builtin/Glob.ts"
import { listDirectory } from "../../../../src/services/tools/builtin/ListDirectory.ts"
import { enterPlanMode, exitPlanMode } from "../../../../src/services/tools/builtin/PlanMode.ts"
import { readFile } from "../../../../src/services/tools/builtin/ReadFile.ts"
import { readManyFiles } from "../../../../src/services/tools/builtin/ReadManyFiles.ts"
import { replace } from "../../../../src/services/tools/builtin/Replace.ts"
import { searchFiles } from "../../../../src/services/tools/builtin/SearchFiles.ts"
import { shell } from "../../../../src/services/tools/builtin/Shell.ts"
import { writeFile } from "../../../../src/services/tools/builtin/WriteFile.ts"
import { writeTodos } from "../../../../src/services/tools/builtin/WriteTodos.ts"
import { Plans } from "../../../../src/services/tools/Plans.ts"
import { Skills } from "../../../../src/services/tools/Skills.ts"
import { UserPrompt } from "../../../../src/services/tools/UserPrompt.ts"
import { callTool } from "../../../support/callTool.ts"
import { facts } from "../../../support/chatTerminal.ts"
import * as Processes from "../../../support/processes.ts"
import { expect, it } from "../../../support/vitest.ts"
import { inMemory } from "../../../support/workspaces.ts"

/** What the user sees of each tool: how its calls are named, asked for and answered. Of sentences only names, numbers and ids are looked at. */

const here = Layer.mergeAll(
  Layer.succeed(Environment, { variables: Effect.succeed({}) }),
  Layer.succeed(Skills, {
    all: Effect.succeed({ skills: [], problems: [] }),
    load: (name) =>
      Effect.succeed({
        name,
        description: "Brews_1.",
        folder: "/s",
        instructions: "Boil_1.",
        files: ["a.sh"],
        hasMore: false
      })
  }),
  Layer.succeed(UserPrompt, { ask: ({ text }) => Effect.succeed(`answer to "${text}"`) }),
  Processes.layer(() => ({ out: "made_1\n", third: "101 0\n" })),
  Approval.layer({ mode: "none", granted: [] }),
  Layer.effect(Plans, Plans.make({ folder: "/work/plans", session: "s_1" }))
).pipe(
  Layer.provideMerge(
    inMemory({
      "a.txt": "one\ntwo\none\n",
      "b.txt": "one\n",
      "wide.txt": `${"x".repeat(2_001)}\n`,
      "long.txt": "line\n".repeat(2_001),
      "empty.txt": "",
      "p.png": Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0]),
      "q.bin": Uint8Array.from([1, 0]),
      "sub/c.ts": "one\n",
      "none/": "",
      ".git/HEAD": "",
      ".gitignore": "*.log\n",
      "d.log": ""
    })
  )
)

const tools = Effect.all([
  listDirectory,
  glob,
  searchFiles,
  readFile,
  readManyFiles,
  writeFile,
  replace,
  shell,
  Effect.succeed(writeTodos),
  activateSkill,
  askUser,
  enterPlanMode,
  exitPlanMode
])

/** Calls of the tools, in this order. */
const calls: Readonly<Record<string, ReadonlyArray<object>>> = {
  list_directory: [{ dir_path: "." }, { path: "sub" }, { dir_path: "none" }],
  glob: [{ pattern: "*.txt" }, { pattern: "*.ts", dir_path: "sub" }, { pattern: "*.rs" }],
  search_file_content: [
    { pattern: "one" },
    { pattern: "two", dir_path: "a.txt" },
    { pattern: "one", total_max_matches: 2 },
    { pattern: "one", names_only: true },
    { pattern: "two", names_only: true, include: "*.txt" },
    { pattern: "three" }
  ],
  read_file: [
    { file_path: "a.txt" },
    { file_path: "long.txt", start_line: 2_000 },
    { file_path: "long.txt", end_line: 1 },
    { file_path: "wide.txt" },
    { file_path: "empty.txt" },
    { file_path: "p.png" }
  ],
  read_many_files: [{ include: ["*.txt", "p.*"] }, { include: ["."] }, { paths: "none" }],
  write_file: [
    { file_path: "new/e.txt", content: "" },
    { file_path: "b.txt", content: "two\n" },
    { file_path: "b.txt", content: "two\n" },
    { file_path: `${"sub/../".repeat(30)}b.txt`, content: "three\n" }
  ],
  replace: [{ file_path: "a.txt", old_string: "two", new_string: "2\n3" }],
  run_shell_command: [{ command: "make 1" }, { command: "make 2", dir_path: "sub" }],
  write_todos: [{ todos: [] }, { todos: [{ description: "look_1", status: "pending" }] }],
  activate_skill: [{ name: "brew_1" }],
  ask_user: [{ questions: [{ question: "One_1?" }, { question: "Two_2?" }] }],
  enter_plan_mode: [{ reason: "why_1" }, {}],
  exit_plan_mode: [{ plan: "- one_1" }]
}

it.effect(
  "each tool is shown like this: see `test/golden/tool-calls.txt`; renew it by `vitest -u`",
  here,
  function* () {
    const shown: Array<string> = []
    for (const tool of yield* tools) {
      const { aliases, isNeverMasked, kind, name, timeout } = tool
      shown.push(
        `# ${[name, ...aliases].join(", ")}: ${kind}, ${Duration.format(timeout)}${isNeverMasked ? ", never masked" : ""}`
      )
      for (const args of calls[name] ?? []) {
        const { question, result, title } = yield* callTool(tool, args)
        const { display, media = [], value } = result
        const { covers = "", detail = "", grants = [], mustBeSeen, otherwise, touches = [] } = question ?? {}
        shown.push(
          `> ${title}`,
          ...(question === undefined
            ? []
            : [
                `? ${[...grants, covers, ...touches].join(" | ")}${mustBeSeen === true ? " | seen" : ""}${otherwise === undefined ? "" : " | otherwise"}`,
                `  ${detail.split("\n").join("\n  ")}`
              ]),
          `= ${display === undefined ? "" : display._tag === "Text" ? display.text.replaceAll("\n", " / ") : JSON.stringify(display)}`,
          `  ${facts(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 200)}`,
          ...media.map(({ inlineData }) => `  ${inlineData?.mimeType} ${inlineData?.data}`)
        )
      }
    }
    const text = shown.map((line) => line.trimEnd()).join("\n")
    yield* Effect.promise(() => expect(`${text}\n`).toMatchFileSnapshot("../../../golden/tool-calls.txt"))
  }
)
