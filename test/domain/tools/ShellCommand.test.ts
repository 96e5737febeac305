import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { verdict } from "../../../src/domain/tools/Approval.ts"
import {
  coversOf,
  grantsOf,
  analyzeCommand,
  maxLineChars,
  widerGrants
} from "../../../src/domain/tools/ShellCommand.ts"
import { type Effects, usages } from "../../../src/domain/tools/ShellPrograms.ts"
import { root } from "../../support/paths.ts"
import { everyday, grantsFor, isAsked, judged, treeOf } from "../../support/shellGrammar.ts"

/** The same words, in the folder `/w`. */
const words = (command: string) => `/w $ ${command}`

describe("everyday commands", () => {
  const told: ReadonlyArray<readonly [line: string, ...grants: ReadonlyArray<string>]> = [
    ["git status && git diff | head", "git status in /w", "git diff in /w", "head"],
    ["git log --oneline -20", "git log in /w"],
    ["git log -n 5 --stat -- src/main.ts", "git log in /w"],
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
    ["ls ~/projects", "ls"],
    ["jq -r '.dependencies | keys[]' package.json", "jq"],
    ["cd sub", "cd"],
    ["ls ../../etc/x ~/dev/project /usr/*/x", "ls"],
    ["ps -ef", "ps -ef"],
    ['rg "foo$" src', "rg"],
    ['grep -E "(a|b)$" x', "grep"],
    ["ls \\\n  -la \\\n  src", "ls"],
    ["cat Grüße.txt 日本.txt", "cat"],
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
        "git status in this folder with options that only read; head with options that only read, any file that you can read"
      ],
      ["cd sub && git -C x diff", "git diff in x with options that only read"],
      ["git add -A", "git add in this folder with plain options"],
      ["npm run test", "npm run test with plain options in this folder, whatever its files make that run"],
      ["touch a", "touch with plain options, within the workspace"],
      ["npm ci && ls", 'ls with options that only read, any file that you can read; exactly "npm ci" in this folder']
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

  const attacks: Readonly<Record<string, ReadonlyArray<string>>> = {
    "an assignment": [
      'RANDOM="1$PWD"; ls',
      "A=1; ls",
      "A=1 ls",
      "A+=1 ls",
      "A[0]=1 ls",
      "A=(1) ls",
      "export A=1; ls",
      "declare -i A=1; ls",
      "let A=1; ls"
    ],
    "a special file": [
      "cat </dev/tcp/127.0.0.1/80",
      "cat < /dev/fd/0",
      "cat < /proc/self/environ",
      "cat /proc/self/environ",
      "cat /proc/1/environ",
      "cat /./proc/1/environ",
      "cat ../../../../proc/1/environ",
      "cat /pro?/[0-9]*/environ",
      "cat ../../../../p*/1/environ",
      "cat ~/../../pro?/1/environ",
      "cat /usr/../pro?/1/environ",
      "cat /usr/../proc/1/environ",
      "cat /de[v]/sda",
      "wc --files0-from=/pro?/1/x",
      "grep -ra KEY /",
      "grep -ra KEY //.",
      "grep -ra KEY ..",
      "rg -uuu KEY /",
      "grep -f../proc/1/environ x",
      "grep -f/proc/1/environ x",
      "grep --file=/proc/1/environ x",
      "cat '</dev/tcp/127.0.0.1/80' < '/dev/tcp/127.0.0.1/80'",
      "awk '{print}' /inet/tcp/0/127.0.0.1/80",
      "ls >& /dev/tcp/127.0.0.1/80"
    ],
    "an expansion": [
      "ls $x",
      "ls $(id)",
      'ls "$(id)"',
      "ls $((a[1]))",
      "ls $[1]",
      "ls $'\\x3b'",
      'ls $"x"',
      "ls <(id)",
      "ls >(id)",
      "ls {a,b}",
      "ls a{1..3}",
      "ls ~root",
      "ls ~+",
      "ls a=~/x",
      "ls @(a|b)",
      "ls !!",
      "ls 5$",
      'echo "5$x$"',
      'echo "$(id)$"'
    ],
    "grammar beyond lists": [
      "for f in a; do ls; done",
      "{ ls; }",
      "(ls)",
      "! ls",
      "ls() { id; }; ls",
      "[[ -v 'a[$(id)]' ]] && ls",
      "[ -f x ] && ls",
      "((a[1]))",
      "ls & ls",
      "ls |& head",
      "ls &>/dev/null",
      "cat <<E\n$(id)\nE",
      "cat <<'E'\nx\nE",
      "cat <<< x",
      "ls ;; ls",
      "ls ; ; ls",
      "ls &&",
      "&& ls",
      "ls || || ls",
      "| ls",
      "> /dev/null"
    ],
    "output into files": [
      "ls > out",
      "ls >> out",
      "ls >| out",
      "ls <> out",
      "ls >& out",
      "ls > /dev/null/x",
      "ls 3>&1",
      "ls >&3",
      "ls 2>&1out",
      "ls >&-",
      "ls 12>/dev/null"
    ],
    "what the shells read in different ways": [
      "ls\\\n-l",
      "ls \\ \n-l",
      "# a \\\nls \\",
      "l\\\ns",
      "ls\r\nid",
      "ls\u00a0-l",
      "ls \u200bx",
      "ls\u0000x",
      "ls \u001b[2K",
      "ls \u115fx",
      "ls é|sort",
      "ls é\\;id",
      "ls é[a]",
      "ls é*",
      "ls à",
      "ls \ud800",
      'echo "é\\"; id; \\""',
      "'ls",
      'ls "a',
      "ls \\",
      "ls a'b",
      `ls ${"a ".repeat(maxLineChars)}`
    ],
    "a built-in that runs, calculates or steers": [
      "test -v 'a[$(id)]'",
      "test 'a[$(id)]' -eq 1",
      "test -R x",
      "printf -v 'a[$(id)]' x",
      "printf '%n' 'a[$(id)]'",
      "printf '%d' 'a[$(id)]'",
      "sleep 'a[$(id)]'",
      "command id",
      "command -p ls",
      "cd",
      "cd -",
      "cd ~",
      "cd $x && ls",
      "ls; cd sub; ls",
      "cd sub; ls",
      "cd sub || ls",
      "cd sub && ls; git commit -m x",
      "cd sub | ls",
      "cd a b && ls"
    ],
    "a program that runs programs": [
      "ls | xargs rm",
      "arch -x86_64 id",
      "hostname -F x",
      "cat x | node",
      "echo id | python3 -",
      "cat x | npm test"
    ],
    git: [
      "git -c alias.x='!id' x",
      "git -c core.fsmonitor=./x status",
      "git --config-env=core.fsmonitor=A status",
      "git --git-dir=x status",
      "git -p status",
      "git diff --ext-diff",
      "git diff --ext-dif",
      "git log -p --textconv",
      "git grep -Oid x",
      "git grep --open-files-in-pager=id x",
      "git diff --no-index --output=x a b",
      "git diff --output x",
      "git log --outpu=x",
      "git show '--output=x'",
      "git show -- --x --output=y; git diff '--output'=x",
      "git branch new",
      "git branch --edit-description",
      "git remote add x ext::id",
      "git push --receive-pack=id",
      "git rebase --exec id",
      "git commit -m x --template=y",
      "git commit -m x -e --trailer=a",
      "git add -e",
      "git reflog expire",
      "git x",
      "git -C sub commit -m x",
      "git -C sub status",
      "git -C a -C b status",
      "git -C sub add a",
      "git sta*",
      "git -C x* status",
      "git blame *"
    ],
    "tar, sort, find and others": [
      "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=id .",
      "sort -o x a",
      "sort -ox a",
      "sort a -o x",
      "sort --output=x a",
      "sort --compress-program=id -S1 a",
      "sort --files0-from=x",
      "sort -T /tmp a",
      "sort *",
      "sort ?x",
      "uniq a b",
      "find . -exec id ';'",
      "find . -delete",
      "find . -fprintf x y",
      "find . '-exec' id \\;",
      "find . -- -delete",
      "find *",
      "find . -name *",
      "sed -i s/a/b/ x",
      "sed -n 1e x",
      "sed 1eid x",
      "sed 's/a/b/e' x",
      "sed 's/a/b/w x' y",
      "sed -f x",
      "sed s* y",
      "sed 's/[/]/x/e;#/' y",
      "awk 'BEGIN{system(\"id\")}'",
      "awk '{print | \"id\"}' x",
      "awk -f x",
      "awk '{print}' FS=x a",
      "awk -v a=b '{print}'",
      "rg --pre id x",
      "rg --hostname-bin id x",
      "rg -z x",
      "rg x *",
      "diff -l a b",
      "file -C -m x",
      "file -z x",
      "tree -o x",
      "tree -Lo 1 x",
      "tree -iPo '*' x y",
      "tree -afLo 1 x",
      "git tag -ld x",
      "tree -R -L 1 -H x",
      "date -s 0",
      "date 01010000",
      "fd -x id",
      "jq -L . 'import \"a\" as a; .'",
      "touch ~/.bashrc",
      "touch .git/hooks/pre-commit",
      "touch /etc/x",
      "touch -- -x",
      "touch ./-x",
      "mkdir -",
      "touch *",
      "mkdir -m 777 a",
      "ls | tee x",
      "ps e",
      "ps -auxe",
      "ps -u e",
      "ps -e -u x",
      "ps -ef u",
      "ps auxe"
    ],
    "build runners": [
      "npm test --script-shell=./x",
      "npm test --prefix=x",
      "npm test -- --x",
      "npm test x",
      "npm run other",
      "npm run",
      "npm run '*'",
      "cargo --config x build",
      "cargo build --manifest-path x",
      "cargo build -Zx",
      "cargo test -- --logfile=x",
      "cargo run",
      "go test -exec id",
      "go test /tmp/x",
      "go build -o x",
      "pytest @x",
      "pytest -k @x",
      "pytest -c x",
      "pytest ../x",
      "docker run -v /:/x y",
      "docker -H x ps"
    ]
  }
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

  for (const [kind, lines] of Object.entries(attacks)) {
    it(`ask: ${kind}`, () => {
      assert.deepStrictEqual(
        lines.filter((line) => !isAsked(line)),
        []
      )
    })
  }
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
