import { Deferred, Effect, Fiber } from "effect"
import type { Answer } from "../../../src/domain/tools/Approval.ts"
import { steeringNote } from "../../../src/domain/tools/SteeringFiles.ts"
import { Approval, type ApprovalQuestion } from "../../../src/services/tools/Approval.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const edit: ApprovalQuestion = {
  agent: "main",
  tool: "write_file",
  kind: "edit",
  title: "write_file a.ts",
  detail: "a",
  grants: ["edit"],
  covers: "edits of files"
}
const alone = <A, E, R>(work: Effect.Effect<A, E, R>) => work
const tagOf = (approval: Approval["Service"], asked: ApprovalQuestion) =>
  Effect.map(approval.decide(asked, alone), ({ _tag }) => _tag)

/** Somebody who gives these answers, one after the other, and what they were asked. */
const person = (...answers: ReadonlyArray<Answer>) => {
  const asked: Array<string> = []
  return {
    asked,
    ask: ({ title }: ApprovalQuestion): Effect.Effect<Answer> =>
      Effect.sync(() => {
        asked.push(title)
        return answers[asked.length - 1] ?? { _tag: "No", words: "" }
      })
  }
}

describe("Approval", () => {
  it.effect("never has a wider mode than its widest, whatever is set and when a plan ends", function* () {
    const approval = yield* Approval.make({ mode: "all", widest: "none", granted: [] })
    assert.strictEqual(yield* approval.mode, "none")
    assert.strictEqual(yield* tagOf(approval, edit), "Denied")
    yield* approval.setMode("edits")
    assert.strictEqual(yield* tagOf(approval, edit), "Denied")
    yield* approval.setMode("plan")
    assert.strictEqual(yield* tagOf(approval, edit), "Refused")
    assert.strictEqual(yield* approval.leavePlan, "none")
    const planning = yield* Approval.make({ mode: "all", widest: "plan", granted: ["edit"] })
    assert.strictEqual(yield* planning.leavePlan, "plan")
    assert.strictEqual(yield* tagOf(planning, edit), "Refused")
  })

  it.effect.each(["Session", "Always"] as const)("an answer holds for all that its call needs (%s)", function* (_tag) {
    const both: ApprovalQuestion = { ...edit, kind: "execute", grants: ["shell:make", "shell:node"] }
    const kept: Array<string> = []
    const { ask, asked } = person({ _tag })
    const keep = (grants: ReadonlyArray<string>) => Effect.sync(() => void kept.push(...grants))
    const approval = yield* Approval.make({ mode: "none", granted: [], folder: "/w", ask, keep })
    for (const grants of [both.grants, ["shell:make"], ["shell:node"], both.grants]) {
      assert.strictEqual(yield* tagOf(approval, { ...both, grants }), "Allowed")
    }
    assert.strictEqual(yield* tagOf(approval, { ...both, grants: ["shell:rm"] }), "Denied")
    assert.lengthOf(asked, 2)
    assert.deepStrictEqual(kept, _tag === "Always" ? ["shell:make in /w", "shell:node in /w"] : [])
  })

  it.effect("a file that runs by itself is asked for in any mode; its grant is its own, and passes", function* () {
    const hook: ApprovalQuestion = {
      ...edit,
      title: "write_file .husky/a",
      grants: ["edit:/w/.husky/a"],
      because: "git runs it"
    }
    const other: ApprovalQuestion = { ...hook, title: "write_file .husky/b", grants: ["edit:/w/.husky/b"] }
    const kept: Array<string> = []
    const reasons: Array<string | undefined> = []
    const approval = yield* Approval.make({
      mode: "edits",
      granted: ["edit"],
      keep: (grants) => Effect.sync(() => void kept.push(...grants)),
      ask: ({ because, title }) =>
        Effect.sync((): Answer => {
          reasons.push(because)
          return title.endsWith("a") ? { _tag: "Always" } : { _tag: "No", words: "" }
        })
    })
    assert.strictEqual(yield* tagOf(approval, edit), "Allowed")
    assert.deepStrictEqual(reasons, [])
    assert.strictEqual(yield* tagOf(approval, hook), "Allowed")
    assert.strictEqual(yield* tagOf(approval, hook), "Allowed")
    assert.strictEqual(yield* tagOf(approval, other), "Denied")
    assert.deepStrictEqual(kept, [])
    // What such files are is told with the first question.
    assert.deepStrictEqual(reasons, [`git runs it. ${steeringNote}`, "git runs it"])
    yield* approval.setMode("all")
    assert.strictEqual(yield* tagOf(approval, other), "Allowed")
    yield* approval.setMode("plan")
    assert.strictEqual(yield* tagOf(approval, hook), "Refused")
  })

  it.effect("what is always allowed is kept for its folder, and can be taken back", function* () {
    const { ask, asked } = person({ _tag: "Always" }, { _tag: "Session" }, { _tag: "No", words: "" })
    const kept: Array<string> = []
    const forgotten: Array<string> = []
    const options = {
      mode: "none",
      folder: "/a",
      ask,
      keep: (grants: ReadonlyArray<string>) => Effect.sync(() => void kept.push(...grants)),
      forget: (grant: string) => Effect.sync(() => void forgotten.push(grant))
    } as const
    const approval = yield* Approval.make({ ...options, granted: [] })
    const server: ApprovalQuestion = { ...edit, kind: "execute", grants: ["mcp:docs"] }
    assert.strictEqual(yield* tagOf(approval, edit), "Allowed")
    assert.strictEqual(yield* approval.shownMode, "edits")
    assert.strictEqual(yield* tagOf(approval, server), "Allowed")
    assert.deepStrictEqual(kept, ["edit in /a"])
    assert.deepStrictEqual(yield* approval.grants, [
      { grant: "edit in /a", isKept: true },
      { grant: "mcp:docs", isKept: false }
    ])
    // In the next folder the same edit asks.
    const elsewhere = yield* Approval.make({ mode: "none", folder: "/b", granted: kept })
    assert.strictEqual(yield* tagOf(elsewhere, edit), "Denied")
    yield* approval.withdraw("edit in /a")
    yield* approval.withdraw("mcp:docs")
    // Only what was kept is taken out of the settings.
    assert.deepStrictEqual([forgotten, yield* approval.grants], [["edit in /a"], []])
    assert.strictEqual(yield* approval.shownMode, "none")
    assert.strictEqual(yield* tagOf(approval, edit), "Denied")
    assert.strictEqual(asked.length, 3)
  })

  it.effect("a change of the mode by its key always shows, and stays within the widest", function* () {
    const modes = Effect.fnUntraced(function* (options: Parameters<typeof Approval.make>[0]) {
      const approval = yield* Approval.make(options)
      const seen: Array<string> = []
      for (let count = 0; count < 4; count += 1) {
        yield* approval.cycle
        seen.push(yield* approval.shownMode)
      }
      return seen.join(" ")
    })
    assert.strictEqual(yield* modes({ mode: "none", granted: [] }), "edits plan none edits")
    assert.strictEqual(yield* modes({ mode: "none", granted: ["edit"] }), "plan edits plan edits")
    assert.strictEqual(yield* modes({ mode: "all", granted: [] }), "none edits plan all")
    assert.strictEqual(yield* modes({ mode: "none", widest: "none", granted: [] }), "plan none plan none")
  })

  it.effect("the end of planning restores the mode before it, however often planning began", function* () {
    const approval = yield* Approval.make({ mode: "edits", granted: [] })
    assert.strictEqual(yield* approval.leavePlan, "edits")
    yield* approval.setMode("plan")
    yield* approval.setMode("plan")
    assert.strictEqual(yield* approval.mode, "plan")
    assert.strictEqual(yield* tagOf(approval, edit), "Refused")
    assert.strictEqual(yield* approval.leavePlan, "edits")
    assert.strictEqual(yield* approval.mode, "edits")
    assert.strictEqual(yield* tagOf(approval, edit), "Allowed")
  })

  it.effect("after a start in plan mode the user chooses a mode; a manual end keeps the chosen one", function* () {
    const approval = yield* Approval.make({ mode: "plan", granted: [] })
    assert.strictEqual(yield* approval.leavePlan, "none")
    yield* approval.setMode("plan")
    yield* approval.setMode("all")
    assert.strictEqual(yield* approval.leavePlan, "all")
  })

  it.effect("earlier grants are suspended while planning", function* () {
    const { ask, asked } = person({ _tag: "Session" })
    const approval = yield* Approval.make({ mode: "none", granted: [], ask, planFile: "/p/s.md" })
    assert.strictEqual(yield* tagOf(approval, edit), "Allowed")
    yield* approval.setMode("plan")
    const decision = yield* approval.decide(edit, alone)
    assert.strictEqual(decision._tag, "Refused")
    assert.match(decision._tag === "Refused" ? decision.why : "", /\/p\/s\.md/)
    assert.strictEqual(yield* tagOf(approval, { ...edit, touches: ["/p/s.md"] }), "Allowed")
    yield* approval.leavePlan
    assert.strictEqual(yield* tagOf(approval, edit), "Allowed")
    assert.deepStrictEqual(asked, ["write_file a.ts"])
  })

  it.effect("a call waiting when planning begins is refused without a question", function* () {
    const answered = yield* Deferred.make<Answer>()
    const asked: Array<string> = []
    const approval = yield* Approval.make({
      mode: "none",
      granted: [],
      ask: ({ title }) =>
        Effect.andThen(
          Effect.sync(() => asked.push(title)),
          Deferred.await(answered)
        )
    })
    const first = yield* Effect.forkChild(tagOf(approval, { ...edit, title: "first" }), { startImmediately: true })
    const second = yield* Effect.forkChild(tagOf(approval, { ...edit, title: "second" }), { startImmediately: true })
    yield* approval.setMode("plan")
    yield* Deferred.succeed(answered, { _tag: "Once" })
    assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["Allowed", "Refused"])
    assert.deepStrictEqual(asked, ["first"])
  })

  it.effect("without a terminal, what would be asked is denied", function* () {
    const approval = yield* Approval.make({ mode: "plan", granted: [] })
    assert.strictEqual(yield* tagOf(approval, { ...edit, kind: "fetch", grants: ["fetch:a"] }), "Denied")
    assert.strictEqual(yield* tagOf(approval, edit), "Refused")
  })
})
