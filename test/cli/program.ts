import { Effect } from "effect"
import { type ChildProcess, execFile, fork, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { cp, glob, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import path from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { newFolder } from "../support/paths.ts"

/** The built program as a child process: what only shows there are exit statuses, signals and pipes. */

const root = path.dirname(path.dirname(import.meta.dirname))

/** A conversation that was recorded by Claude Code. */
export const example = path.join(root, "examples", "claude-code-subagent.jsonl")

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false
  )

/** All that the package of the program is made of. */
const sources = [
  "src",
  "scripts",
  "program",
  "docs",
  "integrations",
  "CHANGELOG.md",
  "LICENSE",
  "package.json",
  "package-lock.json"
]

/** The package that an earlier run made, in a folder named after the digest of what it is made of. It is replaced as a whole. */
const kept = path.join(root, "node_modules", ".vitest-cache", "program")

const digestOfSources = async (): Promise<string> => {
  // What Node's own modules export is part of the program.
  const hash = createHash("sha256").update(process.version)
  const names: Array<string> = []
  for await (const file of glob(
    sources.flatMap((name) => [name, `${name}/**/*.*`]),
    { cwd: root, withFileTypes: true }
  )) {
    if (file.isFile()) names.push(path.join(file.parentPath, file.name))
  }
  for (const name of names.sort()) hash.update(`${path.relative(root, name)}\0`).update(await readFile(name))
  return hash.digest("hex").slice(0, 16)
}

/** Copies the kept package. Returns whether that was possible: another run may replace it meanwhile, and another user may not let us read it. */
const take = async (earlier: string, folder: string): Promise<boolean> => {
  if (!(await exists(earlier))) return false
  return cp(earlier, folder, { recursive: true }).then(
    () => exists(earlier),
    () => false
  )
}

/** Makes the package of the program from its sources, or takes the one that an earlier run made of the same. */
const make = async (folder: string): Promise<void> => {
  const digest = await digestOfSources()
  if (await take(path.join(kept, digest), folder)) return
  await promisify(execFile)(process.execPath, [path.join(root, "scripts", "prepareProgram.mjs"), folder])
  // Another run may keep its own at the same time. What was made here is whole all the same.
  await keep(folder, digest).catch(() => {})
}

const keep = async (folder: string, digest: string): Promise<void> => {
  const [fresh, gone] = [`${kept}.${process.pid}.new`, `${kept}.${process.pid}.old`]
  try {
    await cp(folder, path.join(fresh, digest), { recursive: true })
    await rename(kept, gone).catch(() => {})
    await rename(fresh, kept)
  } finally {
    for (const rest of [fresh, gone]) await rm(rest, { recursive: true, force: true })
  }
}

/** Makes the program, or waits until another worker of this run has: its folder gets its name when all is there. */
const buildOnce = async (shared: string): Promise<string> => {
  const bundle = path.join(shared, "palimpsest.mjs")
  const making = `${shared}.making`
  const failed = path.join(making, "failed")
  if ((await mkdir(making, { recursive: true })) === undefined) {
    while (!(await exists(bundle))) {
      if (await exists(failed)) throw new Error(await readFile(failed, "utf8"))
      await setTimeout(20)
    }
    return bundle
  }
  try {
    await make(path.join(making, "program"))
    await rename(path.join(making, "program"), shared)
  } catch (error) {
    await writeFile(failed, String(error))
    throw error
  }
  return bundle
}

const built = Effect.promise(async () => {
  const folder = newFolder("cli-")
  const shared = path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? folder, "program")
  return { bundle: await buildOnce(shared), folder }
})

/** The bundle, built once for all workers, and a folder for what the tests of this worker write. */
export const program = Effect.runSync(Effect.cached(built))

