import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  type CommandHook,
  enabledHooks,
  hookName,
  HooksConfigSettings,
  hookProblemText,
  hooksOf,
  HooksSettings,
  hookText,
  newHooksWarning,
  uniqueHooks
} from "../../../src/domain/hooks/HookSettings.ts"

const command = { type: "command", command: "lint.sh" } as const

const read = (value: unknown) => {
  const { hooks, problems } = hooksOf(Schema.decodeUnknownSync(HooksSettings)(value), "home")
  return { hooks, warnings: problems.map(hookProblemText) }
}

const hook = (fields: Partial<CommandHook>): CommandHook => ({
  source: "workspace",
  event: "BeforeTool",
  matcher: undefined,
  sequential: false,
  command: "lint.sh",
  name: undefined,
  description: undefined,
  timeout: undefined,
  env: {},
  ...fields
})

describe("hooksOf", () => {
  it("reads every field of a hook, with its source", () => {
    const { hooks, warnings } = read({
      AfterTool: [
        {
          matcher: "write_file|replace",
          sequential: true,
          hooks: [{ ...command, name: "lint", description: "checks", timeout: 500, env: { MODE: "strict" } }, command]
        }
      ]
    })
    assert.deepStrictEqual(warnings, [])
    const shared = { source: "home", event: "AfterTool", matcher: "write_file|replace", sequential: true } as const
    assert.deepStrictEqual(hooks, [
      hook({ ...shared, name: "lint", description: "checks", timeout: 500, env: { MODE: "strict" } }),
      hook(shared)
    ])
  })

  it.each([
    ["an unknown event", { BeforeTools: [] }, /no event BeforeTools; the events are BeforeTool, /],
    ["a key that older settings have beside the events", { enabled: true }, /belongs in hooksConfig/],
    ["no list of groups", { BeforeTool: { hooks: [command] } }, /^hooks\.BeforeTool is ignored: it is not a list$/],
    ["a group that is no object", { BeforeTool: ["x"] }, /^hooks\.BeforeTool\[0\] is ignored: it is not an object$/],
    [
      "a group without hooks",
      { BeforeTool: [{ matcher: "x" }] },
      /BeforeTool\[0\]\.hooks is ignored: it is not a list/
    ],
    ["a matcher that is no text", { BeforeTool: [{ matcher: 7, hooks: [command] }] }, /its matcher is not a string/],
    [
      "a hook that is no object",
      { BeforeTool: [{ hooks: ["lint.sh"] }] },
      /hooks\[0\] is ignored: it is not an object/
    ],
    ["a hook without a type", { BeforeTool: [{ hooks: [{ command: "x" }] }] }, /has no type/],
    ["an unknown type", { BeforeTool: [{ hooks: [{ type: "http", url: "x" }] }] }, /has the unknown type http/],
    ["no command", { BeforeTool: [{ hooks: [{ type: "command" }] }] }, /has no command/],
    ["a blank command", { BeforeTool: [{ hooks: [{ ...command, command: " " }] }] }, /has no command/]
  ])("%s is left out with one warning, and nothing else with it", (_rule, wrong, expected) => {
    const { hooks, warnings } = read({ ...wrong, SessionEnd: [{ hooks: [command] }] })
    assert.deepStrictEqual(
      hooks.map(({ event }) => event),
      ["SessionEnd"]
    )
    assert.strictEqual(warnings.length, 1)
    assert.match(warnings[0] ?? "", expected)
    assert.notInclude(warnings[0] ?? "", "\n")
  })

  it("drops optional fields of the wrong type with a warning each, and keeps the hook", () => {
    const { hooks, warnings } = read({
      BeforeAgent: [{ sequential: "yes", hooks: [{ ...command, name: 1, timeout: 0, env: { A: 1 } }, command] }]
    })
    assert.deepStrictEqual(hooks, [
      hook({ source: "home", event: "BeforeAgent" }),
      hook({ source: "home", event: "BeforeAgent" })
    ])
    assert.deepStrictEqual(
      warnings.map((line) => line.split(" ")[0]),
      [
        "hooks.BeforeAgent[0].sequential",
        "hooks.BeforeAgent[0].hooks[0].name",
        "hooks.BeforeAgent[0].hooks[0].timeout",
        "hooks.BeforeAgent[0].hooks[0].env"
      ]
    )
  })

  it("drops unknown keys of hooksConfig", () => {
    const decoded = Schema.decodeUnknownSync(HooksConfigSettings)({ enabled: false, notifications: true })
    assert.deepStrictEqual(decoded, { enabled: false })
  })
})

