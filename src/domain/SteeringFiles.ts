import { parsedOrUndefined } from "./JsonText.ts"

/**
 * Files that run by themselves, or that say what runs or what a model is told. Who lets edits of files run unasked
 * (`--approve edits`) means code that they will look at before it runs; these run at the next commit, install, push or start,
 * so each edit of them is asked for. Names are compared as the most lenient file system does it.
 */

/** One kind of such files. */
export interface SteeringRule {
  readonly kind: string
  /** What becomes of them, as the end of "this is asked because …". */
  readonly why: string
  /** Names of folders, or of files that stand in their place: all below them is meant. */
  readonly folders: ReadonlyArray<string>
  /** Names of files, wherever they lie; `*` stands for any characters. */
  readonly files: ReadonlyArray<string>
  /** Asked for only where a person wants that (`askForBuildFiles`). */
  readonly isOptional?: true
}

/** What is said of the folder that git takes its hooks from. */
export const hooksReason = "git runs what stands here, or starts what it names"

/** What is said of memory files. */
export const memoryReason = "it says what this or another agent is told, or runs"

/** All kinds, the first that fits giving the reason. */
export const steeringRules: ReadonlyArray<SteeringRule> = [
  {
    kind: "git and its hooks",
    why: hooksReason,
    // A folder with a HEAD is a repository to git, whatever it is called, and its config names programs.
    folders: ["*.git", ".githooks", ".git-hooks", ".husky", ".lefthook", ".lefthook-local", ".cargo-husky"],
    files: [
      "HEAD",
      ".gitattributes",
      ".gitmodules",
      ".gitconfig",
      ".pre-commit-config.yaml",
      ".pre-commit-hooks.yaml",
      "lefthook*.yml",
      "lefthook*.yaml",
      "lefthook*.toml",
      "lefthook*.json",
      ".lefthook*",
      ".lintstagedrc*",
      "lint-staged.config.*",
      ".huskyrc*",
      "husky.config.*",
      "*simple-git-hooks.*",
      ".overcommit.yml",
      "captainhook.json",
      "grumphp.yml"
    ]
  },
  {
    kind: "continuous integration and deployment",
    why: "a server runs it after the next push",
    folders: [
      ".github",
      ".gitlab",
      ".circleci",
      ".buildkite",
      ".woodpecker",
      ".forgejo",
      ".gitea",
      ".azure-pipelines",
      ".azuredevops",
      ".teamcity",
      ".semaphore",
      ".tekton",
      ".builds"
    ],
    files: [
      ".gitlab-ci*.yml",
      ".travis.yml",
      ".drone.yml",
      ".cirrus.yml",
      ".woodpecker.y*ml",
      ".build.yml",
      ".appveyor.yml",
      "appveyor.yml",
      "azure-pipelines*.y*ml",
      "bitbucket-pipelines.yml",
      "Jenkinsfile*",
      "*.jenkinsfile",
      "cloudbuild*.y*ml",
      "buildspec*.y*ml",
      "action.y*ml",
      "netlify.toml",
      "vercel.json",
      "render.yaml",
      "amplify.yml",
      "fly.toml",
      "wrangler.toml",
      "wrangler.json*",
      "serverless.y*ml",
      "firebase.json",
      "heroku.yml",
      "renovate.json*"
    ]
  },
  {
    kind: "editors",
    why: "an editor runs what it says when this folder is opened",
    folders: [
      ".vscode",
      ".idea",
      ".run",
      ".devcontainer",
      ".zed",
      ".fleet",
      ".vs",
      ".nova",
      ".helix",
      ".vim",
      ".nvim",
      ".emacs.d"
    ],
    files: [
      "*.code-workspace",
      "*.sublime-project",
      ".devcontainer.json",
      ".gitpod.yml",
      ".exrc",
      ".vimrc",
      ".lvimrc",
      ".nvimrc",
      ".nvim.lua",
      ".dir-locals*.el",
      ".emacs",
      ".vimspector.json",
      "Session.vim"
    ]
  },
  {
    kind: "agents and their memory",
    why: memoryReason,
    folders: [
      ".palimpsest",
      ".gemini",
      ".claude",
      ".codex",
      ".cursor",
      ".pi",
      ".agents",
      ".agent",
      ".windsurf",
      ".clinerules",
      ".roo",
      ".kilocode",
      ".continue",
      ".opencode",
      ".amazonq",
      ".kiro",
      ".qwen",
      ".junie",
      ".augment",
      ".goose",
      ".trae",
      ".openhands",
      ".factory"
    ],
    files: [
      "AGENT.md",
      "AGENTS*.md",
      "CLAUDE*.md",
      "GEMINI*.md",
      "PALIMPSEST*.md",
      "QWEN.md",
      "CRUSH.md",
      "WARP.md",
      "SKILL.md",
      "mcp.json",
      ".mcp.json",
      "opencode.json*",
      "crush.json",
      ".cursorrules",
      ".windsurfrules",
      ".goosehints",
      ".aider*",
      ".roomodes",
      ".roorules*"
    ]
  },
  {
    kind: "shells and the environment",
    why: "a shell or another program reads it when it starts",
    folders: [
      ".config",
      ".direnv",
      ".mise",
      ".devbox",
      ".flox",
      ".ssh",
      ".gnupg",
      ".docker",
      ".aws",
      ".kube",
      "LaunchAgents"
    ],
    files: [
      ".env*",
      ".bash*",
      ".profile",
      ".zsh*",
      ".zprofile",
      ".zlog*",
      ".ksh*",
      ".csh*",
      ".tcsh*",
      ".login",
      ".logout",
      ".inputrc",
      ".xinitrc",
      ".xprofile",
      ".xsession*",
      "config.fish",
      "mise*.toml",
      ".tool-versions",
      "devbox.json",
      "crontab",
      "sitecustomize.py",
      "usercustomize.py",
      "*.pth",
      ".pythonrc*",
      ".pdbrc*",
      ".gdbinit",
      ".lldbinit",
      ".irbrc",
      ".pryrc",
      ".Rprofile",
      ".Renviron",
      ".netrc",
      ".curlrc",
      ".wgetrc"
    ]
  },
  {
    kind: "package managers and what they installed",
    why: "it says what is installed and run, or programs are found there",
    folders: [
      "node_modules",
      ".venv",
      "venv",
      "site-packages",
      ".yarn",
      ".cargo",
      ".mvn",
      ".gradle",
      ".bundle",
      ".pip"
    ],
    files: [
      ".npmrc",
      ".yarnrc*",
      ".pnpmfile.*",
      ".pnp.*",
      "pnpm-workspace.yaml",
      "bunfig.toml",
      ".bunfig.toml",
      "package-lock.json",
      "npm-shrinkwrap.json",
      "yarn.lock",
      "pnpm-lock.yaml",
      "bun.lock*",
      "deno.lock",
      "Pipfile.lock",
      "poetry.lock",
      "uv.lock",
      "pdm.lock",
      "Cargo.lock",
      "Gemfile.lock",
      "composer.lock",
      "go.sum",
      "Package.resolved",
      ".pypirc",
      "pip.conf",
      "pip.ini",
      ".condarc",
      ".gemrc",
      "nuget.config",
      "gradle-wrapper.*",
      "gradlew",
      "gradlew.bat",
      "mvnw",
      "mvnw.cmd",
      ".bazelrc",
      ".bazeliskrc",
      "rust-toolchain*"
    ]
  },
  {
    kind: "building, testing and installing",
    why: "a build, a test run or an install runs what it says",
    folders: [".storybook", ".vitepress", ".docusaurus"],
    files: [
      "Makefile*",
      "GNUmakefile",
      "*.mk",
      "Justfile",
      ".justfile",
      "Taskfile*.y*ml",
      "Rakefile",
      "*.rake",
      "Gemfile*",
      "*.gemspec",
      "Dockerfile*",
      "*.dockerfile",
      "Containerfile*",
      "docker-compose*.y*ml",
      "compose*.y*ml",
      "Vagrantfile",
      "Procfile*",
      "Brewfile",
      "Tiltfile",
      "Earthfile",
      "*.gradle",
      "*.gradle.kts",
      "pom.xml",
      "build.xml",
      "CMakeLists.txt",
      "*.cmake",
      "meson.build",
      "BUILD",
      "BUILD.bazel",
      "WORKSPACE*",
      "MODULE.bazel",
      "*.bzl",
      "SConstruct",
      "SConscript",
      "wscript",
      "configure",
      "configure.ac",
      "build.rs",
      "build.zig",
      "build.sbt",
      "Cargo.toml",
      "go.mod",
      "go.work",
      "requirements*.txt",
      "constraints*.txt",
      "Pipfile",
      "gradle.properties",
      "libs.versions.toml",
      "mix.exs",
      "rebar.config",
      "project.clj",
      "setup.py",
      "setup.cfg",
      "pyproject.toml",
      "tox.ini",
      "noxfile.py",
      "conftest.py",
      "pytest.ini",
      "fabfile.py",
      "composer.json",
      "deno.json*",
      "tsconfig*.json",
      "*.config.*js",
      "*.config.*ts",
      "gulpfile.*",
      "Gruntfile.*",
      "karma.conf.*",
      "turbo.json",
      "nx.json",
      "lerna.json",
      "angular.json",
      "Podfile",
      "Fastfile",
      "Package.swift",
      "*.csproj",
      "*.fsproj",
      "*.vbproj",
      "*.props",
      "*.targets",
      "*.nix",
      "Snakefile",
      "dune"
    ],
    isOptional: true
  }
]

