import { assert, it } from "@effect/vitest"
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import path from "node:path"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import type { ShellCommand, SyntaxNode } from "../../../src/domain/tools/ShellCommand.ts"
import { usages } from "../../../src/domain/tools/ShellPrograms.ts"
import { needs, programOf } from "../../support/machine.ts"
import { newFolder, root } from "../../support/paths.ts"
import { judged, treeOf } from "../../support/shellGrammar.ts"

/**
 * Random lines against real shells: what is judged harmless is run, in a folder full of traps, and must do nothing beyond what
 * its grants cover. `npm run test:shell` judges 100,000 lines, or `SHELL_LINES`; `SHELL_SEED` repeats a run.
 */

const isWhole = process.env["MODE"] === "shell"
const lines = Number(process.env["SHELL_LINES"] ?? (isWhole ? 100_000 : 600))
const firstSeed = Number(process.env["SHELL_SEED"] ?? 15)

// --- chance ------------------------------------------------------------------------------------------------------------------

const randomOf = (seed: number) => {
  const next = seededRandom(seed)
  const below = (count: number) => Math.floor(next() * count)
  return { below, pick: <A>(from: ReadonlyArray<A>): A => from[below(from.length)] as A }
}
type Random = ReturnType<typeof randomOf>

// --- the place -----------------------------------------------------------------------------------------------------------------

/** Programs that note who ran them: nothing that is granted may. */
const canaries =
  "canary rm cp mv ln node npm python3 perl less more pr gzip zcat vi vim ssh rsh curl wget nc xargs awkward sh bash make".split(
    " "
  )

const programs = [...new Set([...usages.keys()].map((name) => name.split(" ")[0] ?? ""))]

/** Names of files that could become options, and others. */
const traps = [
  "-exec",
  "-delete",
  "-o",
  "-ofile",
  "-i",
  "-O",
  "-s",
  "--output=made",
  "--pre=canary",
  "--compress-program=canary",
  "--ext-diff",
  "--checkpoint-action=exec=canary",
  "1e canary",
  "a=b",
  "a.txt",
  "b.txt",
  "c d.txt",
  "canary",
  "x.ts"
]

interface Place {
  readonly folder: string
  readonly cwd: string
  readonly bin: string
  readonly log: string
}