describe("enabledHooks", () => {
  const hooks = [hook({ name: "lint" }), hook({}), hook({ name: "audit", command: "audit.sh" })]

  it.each([
    ["nothing is set", {}, ["lint", "lint.sh", "audit"]],
    ["a name", { disabled: ["lint"] }, ["lint.sh", "audit"]],
    ["a command switches off who has no name", { disabled: ["lint.sh", "audit.sh"] }, ["lint", "audit"]],
    ["all of them", { enabled: false }, []]
  ])("%s", (_rule, config, expected) => {
    assert.deepStrictEqual(enabledHooks(hooks, config).map(hookName), expected)
  })
})

describe("uniqueHooks", () => {
  const twin = { command: "lint.sh", event: "BeforeTool", matcher: "edit", env: { A: "1", B: "2" } } as const

  it("keeps the user's hook of two equal ones, wherever it stands", () => {
    const [theirs, own] = [hook({ ...twin, timeout: 1 }), hook({ ...twin, name: "mine", source: "home" })]
    assert.deepStrictEqual(uniqueHooks([theirs, own]), [own])
    assert.deepStrictEqual(uniqueHooks([own, theirs]), [own])
  })

  it("keeps the first of one source, whatever the names", () => {
    const [first, second] = [hook({ ...twin, name: "one" }), hook({ ...twin, name: "two", env: { B: "2", A: "1" } })]
    assert.deepStrictEqual(uniqueHooks([first, second]), [first])
    assert.lengthOf(uniqueHooks([hook({}), hook({ matcher: "*" }), hook({ matcher: " " })]), 1)
  })

  it.each<readonly [string, Partial<CommandHook>]>([
    ["event", { event: "AfterTool" }],
    ["matcher", { matcher: "read" }],
    ["command", { command: "lint.sh " }],
    ["variables", { env: { A: "1", B: "3" } }]
  ])("what differs in its %s is another hook", (_rule, fields) => {
    assert.lengthOf(uniqueHooks([hook({ ...twin, source: "home" }), hook({ ...twin, ...fields })]), 2)
  })
})

it.each<readonly [string, Partial<CommandHook>, string]>([
  ["its event and its command, in quotes", {}, `BeforeTool: "lint.sh"`],
  ["its name beside the command", { name: "lint" }, `BeforeTool: "lint" runs "lint.sh"`],
  ["its matcher", { matcher: "edit|write" }, `BeforeTool on "edit|write": "lint.sh"`],
  ["its variables", { env: { NODE_OPTIONS: "-r ./x.js" } }, `BeforeTool: "lint.sh" with "NODE_OPTIONS=-r ./x.js"`],
  ["a line of its own as what it is", { command: "# fine\nevil" }, String.raw`BeforeTool: "# fine\nevil"`],
  ["what cannot be seen spelled out", { command: "a\u202eb" }, String.raw`BeforeTool: "a\u202eb"`],
  ["quotes as its own", { command: `a", SessionEnd: "b` }, String.raw`BeforeTool: "a\", SessionEnd: \"b"`],
  ["blanks that would push it aside as one", { command: `true;${" ".repeat(900)}evil` }, `BeforeTool: "true; evil"`],
  [
    "of a long one how long it is",
    { command: "x".repeat(900) },
    `BeforeTool: "${"x".repeat(200)}…" (of 900 characters)`
  ]
])("hookText shows %s", (_rule, fields, expected) => {
  assert.strictEqual(hookText(hook(fields)), expected)
})

describe("newHooksWarning", () => {
  it("is one line that shows each command, even of named hooks", () => {
    assert.isUndefined(newHooksWarning([]))
    const line = newHooksWarning([hook({ command: "a\nb" }), hook({ name: "x", event: "SessionEnd" })]) ?? ""
    assert.match(line, /2 new hooks.*: BeforeTool: "a\\nb", SessionEnd: "x" runs "lint\.sh"$/)
    assert.notInclude(line, "\n")
  })

  it("lists as many as fit one line, and counts the rest", () => {
    const many = Array.from({ length: 30 }, (_, at) => hook({ command: `run-${at}` }))
    assert.match(newHooksWarning(many) ?? "", /30 new hooks.*"run-19", and 10 more$/)
  })
})
