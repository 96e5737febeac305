import { lastUnits } from "../../text/Bytes.ts"

/** What shell commands are about: the programs they run, the checks among them, and whether a check passed. */

/** A kind of check that projects run over and over; its last result is part of a handover. */
export type CheckKind = "tests" | "types" | "lint" | "build"

const checkForms: ReadonlyArray<readonly [CheckKind, RegExp]> = [
  [
    "tests",
    /\b(?:(?:npm|pnpm|yarn|bun|deno|mise|make|just|task|rake|mix|go|cargo|swift|dotnet|gradle|\.\/gradlew|mvn|bazel|composer|uv|poetry|bundle|nx|turbo)\s+(?:run\s+|exec\s+)?[\w:.-]*test[\w:.-]*|vitest|jest|pytest|rspec|phpunit|ctest|tox|nox|mocha|playwright\s+test|cypress\s+run|node\s+--test|unittest)\b/
  ],
  [
    "types",
    /\b(?:tsc|tsgo|vue-tsc|dialyzer|mypy|pyright|pyre|typecheck|type-check|check-types|(?:run|mise|make)\s+types)\b/
  ],
  [
    "lint",
    /\b(?:eslint|oxlint|biome|ruff|flake8|pylint|golangci-lint|clippy|credo|rubocop|shellcheck|[\w:.-]*lint[\w:.-]*)\b/
  ],
  [
    "build",
    /\b(?:go\s+build|cargo\s+(?:build|check)|mix\s+compile|(?:npm|pnpm|yarn|bun|mise|make|just)\s+(?:run\s+)?[\w:.-]*(?:build|compile)[\w:.-]*|make(?=\s*(?:$|&&|;|2>|\|)))/
  ]
]

/** Returns the kinds of checks that a command runs. */
export const checksOf = (command: string): ReadonlyArray<CheckKind> =>
  checkForms.flatMap(([kind, form]) => (form.test(withoutQuotes(command)) ? [kind] : []))

/** Text in quotes is an argument (a commit message, a script), and here-documents are input. */
const withoutQuotes = (command: string): string =>
  command
    .slice(0, 4_000)
    .replace(/<<-?\s*['"]?(\w+)['"]?[\s\S]*?\n\1\b/g, "")
    .replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "''")

const failed =
  /\b[1-9]\d* (?:tests? )?(?:failed|failures?|failing|errors?)\b|^(?:\s*(?:✗|✘|×|FAIL\b|--- FAIL|FAILED\b|ERRORS?!|error(?:\[\w+\])?:|Error:)|.*\b(?:ERROR task failed|npm ERR!|Build FAILED|make: \*\*\*|error Command failed))/m
const passed =
  /\b(?:[1-9]\d* (?:tests?(?: passed)?|passed|passing|examples?)|0 (?:failures|failed|errors|issues|problems|warnings)|all (?:checks|tests) passed|found no issues|no issues found|success(?:fully)?|test result: ok)\b|^(?:ok\s|PASS\b|OK\b)|✓|✔/im

/**
 * Tells whether a command succeeded. A pipe hides the exit code of all but its last program, so the output decides then:
 * `undefined` when it does not tell.
 */
export const succeeded = (command: string, exit: number | undefined, output: string): boolean | undefined => {
  if (exit === undefined) return undefined
  if (exit !== 0) return false
  if (!/\|(?!\|)|\|\||;/.test(withoutQuotes(command))) return true
  const end = lastUnits(output, 4_000)
  if (failed.test(end)) return false
  return checksOf(command).length === 0 || passed.test(end) ? true : undefined
}

/** Programs that only prepare, print or filter: what they do says nothing of a failure. */
const auxiliary = new Set(
  "cd echo cp mv rm touch true false export source set sleep cat head tail grep rg sed awk sort uniq wc tee ls pwd mkdir xargs time env which printf test [ cut tr find timeout sudo".split(
    " "
  )
)
/** Runners whose first operand names what is run. */
const runners =
  /^(?:npm|pnpm|yarn|bun|mise|make|just|task|mix|go|cargo|git|gh|docker|kubectl|bd|uv|poetry|bundle|npx|deno|dotnet|rake|composer)$/

/** Returns the programs of a command in the form in which a later success is recognised: `git push`, `npm run test`. */
export const programsOf = (command: string): ReadonlyArray<string> => {
  const programs: Array<string> = []
  for (const simple of withoutQuotes(command).split(/&&|\|\||[;|\n]/)) {
    const words = simple
      .trim()
      .split(/\s+/)
      .filter((word) => !/^(?:\w+=|\d*>|&)/.test(word))
    const [program = "", ...rest] = words
    if (program === "" || auxiliary.has(program)) continue
    const named = rest.filter((word) => !word.startsWith("-") && word !== "run" && word !== "exec")
    programs.push(runners.test(program) && named[0] !== undefined ? `${program} ${named[0]}` : program)
  }
  return [...new Set(programs)]
}

/** Matches the line with which git confirms a commit. */
const committed = /^\[[^\]\n]*? ?([0-9a-f]{7,12})\] (.+)$/gm

/** Returns the commits that the output of a command confirms. */
export const commitsIn = (output: string): ReadonlyArray<{ readonly hash: string; readonly subject: string }> =>
  [...output.slice(0, 50_000).matchAll(committed)].map(([, hash = "", subject = ""]) => ({ hash, subject }))

/** Matches commands that close an item of a tracker, or publish work. */
const closing =
  /\b(?:bd|gh|glab|jira|linear)\b[^|;&]*\b(?:close|closed|merge|create|resolve|done|reopen|update)\b|\bgit\s+(?:push|tag|merge|rebase|cherry-pick|revert|checkout\s+-b|switch\s+-c)\b|\bnpm\s+publish\b/

/** Whether a successful command is worth telling in a handover: an item closed, work published. */
export const isMilestone = (command: string): boolean => closing.test(withoutQuotes(command))

const looking =
  /^(?:cd\s+\S+\s*&&\s*)?(?:ls|cat|head|tail|grep|rg|find|fd|tree|wc|which|pwd|echo|stat|file|du|df|ps|sed -n|git\s+(?:-C\s+\S+\s+)?(?:log|show|diff|status|branch|blame|rev-parse|ls-files|ls-tree|remote|stash list))\b/

/** Whether a command only looks at something: it can be run again at any time. */
export const isLook = (command: string): boolean => looking.test(command.trim())
