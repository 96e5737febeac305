import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path } from "effect"
import type { Answer, ApprovalMode, ToolKind } from "../../../../src/domain/tools/Approval.ts"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"
import { Approval, type ApprovalQuestion } from "../../../../src/services/tools/Approval.ts"
import { FileRecorder } from "../../../../src/services/tools/builtin/FileChange.ts"
import { enterPlanMode, exitPlanMode } from "../../../../src/services/tools/builtin/PlanMode.ts"
import { writeFile } from "../../../../src/services/tools/builtin/WriteFile.ts"
import { Plans } from "../../../../src/services/tools/Plans.ts"
import type { Tool, ToolFailure } from "../../../../src/services/tools/Tool.ts"
import { agent, asking, calling, saying, tool, transcript } from "../../../support/agents.ts"
import { context } from "../../../support/callTool.ts"
import { taken } from "../../../support/sending.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** A workspace and a home that does not exist yet, the tools of a plan, and somebody who answers. */
const scene = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>, mode: ApprovalMode = "none") {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const top = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), (folder) => fs.realPath(folder))
  const root = path.join(top, "work")
  yield* fs.makeDirectory(root)
  yield* fs.writeFileString(path.join(root, "design.md"), "From the workspace.\n")
  // The home is reached through a link, as /tmp is on some systems.
  yield* fs.makeDirectory(path.join(top, "real"))
  yield* fs.symlink(path.join(top, "real"), path.join(top, "link"))
  const folder = path.join(top, "link", "home", "plans")
  const plans = yield* Plans.make({ folder, session: "s1" })
  const asked: Array<ApprovalQuestion> = []
  const recorded: Array<string> = []
  const approval = yield* Approval.make({
    mode,
    granted: [],
    planFile: plans.file,
    ask: (question) =>
      Effect.sync(() => {
        asked.push(question)
        return answers[asked.length - 1] ?? { _tag: "No", words: "" }
      })
  })
  const here = Layer.mergeAll(
    FileWorkspace.layer({ root, readable: [plans.kept], writable: [plans.file] }),
    Layer.succeed(Plans, plans),
    Layer.succeed(Approval, approval),
    Layer.succeed(FileRecorder, (record) => Effect.sync(() => (recorded.push(record.path), Effect.void)))
  ).pipe(Layer.provideMerge(NodeServices.layer))
  const tools = yield* Effect.provide(Effect.all({ enter: enterPlanMode, exit: exitPlanMode, write: writeFile }), here)
  /** Calls a tool as an agent does, a person's leave included. */
  const call = Effect.fnUntraced(function* (tool: Tool, args: unknown): Effect.fn.Return<string, ToolFailure> {
    const made = yield* tool.call(args, context)
    const question = yield* made.question
    if (question !== undefined) {
      const all = { ...question, agent: "main", tool: tool.name, kind: tool.kind, title: made.title }
      const decision = yield* approval.decide(all, (work) => work)
      if (decision._tag === "Denied") return `denied: ${question.otherwise ?? ""} ${decision.words}`
      if (decision._tag === "Refused") return `refused: ${decision.why}`
    }
    return String((yield* made.run).value)
  })
  return { approval, asked, call, fs, path, plans, recorded, root, top, ...tools }
})

const failure = <A>(work: Effect.Effect<A, ToolFailure>) =>
  Effect.map(Effect.flip(work), ({ message, type }) => `${type}: ${message}`)

const inScene = (
  name: string,
  answers: ReadonlyArray<Answer>,
  steps: (
    at: Effect.Success<ReturnType<typeof scene>>
  ) => Generator<Effect.Effect<unknown, unknown, NodeServices.NodeServices>, unknown, never>,
  mode?: ApprovalMode
) =>
  it.effect(name, NodeServices.layer, function* () {
    const at = yield* scene(answers, mode)
    yield* Effect.gen(() => steps(at))
  })

const yes: Answer = { _tag: "Once" }

