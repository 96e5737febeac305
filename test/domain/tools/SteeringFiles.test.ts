import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import {
  fileWords,
  harmlessFields,
  harmlessHidden,
  hooksFolder,
  isPackageFile,
  packageReason,
  steeringReason,
  steeringRules
} from "../../../src/domain/tools/SteeringFiles.ts"
import { root } from "../../support/paths.ts"

const usual = { memoryNames: ["NOTES-FOR-AI.md"], buildFiles: false }
const reason = (name: string, options = usual) => steeringReason(`/home/me/work/${name}`, "/home/me/work", options)

describe("files that run by themselves or instruct an agent", () => {
  const asked: ReadonlyArray<string> = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git",
    "vendor/lib/.git/config",
    "mirror.git/hooks/post-receive",
    "docs/HEAD",
    ".husky/pre-commit",
    "lefthook.yml",
    "lefthook-local.yml",
    "lint-staged.config.mjs",
    ".github/workflows/ci.yml",
    "Jenkinsfile",
    "ci/Jenkinsfile.release",
    "azure-pipelines.yml",
    "action.yml",
    ".vscode/tasks.json",
    "team.code-workspace",
    ".claude/settings.json",
    ".mcp.json",
    "AGENTS.md",
    "docs/GEMINI.md",
    "CLAUDE.local.md",
    "skills/x/SKILL.md",
    "NOTES-FOR-AI.md",
    "sub/notes-for-ai.MD",
    ".env",
    ".bashrc",
    "mise.toml",
    "src/sitecustomize.py",
    "lib/site-packages/a.pth",
    ".npmrc",
    "package-lock.json",
    "node_modules/.bin/ls",
    "gradlew",
    ".some-tool-of-tomorrow.json",
    "src/.hidden/a.txt",
    ".gitignore/x",
    ".hidden/.gitignore",
    "src/.hidden/deep/.gitignore"
  ]
  it.each(asked)("asks for %s", (name) => assert.isDefined(reason(name)))

  const same: ReadonlyArray<readonly [what: string, name: string]> = [
    ["upper case", ".GIT/hooks/pre-commit"],
    ["mixed case", ".GitHub/Workflows/ci.yml"],
    ["a name in upper case", "AgEnTs.Md"],
    ["letters that macOS takes for others", ".hu\u017fky/pre-commit"],
    ["a Kelvin sign", ".hus\u212ay/pre-commit"],
    ["what HFS+ does not see", ".g\u200cit/hooks/pre-commit"],
    ["full-width letters", "\uff0egit/config"],
    ["dots that Windows drops", ".git./config"],
    ["blanks that Windows drops", ".git /config"],
    ["a stream of Windows", ".git::$INDEX_ALLOCATION/config"],
    ["a stream of a file", "AGENTS.md:x"],
    ["a short name", "GIT~1/config"],
    ["backslashes", ".git\\hooks\\pre-commit"]
  ]
  it.each(same)("asks in spite of %s", (_, name) => assert.isDefined(reason(name)))

  const plain: ReadonlyArray<string> = [
    "src/main.ts",
    "README.md",
    "docs/agents.md.txt",
    "docs/environment.md",
    "src/git/hooks.ts",
    "github/workflows.md",
    "src/env.ts",
    "head.html",
    "src/HEAD.test.ts",
    "settings.json",
    "tasks.json",
    ".gitignore",
    "packages/a/.gitignore",
    ".editorconfig",
    "public/.well-known/security.txt",
    ".env.example",
    "src/claude/index.ts",
    "scripts/install.sh",
    "Makefile",
    "vite.config.ts",
    "tests/conftest.py",
    ".storybook/main.ts"
  ]
  it.each(plain)("lets %s pass", (name) => assert.isUndefined(reason(name)))

  const building: ReadonlyArray<string> = [
    "Makefile",
    "sub/Makefile.am",
    "Justfile",
    "Dockerfile",
    "Dockerfile.dev",
    "build.gradle",
    "app/build.gradle.kts",
    "CMakeLists.txt",
    "tsconfig.build.json",
    "vite.config.ts",
    "eslint.config.mjs",
    "conftest.py",
    "build.rs",
    ".storybook/main.ts"
  ]
  it.each(building)("asks for %s when the user's settings say so", (name) =>
    assert.isDefined(reason(name, { ...usual, buildFiles: true }))
  )

  it("judges a workspace in a hidden folder by what lies below it, except in settings folders", () => {
    const at = (place: string, folder: string) => steeringReason(place, folder, usual) !== undefined
    assert.isFalse(at("/home/me/.cache/work/a.ts", "/home/me/.cache/work"))
    assert.isFalse(at("/repo/.claude/worktrees/one/a.ts", "/repo/.claude/worktrees/one"))
    assert.isFalse(at("/home/me/app.git/main/a.ts", "/home/me/app.git/main"))
    assert.isFalse(at("/app/node_modules/lib/a.ts", "/app/node_modules/lib"))
    assert.isTrue(at("/repo/.claude/worktrees/one/.husky/a", "/repo/.claude/worktrees/one"))
    assert.isTrue(at("/repo/.git/hooks/pre-commit", "/repo/.git/hooks"))
    assert.isTrue(at("/repo/.github/workflows/a.yml", "/repo/.github"))
    assert.isTrue(at("/home/me/.config/fish/a.fish", "/home/me/.config/fish"))
  })

  it("finds the files that a command line names", () => {
    const named: ReadonlyArray<readonly [command: string, word: string]> = [
      ["./check.sh", "./check.sh"],
      ["npm run format && node tools/check.js --fix", "tools/check.js"],
      [`"$GEMINI_PROJECT_DIR"/hooks/a.sh`, "hooks/a.sh"],
      ["$CLAUDE_PROJECT_DIR/hooks/a.sh", "hooks/a.sh"],
      ["${GEMINI_PROJECT_DIR}/hooks/a.sh;true", "hooks/a.sh"],
      ["sh -c 'python3 a.py'", "a.py"],
      ["/work/hooks/a.sh", "/work/hooks/a.sh"],
      ["cat <a.txt|sh", "a.txt"]
    ]
    for (const [command, word] of named) assert.include(fileWords(command), word, command)
  })

  it("finds the hooks folder in git's settings", () => {
    assert.strictEqual(hooksFolder("[core]\n\thooksPath = .husky/_\n"), ".husky/_")
    assert.strictEqual(hooksFolder(`[core]\nHOOKSPATH="a b/c" ; x\n[user]\n`), "a b/c")
    assert.isUndefined(hooksFolder("[core]\n\t# hooksPath = x\n\tbare = false\n"))
  })

  it("is fully documented", () => {
    const page = readFileSync(path.join(root, "docs", "approval.md"), "utf8")
    for (const { files, folders, kind, why } of steeringRules) {
      const row = page.split("\n").find((line) => line.startsWith(`| **${kind}**`)) ?? ""
      for (const name of [...files, ...folders]) assert.include(row, `\`${name}\``, kind)
      assert.include(row, why)
    }
    for (const name of harmlessHidden) assert.include(page, `\`${name}\``)
  })
})

