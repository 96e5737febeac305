import { assert, describe, it } from "@effect/vitest"
import { concerns, hiddenFrom, parseDotEnv, takenFrom } from "../../src/domain/DotEnv.ts"

const variables = (text: string) => Object.fromEntries(parseDotEnv(text).variables)

describe("what a file says", () => {
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
  for (const [rule, text, says] of cases) {
    it(rule, () => {
      assert.deepStrictEqual(variables(text), says)
      assert.deepStrictEqual(parseDotEnv(text).problems, [])
    })
  }

  const broken: ReadonlyArray<
    readonly [rule: string, text: string, line: number, message: string, says: Readonly<Record<string, string>>]
  > = [
    ["a line that sets nothing", "A=1\nnothing\nB=2", 2, "expected NAME=value", { A: "1", B: "2" }],
    ["a name that is none", "1A=1\nB=2", 1, "expected NAME=value", { B: "2" }],
    ["a quote that nothing closes", `A=1\n\nB="2\nC=3`, 3, "expected a closing quote", { A: "1", C: "3" }],
    ["words behind a quote", `A="1\n2" 3\nB=2`, 1, "expected nothing behind the closing quote", { B: "2" }]
  ]
  for (const [rule, text, line, message, says] of broken) {
    it(`${rule} is told, and the rest counts`, () => {
      const { problems } = parseDotEnv(text)
      assert.deepStrictEqual(problems[0], { line, message })
      assert.deepStrictEqual(variables(text), says)
    })
  }

  it("a problem does not say what stands there", () => {
    const { problems } = parseDotEnv("AIza-a-key\nA='AIza-a-key")
    assert.notInclude(JSON.stringify(problems), "AIza")
  })

  it("long lines of one character take no long time", () => {
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

describe("what concerns this program", () => {
  const cases: ReadonlyArray<readonly [name: string, isProjects: boolean, concerned: boolean]> = [
    ["GEMINI_API_KEY", true, true],
    ["GEMINI_SYSTEM_MD", true, true],
    ["GOOGLE_API_KEY", true, true],
    ["GOOGLE_GEMINI_BASE_URL", true, true],
    ["PALIMPSEST_MODEL", true, true],
    ["PALIMPSEST_HOME", false, false],
    ["GEMINI_CLI_HOME", false, false],
    ["GEMINI_CLI_TRUST_WORKSPACE", false, false],
    ["GOOGLE_CLOUD_PROJECT", false, false],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", false, true],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", true, false],
    ["NO_COLOR", false, true],
    ["DEBUG", true, false],
    ["PATH", false, false],
    ["LD_PRELOAD", false, false],
    ["NODE_OPTIONS", false, false],
    ["HTTPS_PROXY", false, false]
  ]
  for (const [name, isProjects, concerned] of cases) {
    it(`${name}${isProjects ? " of a project's own file" : ""}: ${concerned ? "yes" : "no"}`, () => {
      assert.strictEqual(concerns(name, isProjects), concerned)
    })
  }

  it("what is empty says nothing", () => {
    const file = parseDotEnv("GEMINI_API_KEY=\nGEMINI_MODEL=x\nPATH=/bin\n")
    assert.deepStrictEqual(takenFrom(file, true), { GEMINI_MODEL: "x" })
  })

  it("keys are hidden, also those in headers; the rest is not", () => {
    const hidden = hiddenFrom({
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
