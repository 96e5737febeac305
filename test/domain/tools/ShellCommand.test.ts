import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { verdict } from "../../../src/domain/tools/Approval.ts"
import {
  coversOf,
  grantsOf,
  analyzeCommand,
  maxLineChars,
  type SyntaxNode,
  widerGrants
} from "../../../src/domain/tools/ShellCommand.ts"
import { type Effects, usages } from "../../../src/domain/tools/ShellPrograms.ts"
import { corpus } from "../../support/corpus.ts"
import { root } from "../../support/paths.ts"
import { everyday, grantsFor, isAsked, judged, treeOf } from "../../support/shellGrammar.ts"

/** The same words, in the folder `/w`. */
const words = (command: string) => `/w $ ${command}`

describe("everyday commands", () => {
  const told: ReadonlyArray<readonly [line: string, ...grants: ReadonlyArray<string>]> = [
    ["git status && git diff | head", "git status in /w", "git diff in /w", "head"],
    ["git log --oneline -20", "git log in /w"],
    ["git log -n 5 --stat -- src/main.ts", "git log in /w"],
    ["git log --oneline -n", "git log in /w"],
    ["git --no-pager log -p -S 'needle' --since='2 weeks ago' | head -100", "git log in /w", "head"],
    ["git diff HEAD~1 -- src", "git diff in /w"],
    ["git show HEAD^:src/main.ts | sed -n '10,40p'", "git show in /w", "sed"],
    ["git -C sub status", "git -C sub status"],
    ["git branch -a", "git branch in /w"],
    ["git remote -v", "git remote in /w"],
    ["git rev-parse --abbrev-ref HEAD", "git rev-parse in /w"],
    ["git blame -L 10,20 src/main.ts", "git blame in /w"],
    ["git add -A && git commit -m 'Fix the parser; say so'", "git add in /w", "git commit in /w"],
    ['git commit -am "Close the socket\n\nIt was left open."', "git commit in /w"],
    ["npm test 2>&1 | tail -20", "npm test in /w", "tail"],
    ["npm run test:unit --silent", "npm run test:unit in /w"],
    ["cd sub && npm test", "npm test in /w"],
    ["npm ci", words("npm ci")],
    ["npm test -- --run test/a.test.ts", words("npm test -- --run test/a.test.ts")],
    ["cargo test parser -- --nocapture", "cargo test in /w"],
    ["go test ./... -run TestParser -v", "go test in /w"],
    ["pytest -x -q tests/test_parser.py", "pytest in /w"],
    ["docker logs --tail 50 web", "docker logs"],
    ['rg -n "foo bar" src | head', "rg", "head"],
    ["rg --glob '*.ts' -i needle", "rg"],
    ["grep -rn --include=*.ts needle src", "grep"],
    ["grep -E 'a|b' file.txt | wc -l", "grep", "wc"],
    ["ls -la src/*.ts", "ls"],
    ["ls *.ts", "ls"],
    ["cat -- *", "cat"],
    ["sort -- -unknown --odd", "sort"],
    ["grep --include=a=b.txt x src", "grep"],
    ["ls -l --color=never -- *", "ls"],
    ["ls ~/projects", "ls"],
    ["jq -r '.dependencies | keys[]' package.json", "jq"],
    ["cd sub", "cd"],
    ["ls ../../etc/x ~/dev/project /usr/*/x", "ls"],
    ["ps -ef", "ps -ef"],
    ['rg "foo$" src', "rg"],
    ['grep -E "(a|b)$" x', "grep"],
    ["ls \\\n  -la \\\n  src", "ls"],
    ["cat Grüße.txt 日本.txt", "cat"],
    ["grep 'ä[bc]' Grüße.txt", "grep"],
    ['node -e "it\'s"', words(String.raw`node -e 'it'\''s'`)],
    ["find . ! -name x", "find"],
    ["test -n 'x' && ls", "test", "ls"],
    [
      "head -n5 a; grep -A3 x a; git diff -U3; cargo --version",
      "head",
      "grep",
      "git diff in /w",
      "cargo --version in /w"
    ],
    ["sed 's/a/b/g' notes.txt", "sed"],
    ["awk '{print $1, $NF}' table.txt | sort -u | uniq -c", "awk", "sort", "uniq"],
    ["awk -F: '{print $1}' names", "awk"],
    ["sort -t, -k2,2n table.csv", "sort"],
    ["find src \\( -name '*.ts' -o -name '*.js' \\) -not -path '*/dist/*'", "find"],
    ["wc -l < notes.txt", "wc"],
    ["diff -u a.txt b.txt", "diff"],
    ["printf '%s\\n' one two", "printf"],
    ["test -f package.json && cat package.json", "test", "cat"],
    ["command -v node || echo none", "command -v", "echo"],
    ["which node; type ls", "which", "type"],
    ["ls missing 2>/dev/null || true", "ls", "true"],
    ["# What is there\nls\npwd", "ls", "pwd"],
    ["mkdir -p src/new && touch src/new/a.ts", "mkdir", "touch"],
    ["tree -L 2 -I node_modules", "tree"],
    ["node scripts/build.mjs", words("node scripts/build.mjs")],
    ["python3 -m pytest -k 'a b'", words("python3 -m pytest -k 'a b'")],
    ["git push origin main", words("git push origin main")],
    ["curl -s http://localhost:3000/health", words("curl -s http://localhost:3000/health")],
    ["./run.sh --fast", words("./run.sh --fast")]
  ]
  for (const [line, ...grants] of told) {
    it(`can be granted: ${JSON.stringify(line)}`, () =>
      assert.deepStrictEqual(
        grantsFor(line),
        grants.map((grant) => `shell:${grant}`)
      ))
  }

  it("have a question that describes the grant", () => {
    for (const [line, says] of [
      [
        "git status | head",
        "git status in this folder with options that only read; head, as long as it only reads; it can read all that you can"
      ],
      ["cd sub && git -C x diff", "git diff in x with options that only read"],
      ["git add -A", "git add in this folder with plain options"],
      ["npm run test", "npm run test with plain options in this folder, whatever that runs"],
      ["touch a", "touch with plain options, in the workspace"],
      ["npm ci && ls", 'ls, as long as it only reads; it can read all that you can; exactly "npm ci" in this folder']
    ] as const) {
      const command = judged(line)
      assert.strictEqual(command === undefined ? "" : coversOf(command, "this folder"), says)
    }
  })
})

