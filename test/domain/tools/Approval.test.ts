import { assert, describe, it } from "@effect/vitest"
import {
  ApprovalMode,
  denial,
  grantIn,
  grantText,
  narrowerMode,
  nextMode,
  planModeRefusal,
  serverGrant,
  shownMode,
  startingModes,
  type ToolKind,
  type Verdict,
  verdict,
  withMode,
  withoutPlan,
  type ApprovalRequest
} from "../../../src/domain/tools/Approval.ts"

const planFile = "/home/plans/s.md"

const judged = (
  mode: ApprovalMode,
  wish: Partial<ApprovalRequest> & Pick<ApprovalRequest, "kind">,
  granted: ReadonlyArray<string> = []
) => verdict({ mode, granted: new Set(granted), planFile }, { grants: [], ...wish })

describe("a call that needs approval", () => {
  const grants: Readonly<Record<ToolKind, ReadonlyArray<string>>> = {
    read: ["tool:docs"],
    edit: ["edit"],
    execute: ["shell:git"],
    fetch: ["fetch:a.example"]
  }
  /** What was not granted, and what was. */
  const cases: ReadonlyArray<readonly [ApprovalMode, ToolKind, Verdict, Verdict]> = [
    ["none", "read", "asked", "allowed"],
    ["none", "edit", "asked", "allowed"],
    ["none", "execute", "asked", "allowed"],
    ["none", "fetch", "asked", "allowed"],
    ["edits", "read", "asked", "allowed"],
    ["edits", "edit", "allowed", "allowed"],
    ["edits", "execute", "asked", "allowed"],
    ["edits", "fetch", "asked", "allowed"],
    ["all", "read", "allowed", "allowed"],
    ["all", "edit", "allowed", "allowed"],
    ["all", "execute", "allowed", "allowed"],
    ["all", "fetch", "allowed", "allowed"],
    ["plan", "read", "asked", "allowed"],
    ["plan", "edit", "refused", "refused"],
    ["plan", "execute", "refused", "refused"],
    ["plan", "fetch", "asked", "allowed"]
  ]
  it.each(cases)("%s, %s: %s; granted: %s", (mode, kind, otherwise, granted) => {
    assert.strictEqual(judged(mode, { kind, grants: grants[kind] }), otherwise)
    assert.strictEqual(judged(mode, { kind, grants: grants[kind] }, grants[kind]), granted)
  })

  it("the table covers every kind in every mode", () => {
    assert.strictEqual(new Set(cases.map(([mode, kind]) => `${mode} ${kind}`)).size, ApprovalMode.literals.length * 4)
  })

  // a: allowed, -: asked, r: refused; without a grant, granted, not granted, one of two, a file that edits do not cover, a server's.
  const wishes = [[], ["edit"], ["other"], ["edit", "other"], ["edit:/a"], ["mcp:s"]]
  const rows: Readonly<Record<ApprovalMode, readonly [plain: string, seen: string, reviewed: string]>> = {
    none: ["-a---a", "------", "------"],
    edits: ["-a---a", "------", "------"],
    all: ["aaaaaa", "aaaaaa", "------"],
    plan: ["-a----", "------", "------"]
  }
  it.each(ApprovalMode.literals)("depends on its grants, and on who has to see it: %s", (mode) => {
    const letters = { allowed: "a", asked: "-", refused: "r" }
    const found = [{}, { mustBeSeen: true }, { needsReview: true }].map((more) =>
      wishes
        .map((grants) => verdict({ mode, granted: new Set(["edit", "mcp:s"]) }, { kind: "fetch", grants, ...more }))
        .map((each) => letters[each])
        .join("")
    )
    assert.deepStrictEqual(found, [...rows[mode]])
  })
})

describe("a grant of a folder", () => {
  const asked = (folder: string, granted: ReadonlyArray<string>, grants: ReadonlyArray<string>) =>
    verdict({ mode: "none", folder, granted: new Set(granted) }, { kind: "edit", grants })

  it.each([
    ["edit in /a", "edit in /a", "allowed", "asked"],
    ["edit", "edit in /a", "allowed", "allowed"],
    ["edit in /a/b", "edit in /a", "asked", "asked"],
    [grantIn("mcp:docs", "/a"), "mcp:docs", "allowed", "asked"],
    [grantIn("shell:cat", "/a"), "shell:cat", "allowed", "asked"],
    [grantIn("fetch:a.example", "C:\\a"), "fetch:a.example", "asked", "asked"],
    ["edit:/a/.env", "edit in /a", "asked", "asked"]
  ] as const)("%s, for %s: %s there, %s in another folder", (granted, grant, there, elsewhere) => {
    assert.strictEqual(asked("/a", [granted], [grant]), there)
    assert.strictEqual(asked("/b", [granted], [grant.replace("/a", "/b")]), elsewhere)
  })

  it("is said in words", () => {
    const words = {
      edit: "edits of files in every folder",
      "edit in /a b": "edits of files in /a b",
      "edit:/a/.env": "edits of /a/.env",
      "shell:npm test in C:\\a": "the command npm test in C:\\a",
      "shell:/a $ npm ci in x": "exactly the command npm ci in x, in /a",
      "mcp:docs in /a": "the tools of the MCP server docs in /a",
      "fetch:a.example": "pages of a.example in every folder",
      "memory:global in /a": "facts in your own memory in /a",
      "memory:/a/AGENTS.md": "facts in /a/AGENTS.md",
      "browser in /a": "clicks and typing in the browser in /a",
      "other:x in /a": "other:x in /a"
    }
    for (const [grant, text] of Object.entries(words)) assert.strictEqual(grantText(grant), text)
  })

  it("shows as the mode edits, where edits do not ask", () => {
    const shown = (mode: ApprovalMode, ...granted: ReadonlyArray<string>) =>
      shownMode({ mode, folder: "/a", granted: new Set(granted) })
    assert.deepStrictEqual(
      [shown("none"), shown("none", "edit in /a"), shown("none", "edit"), shown("none", "edit in /b")],
      ["none", "edits", "edits", "none"]
    )
    assert.strictEqual(shown("plan", "edit"), "plan")
  })

  it("Shift+Tab leads to everything only where the session began with it", () => {
    const from = (first: ApprovalMode) => ApprovalMode.literals.map((mode) => nextMode(mode, first))
    assert.deepStrictEqual(from("none"), ["edits", "plan", "none", "none"])
    assert.deepStrictEqual(from("all"), ["edits", "plan", "none", "all"])
  })
})

