import { assert, describe, it } from "@effect/vitest"
import {
  endpointProblem,
  isAccepted,
  secretValues,
  type EnvFileOwner,
  parseDotEnv,
  rejectedVariables,
  acceptedVariables
} from "../../../src/domain/settings/DotEnv.ts"

const variables = (text: string) => Object.fromEntries(parseDotEnv(text).variables)

describe("a .env file", () => {
  const cases: ReadonlyArray<readonly [rule: string, text: string, says: Readonly<Record<string, string>>]> = [
    ["nothing", "", {}],
    ["one line, without a line end", "A=1", { A: "1" }],
    ["spaces around the sign and at the end", "  A =  one two  \nB=2\t\n", { A: "one two", B: "2" }],
    ["line ends of Windows, and a mark at the beginning", "\uFEFFA=1\r\nB=2\r\n", { A: "1", B: "2" }],
    ["export", "export A=1\nexport\tB = 2\nexported=3", { A: "1", B: "2", exported: "3" }],
    ["comments", "# A=1\n  # B=2\nC=3 # three\nD=4#four\nE=#none\nF= # none\n", { C: "3", D: "4#four", E: "", F: "" }],
    ["an empty value", "A=\nB=''\nC=\"\"\n", { A: "", B: "", C: "" }],
    ["single quotes keep all", `A='a # b \\n $B "c"' # d`, { A: 'a # b \\n $B "c"' }],
    ["double quotes know escapes", `A="a\\nb\\t\\"c\\" \\\\ \\$D \\x"`, { A: 'a\nb\t"c" \\ $D \\x' }],
    ["backticks", 'A=`it\'s "so"`', { A: `it's "so"` }],
    ["values over several lines", `A="one\ntwo"\nB='x\n\ny'\nC=3`, { A: "one\ntwo", B: "x\n\ny", C: "3" }],
    ["nothing is filled in", 'A=$HOME\nB="${HOME}"\nC=`$(id)`', { A: "$HOME", B: "${HOME}", C: "$(id)" }],
    ["the later line counts", "A=1\nA=2", { A: "2" }],
    ["quotes within a value are part of it", `A=it's`, { A: "it's" }],
    ["equal signs in a value", "A=b=c==", { A: "b=c==" }]
  ]
  it.each(cases)("%s", (_rule, text, says) => {
    assert.deepStrictEqual(variables(text), says)
    assert.deepStrictEqual(parseDotEnv(text).problems, [])
  })

  const broken: ReadonlyArray<
    readonly [rule: string, text: string, line: number, message: string, says: Readonly<Record<string, string>>]
  > = [
    ["a line that sets nothing", "A=1\nnothing\nB=2", 2, "expected NAME=value", { A: "1", B: "2" }],
    ["a name that is none", "1A=1\nB=2", 1, "expected NAME=value", { B: "2" }],
    ["a quote that nothing closes", `A=1\n\nB="2\nC=3`, 3, "expected a closing quote", { A: "1", C: "3" }],
    ["words behind a quote", `A="1\n2" 3\nB=2`, 1, "expected nothing after the closing quote", { B: "2" }]
  ]
  it.each(broken)("%s is reported, and the rest is used", (_rule, text, line, message, says) => {
    const { problems } = parseDotEnv(text)
    assert.deepStrictEqual(problems.slice(0, 1), [{ line, text: message }])
    assert.deepStrictEqual(variables(text), says)
  })

  it("a problem does not quote the line", () => {
    const { problems } = parseDotEnv("AIza-a-key\nA='AIza-a-key")
    assert.notInclude(JSON.stringify(problems), "AIza")
  })

  it("reads long lines of one character in linear time", () => {
    for (const text of [
      " ".repeat(60_000),
      `A=${" ".repeat(60_000)}b`,
      `A="${"\\".repeat(60_001)}`,
      "`".repeat(60_000)
    ]) {
      assert.isAtMost(parseDotEnv(text).variables.size, 1)
    }
  })
})

