import { assert, describe, it } from "@effect/vitest"
import { changedNames } from "../../../../src/domain/compression/evidence/ChangedNames.ts"
import { call, type Part } from "../../../../src/domain/content/Content.ts"

const edit = (before: string, after: string, path = "a"): Part =>
  call("Edit", { file_path: path, old_string: before, new_string: after }, "1")

describe("names that an edit changed", () => {
  const edits: ReadonlyArray<readonly [language: string, before: string, after: string, names: ReadonlyArray<string>]> =
    [
      ["TypeScript: a function", "", "export const parseDate = (text: string) => 1", ["+parseDate"]],
      ["TypeScript: a typed constant", "", "export const table: ReadonlyMap<string, number> = new Map()", ["+table"]],
      [
        "TypeScript: a method",
        "",
        "class Parser {\n  private async readNext(): Promise<void> {\n  }\n}",
        ["+Parser", "+readNext"]
      ],
      ["TypeScript: a generator", "", "export function* gather<A>(whole: A) {", ["+gather"]],
      ["TypeScript: renamed", "const oldName = 1", "const newName = 1", ["+newName", "-oldName"]],
      ["TypeScript: changed", "function run() { return 1 }", "function run() { return 2 }", ["run"]],
      [
        "TypeScript: an interface and a type",
        "",
        "interface Props {}\ntype Kind = 1\nenum Color {}",
        ["+Props", "+Kind", "+Color"]
      ],
      ["TypeScript: exported default", "", "export default class App extends Base {", ["+App"]],
      ["TypeScript: a test", "", 'it("adds two numbers", () => {', ["+adds two numbers"]],
      ["Go: a function", "", "func ParseDate(s string) error {", ["+ParseDate"]],
      ["Go: a method", "", "func (s *Server) handleLogin(w http.ResponseWriter) {", ["+handleLogin"]],
      ["Go: a type", "", "type Server struct {", ["+Server"]],
      ["Python: a function", "", "async def load_data(path):\n    pass", ["+load_data"]],
      [
        "Python: a class with a method",
        "",
        "class Loader(Base):\n    def run_all(self):\n        pass",
        ["+Loader", "+run_all"]
      ],
      [
        "Elixir: a module",
        "",
        "defmodule MyApp.Accounts.User do\n  def changeset(user, attrs) do\n  defp valid?(x), do: x",
        ["+MyApp.Accounts.User", "+changeset", "+valid?"]
      ],
      [
        "Rust: functions",
        "",
        "pub(crate) async fn parse_date(s: &str) -> u8 {\nunsafe fn raw_read() {}",
        ["+parse_date", "+raw_read"]
      ],
      [
        "Rust: types",
        "",
        "pub struct Parser<'a> {\npub enum Token {\npub trait Visit {",
        ["+Parser", "+Token", "+Visit"]
      ],
      [
        "Rust: an implementation",
        "",
        "impl<T> Visit for Parser<T> {\n    pub fn next_token(&mut self) {}",
        ["+next_token"]
      ],
      [
        "Java: a class with a method",
        "",
        "public class Parser {\n  public static int parseDate(String s) throws IOException {",
        ["+Parser", "+parseDate"]
      ],
      ["Java: a record", "", "public record Point(int x, int y) {}", ["+Point"]],
      [
        "Kotlin: functions",
        "",
        "suspend fun loadAll(): List<Int> {\ndata class Point(val x: Int)",
        ["+loadAll", "+Point"]
      ],
      [
        "Ruby: methods",
        "",
        "module Billing\n  class Invoice < Base\n    def self.build(x)\n    def paid?",
        ["+Billing", "+Invoice", "+build", "+paid?"]
      ],
      [
        "C#: a class with a method",
        "",
        "public sealed class Parser\n{\n    public async Task<int> ParseAsync(string s)\n    {",
        ["+Parser", "+ParseAsync"]
      ],
      [
        "PHP: functions",
        "",
        "final class Invoice\n{\n    public function totalOf(int $x): int\n    {",
        ["+Invoice", "+totalOf"]
      ],
      [
        "Swift: a function",
        "",
        "public func loadAll() async throws -> [Int] {\nstruct ContentView: View {",
        ["+loadAll", "+ContentView"]
      ],
      ["C: a function", "", "static int parse_date(const char *s)\n{\n", ["+parse_date"]],
      ["SQL: a table", "", "CREATE TABLE IF NOT EXISTS user_sessions (\n  id bigint\n);", ["+user_sessions"]],
      [
        "SQL: an index and a function",
        "",
        "create unique index users_email_idx on users (email);\nCREATE OR REPLACE FUNCTION touch_row() RETURNS trigger",
        ["+users_email_idx", "+touch_row"]
      ],
      ["SQL: a column", "", "ALTER TABLE users ADD COLUMN last_seen_at timestamptz;", ["+last_seen_at"]],
      ["Markdown: a heading", "", "# Guide\n\n## Set up the store\n\ntext", ["+Guide", "+Set up the store"]],
      ["Shell: a function", "", "run_all() {\n  echo\n}\nfunction clean_up {", ["+run_all", "+clean_up"]],
      ["CRLF", "def one\r\nend\r\n", "def one\r\nend\r\ndef two_three\r\nend\r\n", ["one", "+two_three"]],
      ["other letters", "", "class Größe:\n    def berechne_größe(self):", ["+Größe", "+berechne_größe"]]
    ]
  it.each(edits)("%s", (language, before, after, names) => {
    const changed = changedNames(edit(before, after, language.startsWith("Markdown") ? "docs/a.md" : "a"))
    assert.deepStrictEqual(
      names.filter((name) => !changed.includes(name)),
      [],
      changed.join(" ")
    )
  })

  const words: ReadonlyArray<readonly [language: string, text: string]> = [
    [
      "calls and control flow are no definitions",
      "if (ready) {\n  while (next()) {\n  for (const x of y) {\n  return parse(x)\n  switch (y) {"
    ],
    ["prose", "The class of problems that a function of this type has, let us see, const = 1."],
    ["a comment", "// function old() was here\n# class of its own\n/* def x */"]
  ]
  it.each(words)("%s", (_, text) => {
    assert.deepStrictEqual(
      changedNames(edit("", text)).filter((name) =>
        /^\+(?:if|while|for|return|switch|was|here|of|problems|old|that|its own)/.test(name)
      ),
      []
    )
  })

  it("reads every form of an edit", () => {
    const forms: ReadonlyArray<Record<string, unknown>> = [
      { old_string: "a", new_string: "function made() {}" },
      { old_str: "a", new_str: "function made() {}" },
      { oldText: "a", newText: "function made() {}" },
      { content: "function made() {}" },
      { file_text: "function made() {}" },
      { new_source: "function made() {}" },
      {
        edits: [
          { old_string: "a", new_string: "b" },
          { old_string: "a", new_string: "function made() {}" }
        ]
      }
    ]
    for (const args of forms) assert.include(changedNames(call("edit", args, "1")), "+made", JSON.stringify(args))
  })

  it("arguments that are no edit have none", () => {
    for (const args of [undefined, null, [], "x", { edits: "x" }, { edits: [null, 1] }, { old_string: 1 }]) {
      assert.deepStrictEqual(changedNames({ functionCall: { name: "edit", args } } as Part), [])
    }
  })

  it("a giant text is read up to a bound", () => {
    const giant = Array.from({ length: 200_000 }, (_, n) => `function name${n}() {}`).join("\n")
    assert.isAtMost(changedNames(edit("", giant)).length, 20)
    // Blanks and brackets without end, over which a careless expression would go back and forth.
    for (const text of [
      " ".repeat(60_000),
      `export ${"async ".repeat(10_000)}`,
      "(".repeat(60_000),
      "const x:".repeat(8_000)
    ]) {
      assert.isAtMost(changedNames(edit("", text)).length, 20)
    }
  })
})