describe("package.json", () => {
  const before = {
    name: "a",
    version: "1.0.0",
    scripts: { test: "vitest", build: "tsc" },
    dependencies: { effect: "^4.1.0", local: "file:../local" }
  }
  const text = (value: unknown) => JSON.stringify(value, null, 2)
  const judged = (after: unknown) => packageReason(text(before), typeof after === "string" ? after : text(after))

  const passing: ReadonlyArray<readonly [what: string, after: unknown]> = [
    ["nothing", before],
    ["the order of keys", { ...before, scripts: { build: "tsc", test: "vitest" } }],
    ["a description", { ...before, description: "new" }],
    ["which source is used", { ...before, exports: { ".": "./src/index.js" }, type: "module" }],
    ["a version", { ...before, dependencies: { ...before.dependencies, effect: "4.2.0" } }],
    ["one dependency more", { ...before, devDependencies: { zod: "^4.0.0 || >=5 <6", b: "latest", c: "workspace:*" } }],
    ["one less", { ...before, dependencies: { effect: "^4.1.0" } }],
    ["names that stand in two fields", { ...before, repository: { url: "a" }, bugs: { url: "a", name: "a" } }],
    ["a mark at its beginning", `\ufeff${text(before)}`]
  ]
  it.each(passing)("passes a change of %s", (_, after) => assert.isUndefined(judged(after)))

  const asking: ReadonlyArray<readonly [what: string, after: unknown]> = [
    ["a script", { ...before, scripts: { ...before.scripts, test: "touch PWNED" } }],
    ["one script more", { ...before, scripts: { ...before.scripts, postinstall: "touch PWNED" } }],
    ["no scripts any more", { name: "a" }],
    ["a program", { ...before, bin: { ls: "./ls.js" } }],
    ["hooks", { ...before, "simple-git-hooks": { "pre-commit": "touch PWNED" } }],
    ["lint-staged", { ...before, "lint-staged": { "*": "touch PWNED" } }],
    ["workspaces", { ...before, workspaces: ["../.."] }],
    ["the package manager", { ...before, packageManager: "yarn@https://example.com/yarn.js" }],
    ["what is configured in code", { ...before, eslintConfig: { plugins: ["evil"] } }],
    ["overrides", { ...before, overrides: { effect: "npm:evil@1" } }],
    ["a field of tomorrow", { ...before, "some-tool": {} }],
    ["a dependency from git", { ...before, devDependencies: { a: "git+https://example.com/a.git" } }],
    ["a dependency from GitHub", { ...before, devDependencies: { a: "someone/a" } }],
    ["a dependency by another name", { ...before, devDependencies: { a: "npm:evil@^1" } }],
    ["a dependency from a file", { ...before, dependencies: { ...before.dependencies, effect: "file:./evil" } }],
    ["dependencies that are no object", { ...before, dependencies: ["git+https://example.com/a"] }],
    ["its prototype", `{"__proto__": {"scripts": {"test": "x"}}, ${text(before).slice(1)}`],
    ["what is no JSON", "{ scripts: }"],
    ["comments", `// a\n${text(before)}`],
    ["what is no object", "[]"],
    ["a field that stands twice", `{"scripts": {"test": "touch PWNED"}, ${text(before).slice(1)}`],
    ["one that stands twice, spelled otherwise", `{"scr\\u0069pts": {"test": "touch PWNED"}, ${text(before).slice(1)}`]
  ]
  it.each(asking)("asks for a change of %s", (_, after) => assert.isDefined(judged(after)))

  it("asks where it was invalid before, and for a new one with scripts", () => {
    assert.isDefined(packageReason("no", text({ name: "a" })))
    assert.isDefined(packageReason(undefined, text(before)))
    assert.isUndefined(packageReason(undefined, text({ name: "a", version: "1.0.0" })))
  })

  it("names what changes", () =>
    assert.strictEqual(
      judged({ ...before, scripts: {}, bin: {}, overrides: {}, jest: {} }),
      "its scripts, bin, overrides and more would change, and npm or other programs run them"
    ))

  it("is recognized under any spelling", () => {
    assert.isTrue(isPackageFile("/a/PACKAGE.json"))
    assert.isFalse(isPackageFile("/a/package.json/b"))
    assert.include(harmlessFields, "description")
  })
})
