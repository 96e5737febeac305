import { execFileSync } from "node:child_process"
import { accessSync, constants, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs"
import path from "node:path"
import process from "node:process"
// Not from @effect/vitest: the process that starts the workers loads this file, too, and needs no Effect.
import { describe } from "vitest"
import { newFolder } from "./paths.ts"

/**
 * What tests require of the machine besides Node, npm and a POSIX shell. No other file of the tests looks for it. A test asks
 * with `needs`, and is skipped, with the reason in its name, where the requirement is missing.
 *
 * As a global setup, this file hides programs from all tests and from what they start: `PALIMPSEST_TEST_WITHOUT=tmux,rg`.
 */

interface Need {
  /** Names to look up on the PATH, or absolute paths; one match is enough. */
  readonly programs: ReadonlyArray<string>
  /** A variable that may hold the path of the program. */
  readonly variable?: string
  /** How to get it, for the report. */
  readonly get: string
  /** A further condition. */
  readonly works?: (program: string) => boolean
}

const install = process.platform === "darwin" ? "brew install" : "apt-get install"

const chromium = {
  programs: [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium"
  ],
  variable: "CHROMIUM_PATH",
  get: `${install} chromium, or set CHROMIUM_PATH`
}

/** Chromium's sandbox needs user namespaces or a setuid helper. Only starting it shows whether one of them works. */
const hasSandbox = (program: string): boolean => {
  if (process.platform !== "linux" || process.getuid?.() === 0) return true
  const profile = newFolder("profile-")
  try {
    const options = ["--headless", "--disable-gpu", `--user-data-dir=${profile}`, "--dump-dom", "about:blank"]
    const page = execFileSync(program, options, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      // A Chromium that hangs at its start has no sandbox that a test could use.
      timeout: 30_000,
      killSignal: "SIGKILL"
    })
    return page.includes("<html>")
  } catch {
    return false
  } finally {
    rmSync(profile, { recursive: true, force: true })
  }
}

const isRoot = (): boolean => process.getuid?.() === 0

/** Whether a program is GNU's. */
const isGnu = (program: string): boolean => {
  try {
    return execFileSync(program, ["--version"], { encoding: "utf8", timeout: 30_000 }).includes("GNU")
  } catch {
    return false
  }
}

/** Whether processes can get a PID namespace, which some systems allow without root. */
const hasNamespaces = (program: string): boolean => {
  try {
    execFileSync(program, [...namespace, "true"], { stdio: "ignore", timeout: 30_000 })
    return true
  } catch {
    return false
  }
}

/** The command that gives a program a PID namespace of its own. */
export const namespace = ["-Urpf", "--mount-proc"]

const table = {
  Chromium: chromium,
  "Chromium in its sandbox": {
    ...chromium,
    get: `${install} chromium chromium-sandbox, or set CHROMIUM_PATH`,
    works: hasSandbox
  },
  tmux: { programs: ["tmux"], get: `${install} tmux` },
  "a pseudo-terminal by script": {
    programs: ["script"],
    get: "apt-get install bsdutils",
    // Other systems use other flags.
    works: () => process.platform === "linux"
  },
  ripgrep: { programs: ["rg"], get: `${install} ripgrep` },
  git: { programs: ["git"], get: `${install} git` },
  bash: { programs: ["bash"], get: `${install} bash` },
  "GNU tar": { programs: ["tar"], get: `${install} tar`, works: isGnu },
  "GNU sort": { programs: ["sort"], get: `${install} coreutils`, works: isGnu },
  "GNU find": { programs: ["find"], get: `${install} findutils`, works: isGnu },
  "GNU sed": { programs: ["sed"], get: `${install} sed`, works: isGnu },
  awk: { programs: ["awk"], get: `${install} gawk` },
  Python: { programs: ["python3"], get: `${install} python3` },
  "a namespace of process numbers": {
    programs: ["unshare"],
    get: "apt-get install util-linux, and allow user namespaces",
    works: hasNamespaces
  },
  PostgreSQL: {
    programs: ["initdb", ...[18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin/initdb`)],
    get: "apt-get install postgresql"
  },
  systemd: { programs: ["systemd-analyze"], get: "apt-get install systemd" },
  "SQLite's shell": { programs: ["sqlite3"], get: `${install} sqlite3` },
  root: { programs: ["chown"], get: "run the tests as root", works: isRoot },
  "a user who is not root": { programs: ["chmod"], get: "run the tests as another user", works: () => !isRoot() },
  Linux: { programs: ["/proc/self/exe"], get: "run the tests on Linux" }
} satisfies Readonly<Record<string, Need>>

/** The requirements that a test can name. */
export type Kind = keyof typeof table

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

const folders = (): ReadonlyArray<string> =>
  (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder))

const found = new Map<Kind, string | undefined>()

/** The program to use, looked up as the program under test does; undefined where there is none. */
export const programOf = (kind: Kind): string | undefined => {
  if (!found.has(kind)) {
    const { programs, variable, works }: Need = table[kind]
    const named = variable === undefined ? undefined : process.env[variable]
    const candidates = [
      ...(named === undefined || named === "" ? [] : [named]),
      ...folders().flatMap((folder) => programs.map((name) => path.resolve(folder, name)))
    ]
    const program = candidates.find(isProgram)
    found.set(kind, program === undefined || works?.(program) === false ? undefined : program)
  }
  return found.get(kind)
}

/** A group of tests with requirements, skipped where one is missing. Its name says what it needs, so that `-t` can choose it. */
export const needs =
  (kind: Kind) =>
  (name: string, tests: () => void): void => {
    const isMissing = programOf(kind) === undefined
    describe.skipIf(isMissing)(`${name} [${isMissing ? `needs ${kind}: ${table[kind].get}` : kind}]`, tests)
  }

/** The missing requirements of a skipped test, by the names of its groups, with how to get them. */
export const lackOf = (name: string): { readonly what: string; readonly get: string } | undefined => {
  const [, what, get] = /\[needs ([^:\]]+): ([^\]]+)\]/.exec(name) ?? []
  return what === undefined || get === undefined ? undefined : { what, get }
}

/** Hides programs: folders of the PATH that contain one are replaced with links to everything else in them. */
export const hide = (names: ReadonlyArray<string>, into: string): void => {
  const needed: ReadonlyArray<Need> = Object.values(table)
  const asked = needed.filter(({ programs }) => programs.some((program) => names.includes(program)))
  const hidden = new Set([...names, ...asked.flatMap(({ programs }) => programs)])
  for (const { variable } of asked) if (variable !== undefined) delete process.env[variable]
  const replaced = folders().map((folder, index) => {
    if (![...hidden].some((name) => !path.isAbsolute(name) && isProgram(path.join(folder, name)))) return folder
    const shadow = path.join(into, `path-${index}`)
    mkdirSync(shadow, { recursive: true })
    for (const name of readdirSync(folder)) {
      if (!hidden.has(name)) symlinkSync(path.join(folder, name), path.join(shadow, name))
    }
    return shadow
  })
  process.env["PATH"] = replaced.join(path.delimiter)
}

/** Runs before all tests: hides the programs in `PALIMPSEST_TEST_WITHOUT`. */
export default function setup(): void {
  const names = (process.env["PALIMPSEST_TEST_WITHOUT"] ?? "").split(",").filter((name) => name !== "")
  if (names.length > 0) {
    hide(names, newFolder("without-"))
  }
}
