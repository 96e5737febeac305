/**
 * Files that run by themselves, or that determine what runs or what a model reads. With `--approve edits`, the user expects to look
 * at edited code before it runs. These files run at the next commit, install, push or start, so each edit of them asks. Names are
 * compared as the most lenient file system does.
 */

import { Predicate } from "effect"
import { afterSpace, containerSpans, plainKey } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"

/** One kind of such files. */
interface SteeringRule {
  readonly kind: string
  /** The effect of these files, as the end of "this is asked because …". */
  readonly why: string
  /** Names of folders, or of files in their place. Everything below them is included. */
  readonly folders: ReadonlyArray<string>
  /** Names of files, in any folder; `*` stands for any characters. */
  readonly files: ReadonlyArray<string>
  /** Asks only if the user enables it (`askForBuildFiles`). */
  readonly isOptional?: true
}

/** The reason shown for the folder of git hooks. */
export const hooksReason = "git runs it, or programs that it names"

/** The reason shown for memory files. */
export const memoryReason = "it instructs this or another agent, or decides what it runs"

const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

/** All rules. The first matching one gives the reason. */
export const steeringRules: ReadonlyArray<SteeringRule> = [
  {
    kind: "git and its hooks",
    why: hooksReason,
    // Git treats any folder with a HEAD as a repository, whatever its name, and its config names programs.
    folders: ["*.git", ".githooks", ".git-hooks", ".husky", ".lefthook", ".lefthook-local", ".cargo-husky"],
    files: words(`
      HEAD .gitattributes .gitmodules .gitconfig .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook*.yml
      lefthook*.yaml lefthook*.toml lefthook*.json .lefthook* .lintstagedrc* lint-staged.config.* .huskyrc*
      husky.config.* *simple-git-hooks.* .overcommit.yml captainhook.json grumphp.yml
    `)
  },
  {
    kind: "continuous integration and deployment",
    why: "a server runs it after the next push",
    folders: words(`
      .github .gitlab .circleci .buildkite .woodpecker .forgejo .gitea .azure-pipelines .azuredevops .teamcity
      .semaphore .tekton .builds
    `),
    files: words(`
      .gitlab-ci*.yml .travis.yml .drone.yml .cirrus.yml .woodpecker.y*ml .build.yml .appveyor.yml appveyor.yml
      azure-pipelines*.y*ml bitbucket-pipelines.yml Jenkinsfile* *.jenkinsfile cloudbuild*.y*ml buildspec*.y*ml
      action.y*ml netlify.toml vercel.json render.yaml amplify.yml fly.toml wrangler.toml wrangler.json*
      serverless.y*ml firebase.json heroku.yml renovate.json*
    `)
  },
  {
    kind: "editors",
    why: "an editor runs its commands when this folder is opened",
    folders: words(".vscode .idea .run .devcontainer .zed .fleet .vs .nova .helix .vim .nvim .emacs.d"),
    files: words(`
      *.code-workspace *.sublime-project .devcontainer.json .gitpod.yml .exrc .vimrc .lvimrc .nvimrc .nvim.lua
      .dir-locals*.el .emacs .vimspector.json Session.vim
    `)
  },
  {
    kind: "agents and their memory",
    why: memoryReason,
    folders: words(`
      .palimpsest .gemini .claude .codex .cursor .pi .agents .agent .windsurf .clinerules .roo .kilocode .continue
      .opencode .amazonq .kiro .qwen .junie .augment .goose .trae .openhands .factory
    `),
    files: words(`
      AGENT.md AGENTS*.md CLAUDE*.md GEMINI*.md PALIMPSEST*.md QWEN.md CRUSH.md WARP.md SKILL.md mcp.json .mcp.json
      opencode.json* crush.json .cursorrules .windsurfrules .goosehints .aider* .roomodes .roorules*
    `)
  },
  {
    kind: "shells and the environment",
    why: "a shell or another program reads it when it starts",
    folders: words(".config .direnv .mise .devbox .flox .ssh .gnupg .docker .aws .kube LaunchAgents"),
    files: words(`
      .env* .bash* .profile .zsh* .zprofile .zlog* .ksh* .csh* .tcsh* .login .logout .inputrc .xinitrc .xprofile
      .xsession* config.fish mise*.toml .tool-versions devbox.json crontab sitecustomize.py usercustomize.py *.pth
      .pythonrc* .pdbrc* .gdbinit .lldbinit .irbrc .pryrc .Rprofile .Renviron .netrc .curlrc .wgetrc
    `)
  },
  {
    kind: "package managers and what they installed",
    why: "it decides what is installed and run, or contains programs",
    folders: words("node_modules .venv venv site-packages .yarn .cargo .mvn .gradle .bundle .pip"),
    files: words(`
      .npmrc .yarnrc* .pnpmfile.* .pnp.* pnpm-workspace.yaml bunfig.toml .bunfig.toml package-lock.json
      npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock* deno.lock Pipfile.lock poetry.lock uv.lock pdm.lock
      Cargo.lock Gemfile.lock composer.lock go.sum Package.resolved .pypirc pip.conf pip.ini .condarc .gemrc
      nuget.config gradle-wrapper.* gradlew gradlew.bat mvnw mvnw.cmd .bazelrc .bazeliskrc rust-toolchain*
    `)
  },
  {
    kind: "building, testing and installing",
    why: "a build, a test run or an install runs its commands",
    folders: [".storybook", ".vitepress", ".docusaurus"],
    files: words(`
      Makefile* GNUmakefile *.mk Justfile .justfile Taskfile*.y*ml Rakefile *.rake Gemfile* *.gemspec Dockerfile*
      *.dockerfile Containerfile* docker-compose*.y*ml compose*.y*ml Vagrantfile Procfile* Brewfile Tiltfile Earthfile
      *.gradle *.gradle.kts pom.xml build.xml CMakeLists.txt *.cmake meson.build BUILD BUILD.bazel WORKSPACE*
      MODULE.bazel *.bzl SConstruct SConscript wscript configure configure.ac build.rs build.zig build.sbt Cargo.toml
      go.mod go.work requirements*.txt constraints*.txt Pipfile gradle.properties libs.versions.toml mix.exs
      rebar.config project.clj setup.py setup.cfg pyproject.toml tox.ini noxfile.py conftest.py pytest.ini fabfile.py
      composer.json deno.json* tsconfig*.json *.config.*js *.config.*ts gulpfile.* Gruntfile.* karma.conf.* turbo.json
      nx.json lerna.json angular.json Podfile Fastfile Package.swift *.csproj *.fsproj *.vbproj *.props *.targets
      *.nix Snakefile dune
    `),
    isOptional: true
  }
]