const placeAt = (): Place => {
  const folder = newFolder("fuzz")
  const bin = path.join(folder, "bin")
  const log = path.join(folder, "log")
  mkdirSync(bin)
  for (const name of canaries) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\necho "${name} $*" >> '${log}'\n`)
    chmodSync(path.join(bin, name), 0o755)
  }
  for (const name of programs) {
    const file = (process.env["PATH"] ?? "")
      .split(path.delimiter)
      .filter((each) => path.isAbsolute(each))
      .map((each) => path.join(each, name))
      .find((each) => existsSync(each))
    if (file !== undefined && !canaries.includes(name)) symlinkSync(file, path.join(bin, name))
  }
  for (const name of ["npm", "cargo", "go", "docker", "pytest", "pnpm", "yarn", "bun"])
    rmSync(path.join(bin, name), { force: true })
  return { folder, cwd: path.join(folder, "x[$(touch PWNED)]"), bin, log }
}

const fill = ({ cwd, folder }: Place): void => {
  rmSync(cwd, { recursive: true, force: true })
  cpSync(path.join(folder, "template"), cwd, { recursive: true })
}

/** What is in the folder at the beginning. */
const prepare = ({ folder }: Place): void => {
  const cwd = path.join(folder, "template")
  for (const each of ["sub/deep", "sub/objects", "sub/refs", "src"])
    mkdirSync(path.join(cwd, each), { recursive: true })
  for (const name of traps) writeFileSync(path.join(cwd, name), "one\ntwo\n")
  for (const name of ["sub/a.txt", "sub/-exec", "src/x.ts", "src/y z.ts"])
    writeFileSync(path.join(cwd, name), "two\none\n")
  writeFileSync(path.join(cwd, "package.json"), '{"scripts":{"test":"canary"}}')
  // As a repository without a working tree would look.
  writeFileSync(path.join(cwd, "sub", "HEAD"), "ref: refs/heads/main\n")
  writeFileSync(
    path.join(cwd, "sub", "config"),
    `[core]\n\tworktree = ${folder}\n\tfsmonitor = canary\n[alias]\n\tx = !canary\n`
  )
  const git = programOf("git")
  if (git === undefined) return
  const run = (...args: ReadonlyArray<string>) => execFileSync(git, args, { cwd, stdio: "ignore" })
  run("init", "--template=")
  run("add", "src", "a.txt")
  run("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-m", "first")
}

/** What lies in the folder, with sizes and times. */
const lookAt = (folder: string, below = ""): ReadonlyArray<string> =>
  readdirSync(path.join(folder, below)).flatMap((name) => {
    const place = path.posix.join(below, name)
    const info = lstatSync(path.join(folder, place))
    // git keeps there what it saw of the files.
    if (place === ".git/index") return []
    return info.isDirectory() ? [`${place}\0`, ...lookAt(folder, place)] : [`${place}\0 ${info.size} ${info.mtimeMs}`]
  })

// --- lines ---------------------------------------------------------------------------------------------------------------------

const plain =
  `ls -la|ls src/*.ts|ls *.ts|cat a.txt|cat a.txt b.txt|head -2 a.txt|tail -n 1 a.txt|wc -l < a.txt|sort a.txt|sort -r -k1,1 a.txt b.txt|uniq -c a.txt
grep -rn one .|grep -E 'one|two' a.txt|rg -n one src|find . -name '*.ts' -type f|find src -maxdepth 1|sed -n 1,2p a.txt|sed 's/one/1/g' a.txt
awk '{print $1}' a.txt|diff a.txt b.txt|jq . package.json|git status|git log --oneline -3|git diff --stat|git branch -a|git grep one|git show HEAD
git --no-pager diff|git -C sub status|echo one 'two three'|printf '%s\\n' one|test -f a.txt|cd sub && ls|cd sub && cat a.txt|pwd|true|date +%s|file a.txt|tree -L 1
stat a.txt|du -s .|basename src/x.ts|realpath .|md5sum a.txt|cut -c1-3 a.txt|tr a b|nl a.txt|seq 3|which ls|type ls|command -v ls|ps aux|touch new|mkdir -p made/by|env|sleep 0`
    .split(/[|\n](?!two)/)
    .filter((line) => line !== "")

const values =
  "a.txt b.txt src sub . .. src/x.ts -- - 1 one '' \"one two\" 'x y' ~ ~/x HEAD HEAD~1 main..x {} ; \\; new made canary ./canary".split(
    " "
  )

const names =
  "RANDOM SRANDOM OPTIND HISTCMD SECONDS BASH_ARGV0 LINENO EPOCHSECONDS _ A PATH IFS BASH_ENV PS4 GIT_PAGER GIT_EXTERNAL_DIFF LESSOPEN TMPDIR PWD CDPATH HOME".split(
    " "
  )

/** Options that run programs or write, with their forms. */
const dangerous =
  `--ext-diff --textconv -Ocanary --open-files-in-pager=canary --open-files=canary --output=made --output --outp=made -o -omade --compress-program=canary
--compress-prog=canary -S1 -T. --files0-from=a.txt -exec -execdir -ok -okdir -delete -fprint -fls -fprintf made canary ; + {} -i -i.bak -e -f -w --pre=canary --pre canary
--hostname-bin=canary -z --search-zip -x -X --exec -c alias.x=!canary x -calias.x=!canary core.fsmonitor=canary --exec-path=. --git-dir=. --config-env=a=b -p --paginate
--no-index --upload-pack=canary ext::canary -l --to-command=canary -I --checkpoint=1 --checkpoint-action=exec=canary -C -m made -R -H -s --set=0 -v a[$(canary)] 'a[$(canary)]' '%n'
-k -t -n -u -r -1 --help --version -rn -print -type f -name --color=always -L1 '1e canary' 's/one/canary/e' '1w made' 's/one/x/w made' 'BEGIN{system("canary")}'
'{print | "canary"}' '{print > "made"}' /inet/tcp/0/127.0.0.1/PORT import -Lo -Po -Io -aLo -iPo -fIo -xue -ld`.split(
    /\s+(?=(?:[^']*'[^']*')*[^']*$)/
  )

/** What is put into a line, in groups: separators, quotes, expansions, names of files, redirections, words of the shell, and arithmetic. */
const signs: ReadonlyArray<string> = JSON.parse(
  readFileSync(path.join(root, "test", "fixtures", "shell-signs.json"), "utf8")
).flat()

/** `RANDOM="1$PWD"` with every name of the path set, so that no division fails. */
const pathWords = (cwd: string): string =>
  [...new Set(path.dirname(cwd).match(/[A-Za-z_]\w*/g) ?? [])].map((name) => `${name}=1`).join(" ")

const assignmentOf = (random: Random, { cwd }: Place): string => {
  const name = random.pick(names)
  switch (random.below(5)) {
    case 0:
      return `${name}='x[$(canary)]'`
    case 1:
      return `${name}="\${PWD##*/}"`
    case 2:
      return `${pathWords(cwd)} ${name}="1$PWD"`
    case 3:
      return `${name}=(canary)`
    default:
      return `${name}${random.pick(["=", "+=", "[0]="])}${random.pick([".", "canary", "1", "$PWD", "./canary"])}`
  }
}

const lineOf = (random: Random, place: Place): string => {
  let line = random.pick(plain)
  for (let more = random.below(3); more > 0; more -= 1)
    line += random.pick([" && ", " | ", "; ", " || ", "\n"]) + random.pick(plain)
  for (let changes = random.below(4); changes > 0; changes -= 1) {
    const at = random.below(line.length + 1)
    switch (random.below(8)) {
      case 0:
        line = `${assignmentOf(random, place)}${random.pick(["; ", " ", "\n", " && "])}${line}`
        break
      case 1:
        line = line.slice(0, at) + random.pick(signs) + line.slice(at)
        break
      case 2:
        line += random.pick(signs)
        break
      case 3:
        line = random.pick(signs) + line
        break
      case 4: {
        const words = line.split(" ")
        words.splice(1 + random.below(words.length), random.below(2), random.pick(dangerous))
        line = words.join(" ")
        break
      }
      case 5: {
        const words = line.split(" ")
        words.splice(1 + random.below(words.length), random.below(2), random.pick(values))
        line = words.join(" ")
        break
      }
      case 6:
        line = `${random.pick(programs)} ${random.pick(dangerous)} ${random.pick(values)}`
        break
      default:
        line += ` ${random.pick(dangerous)} ${random.pick([...values, ...dangerous])}`
    }
  }
  return line
}

// --- running -------------------------------------------------------------------------------------------------------------------

/** Every call that reads or makes something is granted, and no other. */
const allowed = (line: string): ShellCommand | undefined => {
  const command = judged(line)
  return command?.commands.every(({ effects }) => effects === "reads" || effects === "makes") === true
    ? command
    : undefined
}

/** Runs each line as `Shell.ts` does, one after the other. One process starts them: starting them from here takes longer. */
const run = (shell: string, lines: ReadonlyArray<string>, { bin, cwd, folder }: Place): Promise<void> =>
  new Promise((resolve) => {
    const env = {
      PATH: bin,
      HOME: path.join(folder, "home"),
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "safe.bareRepository",
      GIT_CONFIG_VALUE_0: "explicit",
      GIT_CONFIG_KEY_1: "core.fsmonitor",
      GIT_CONFIG_VALUE_1: "false",
      GIT_CEILING_DIRECTORIES: folder
    }
    const each = `for line; do ${shell} -c "$line" </dev/null >/dev/null 2>&1; done`
    // In a group of its own, so that what would never end (`tail -f`) is ended with it.
    const child = spawn("/bin/sh", ["-c", each, "sh", ...lines], { cwd, env, stdio: "ignore", detached: true })
    const timer = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
    }, 20_000)
    child.on("close", () => {
      clearTimeout(timer)
      resolve()
    })
  })

interface Report {
  judged: number
  ran: number
  readonly hits: Array<string>
}

/** A line to run, and the names of what it may make. */
interface Allowed {
  readonly line: string
  readonly made: ReadonlyArray<string>
}

interface Fuzz {
  readonly seed: number
  readonly lines: number
  readonly judge: (line: string) => ShellCommand | undefined
  /** Ends at so many hits. */
  readonly enough?: number
  readonly batchSize?: number
}

const fuzz = async ({ batchSize = 50, enough = 20, judge, lines, seed }: Fuzz): Promise<Report> => {
  const place = placeAt()
  const random = randomOf(seed)
  const report: Report = { judged: 0, ran: 0, hits: [] }
  const home = path.join(place.folder, "home")
  mkdirSync(home)
  writeFileSync(path.join(home, "x"), "")
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = String(typeof address === "object" ? (address?.port ?? 0) : 0)
  const outside = () => [...readdirSync(place.folder), ...lookAt(home)].join("\n")
  prepare(place)
  fill(place)
  let before = lookAt(place.cwd)
  const around = outside()
  const shells = ["/bin/sh", programOf("bash") ?? "bash"]

  /** What a few lines did beyond making what they may make. */
  const beyond = async (batch: ReadonlyArray<Allowed>): Promise<ReadonlyArray<string>> => {
    const shell = shells[report.ran % 4 === 0 ? 0 : 1] ?? "/bin/sh"
    await run(
      shell,
      batch.map(({ line }) => line),
      place
    )
    const made = new Set(batch.flatMap((each) => each.made))
    const after = existsSync(place.cwd) ? lookAt(place.cwd) : []
    const differs = [
      ...after.filter((each) => !before.includes(each)),
      ...before.filter((each) => !after.includes(each))
    ]
    const isOurs = (entry: string) => made.has(entry.split(/[\0/]/)[0] ?? "")
    const what = [
      ...(existsSync(place.log) ? [`ran ${readFileSync(place.log, "utf8")}`] : []),
      ...(differs.every(isOurs) ? [] : [`changed ${differs.join(", ")}`]),
      ...(outside() === around || existsSync(place.log) ? [] : ["changed something outside"]),
      ...(connections > 0 ? ["connected"] : [])
    ]
    if (what.length > 0 || differs.length > 0) {
      rmSync(place.log, { force: true })
      fill(place)
      before = lookAt(place.cwd)
      connections = 0
    }
    return what
  }
  const check = async (batch: ReadonlyArray<Allowed>): Promise<void> => {
    report.ran += batch.length
    const what = await beyond(batch)
    if (what.length === 0) return
    const hits = report.hits.length
    // Which of them it was.
    for (const each of batch) {
      const found = await beyond([each])
      if (found.length > 0) report.hits.push(`${JSON.stringify(each.line)}: ${found.join("; ")}`)
    }
    if (report.hits.length === hits) report.hits.push(`one of ${JSON.stringify(batch)}: ${what.join("; ")}`)
  }

  let batch: Array<Allowed> = []
  const seen = new Set<string>()
  while (report.judged < lines && report.hits.length < enough) {
    const line = lineOf(random, place).replaceAll("PORT", port)
    report.judged += 1
    const command = seen.has(line) ? undefined : judge(line)
    seen.add(line)
    if (isWhole && report.judged % 2_500 === 0) {
      process.stderr.write(`seed ${seed}: ${report.judged} judged, ${report.ran} run, ${report.hits.length} hits\n`)
    }
    // An argument cannot hold it.
    if (command !== undefined && !line.includes("\u0000")) {
      // What `Shell.ts` looks at: a file that is read is a regular one of the workspace.
      const from = path.join(place.cwd, command.folder ?? "")
      const isInside = (file: string) => path.resolve(from, file).startsWith(`${place.cwd}/`)
      if (
        command.reads.every((file) => isInside(file) && existsSync(path.resolve(from, file))) &&
        command.makes.every(isInside)
      ) {
        const made = command.makes.map((file) => path.relative(place.cwd, path.resolve(from, file)).split("/")[0] ?? "")
        batch.push({ line, made })
      }
    }
    if (batch.length < batchSize && report.judged < lines) continue
    await check(batch)
    batch = []
  }
  await new Promise((resolve) => server.close(resolve))
  rmSync(place.folder, { recursive: true, force: true })
  return report
}

// --- judgements that are broken on purpose ---------------------------------------------------------------------------------------

const nodesOf = (node: SyntaxNode): ReadonlyArray<SyntaxNode> => [node, ...node.children.flatMap(nodesOf)]

/** By the names of the programs alone, as a grant for `ls` once was. */
const byName = (line: string): ShellCommand | undefined => {
  const tree = treeOf(line)
  if (tree === undefined || nodesOf(tree).some(({ isFaulty }) => isFaulty)) return undefined
  const called = nodesOf(tree).filter(({ type }) => type === "command_name")
  if (called.length === 0) return undefined
  const isKnown = called.every(({ end, start }) => programs.includes(line.slice(start, end)))
  return isKnown ? { commands: [], reads: [], makes: [] } : undefined
}

/** The same line, judged without something that is in it. */
const without =
  (pattern: RegExp) =>
  (line: string): ShellCommand | undefined =>
    allowed(line.replace(pattern, " "))

needs("bash")("lines that are judged harmless", () => {
  it(`do nothing beyond their grants (${lines.toLocaleString("en-US")} lines)`, async () => {
    const began = performance.now()
    const reports = await Promise.all(
      [0, 1, 2, 3].map((index) => fuzz({ seed: firstSeed + index, lines: lines / 4, judge: allowed }))
    )
    const hits = reports.flatMap((report) => report.hits)
    const sum = (key: "judged" | "ran") => reports.reduce((total, report) => total + report[key], 0)
    const judged = sum("judged")
    const ran = sum("ran")
    const seconds = ((performance.now() - began) / 1_000).toFixed(0)
    if (isWhole)
      process.stderr.write(
        `${judged} lines judged, ${ran} allowed and run, ${hits.length} hits, ${seconds} s (seed ${firstSeed})\n`
      )
    assert.deepStrictEqual(hits, [])
    // Enough of them were run for that to mean something.
    assert.isAbove(ran, lines / 20)
  }, 3_600_000)

  it.each([
    ["the names of programs alone count", byName],
    ["assignments are overlooked", without(/(?:^|(?<=[;\n] ?))(?:\w+=(?:'[^']*'|"[^"]*"|\S*) *)+(?:;|\n|&&)/g)],
    ["options are overlooked", without(/ -{1,2}[^ ]*/g)],
    ["redirections are overlooked", without(/[<>]{1,2} ?[^ ]+/g)]
  ] as const)("are caught where %s", async (_, judge) => {
    // By default, each is caught within some two hundred lines of this seed.
    const { hits } = await fuzz({ seed: firstSeed + 3, lines: 20_000, judge, enough: 1, batchSize: 10 })
    assert.isNotEmpty(hits)
  })
})
