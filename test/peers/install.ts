import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { homedir } from "node:os"
import path from "node:path"

/**
 * The other agents' own programs, from the npm registry, in a folder outside the project: `$PALIMPSEST_PEERS`, else
 * `palimpsest-peers` in the user's cache folder. Installed once and used again; about 1.4 GB.
 */

/** What is installed, in exactly these versions. */
export const packages: Readonly<Record<string, string>> = {
  "@anthropic-ai/claude-code": "2.1.332",
  "@anthropic-ai/sdk": "1.12.0",
  "@google/gemini-cli": "0.61.0",
  "@google/gemini-cli-core": "0.61.0",
  "@mariozechner/pi-coding-agent": "0.73.1",
  "@openai/codex": "0.171.0",
  openai: "7.57.0",
  "opencode-ai": "1.18.33"
}

const cacheFolder = (): string => {
  const { LOCALAPPDATA, XDG_CACHE_HOME } = process.env
  if (process.platform === "win32" && LOCALAPPDATA !== undefined) return LOCALAPPDATA
  if (process.platform === "darwin") return path.join(homedir(), "Library", "Caches")
  return XDG_CACHE_HOME === undefined || XDG_CACHE_HOME === "" ? path.join(homedir(), ".cache") : XDG_CACHE_HOME
}

/** The folder they are installed into. */
export const peersFolder = (): string => {
  const { PALIMPSEST_PEERS: own } = process.env
  return own === undefined || own === "" ? path.join(cacheFolder(), "palimpsest-peers") : path.resolve(own)
}

/** The folder of an installed package. */
export const packageFolder = (name: string): string => path.join(peersFolder(), "node_modules", ...name.split("/"))

const installedVersion = (name: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(readFileSync(path.join(packageFolder(name), "package.json"), "utf8"))
    return typeof value === "object" && value !== null && "version" in value ? String(value.version) : undefined
  } catch {
    return undefined
  }
}

/** Loads an installed package. Another version, such as one that a program brought along, is refused. */
export const loadPackage = (name: string) => {
  const version = installedVersion(name)
  if (version !== packages[name])
    throw new Error(`${name} ${packages[name]} is wanted, ${version ?? "none"} is in ${peersFolder()}`)
  return createRequire(path.join(peersFolder(), "package.json"))(name)
}

const missing = (): ReadonlyArray<string> =>
  Object.entries(packages).flatMap(([name, version]) => (installedVersion(name) === version ? [] : [name]))

const npmInstall = (folder: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    // No scripts: none of the programs needs its own to run, and what they download besides is not wanted.
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    execFile(
      "npm",
      args,
      { cwd: folder, timeout: 600_000, shell: process.platform === "win32" },
      (error, _out, stderr) => {
        if (error === null) return resolve(undefined)
        const line = stderr.split("\n").find((one) => /npm error (?!code)/.test(one)) ?? error.message
        resolve(line.replace("npm error ", "").split("\n")[0])
      }
    )
  })

/** Installs what is missing. A text says in one line why that was not possible. */
export const installPeers = async (): Promise<string | undefined> => {
  if (missing().length === 0) return undefined
  const folder = peersFolder()
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify({ private: true, dependencies: packages })}\n`)
  const problem = await npmInstall(folder)
  if (problem !== undefined) return `cannot install ${missing().join(", ")} from the npm registry: ${problem}`
  const left = missing()
  return left.length === 0 ? undefined : `the npm registry did not give ${left.join(", ")}`
}