describe("attacks under grants for every harmless command", () => {
  it("are not vacuous: each of the lines was granted", () => {
    for (const line of everyday) assert.isFalse(isAsked(line), line)
    assert.isAbove(new Set(everyday.flatMap(grantsFor)).size, 50)
  })

  const attacks = [
    ...corpus<readonly [kind: string, line: string]>("shell-attacks"),
    ["too long a line", `ls ${"a ".repeat(maxLineChars)}`]
  ] as const
  /** Built-ins that steer the shell or evaluate words, and programs that run others: not even their exact words are granted. */
  const steering =
    "read eval exec . source trap set shopt enable hash unset exit return ulimit umask history pushd popd builtin compgen mapfile " +
    "getopts bind fc alias env sudo bash sh nice timeout nohup npx xargs ssh"
  /** Programs that write, run or connect by any of many options: a grant covers only their exact words. */
  const powerful =
    "cp mv ln install tee dd less man vim ed curl wget rsync zip tar cpio xxd split shuf perl ruby make gcc"
  it("ask: programs and built-ins of which nothing is listed as harmless", () => {
    assert.deepStrictEqual(
      steering.split(" ").filter((name) => grantsFor(`${name} x`).length > 0),
      []
    )
    assert.deepStrictEqual(
      powerful.split(" ").flatMap((name) => grantsFor(`${name} x`)),
      powerful.split(" ").map((name) => `shell:${words(`${name} x`)}`)
    )
  })

  it.each([...Map.groupBy(attacks, ([kind]) => kind)])("ask: %s", (_, lines) => {
    assert.deepStrictEqual(
      lines.filter(([, line]) => !isAsked(line)),
      []
    )
  })
})

