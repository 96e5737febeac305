/** What shell commands are about: the programs they run, the checks among them, and whether a check passed. */

import { asksAboutItself, isDryRun, takesValue, taskWords } from "../../actions/ProgramTask.ts"
import { type SimpleCommand, simpleCommands } from "../../actions/ShellLine.ts"
import { lastUnits } from "../../text/Bytes.ts"

/** A kind of check that projects run over and over; its last result is part of a handover. */
export type CheckKind = "tests" | "types" | "lint" | "build"

/** One program of a command line, with what tells a check. Quoted text is left out (`''`). */
export interface RunProgram {
  /** The program, without its folder. */
  readonly program: string
  readonly isPath: boolean
  /** The operands, without `run`, options and their values. */
  readonly operands: ReadonlyArray<string>
  /** All words after the program. */
  readonly words: ReadonlyArray<string>
  /** Whether the exit code of the whole line tells nothing of this program. */
  readonly isHidden: boolean
}

/** Words before a program that only say how it is run. */
const wrappers =
  /^(?:sudo|time|nohup|command|env|then|do|else|if|while|!|[({]|npx|bunx|pnpx|uvx|(?:(?:pnpm|npm|bundle|yarn|poetry|uv|mise|bun) (?:exec|x|dlx))|(?:uv|poetry|hatch|pdm) run|(?:timeout|nice)(?: -\S+)*(?: \d\S*)?|(?:\S*\/)?python[\d.]* -m|(?:ba|z)?sh(?= [^-\s])|\w+=\S*)\s+/

/** What follows a program whose exit code the line does not have. */
const hiding = new Set([";", "&", "\n", "||"])

const runProgram = ({ after, bare }: SimpleCommand, hasPipefail: boolean): RunProgram => {
  let rest = bare.join(" ")
  for (let shorter = rest; ; rest = shorter) {
    shorter = rest.replace(wrappers, "")
    if (shorter === rest) break
  }
  const [path = "", ...words] = rest.split(" ")
  const folder = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"))
  const program = path
    .slice(folder + 1)
    .replace(/\.(?:exe|cmd|bat)$/i, "")
    .replace(/^(python|pip)[\d.]+$/, "$1")
  return {
    program,
    isPath: folder >= 0,
    operands: words.filter(
      (word, index) =>
        !/^[-+&]/.test(word) && !takesValue(program, words[index - 1]) && word !== "run" && word !== "exec"
    ),
    words,
    isHidden: hiding.has(after) || (after.startsWith("|") && !hasPipefail)
  }
}

/** Returns the programs of a command line, in order. */
export const runPrograms = (command: string): ReadonlyArray<RunProgram> => {
  const hasPipefail = /\bpipefail\b/.test(command)
  return simpleCommands(command)
    .filter(({ bare }) => bare.length > 0)
    .map((one) => runProgram(one, hasPipefail))
}

/** Programs that are a check whatever their arguments are. */
const checkPrograms: ReadonlyArray<readonly [CheckKind, RegExp]> = [
  ["tests", /^(?:vitest|jest|pytest|rspec|phpunit|ctest|tox|nox|mocha|ava|unittest|karma|bats|nextest)$/],
  ["types", /^(?:tsc|tsgo|vue-tsc|svelte-check|mypy|pyright|pyre|dialyzer)$/],
  [
    "lint",
    /^(?:eslint|oxlint|biome|ruff|flake8|pylint|golangci-lint|rubocop|shellcheck|stylelint|ktlint|clippy|credo)$/
  ]
]
/** Tasks of a runner, and scripts, that are a check by their name. */
const checkTasks: ReadonlyArray<readonly [CheckKind, RegExp]> = [
  ["tests", /\btests?(?![a-z])|[_\d]tests?\b|[a-z]Test|^t$|^e2e\b/],
  ["types", /\b(?:types?|typecheck|type-check|check-types)\b/],
  ["lint", /lint|^vet$/],
  ["build", /\b(?:build|compile|package|assemble(?:\b|[A-Z]))/]
]
/** Runners whose operands name what is run. */
const runners =
  /^(?:npm|pnpm|yarn|bun|deno|mise|make|just|task|rake|rails|mix|go|cargo|swift|dotnet|gradlew?|mvnw?|bazel|composer|bundle|nx|turbo|git|gh|docker|kubectl|systemctl|bd|uv|poetry|playwright|cypress|terraform|tofu|helm)$/
/** Runners that take several tasks. */
const severalTasks = /^(?:make|just|mise|task|rake|gradlew?|mvnw?|nx|turbo)$/
/** Runners whose tasks are never checks: `git checkout test` runs no tests. */
const neverChecks = /^(?:git|gh|docker|kubectl|systemctl|bd|uv|poetry|terraform|tofu|helm)$/

/** Options with which a check lists or prepares what it would run. */
const runsNothing =
  /^--(?:collect-only|co|list(?:-?(?:tests|suites|groups|envs))?|fixtures(?:-per-test)?|markers|setup-plan|no-run|show-?(?:config|only|settings)|print-config|init|clear-?cache)(?:=.*)?$/i

/** Whether a program does not do what it is for: it tells what it would do, or of itself. */
const onlyTells = ({ program, words }: RunProgram): boolean =>
  isDryRun(program, words) || asksAboutItself(program, words) || words.some((word) => runsNothing.test(word))

const kindsOf = (one: RunProgram): ReadonlyArray<CheckKind> => {
  const { isPath, operands, program } = one
  if (onlyTells(one)) return []
  const among = (forms: ReadonlyArray<readonly [CheckKind, RegExp]>, names: ReadonlyArray<string>) =>
    forms.flatMap(([kind, form]) => (names.some((name) => form.test(name)) ? [kind] : []))
  const direct = among(checkPrograms, [program])
  if (direct.length > 0) return direct
  if (program === "node" && one.words.includes("--test")) return ["tests"]
  if (program === "make" && operands.length === 0) return ["build"]
  if (program === "cargo" && operands[0] === "check") return ["build"]
  if (/^python[\d.]*$/.test(program) && operands[0] === "manage.py") return among(checkTasks, operands.slice(1, 2))
  if (runners.test(program)) {
    if (neverChecks.test(program)) return []
    if (program === "cypress") return ["tests"]
    const tasks = severalTasks.test(program) ? operands : operands.slice(0, 1)
    return [...new Set([...among(checkPrograms, tasks), ...among(checkTasks, tasks)])]
  }
  // `scripts/test.sh` is a script; `test` is the shell's own.
  return isPath || /\.(?:sh|py|rb|mjs|js|ts)$/.test(program) ? among(checkTasks, [program]) : []
}

const everyKind: ReadonlyArray<CheckKind> = ["tests", "types", "lint", "build"]

/** Returns the kinds of checks that a command runs. */
export const checksOf = (command: string): ReadonlyArray<CheckKind> => {
  const kinds = new Set(runPrograms(command).flatMap(kindsOf))
  return everyKind.filter((kind) => kinds.has(kind))
}

const failed =
  /\b[1-9]\d* (?:tests? )?(?:failed|FAILED|failures?|failing|errors?|ERRORS?)\b|\berror TS\d+:|\bELIFECYCLE\b|\bBUILD FAIL|\b(?:Failures|Errors): [1-9]|\bFailed:? +[1-9]|\bTEST FAILED\b|^(?:\s*(?:[1-9]\d* fail$|(?:#|ℹ) fail [1-9]|Failed!|error during build:|ERROR: |✗|✘|×|FAIL(?:URE|URES)?\b|--- FAIL|FAILED\b|ERRORS?!|error(?:\[\w+\])?:|Error:)|[1-9]\d* issues?:|npm (?:ERR!|error)|.*\b(?:ERROR task failed|Build FAILED|make(?:\[\d+\])?: \*\*\*|error Command failed))/m
const passed =
  /\b(?:[1-9]\d* (?:tests?(?: passed)?|passed|passing|examples?)|0 (?:failures|failed|errors|issues|problems|warnings)|all (?:checks|tests) passed|found no issues|no issues found|success(?:ful|fully)?|test result: ok)\b|^(?:ok\s|PASS\b|OK\b|\s+Finished `|(?:#|ℹ) fail 0$|Passed!)|✓|✔/im
/** The line of a test that passed, whose name may speak of errors. */
const passedLine = /^\s*(?:✓|✔|√|ok\b|PASS\b|--- PASS).*$/gm
const colours = new RegExp(`${String.fromCodePoint(27)}\\[[\\d;]*m`, "g")
/** Matches what tools print for a command without output. */
const printedNothing = /^\s*(?:\(.*no output.*\)|\(empty\)|\(none\))?\s*$/i

/**
 * Tells whether a command succeeded. A pipe hides the exit code of all but its last program, so the output decides then:
 * `undefined` when it does not tell. `isExitHidden`: no exit code is known, so that the output decides for all programs; without a code at all, it can only tell of a failure.
 */
export const succeeded = (
  command: string,
  exit: number | undefined,
  output: string,
  isExitHidden = false
): boolean | undefined => {
  const end = lastUnits(output, 4_000).replace(colours, "").replaceAll("\r\n", "\n")
  const saysItFailed = () => failed.test(end.replace(passedLine, ""))
  if (exit === undefined) return isExitHidden && saysItFailed() ? false : undefined
  if (isEmptySearch(command, exit, output)) return undefined
  if (exit !== 0) return false
  const hidden = runPrograms(command).filter(
    ({ isHidden, program }) => (isHidden || isExitHidden) && !auxiliary.has(program)
  )
  if (hidden.length === 0) return true
  // `npm test; echo $?`
  const status = /\$\?|PIPESTATUS/.test(command) ? /(\d+)\s*$/.exec(end)?.[1] : undefined
  if (status !== undefined) return status === "0"
  if (saysItFailed()) return false
  const kinds = checksOf(command)
  if (kinds.length === 0 || passed.test(end)) return true
  // Checks but for tests are silent when they find nothing.
  return !kinds.includes("tests") && printedNothing.test(end) ? true : undefined
}

/** Whether the exit code 1 of a command says that its search found nothing, which is no failure. */
export const isEmptySearch = (command: string, exit: number | undefined, output: string): boolean =>
  exit === 1 &&
  /^(?:e?grep|rg|diff|which|test|\[)$/.test(runPrograms(command).at(-1)?.program ?? "") &&
  printedNothing.test(output.replace(/^(?:Exit code:?|Command exited with code) 1$/gm, ""))

/** Programs that read, print or wait, and the words of the shell around them. */
export const readers: ReadonlySet<string> = new Set(
  "ls cat head tail grep egrep fgrep rg ag find fd tree wc which type whereis pwd echo printf stat file du df ps pgrep lsof env printenv date whoami hostname uname id awk sort uniq cut tr jq yq test [ diff cmp comm md5 md5sum shasum sha1sum sha256sum xxd od hexdump strings basename dirname realpath readlink seq nl tac column less more man history sleep true cd export set source . for while until if case do done then else elif fi esac".split(
    " "
  )
)

/** With those that only prepare or filter: what they do says nothing of a failure. */
const auxiliary: ReadonlySet<string> = new Set([
  ...readers,
  "cp",
  "mv",
  "rm",
  "touch",
  "false",
  "sed",
  "tee",
  "mkdir",
  "xargs"
])

const dryRunMark = " --dry-run"

/**
 * Returns the programs of a command in the form in which a later success is recognised: `git push`, `npm test`. A dry run, or a question
 * for its help or for a list, has a form of its own: its success proves nothing of the real thing.
 */
export const programsOf = (command: string): ReadonlyArray<string> => {
  const programs = runPrograms(command).flatMap((one) => {
    const { operands, program } = one
    if (program === "" || auxiliary.has(program)) return []
    const task = runners.test(program) && operands[0] !== undefined ? `${program} ${operands[0]}` : program
    return [onlyTells(one) ? `${task}${dryRunMark}` : task]
  })
  return [...new Set(programs)]
}

/** Whether the success of some programs proves that another one succeeds: itself, or the real thing a dry run of it. */
export const provesSuccess = (programs: ReadonlySet<string>, program: string): boolean =>
  programs.has(program) || (program.endsWith(dryRunMark) && programs.has(program.slice(0, -dryRunMark.length)))

/** Matches programs that close an item of a tracker, or publish work. */
const closing =
  /^(?:(?:bd|gh|glab|jira|linear) (?:.* )?(?:close|closed|merge|create|resolve|done|reopen|update)\b|git (?:push|tag|merge|rebase|cherry-pick|revert|checkout -b|switch -c)\b|(?:npm|pnpm|yarn|cargo) publish\b)/

/** Whether a successful command is worth telling in a handover: an item closed, work published. */
export const isMilestone = (command: string): boolean =>
  runPrograms(command).some(
    ({ program, words }) => closing.test([program, ...taskWords(program, words)].join(" ")) && !isDryRun(program, words)
  )
