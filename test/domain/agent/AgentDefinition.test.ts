import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  fillTemplate,
  inputsFromPrompt,
  isIgnored,
  localDefaults,
  parseDefinitions,
  remotePlace,
  selectTools
} from "../../../src/domain/agent/AgentDefinition.ts"

const file = (front: string, body = "You do it.") => `---\n${front}\n---\n${body}\n`
const usual = "name: one\ndescription: Does it"

const problem = (text: string): string => {
  const read = parseDefinitions(text)
  return Result.isFailure(read) ? read.failure : "(none)"
}

describe("a definition of a local agent", () => {
  it("takes fields from its file and defaults for the rest", () => {
    assert.deepStrictEqual(
      parseDefinitions(file(usual, "\nYou do it.\n\n---\n\nAlways.")),
      Result.succeed([
        {
          ...localDefaults,
          kind: "local" as const,
          name: "one",
          displayName: undefined,
          description: "Does it",
          prompt: "You do it.\n\n---\n\nAlways.",
          query: undefined,
          runner: "inside" as const
        }
      ])
    )
  })

  it("accepts every field", () => {
    const read = parseDefinitions(
      file(`kind: local
name: a-b_1
display_name: A
description: >
  Does
  much
tools:
  - read_file
  - "*"
  - mcp_*
  - mcp_git_*
mcp_servers:
  git:
    command: git-mcp
model: gemini-2.5-pro
temperature: 0
top_p: 1
max_turns: 5
timeout_mins: 1
compression_threshold: 0.3
runner: process`)
    )
    assert.isTrue(Result.isSuccess(read))
    const [agent] = Result.isSuccess(read) ? read.success : []
    assert.deepInclude(agent, {
      name: "a-b_1",
      displayName: "A",
      description: "Does much",
      tools: ["read_file", "*", "mcp_*", "mcp_git_*"],
      mcpServers: { git: { command: "git-mcp" } },
      model: "gemini-2.5-pro",
      temperature: 0,
      topP: 1,
      maxTurns: 5,
      timeoutMinutes: 1,
      compressionThreshold: 0.3,
      runner: "process"
    })
  })

  it("accepts Windows line ends and a byte order mark", () => {
    assert.isTrue(Result.isSuccess(parseDefinitions(`\uFEFF${file(usual)}`.replaceAll("\n", "\r\n"))))
  })

  const wrong: ReadonlyArray<readonly [what: string, front: string, expected: RegExp]> = [
    ["no name", "description: x", /^name: expected lower-case letters/],
    ["a name that is no slug", "name: My Agent\ndescription: x", /^name: expected lower-case letters/],
    ["no description", "name: x", /^description: expected a text that says/],
    ["a blank description", `name: x\ndescription: "  "`, /^description: expected/],
    ["a kind that there is none of", `${usual}\nkind: alien`, /^kind: expected local or remote$/],
    ["a tool that is no name", `${usual}\ntools: ["read file"]`, /^tools: expected a list of tool names/],
    ["tools that are no list", `${usual}\ntools: read_file`, /^tools: expected a list/],
    ["servers that are none", `${usual}\nmcp_servers: [a]`, /^mcp_servers: expected servers by name/],
    ["a temperature that is none", `${usual}\ntemperature: hot`, /^temperature: expected a number from 0 to 2$/],
    ["no turns", `${usual}\nmax_turns: 0`, /^max_turns: expected a whole number above 0$/],
    ["half a turn", `${usual}\nmax_turns: 1.5`, /^max_turns: expected/],
    ["negative minutes", `${usual}\ntimeout_mins: -1`, /^timeout_mins: expected a whole number of minutes above 0$/],
    ["a runner that there is none of", `${usual}\nrunner: moon`, /^runner: expected process/],
    ["an unknown field", `${usual}\ncolour: red`, /^colour: there is no such field; expected one of name, /],
    [
      "an unknown field of a remote agent",
      "name: x\nkind: remote\nagent_card_url: https://a.b\ntools: [a]",
      /^tools: there is no such field; expected one of name, /
    ],
    ["a list with a word", "- x", /^agent 1 of the list: expected an object/],
    ["an empty list", "[]", /^front matter: expected at least one agent$/],
    ["two wrong fields", "name: A\ndescription: x\nmax_turns: 0", /^name: expected .*; max_turns: expected/],
    ["YAML that is none", `${usual}\n  bad: [`, /^front matter: expected YAML; /],
    ["a bare asterisk", `${usual}\ntools:\n  - *`, /front matter: expected YAML; .*; write "\*" with quotes$/],
    ["words", "just words", /^front matter: expected fields/],
    [
      "a remote agent without a card",
      "name: x\nkind: remote",
      /^agent_card_url: expected either this or agent_card_json$/
    ],
    [
      "a remote agent with two cards",
      "name: x\nkind: remote\nagent_card_url: https://a.b\nagent_card_json: '{}'",
      /^agent_card_url: expected either/
    ],
    [
      "a card elsewhere than in the web",
      "name: x\nkind: remote\nagent_card_url: file:///etc",
      /^agent_card_url: expected an address/
    ],
    ["a card that is no JSON", "name: x\nkind: remote\nagent_card_json: '{'", /^agent_card_json: expected the card/],
    [
      "a way to ask that there is none of",
      "name: x\nkind: remote\nagent_card_url: https://a.b\nauth:\n  type: magic",
      /^auth: expected/
    ],
    [
      "a list with a broken agent",
      "- name: a\n  agent_card_url: https://a.b\n- name: B\n  agent_card_url: https://a.b",
      /^agent 2 of the list: name: expected/
    ]
  ]
  it.each(wrong)("is refused in one line that names the field: %s", (_, front, expected) => {
    const found = problem(file(front))
    assert.match(found, expected)
    assert.notInclude(found, "\n")
  })

  it("is refused without front matter or without a prompt below it", () => {
    assert.match(problem("You do it."), /^expected front matter/)
    assert.match(problem(file(usual, " ")), /^the text below the front matter: expected/)
  })
})