describe("a grant", () => {
  it("for an exact line covers no other line and no other folder", () => {
    const of = (line: string, folder: string) => {
      const command = judged(line)
      return command === undefined ? [] : grantsOf(command, folder)
    }
    const [exact = ""] = of("node a.js 'b c'", "/w")
    assert.strictEqual(exact, "shell:/w $ node a.js 'b c'")
    const rules = { mode: "none", granted: new Set([exact]) } as const
    for (const [line, folder, expected] of [
      ["node a.js 'b c'", "/w", "allowed"],
      ['node  a.js "b c"', "/w", "allowed"],
      ["node a.js b c", "/w", "asked"],
      ["node a.js 'b c' d", "/w", "asked"],
      ["node a.js 'b c'", "/x", "asked"],
      ["ls", "/w", "asked"]
    ] as const) {
      assert.strictEqual(verdict(rules, { kind: "execute", grants: of(line, folder) }), expected, line)
    }
  })

  it("of an earlier version covers only reading by that program", () => {
    const rules = { mode: "none", granted: new Set(["shell:git", "shell:npm", "shell:ls", "shell:rm"]) } as const
    for (const [line, expected] of [
      ["git status", "allowed"],
      ["git log -5", "allowed"],
      ["git -C sub log -5", "asked"],
      ["ls -l", "allowed"],
      ["git add a", "asked"],
      ["git commit -m x", "asked"],
      ["git push", "asked"],
      ["git -c alias.x='!id' x", "asked"],
      ["npm test", "asked"],
      ["npm ci", "asked"],
      ["rm -r x", "asked"]
    ] as const) {
      assert.strictEqual(verdict(rules, { kind: "execute", grants: grantsFor(line) }), expected, line)
    }
  })

  it("that the user wrote for a script covers it in every folder", () => {
    assert.deepStrictEqual(widerGrants("shell:npm run test in /w"), ["shell:npm run test"])
    assert.deepStrictEqual(widerGrants("shell:git commit in /w"), ["shell:git commit"])
    assert.deepStrictEqual(widerGrants("shell:git status in /w"), ["shell:git status", "shell:git"])
    assert.deepStrictEqual(widerGrants("shell:git -C /w/sub status"), [])
    assert.deepStrictEqual(widerGrants("shell:ls"), [])
    assert.deepStrictEqual(widerGrants("shell:/w $ git status in /x"), [])
    assert.deepStrictEqual(widerGrants("mcp:git status"), [])
  })
})