/** Hidden files that nothing runs and nobody is steered by; all other hidden ones are asked for. */
export const harmlessHidden: ReadonlyArray<string> = [
  ".env.example",
  ".env.sample",
  ".env.template",
  ".gitignore",
  ".gitkeep",
  ".keep",
  ".mailmap",
  ".git-blame-ignore-revs",
  ".npmignore",
  ".dockerignore",
  ".prettierignore",
  ".eslintignore",
  ".stylelintignore",
  ".geminiignore",
  ".palimpsestignore",
  ".ignore",
  ".rgignore",
  ".editorconfig",
  ".nojekyll",
  ".nvmrc",
  ".node-version",
  ".python-version",
  ".ruby-version"
]

/** The hidden folder in which pages of a site lie. */
const harmlessFolder = ".well-known"

/** What is said of files that commands of the settings name. */
export const commandReason = "a hook or an MCP server of your settings runs it"

/**
 * Words of a command line that may be files, as paths: `node tools/check.js`, `"$GEMINI_PROJECT_DIR"/check.sh`. What such a file
 * loads is not known.
 */
export const fileWords = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/(\$\{?\w+\}?["']?\/)?([^\s"'`;&|()<>=$]+)/g)].map(([, , word = ""]) => word)

/** The folder that the settings of a repository name for its hooks, as it stands there; undefined: the usual one. */
export const hooksFolder = (config: string): string | undefined =>
  /^\s*hooksPath\s*=\s*"?([^"#;\n]+?)"?\s*(?:[#;].*)?$/im.exec(config)?.[1]

/** What is said of hidden files that no rule names. */
export const hiddenReason = "programs read hidden files as settings, without being asked to"

/** What a person is told with the first such question. */
export const steeringNote =
  "Files that run by themselves are asked for whatever edits may run; docs/approval.md lists them"

const shortNameReason = "on Windows it may be the short name of any file"

/** What else is judged by: what a person set. */
export interface SteeringOptions {
  /** What files of memory are called, beside the usual names. */
  readonly memoryNames: ReadonlyArray<string>
  /** Whether files by which programs are built, tested and installed are asked for too. */
  readonly buildFiles: boolean
}

/**
 * A name as the most lenient file systems see it: without case, in any Unicode form, without what cannot be seen (HFS+), dots
 * and blanks at its end and what stands behind a colon (Windows).
 */
const plain = (name: string): string =>
  name
    .normalize("NFKC")
    .replace(/[\p{Cf}\p{Mn}]/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/(?<=.):.*$/su, "")
    .replace(/(?<=.)[. ]+$/u, "")

const matcher = (patterns: ReadonlyArray<string>): ((name: string) => boolean) => {
  const exact = new Set<string>()
  const forms: Array<RegExp> = []
  for (const pattern of patterns.map((each) => each.toLowerCase())) {
    if (!pattern.includes("*")) exact.add(pattern)
    else forms.push(new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`, "su"))
  }
  return (name) => exact.has(name) || forms.some((form) => form.test(name))
}

const rules = steeringRules.map((rule) => ({
  ...rule,
  isFolder: matcher(rule.folders),
  isFile: matcher(rule.files)
}))

const isHarmless = matcher(harmlessHidden)

/** The short names that Windows gives beside the long ones: `GIT~1`. */
const isShortName = (name: string): boolean => /^[^.~]{1,6}~\d(?:\.[^.]{1,3})?$/.test(name)

const segmentsOf = (place: string): ReadonlyArray<string> =>
  place
    .split(/[\\/]/)
    .map(plain)
    .filter((name) => name !== "")

/** Whether what lies below a folder belongs to its settings also for who works there: but for the worktrees of agents. */
const isSettings = (name: string, next: string | undefined): boolean => name.startsWith(".") && next !== "worktrees"

/**
 * Why an edit of a file is asked for though edits run unasked; undefined: it is one like any other. `folder` is that of the
 * workspace in which the place lies: the names above it count only where all below them are settings, as in `.git`.
 */
export const steeringReason = (
  place: string,
  folder: string,
  { buildFiles, memoryNames }: SteeringOptions
): string | undefined => {
  const all = segmentsOf(place)
  const above = segmentsOf(folder).length
  const file = all.at(-1) ?? ""
  const isHiddenFolder = (name: string) => name.startsWith(".") && name !== harmlessFolder
  if (isHarmless(file) && !all.slice(above, -1).some(isHiddenFolder)) return undefined
  const held = rules.filter(({ isOptional }) => isOptional !== true || buildFiles)
  for (const { isFile, isFolder, why } of held) {
    if (isFile(file) || all.some((name, at) => isFolder(name) && (at >= above || isSettings(name, all[at + 1]))))
      return why
  }
  if (memoryNames.some((name) => plain(name) === file)) return memoryReason
  const isBuild = (name: string) =>
    rules.some(({ isFile, isFolder, isOptional }) => isOptional === true && (isFile(name) || isFolder(name)))
  const within = all.slice(above)
  if (within.some((name) => isHiddenFolder(name) && !isBuild(name))) return hiddenReason
  return within.some(isShortName) ? shortNameReason : undefined
}

// --- package.json -----------------------------------------------------------------------------------------------------------

/** Fields of a package.json that run nothing: they describe, or say which of the sources are used. */
export const harmlessFields: ReadonlyArray<string> = [
  "$schema",
  "name",
  "version",
  "description",
  "keywords",
  "homepage",
  "bugs",
  "license",
  "author",
  "contributors",
  "maintainers",
  "funding",
  "repository",
  "private",
  "engines",
  "os",
  "cpu",
  "sideEffects",
  "type",
  "types",
  "typings",
  "typesVersions",
  "main",
  "module",
  "browser",
  "exports",
  "imports",
  "peerDependenciesMeta"
]

/** Fields of names and versions: a version is harmless, another place to install from is not. */
const dependencyFields = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"]

/** A range of versions, or the name of one, from where all others come. */
const isPlainRange = (spec: unknown): boolean =>
  typeof spec === "string" && /^(?:workspace:)?[\w\s.^~<>=*|+-]+$/.test(spec)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A value as a text that does not depend on the order of its keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    isRecord(each) ? Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)) : each
  ) ?? ""

const changedKeys = (
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>
): ReadonlyArray<string> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) =>
      Object.hasOwn(before, key) !== Object.hasOwn(after, key) || canonical(before[key]) !== canonical(after[key])
  )

const recordOf = (text: string | undefined): Readonly<Record<string, unknown>> | undefined => {
  const value = text === undefined ? {} : parsedOrUndefined(text.replace(/^\ufeff/, ""))
  return isRecord(value) ? value : undefined
}

/** Field names that stand more than once: programs do not agree on which of them holds. */
const hasTwins = (text: string): boolean => {
  const depth: Array<Set<string>> = []
  const token = /"((?:[^"\\]|\\.)*)"(\s*:)?|[{}[\]]/gsu
  for (const [whole, name = "", colon] of text.matchAll(token)) {
    if (whole === "{" || whole === "[") depth.push(new Set())
    else if (whole === "}" || whole === "]") depth.pop()
    else if (colon !== undefined && depth.length === 1) {
      const key = parsedOrUndefined(`"${name}"`)
      const known = depth[0]
      if (typeof key !== "string" || known?.has(key) === true) return true
      known?.add(key)
    }
  }
  return false
}

/** Field names in a question; there may be any number. */
const mostNamed = 3

/**
 * Why a change of a package.json is asked for: what runs by it changes, or it cannot be told whether it does. Undefined: only
 * what describes the package changes, or versions do.
 */
export const packageReason = (before: string | undefined, after: string): string | undefined => {
  const was = recordOf(before)
  const will = recordOf(after)
  if (was === undefined || will === undefined || hasTwins(after)) {
    return "it cannot be told whether what npm runs by it changes"
  }
  const steering = changedKeys(was, will).filter((key) => {
    if (harmlessFields.includes(key)) return false
    if (!dependencyFields.includes(key)) return true
    const [then = {}, now = {}] = [was[key], will[key]]
    if (!isRecord(then) || !isRecord(now)) return true
    return changedKeys(then, now).some((name) => Object.hasOwn(now, name) && !isPlainRange(now[name]))
  })
  if (steering.length === 0) return undefined
  const more = steering.length > mostNamed ? " and more" : ""
  return `its ${steering.slice(0, mostNamed).join(", ")}${more} would change, by which npm and other programs run something`
}

/** Whether a place is a package.json. */
export const isPackageFile = (place: string): boolean => segmentsOf(place).at(-1) === "package.json"