it("a definition of remote agents accepts one agent or a list", () => {
  const one = parseDefinitions(
    file(
      "kind: remote\nname: far\nagent_card_url: https://a.b/card\nauth:\n  type: http\n  scheme: Bearer\n  token: $TOKEN",
      ""
    )
  )
  const two = parseDefinitions(
    file(`- name: far\n  agent_card_url: https://a.b\n- name: near\n  agent_card_json: '{"name":"n"}'`, "")
  )
  assert.deepStrictEqual(
    one,
    Result.succeed([
      {
        kind: "remote" as const,
        name: "far",
        displayName: undefined,
        description: undefined,
        auth: { type: "http" as const, scheme: "Bearer", token: "$TOKEN" },
        card: { url: "https://a.b/card" }
      }
    ])
  )
  assert.deepStrictEqual(Result.isSuccess(two) ? two.success.map(({ name }) => name) : [], ["far", "near"])
})

describe("filling in", () => {
  it("replaces inputs in one pass: placeholders within an input are not replaced", () => {
    assert.deepStrictEqual(
      fillTemplate("${a} and ${b}, $c ${d }", { a: "${b} $& $1", b: { x: 1 } }),
      Result.succeed('${b} $& $1 and {"x":1}, $c ${d }')
    )
  })

  it("names each missing input once", () => {
    assert.deepStrictEqual(fillTemplate("${a} ${b} ${a} ${toString}", { b: "x" }), Result.fail(["a", "toString"]))
  })

  it("accepts plain text for a single input and requires JSON for several", () => {
    const agent = { ...localDefaults, kind: "local" as const, name: "x", description: "x", prompt: "x" }
    const two = { ...agent, inputs: { a: localDefaults.inputs.query, b: localDefaults.inputs.query } }
    assert.deepStrictEqual(inputsFromPrompt(agent, "do"), Result.succeed({ query: "do" }))
    assert.deepStrictEqual(inputsFromPrompt(two, '{"a":"1","b":"2"}'), Result.succeed({ a: "1", b: "2" }))
    assert.deepStrictEqual(inputsFromPrompt(two, "do"), Result.fail("x takes a, b: give them as a JSON object"))
  })
})

