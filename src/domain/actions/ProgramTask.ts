/** What a program is asked to do: its task behind its options, and whether it only says what it would do. */

/** Options that take a value, of any program that has them. */
const valued =
  /^(?:-[CcFwfj]|--(?:prefix|filter|workspace|cwd|dir|project|git-dir|work-tree|package|context|namespace|kubeconfig|manifest-path))$/
const cluster =
  /^(?:-[ns]|--(?:cluster|user|server|as|as-group|token|request-timeout|kube-context|kube-apiserver|registry-config))$/
const repository = /^(?:-R|--(?:repo|hostname))$/
const engine = /^(?:-[Hlp]|--(?:host|log-level|config|project-name|project-directory|profile|env-file|file))$/
const cloud = /^--(?:profile|region|output|endpoint-url|query|account|configuration|format|subscription)$/
/** Those that mean something else to other programs: `make -n test`. */
const ownValued: Readonly<Record<string, RegExp>> = {
  kubectl: cluster,
  oc: cluster,
  helm: cluster,
  gh: repository,
  glab: repository,
  docker: engine,
  podman: engine,
  "docker-compose": engine,
  aws: cloud,
  gcloud: cloud,
  az: cloud,
  systemctl: /^(?:-[HM]|--(?:host|machine))$/,
  npm: /^--(?:registry|userconfig|loglevel|cache)$/
}

/** Whether the word after this one is its value. */
export const takesValue = (program: string, word = ""): boolean =>
  valued.test(word) || ownValued[program]?.test(word) === true

/** Returns the words of a program from its task on, without the options before it: `git -C folder log`. */
export const taskWords = (program: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = words.findIndex((word, index) => !word.startsWith("-") && !takesValue(program, words[index - 1]))
  return at < 0 ? [] : words.slice(at)
}

const dryRun = /^(?:--(?:dry-?run(?:=(?!none|false).*)?|just-print|simulate)|-what-?if)$/i
/** Short options by program and task: to `git commit`, `-n` is another thing. */
const ownDryRun: ReadonlyArray<readonly [task: RegExp, option: RegExp]> = [
  [/^git (?:add|rm|mv|clean|push|prune)\b/, /^-[a-zA-Z]*n/],
  [/^git apply\b/, /^--(?:check|(?:num)?stat|summary)$/],
  [/^make\b/, /^(?:-n|--recon)$/],
  [/^rsync\b/, /^-[a-zA-Z]*n/],
  [/^apt(?:-get)?\b/, /^-s$/],
  [/^cargo publish\b/, /^-n$/],
  [/^(?:terraform|tofu) plan\b/, /^plan$/],
  [/^ansible-playbook\b/, /^(?:-C|--check)$/]
]

/** Whether a program is asked only for what it would do. */
export const isDryRun = (program: string, words: ReadonlyArray<string>): boolean => {
  if (words.some((word) => dryRun.test(word))) return true
  const task = `${program} ${taskWords(program, words)[0] ?? ""}`
  // `git apply --stat --apply` does both.
  if (task === "git apply" && words.includes("--apply")) return false
  return ownDryRun.some(([form, option]) => form.test(task) && words.some((word) => option.test(word)))
}

/** Programs whose own dry run changes nothing. `gh pr create --dry-run` may push, and what a script does is not known. */
const harmless = /^(?:git|kubectl|oc|helm|rsync|make|aws|apt|apt-get|pip|uv|brew|ansible-playbook|terraform|tofu)$/
/** Their tasks that hand their options to another program. */
const handingOn = /^(?:run|exec|x|tool)$/
/** The tasks that know the option, of programs that hand those of any other task to a script or a program. */
const harmlessTasks: Readonly<Record<string, RegExp>> = {
  npm: /^(?:publish|unpublish|install|i|ci|uninstall|update|pack|prune|dedupe|audit)$/,
  pnpm: /^publish$/,
  yarn: /^pack$/,
  cargo: /^(?:publish|update|clean|install|add|remove|package)$/,
  docker: /^compose$/,
  "docker-compose": /^(?:up|down|build|pull|push|create|start|stop|rm)$/
}

/** Whether a program is asked only for what it would do, and is known to change nothing then. */
export const isHarmlessDryRun = (program: string, words: ReadonlyArray<string>): boolean => {
  if (!isDryRun(program, words) || words.some((word) => /^--?out(?:=|$)/.test(word))) return false
  if (/^[A-Z]\w*-[A-Z]/.test(program)) return true
  const [task = "", ...after] = taskWords(program, words)
  const [next = ""] = taskWords(program, after)
  return (
    (harmless.test(program) || harmlessTasks[program]?.test(task) === true) &&
    ![task, next].some((word) => handingOn.test(word))
  )
}

/** Programs that say their version at `-v` or `-V` alone. To others, and to scripts, it means to say more. */
const sayVersion =
  /^(?:node|npm|npx|pnpm|yarn|bun|deno|git|make|cmake|php|composer|ruby|gem|perl|nginx|docker|docker-compose|mvn|gradle|tsc|eslint|jest|vitest)$/
const sayVersionAtCapital = /^(?:python|pip|cargo|rustc|ssh|curl|jq|mypy|mocha|psql)$/

/** Whether a program is asked for its version or its help. A version that is followed by a value is that of a package. */
export const asksAboutItself = (program: string, words: ReadonlyArray<string>): boolean => {
  if (words.includes("--help")) return true
  if (words.some((word, at) => word === "--version" && (words[at + 1] ?? "-").startsWith("-"))) return true
  const [only = ""] = words.length === 1 ? words : []
  if (only === "-V") return sayVersion.test(program) || sayVersionAtCapital.test(program)
  return only === "-h" || (only === "-v" && sayVersion.test(program))
}