describe("while planning", () => {
  const cases: ReadonlyArray<readonly [rule: string, wish: ApprovalRequest, what: Verdict]> = [
    ["the plan file is written", { kind: "edit", grants: [], touches: [planFile] }, "allowed"],
    ["another file is not", { kind: "edit", grants: ["edit"], touches: ["/work/a.ts"] }, "refused"],
    ["another plan is not", { kind: "edit", grants: ["edit"], touches: ["/home/plans/t.md"] }, "refused"],
    ["both are not", { kind: "edit", grants: ["edit"], touches: [planFile, "/work/a.ts"] }, "refused"],
    ["who says that nothing is touched is not believed", { kind: "edit", grants: ["edit"], touches: [] }, "refused"],
    ["who does not say what is touched", { kind: "edit", grants: ["edit"] }, "refused"],
    ["a command that touches the plan only", { kind: "execute", grants: [], touches: [planFile] }, "refused"]
  ]
  for (const [rule, wish, what] of cases) {
    it(`${rule}: ${what}`, () => {
      assert.strictEqual(judged("plan", wish, ["edit"]), what)
    })
  }

  it.each(["read", "fetch"] as const)("an MCP tool is asked for each time, even with a grant: %s", (kind) => {
    const grants = [serverGrant("docs")]
    assert.strictEqual(judged("plan", { kind, grants }, grants), "asked")
    assert.strictEqual(judged("none", { kind, grants }, grants), "allowed")
  })

  it("without a plan file no file is written", () => {
    const wish: ApprovalRequest = { kind: "edit", grants: ["edit"], touches: [planFile] }
    assert.strictEqual(verdict({ mode: "plan", granted: new Set(["edit"]) }, wish), "refused")
  })

  it("outside of planning the plan's file is a file like any other", () => {
    assert.strictEqual(judged("none", { kind: "edit", grants: ["edit"], touches: [planFile] }), "asked")
  })

  it("the model gets an instruction what to do first", () => {
    assert.match(planModeRefusal("replace", planFile), /^replace was not run: .*\/home\/plans\/s\.md.*exit_plan_mode/)
    assert.match(planModeRefusal("replace", undefined), /give the plan as your answer$/)
  })
})

describe("the mode that a plan gives way to", () => {
  const cases: ReadonlyArray<
    readonly [start: ApprovalMode, changes: ReadonlyArray<ApprovalMode>, after: ApprovalMode]
  > = [
    ["edits", [], "edits"],
    ["plan", [], "none"],
    ["edits", ["plan"], "edits"],
    ["none", ["all", "plan"], "all"],
    ["all", ["plan", "plan"], "all"],
    ["all", ["plan", "edits"], "edits"],
    ["plan", ["edits", "plan"], "edits"]
  ]
  for (const [start, changes, after] of cases) {
    it(`of ${[start, ...changes].join(", then ")} is ${after}`, () =>
      assert.deepStrictEqual(withoutPlan(changes.reduce(withMode, startingModes(start))), {
        now: after,
        before: after
      }))
  }
})

it.each([
  ["", undefined, "do without it, or ask what to do"],
  ["", "continue without a plan", "continue without a plan"],
  ["use ls", undefined, "they say: use ls"],
  ["use ls", "continue without a plan", "continue without a plan; they say: use ls"]
])("a denial with the words %j, otherwise %j, says: %s", (words, otherwise, advice) =>
  assert.strictEqual(denial("shell", words, otherwise), `the user denied this call of shell; ${advice}`)
)

it("of two modes the narrower lets fewer calls run: plan, none, edits, all", () => {
  const modes = ["plan", "none", "edits", "all"] as const
  for (const [at, one] of modes.entries()) {
    for (const [index, other] of modes.entries()) {
      assert.strictEqual(narrowerMode(one, other), modes[Math.min(at, index)], `${one} and ${other}`)
    }
    // A mode that a program without types made up counts as `none`.
    assert.strictEqual(narrowerMode("yolo" as ApprovalMode, one), narrowerMode("none", one))
  }
})