describe("choosing tools", () => {
  const tools = ["read_file", "mcp_git_log", "mcp_gitlab_list", "search"].map((name) => ({
    name,
    aliases: name === "search" ? ["grep_search"] : []
  }))
  const cases: ReadonlyArray<readonly [patterns: ReadonlyArray<string> | undefined, expected: ReadonlyArray<string>]> =
    [
      [undefined, ["read_file", "mcp_git_log", "mcp_gitlab_list", "search"]],
      [[], []],
      [["*"], ["read_file", "mcp_git_log", "mcp_gitlab_list", "search"]],
      [["mcp_*"], ["mcp_git_log", "mcp_gitlab_list"]],
      [["mcp_git_*"], ["mcp_git_log"]],
      [["read_file", "gone"], ["read_file"]],
      [["grep_search"], ["search"]],
      [["read_*"], []]
    ]
  for (const [patterns, expected] of cases) {
    it(`${patterns === undefined ? "no pattern" : JSON.stringify(patterns)} selects ${expected.join(", ") || "none"}`, () => {
      assert.deepStrictEqual(
        selectTools(patterns, tools).map(({ name }) => name),
        expected
      )
    })
  }

  it("leaves out names that begin with _", () => {
    assert.isTrue(isIgnored("_draft.md"))
    assert.isFalse(isIgnored("draft_.md"))
  })
})

describe("the description of an agent", () => {
  const described = (front: string) => {
    const [agent] = Result.getOrThrow(parseDefinitions(file(front)))
    return agent?.description
  }
  it("has no line breaks", () => {
    assert.strictEqual(described('name: one\ndescription: " a\\n\\u0085b\\tc\\u2028d\\e "'), "a b c d")
    assert.isUndefined(described('kind: remote\nname: one\nagent_card_url: https://x.org\ndescription: " \\n"'))
  })
  it("has at most 1,000 characters", () => {
    assert.strictEqual(described(`name: one\ndescription: ${"x".repeat(1_000)}`), "x".repeat(1_000))
    const long = `kind: remote\nname: one\nagent_card_url: https://x.org\ndescription: ${"x".repeat(1_001)}`
    assert.strictEqual(described(long), `${"x".repeat(999)}…`)
  })
})

describe("the recipients of a task", () => {
  const remote = (card: { readonly url: string } | { readonly json: string }) =>
    remotePlace({ kind: "remote", name: "one", displayName: undefined, description: undefined, auth: undefined, card })
  it("are the host of the card", () => {
    assert.strictEqual(remote({ url: "http://169.254.169.254/latest" }), "169.254.169.254")
    assert.strictEqual(remote({ url: "https://me@agents.example.org:8443/a" }), "agents.example.org:8443")
  })
  it("are all hosts that an inline card names", () => {
    const json = {
      url: "https://old.example.org/",
      supportedInterfaces: [{ url: "https://new.example.org/a" }, { url: "https://new.example.org/b" }, { url: 1 }, 2],
      additionalInterfaces: [{ url: "http://127.0.0.1:80/" }, { url: "nothing" }]
    }
    assert.strictEqual(
      remote({ json: JSON.stringify(json) }),
      "old.example.org, new.example.org, 127.0.0.1, an invalid address"
    )
    for (const text of ["{}", "not json", '{"supportedInterfaces":7}']) {
      assert.strictEqual(remote({ json: text }), "an invalid address")
    }
  })
  it("are none", () =>
    assert.isUndefined(remotePlace({ ...localDefaults, kind: "local", name: "one", description: "x", prompt: "x" })))
})