describe("a plan from draft to approval", () => {
  inScene(
    "a person is asked before and after; in between only the plan is written; then things are as before",
    [yes, yes],
    function* ({ approval, asked, call, enter, exit, fs, plans, root, top, write }) {
      assert.isTrue(plans.file.startsWith(`${top}/real/home/plans/`))
      assert.strictEqual(yield* plans.approved, undefined)
      const begun = yield* call(enter, { reason: "Many files are concerned." })
      assert.include(begun, plans.file)
      assert.match(asked[0]?.detail ?? "", /^Many files are concerned\.\n/)
      assert.strictEqual(yield* approval.mode, "plan")

      const refused = yield* call(write, { file_path: "a.ts", content: "a" })
      assert.match(refused, /^refused: write_file was not run: .*exit_plan_mode/)
      assert.isFalse(yield* fs.exists(`${root}/a.ts`))
      yield* call(write, { file_path: plans.file, content: "1. Do it.\n" })
      assert.strictEqual(asked.length, 1)
      // It is the user's alone from the beginning, with all folders that had to be made.
      const rights = (place: string) => Effect.map(fs.stat(place), ({ mode }) => mode & 0o777)
      assert.strictEqual(yield* rights(plans.file), 0o600)
      assert.strictEqual(yield* rights(`${top}/real/home/plans`), 0o700)
      assert.strictEqual(yield* rights(`${top}/real/home`), 0o700)

      const ended = yield* call(exit, {})
      assert.strictEqual(asked[1]?.detail, "1. Do it.\n")
      assert.include(ended, plans.kept)
      assert.strictEqual(yield* approval.mode, "none")
      assert.strictEqual(yield* plans.approved, plans.kept)
      assert.strictEqual(yield* fs.readFileString(plans.kept), "1. Do it.\n")
      assert.strictEqual((yield* fs.stat(plans.kept)).mode & 0o777, 0o600)
      assert.deepStrictEqual((yield* fs.readDirectory(`${top}/real/home/plans`)).toSorted(), [
        "s1.approved.md",
        "s1.md"
      ])
      // Another program that opens the session knows it too.
      const again = yield* Effect.provide(
        Plans.make({ folder: `${top}/link/home/plans`, session: "s1" }),
        NodeServices.layer
      )
      assert.strictEqual(yield* again.approved, plans.kept)
    }
  )

  inScene(
    "nobody is asked for a plan who wanted one already",
    [],
    function* ({ asked, call, enter }) {
      assert.match(yield* call(enter, {}), /already/)
      assert.deepStrictEqual(asked, [])
    },
    "plan"
  )

  inScene(
    "a no leaves things as they were",
    [{ _tag: "No", words: "just do it" }],
    function* ({ approval, call, enter }) {
      assert.strictEqual(yield* call(enter, {}), "denied: continue without a plan just do it")
      assert.strictEqual(yield* approval.mode, "none")
    }
  )

  inScene(
    "a plan that is not approved goes on, with the user's words",
    [{ _tag: "No", words: "tests first" }],
    function* ({ approval, call, exit, plans }) {
      assert.match(yield* call(exit, { plan: "Code first." }), /^denied: revise the plan .* tests first$/)
      assert.strictEqual(yield* approval.mode, "plan")
      assert.strictEqual(yield* plans.approved, undefined)
    },
    "plan"
  )

  inScene(
    "who says so lets edits run from then on",
    [{ _tag: "Session" }],
    function* ({ asked, call, exit, fs, root, write }) {
      yield* call(exit, { plan: "Edit a.ts." })
      yield* call(write, { file_path: "a.ts", content: "a" })
      assert.strictEqual(yield* fs.readFileString(`${root}/a.ts`), "a")
      assert.strictEqual(asked.length, 1)
    },
    "plan"
  )

  inScene(
    "what was seen is what is kept, whatever the file holds meanwhile",
    [yes],
    function* ({ approval, exit, fs, path, plans }) {
      yield* fs.makeDirectory(path.dirname(plans.file), { recursive: true })
      yield* fs.writeFileString(plans.file, "seen")
      const made = yield* exit.call({}, context)
      assert.strictEqual((yield* made.question)?.detail, "seen")
      yield* fs.writeFileString(plans.file, "not seen")
      yield* made.run
      assert.strictEqual(yield* fs.readFileString(plans.kept), "seen")
      assert.strictEqual(yield* approval.mode, "none")
    },
    "plan"
  )

  inScene(
    "a plan file that is there already keeps its rights, and files of the workspace get what others get",
    [yes],
    function* ({ call, fs, path, plans, recorded, root, write }) {
      const rights = (place: string) => Effect.map(fs.stat(place), ({ mode }) => mode & 0o777)
      yield* fs.makeDirectory(path.dirname(plans.file), { recursive: true })
      yield* fs.writeFileString(plans.file, "old")
      yield* fs.chmod(plans.file, 0o640)
      yield* call(write, { file_path: plans.file, content: "new" })
      assert.strictEqual(yield* rights(plans.file), 0o640)
      yield* fs.writeFileString(path.join(root, "usual"), "")
      yield* call(write, { file_path: "a.ts", content: "a" })
      assert.strictEqual(yield* rights(path.join(root, "a.ts")), yield* rights(path.join(root, "usual")))
      // A rewind does not take a plan back.
      assert.deepStrictEqual(recorded, [path.join(yield* fs.realPath(root), "a.ts")])
    },
    "all"
  )

  inScene(
    "tools may read the approved plan and not change it",
    [yes, yes, yes],
    function* ({ call, exit, plans, write }) {
      yield* call(exit, { plan_path: "design.md" })
      const refused = yield* failure(call(write, { file_path: plans.kept, content: "other" }))
      assert.match(refused, /^path_not_in_workspace: .*read-only/)
    },
    "plan"
  )
})