describe("variables of this program", () => {
  /** From whose files a variable is accepted. */
  const cases: ReadonlyArray<readonly [owners: ReadonlyArray<EnvFileOwner>, names: string]> = [
    [
      ["person", "folder", "project"],
      `GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GEMINI_BASE_URL GEMINI_MODEL GEMINI_SYSTEM_MD
        GEMINI_PROMPT_GIT PALIMPSEST_MODEL PALIMPSEST_MAX_TURNS PALIMPSEST_STRATEGY
        PALIMPSEST_MEMORY_DOWNWARD`
    ],
    [["person", "folder"], "NO_COLOR"],
    [
      ["person"],
      `GEMINI_EXP GEMINI_SANDBOX OTEL_EXPORTER_OTLP_ENDPOINT DEBUG PALIMPSEST_APPROVE
        PALIMPSEST_FOLDER_TRUST PALIMPSEST_ALLOW_PRIVATE_NETWORK PALIMPSEST_PASS_ENVIRONMENT
        PALIMPSEST_TELEMETRY_ENDPOINT PALIMPSEST_TELEMETRY_ENABLED PALIMPSEST_HOOKS_CONFIG_ENABLED
        PALIMPSEST_HOOKS_CONFIG_DISABLED PALIMPSEST_HOOKS_CONFIG_TIMEOUT PALIMPSEST_MEMORY_FILE_NAMES
        PALIMPSEST_MEMORY_BOUNDARIES PALIMPSEST_INCLUDE_DIRECTORIES PALIMPSEST_IDE_FILE
        PALIMPSEST_NOTHING_OF_THE_KIND`
    ],
    [
      [],
      `GEMINI_WRITE_SYSTEM_MD PALIMPSEST_HOME PALIMPSEST_AGENT GEMINI_CLI_HOME
        GEMINI_CLI_TRUST_WORKSPACE GOOGLE_CLOUD_PROJECT PATH LD_PRELOAD NODE_OPTIONS HTTPS_PROXY
        gemini_api_key`
    ]
  ]
  for (const [owners, names] of cases) {
    it.each(names.split(/\s+/))(
      `%s: ${owners.length === 0 ? "from no file" : `from files of ${owners.join(", ")}`}`,
      (name) => {
        const all = ["person", "folder", "project"] as const
        assert.deepStrictEqual(
          all.filter((owner) => isAccepted(name, owner)),
          owners
        )
      }
    )
  }

  it("ignores empty and blank values", () => {
    const file = parseDotEnv(`GEMINI_API_KEY=\nGOOGLE_API_KEY="  "\nGEMINI_MODEL=x\nPATH=/bin\nPALIMPSEST_HOME=\n`)
    assert.deepStrictEqual(acceptedVariables(file, "project"), { GEMINI_MODEL: "x" })
    assert.deepStrictEqual(rejectedVariables(file, "project"), [])
  })

  it("names variables of this program that a file must not set, and not those of others", () => {
    const file = parseDotEnv(
      "GEMINI_WRITE_SYSTEM_MD=x\nGEMINI_EXP=x\nPALIMPSEST_APPROVE=all\nGEMINI_SANDBOX=1\nDEBUG=1\nPATH=/x\n"
    )
    const names = ["GEMINI_WRITE_SYSTEM_MD", "GEMINI_EXP", "PALIMPSEST_APPROVE"]
    assert.deepStrictEqual(rejectedVariables(file, "folder"), names)
    assert.deepStrictEqual(rejectedVariables(file, "project"), names)
    assert.deepStrictEqual(rejectedVariables(file, "person"), ["GEMINI_WRITE_SYSTEM_MD"])
  })

  it("hides keys, also in headers, and nothing else", () => {
    const hidden = secretValues({
      GEMINI_API_KEY: "a-key-of-some-length",
      OTEL_EXPORTER_OTLP_HEADERS: "x-team=blue-and-green",
      GEMINI_MODEL: "gemini-2.5-flash"
    })
    assert.deepStrictEqual(hidden, [
      { value: "x-team=blue-and-green", instead: "[redacted: OTEL_EXPORTER_OTLP_HEADERS]" },
      { value: "a-key-of-some-length", instead: "[redacted: GEMINI_API_KEY]" }
    ])
  })
})

it.each([
  ["counts with a key of its own", { GEMINI_API_KEY: "k" }, [], undefined],
  ["counts with the other kind of key", { GOOGLE_API_KEY: "k" }, [], undefined],
  ["is left out without a key", {}, [], "the file sets no key for it"],
  ["is left out without a key, whatever the environment sets", {}, ["GEMINI_API_KEY"], "the file sets no key for it"],
  [
    "is left out where the environment sets keys",
    { GEMINI_API_KEY: "k" },
    ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    "GEMINI_API_KEY and GOOGLE_API_KEY from the environment would be sent there"
  ]
] as const)("an endpoint that a folder chooses %s", (_title, variables, environmentKeys, expected) => {
  const problem = endpointProblem(variables, environmentKeys)
  assert.strictEqual(problem, expected)
})