describe("a command line", () => {
  it("is parsed only by a tree that covers it", () => {
    const tree = treeOf("ls")
    const other = treeOf("ls -l; rm x")
    assert.isDefined(tree)
    if (tree === undefined || other === undefined) return
    assert.isDefined(analyzeCommand("ls", tree))
    assert.isUndefined(analyzeCommand("ls; rm x", tree))
    assert.isUndefined(analyzeCommand("ls", other))
    assert.isUndefined(analyzeCommand("ls", { ...tree, isFaulty: true }))
    assert.isUndefined(analyzeCommand("ls", { ...tree, type: "subshell" }))
    const quoted = treeOf('echo "a"')
    const withFault = (node: SyntaxNode): SyntaxNode => ({
      ...node,
      children: node.children.map((child) =>
        node.type === "string" && child.type === "string_content" ? { ...child, isFaulty: true } : withFault(child)
      )
    })
    if (quoted === undefined) return assert.fail("no tree")
    assert.isDefined(analyzeCommand('echo "a"', quoted))
    assert.isUndefined(analyzeCommand('echo "a"', withFault(quoted)))
    // What a grammar would have to get wrong.
    const line = (text: string, ...parts: ReadonlyArray<readonly [type: string, raw: string]>) => {
      let end = 0
      const children = parts.map(([type, raw]): SyntaxNode => {
        const start = text.indexOf(raw, end)
        end = start + raw.length
        return { type, start, end, isFaulty: false, children: [] }
      })
      return analyzeCommand(text, { ...tree, start: 0, end: text.length, children })
    }
    const ls = ["word", "ls"] as const
    assert.isDefined(line("ls #a", ls, ["comment", "#a"]))
    assert.isDefined(line("ls;", ls, [";", ";"]))
    assert.isUndefined(line("ls a#b", ls, ["word", "a"], ["comment", "#b"]))
    for (const operator of ["&&", "||", "|"]) assert.isUndefined(line(`ls ${operator}`, ls, [operator, operator]))
    assert.isUndefined(line("ls;;", ls, [";", ";"], [";", ";"]))
    assert.isUndefined(line("ls; &&", ls, [";", ";"], ["&&", "&&"]))
  })

  /** The trees in which one token begins or ends one character earlier or later. */
  const displaced = (tree: SyntaxNode, length: number): ReadonlyArray<SyntaxNode> =>
    tree.children.length === 0 || tree.type === "string"
      ? [-1, 1].flatMap((by) => [
          { ...tree, start: tree.start + by },
          { ...tree, end: Math.min(tree.end + by, length) }
        ])
      : tree.children.flatMap((child, at) =>
          displaced(child, length).map((moved) => ({ ...tree, children: tree.children.with(at, moved) }))
        )

  it.each([
    "cd sub && ls -l",
    `ls -l *.ts 2>&1 | wc -l; cat < a.txt >/dev/null; grep "x y" 'b' # why \npwd\n`,
    ...everyday
  ])("is parsed by no tree with a token in the wrong place: %s", (line) => {
    const tree = treeOf(line)
    assert.isDefined(tree)
    if (tree === undefined) return
    assert.isDefined(analyzeCommand(line, tree))
    assert.deepStrictEqual(
      displaced(tree, line.length).filter(
        (moved) => moved.end !== tree.end && analyzeCommand(line, moved) !== undefined
      ),
      []
    )
  })

  it("reports the files it reads and creates, and their folder", () => {
    const command = judged("cd sub && wc -l < a.txt && touch b")
    assert.deepStrictEqual([command?.folder, command?.reads, command?.makes], ["sub", ["a.txt"], ["b"]])
  })

  it("is parsed in linear time", () => {
    assert.isAbove(grantsFor("ls; ".repeat(400)).length, 0)
    assert.deepStrictEqual(grantsFor("(".repeat(maxLineChars)), [])
    assert.deepStrictEqual(grantsFor(`ls ${"'".repeat(maxLineChars - 3)}`), [])
    assert.deepStrictEqual(grantsFor("ls; ".repeat(20_000)), [])
  })
})

it("the table of programs is fully documented", () => {
  const page = readFileSync(path.join(root, "docs", "approval.md"), "utf8")
  const kinds: ReadonlyArray<readonly [kind: string, effects: Effects, isLocal: boolean]> = [
    ["looks", "reads", false],
    ["looks at a repository", "reads", true],
    ["makes", "makes", false],
    ["makes in a repository", "makes", true],
    ["runs", "runs", false]
  ]
  for (const [kind, effects, isLocal] of kinds) {
    const row = page.split("\n").find((line) => line.startsWith(`| **${kind}** |`)) ?? ""
    const names = [...usages].flatMap(([name, each]) =>
      each.effects === effects && (each.isLocal ?? false) === isLocal ? [name] : []
    )
    assert.strictEqual(row.split(" | ").at(-1), `${names.map((name) => `\`${name}\``).join(" ")} |`, kind)
  }
})