/** How a run ended. */
export interface Ended {
  /** The exit status; null when a signal ended the process instead. */
  readonly status: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

/** What happens around a run. */
export interface Around {
  readonly input?: string
  /** Keeps standard input open after `input`. */
  readonly keepOpen?: boolean
  readonly cwd?: string
  /** Added to the environment; keys of a model are never taken over from the tests' own. */
  readonly env?: Readonly<Record<string, string>>
  /** Told once the process runs: for signals at a moment that the test knows. */
  readonly started?: (child: { readonly kill: (signal: NodeJS.Signals) => void }) => void
  /** Told of all that was written to stderr so far. */
  readonly noticed?: (stderr: string) => void
  /** Sent when this has been written to stderr, or when all of `input` was taken: give more than a pipe holds (1 MB). */
  readonly signal?: { readonly name: NodeJS.Signals; readonly after: RegExp | "input"; readonly times?: number }
  /** Runs in a process of its own, for what only shows there. */
  readonly isAlone?: true
  /** Closes the reading end of stdout after its first bytes, as `| head -1` does. */
  readonly hangUp?: boolean
}

/** The variables of the tests, without keys, and without the place of an agent that runs the tests. */
const { GEMINI_API_KEY: _gemini, GOOGLE_API_KEY: _google, PALIMPSEST_AGENT: _place, ...withoutKeys } = process.env

/** Processes that have run the program and can run it again. */
const idle: Array<ChildProcess> = []

/** Runs that show something of the process itself, are long, or read their terminal. */
const needsProcess = (
  args: ReadonlyArray<string>,
  { env, hangUp, isAlone, keepOpen, noticed, signal, started }: Around
) =>
  [env?.["NODE_OPTIONS"], hangUp, isAlone, keepOpen, noticed, signal, started].some((one) => one !== undefined) ||
  args.length === 0 ||
  args.some((arg) => /^(?:chat|serve|gateway|-h|--help|-v|--version|--completions.*)$/.test(arg))

/**
 * Runs the program and waits for its end. Where it makes no difference, in a process that has run it before, which saves most of the
 * processor's time.
 */
export const run = Effect.fnUntraced(function* (args: ReadonlyArray<string>, around: Around = {}) {
  const { bundle, folder } = yield* program
  const cwd = around.cwd ?? folder
  const env = {
    ...withoutKeys,
    PALIMPSEST_HOME: `${folder}-home`,
    // What the user who runs the tests keeps in theirs is nothing to them.
    GEMINI_CLI_HOME: `${folder}-user`,
    ...around.env
  }
  if (!needsProcess(args, around)) return yield* runAgain(bundle, { args, cwd, env, input: around.input ?? "" })
  return yield* Effect.callback<Ended>((resume) => {
    const child = spawn(process.execPath, [bundle, ...args], { cwd, env, stdio: "pipe" })
    around.started?.({ kill: (signal) => child.kill(signal) })
    const out: Array<Buffer> = []
    let stderr = ""
    let sent = false
    child.stdout.on("data", (chunk: Buffer) => {
      out.push(chunk)
      if (around.hangUp === true) child.stdout.destroy()
    })
    const send = () => {
      if (around.signal === undefined || sent) return
      sent = true
      for (let time = 0; time < (around.signal.times ?? 1); time += 1) child.kill(around.signal.name)
    }
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
      around.noticed?.(stderr)
      const after = around.signal?.after
      if (after instanceof RegExp && after.test(stderr)) send()
    })
    child.stdin.on("error", () => {})
    child.stdin.write(around.input ?? "", () => {
      if (around.signal?.after === "input") send()
    })
    if (around.keepOpen !== true) child.stdin.end()
    child.on("close", (status) => {
      resume(Effect.succeed({ status, stdout: Buffer.concat(out), stderr }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })
})

/** Runs the program in an idle process, or in a new one that is idle then. */
const runAgain = (
  bundle: string,
  asked: {
    readonly args: ReadonlyArray<string>
    readonly cwd: string
    readonly env: NodeJS.ProcessEnv
    readonly input: string
  }
) =>
  Effect.callback<Ended>((resume) => {
    const child =
      idle.pop() ??
      fork(path.join(import.meta.dirname, "warmProgram.mjs"), [bundle], {
        serialization: "advanced",
        execArgv: [],
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
    child.ref()
    child.channel?.ref()
    const ended = (end: Ended) => {
      child.removeAllListeners()
      resume(Effect.succeed(end))
    }
    child.once("message", (end: { readonly status: number; readonly stdout: Uint8Array; readonly stderr: string }) => {
      child.unref()
      child.channel?.unref()
      idle.push(child)
      ended({ ...end, stdout: Buffer.from(end.stdout) })
    })
    child.once("exit", (status) => ended({ status, stdout: Buffer.alloc(0), stderr: "" }))
    child.send(asked)
    return Effect.sync(() => child.kill("SIGKILL"))
  })