describe("a plan that cannot be shown", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, file: string | Uint8Array | undefined, args: unknown, failure: RegExp]
  > = [
    [
      "the file is missing",
      undefined,
      {},
      /^plan_missing: there is no plan in .*s1\.md; write the plan to .*write_file/
    ],
    ["it is empty", " \n", {}, /^plan_missing: .* is empty; write the plan/],
    ["it is no text", "a\0b", {}, /^plan_missing: .* is not a text file/],
    ["it is too long", "x".repeat(300_000), {}, /^file_too_large: .*make the plan shorter/],
    ["it is too long as an argument", undefined, { plan: "x".repeat(300_000) }, /^file_too_large: the plan has/],
    ["it lies elsewhere", undefined, { plan_path: "/etc/passwd" }, /^path_not_in_workspace: /],
    ["it is a folder", undefined, { plan_path: "." }, /^target_is_directory: /],
    ["blank text counts as missing", undefined, { plan: " ", plan_path: "s1.md" }, /^plan_missing: /]
  ]
  for (const [rule, file, args, expected] of cases) {
    inScene(
      rule,
      [yes],
      function* ({ approval, asked, call, exit, fs, path, plans }) {
        if (file !== undefined) {
          yield* fs.makeDirectory(path.dirname(plans.file), { recursive: true })
          yield* typeof file === "string" ? fs.writeFileString(plans.file, file) : fs.writeFile(plans.file, file)
        }
        assert.match(yield* failure(call(exit, args)), expected)
        assert.deepStrictEqual(asked, [])
        assert.strictEqual(yield* approval.mode, "plan")
      },
      "plan"
    )
  }

  inScene("no plan is being made", [yes], function* ({ call, exit }) {
    assert.match(yield* failure(call(exit, { plan: "x" })), /^no_plan_mode: .*enter_plan_mode/)
  })

  inScene(
    "a folder that cannot be written leaves the plan unapproved",
    [yes],
    function* ({ approval, call, exit, fs, path, plans, top }) {
      yield* fs.writeFileString(path.join(top, "real", "home"), "in the way")
      assert.match(yield* failure(call(exit, { plan: "x" })), /^file_write_failure: the approved plan was not stored/)
      assert.strictEqual(yield* approval.mode, "plan")
      assert.strictEqual(yield* plans.approved, undefined)
    },
    "plan"
  )
})

describe("a planning agent", () => {
  it.effect("is told to plan first when it calls a changing tool, unasked; reading tools run", function* () {
    const ran: Array<string> = []
    const named = (name: string, kind: ToolKind) =>
      tool(name, kind, (word) => Effect.sync(() => `${ran.push(name)} ${word}`))
    const { chat, run } = yield* agent({
      tools: [named("look", "read"), named("edit", "edit"), named("run", "execute"), named("fetch", "fetch")],
      mode: "plan",
      ask: ({ kind }) => Effect.succeed<Answer>(kind === "fetch" ? { _tag: "Once" } : { _tag: "No", words: "asked" }),
      answers: [
        calling(asking("look", "a"), asking("edit", "b"), asking("run", "c"), asking("fetch", "d")),
        saying("The plan.")
      ]
    })
    const { events } = yield* taken(run("go"))
    assert.deepStrictEqual(ran, ["look", "fetch"])
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "ToolCallResponse" ? [event.status] : [])),
      ["success", "denied", "denied", "success"]
    )
    const told = (yield* transcript(chat)).join("\n")
    assert.match(told, /edit was not run: while a plan is made/)
    assert.match(told, /run was not run: while a plan is made/)
    assert.notMatch(told, /asked/)
  })
})
