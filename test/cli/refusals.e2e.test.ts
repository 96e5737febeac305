import { existsSync, readdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { strategies } from "../../src/domain/compression/strategies/Strategies.ts"
import { sessionFile } from "../support/sessions.ts"
import { assert, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

/** What the program is called with and cannot do: status 2, nothing on stdout, and one line that says why, for every command. */

const names = strategies.map(({ name }) => name).join(", ")
const share = "a fraction from 0 to 1, such as 0.5 or 50%"
const count = "a whole number, such as 64000, 64k or 1.5M"
const short = sessionFile("claude-code-short")

/** What a flag is refused with, and the hint that follows. */
const flag = (command: string, name: string, value: string, expected: string) =>
  `${name} ${value}: expected ${expected}\nTry "palimpsest ${command} --help".\n`

/** Files of the folder in which the rows run. */
const files: Readonly<Record<string, string>> = {
  "question.json": JSON.stringify([{ role: "user", parts: [{ text: "Is anybody there?" }] }]),
  "questions.jsonl": '{"question": "a", "answer": "b"}\n{"question": "a"}\n',
  "opencode.json": JSON.stringify({
    info: { id: "ses_1", directory: "/p", time: { created: 1, updated: 1 } },
    messages: [
      {
        info: { id: "msg_1", sessionID: "ses_1", role: "user", time: { created: 1 } },
        parts: [{ id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "text", text: "Is anybody there?" }]
      }
    ]
  }),
  "equals.prices": "input = 1",
  "unknown.prices": '{"models": {"m": {"input": 1, "output": 1, "x\\u001b[2J": 1}}}'
}

const rows: ReadonlyArray<readonly [args: ReadonlyArray<string>, says: RegExp | string]> = [
  [["--bogus"], /--bogus/],
  [["inspct", "x"], /inspect/],
  [[""], /there is no command ''; to ask a question:/],
  [["inspect", "x", ""], /unexpected argument ''\n/],
  [["inspect", "--bogus", "x"], /--bogus/],
  [["inspect", "x", "--from", "word"], /--from/],
  [["inspect", "talk.jsonl", "--redact-texts"], /--redact-texts needs --html/],
  [["inspect", "talk.jsonl", "--beside", "other.jsonl", "--json"], /either --beside or --json/],
  [["inspect", example, "--prices", "equals.prices"], /equals\.prices: .*not JSON.*expected/],
  [["inspect", example, "--prices", "unknown.prices"], /unknown\.prices: .*models\.m\.x: is not a known key.*expected/],
  [
    ["inspect", example, "--html", "no/page.html"],
    /no\/page\.html cannot be written: the folder [^\n]*\/no does not exist; /
  ],
  [["inspect", "question.json", "--html", "./question.json"], /another file/],
  [["export", short, "talk.html"], /talk.*: no format is written to/],
  [["export", short, "talk"], /talk.*: the name has no ending/],
  [["recall", "x", "h_a", "--lines", "9-1"], /--lines/],
  ...["h_zzzzzzzzzz", "h_", "nothing", "../../etc/passwd"].map(
    (handle) => [["recall", example, handle], /inspect[^\n]*lists the handles$/m] as const
  ),
  [["compress", "missing.jsonl", "--limit", "0"], /leaves no room/],
  [["compress", "missing.jsonl", "--strategy", ""], /--strategy/],
  [["compress", "missing.jsonl", "--in-place", "--out", "x"], /--in-place/],
  [
    ["compress", "opencode.json", "--force", "--in-place", "--window", "64k"],
    /opencode cannot be changed in place; [^\n]*--out/
  ],
  [["compress", example, "--strategy", "best"], flag("compress", "--strategy", "best", `one of ${names}`)],
  [["compress", example, "-o", "x"], /compress has no flag -o\n/],
  [["compress", example, "--outt", "x"], /compress has no flag --outt; did you mean --out\?/],
  [["compress", example, "--threshold", "2"], flag("compress", "--threshold", "2", share)],
  [["compress", example, "--window", "-5"], flag("compress", "--window", "-5", count)],
  [
    ["compress", example, "--tool-output-form", "first-lines"],
    flag("compress", "--tool-output-form", "first-lines", "last-lines, head-tail-chars or head-tail-lines")
  ],
  [
    ["compress", example, "--model", ","],
    flag("compress", "--model", ",", "the name of a model, or names with commas between them")
  ],
  [["chat", "--strategy", "pi,gemini"], flag("chat", "--strategy", "pi,gemini", `one of ${names}`)],
  [
    ["eval", example, "--strategy", "pi,best"],
    flag("eval", "--strategy", "pi,best", `strategies with commas between them, of ${names}`)
  ],
  [["eval", short, "--questions", "questions.jsonl"], /line 2: answer has to be a text or a list of texts/],
  [["eval", short, "--questions", "none"], /none: no such file; --questions expects/],
  [["eval"], /name a recorded conversation, or plant facts with --planted N/],
  [["eval", "--planted", "-1"], /--planted -1: expected 1 or more conversations/],
  [["replay", example], /--window/],
  [["replay", example, "--window", "0"], /leaves no room/],
  [["replay", example, "--window", "8k", "--strategy", "gemini,best"], /of palimpsest, gemini/],
  [["replay", example, "--window", "500"], /--window 500 is too small/],
  [["replay", "question.json", "--window", "8k"], /it has no model answers/],
  [["replay"], /: the argument <file> is missing\nTry "palimpsest replay --help"/],
  [["replay", example], /: the flag --window is missing\n/],
  [["inspect", example, "more"], /: unexpected argument more\n/],
  [["chat", "hello"], /: unexpected argument hello; to ask a question: palimpsest -p /],
  [["install", "word"], /: <agent> word: expected claude, codex, [^\n]* or pi\n/],
  [["gateway", "--port", "word"], /: --port word: expected a number\n/],
  [["gateway", "--port"], /: --port needs a value\n/],
  [["compress", example, "--focus"], /: --focus needs a value\n/],
  [["compress", example, "--window="], /: --window: expected a whole number, /],
  [["chat", "--approve"], /: --approve: expected none, edits, all or plan\n/],
  [["ask", "x", "-m", "a", "-m", "b"], /: --model is given 2 times; give it once\n/],
  [["ask", "x", "--output-format", "yaml"], /: --output-format: expected text, json or stream-json\n/],
  [["help", "replya"], /there is no command replya; did you mean replay\?/],
  [["ask", "x", "-m", "openai"], /: name a model of openai, as in openai\/MODEL/],
  [["serve", "--model", "openrouter/x"], /: there is no provider openrouter \(known: /],
  [["ask"], /the prompt is empty/],
  [["ask", "x", "--json", "--stream-json"], /not both/],
  [["ask", "x", "--session", "a", "--resume", "b"], /exclude each other/],
  [["ask", "x", "--resume", "nope"], /no session nope/],
  [["ask", "x", "--session", "a b"], /letters, digits/],
  [["gateway", "--upstream", "mistral=http://x"], /--upstream mistral=http:\/\/x: expected anthropic=/]
]

it.live.each(rows)("palimpsest refuses in one line: %j", function* ([args, says]) {
  const { folder } = yield* program
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text)
  const { status, stderr, stdout } = yield* run(args, {
    // Nobody listens there: a request would end with another status.
    env: {
      PALIMPSEST_HOME: `${folder}-refusals`,
      GEMINI_API_KEY: "none",
      GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:9"
    }
  })
  assert.deepStrictEqual([status, String(stdout)], [2, ""], stderr)
  assert.match(stderr, /^palimpsest: [^\n]+\n(?:Try "palimpsest[^\n]*--help"\.\n)?$/)
  assert.notInclude(stderr, "\u001b")
  if (typeof says === "string") assert.strictEqual(stderr, `palimpsest: ${says}`)
  else assert.match(stderr, says)
  for (const name of ["talk", "talk.html", "x"]) assert.isFalse(existsSync(path.join(folder, name)))
  const sessions = `${folder}-refusals/sessions`
  assert.deepStrictEqual(existsSync(sessions) ? readdirSync(sessions) : [], [])
})