/** Hidden files that nothing runs and that steer nothing. All other hidden files ask. */
export const harmlessHidden: ReadonlyArray<string> = words(`
  .env.example .env.sample .env.template .gitignore .gitkeep .keep .mailmap .git-blame-ignore-revs .npmignore
  .dockerignore .prettierignore .eslintignore .stylelintignore .geminiignore .palimpsestignore .ignore .rgignore
  .editorconfig .nojekyll .nvmrc .node-version .python-version .ruby-version
`)

/** The hidden folder that contains pages of a site. */
const harmlessFolder = ".well-known"

/** The reason shown for files that commands of the settings name. */
export const commandReason = "a hook or an MCP server in your settings runs it"

/**
 * Returns the words of a command line that may be file paths: `node tools/check.js`, `"$GEMINI_PROJECT_DIR"/check.sh`. Files that such
 * a file loads are not covered.
 */
export const fileWords = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/(\$\{?\w+\}?["']?\/)?([^\s"'`;&|()<>=$]+)/g)].map(([, , word = ""]) => word)

/** Returns the hooks folder that a repository's config names, as written there; undefined: the default one. */
export const hooksFolder = (config: string): string | undefined =>
  /^\s*hooksPath\s*=\s*"?([^"#;\n]+?)"?\s*(?:[#;].*)?$/im.exec(config)?.[1]

/** The reason shown for hidden files that no rule names. */
const hiddenReason = "programs read hidden files as settings on their own"

/** The note shown with the first such question. */
export const steeringNote =
  "Files that run by themselves are asked for whatever edits may run; docs/approval.md lists them"

const shortNameReason = "on Windows this can be the short name of another file"

/** Settings of the user that affect the rules. */
export interface SteeringOptions {
  /** Additional names of memory files. */
  readonly memoryNames: ReadonlyArray<string>
  /** Whether files that build, test and install programs ask too. */
  readonly buildFiles: boolean
}

/**
 * Normalizes a name as the most lenient file systems do: ignores case, Unicode form, invisible characters (HFS+), trailing dots and
 * blanks, and everything after a colon (Windows).
 */
const normalizedName = (name: string): string =>
  name
    .normalize("NFKC")
    .replace(/[\p{Cf}\p{Mn}]/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/(?<=.):.*$/su, "")
    .replace(/(?<=.)[. ]+$/u, "")

const matcher = (patterns: ReadonlyArray<string>): ((name: string) => boolean) => {
  const forms = patterns.map((pattern) => {
    const escaped = pattern.toLowerCase().replace(/[.+?^${}()|[\]\\]/g, "\\$&")
    return new RegExp(`^${escaped.replaceAll("*", ".*")}$`, "su")
  })
  return (name) => forms.some((form) => form.test(name))
}

const rules = steeringRules.map((rule) => ({
  ...rule,
  isFolder: matcher(rule.folders),
  isFile: matcher(rule.files)
}))

const isHarmless = matcher(harmlessHidden)

/** Returns whether a name is a Windows short name: `GIT~1`. */
const isShortName = (name: string): boolean => /^[^.~]{1,6}~\d(?:\.[^.]{1,3})?$/.test(name)

const segmentsOf = (place: string): ReadonlyArray<string> =>
  place
    .split(/[\\/]/)
    .map(normalizedName)
    .filter((name) => name !== "")

/** Returns whether everything below a folder belongs to its settings, even when the workspace lies in it. Worktrees of agents do not. */
const isSettings = (name: string, next: string | undefined): boolean => name.startsWith(".") && next !== "worktrees"

/**
 * Returns why an edit of a file asks although edits run without asking; undefined for an ordinary file. `folder` is the workspace
 * folder that contains the path: the names above it count only where everything below them is settings, as in `.git`.
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
  if (memoryNames.some((name) => normalizedName(name) === file)) return memoryReason
  const isBuild = (name: string) =>
    rules.some(({ isFile, isFolder, isOptional }) => isOptional === true && (isFile(name) || isFolder(name)))
  const below = all.slice(above)
  if (below.some((name) => isHiddenFolder(name) && !isBuild(name))) return hiddenReason
  return below.some(isShortName) ? shortNameReason : undefined
}

// --- package.json -----------------------------------------------------------------------------------------------------------

/** Fields of a package.json that run nothing: they describe the package, or select its source files. */
export const harmlessFields: ReadonlyArray<string> = words(`
  $schema name version description keywords homepage bugs license author contributors maintainers funding repository
  private engines os cpu sideEffects type types typings typesVersions main module browser exports imports
  peerDependenciesMeta
`)

/** Fields of names and versions. A version is harmless; another source to install from is not. */
const dependencyFields = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"]

/** Returns whether a dependency is a version range or tag from the default registry. */
const isPlainRange = (spec: unknown): boolean =>
  typeof spec === "string" && /^(?:workspace:)?[\w\s.^~<>=*|+-]+$/.test(spec)

/** Returns a text for a value that does not depend on the order of its keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    Predicate.isObject(each) ? Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)) : each
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
  return Predicate.isObject(value) ? value : undefined
}

/** Returns whether a text has duplicate field names: programs disagree on which one counts. */
const hasDuplicateKeys = (text: string): boolean => {
  const keys = containerSpans(text, afterSpace(text, text.startsWith("\ufeff") ? 1 : 0))?.elements.map(({ key }) =>
    plainKey(key)
  )
  return keys === undefined || new Set(keys).size < keys.length
}

/** Maximum number of field names in a question; a file may have any number. */
const maxNamedFields = 3

/**
 * Returns why a change of a package.json asks: it changes what runs, or the effect cannot be determined. Undefined: only descriptions
 * or versions change.
 */
export const packageReason = (before: string | undefined, after: string): string | undefined => {
  const was = recordOf(before)
  const will = recordOf(after)
  if (was === undefined || will === undefined || hasDuplicateKeys(after)) {
    return "the effect on what npm runs cannot be determined"
  }
  const steering = changedKeys(was, will).filter((key) => {
    if (harmlessFields.includes(key)) return false
    if (!dependencyFields.includes(key)) return true
    const [then = {}, now = {}] = [was[key], will[key]]
    if (!Predicate.isObject(then) || !Predicate.isObject(now)) return true
    return changedKeys(then, now).some((name) => Object.hasOwn(now, name) && !isPlainRange(now[name]))
  })
  if (steering.length === 0) return undefined
  const more = steering.length > maxNamedFields ? " and more" : ""
  return `its ${steering.slice(0, maxNamedFields).join(", ")}${more} would change, and npm or other programs run them`
}

/** Returns whether a path is a package.json. */
export const isPackageFile = (place: string): boolean => segmentsOf(place).at(-1) === "package.json"
