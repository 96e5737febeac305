import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, watch, writeFileSync } from "node:fs"
import path from "node:path"
import * as FileMemory from "../../../../src/layers/memory/FileMemory.ts"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import { expand } from "../../../../src/services/references/AtReferences.ts"
import { TokenCounter } from "../../../../src/services/tokens/TokenCounter.ts"
import { EditCorrector } from "../../../../src/services/tools/builtin/EditCorrector.ts"
import { glob } from "../../../../src/services/tools/builtin/Glob.ts"
import { listDirectory } from "../../../../src/services/tools/builtin/ListDirectory.ts"
import { readFile } from "../../../../src/services/tools/builtin/ReadFile.ts"
import { readManyFiles } from "../../../../src/services/tools/builtin/ReadManyFiles.ts"
import { replace } from "../../../../src/services/tools/builtin/Replace.ts"
import { searchFiles } from "../../../../src/services/tools/builtin/SearchFiles.ts"
import { shell } from "../../../../src/services/tools/builtin/Shell.ts"
import { writeFile } from "../../../../src/services/tools/builtin/WriteFile.ts"
import { callTool } from "../../../support/callTool.ts"
import { needs } from "../../../support/machine.ts"
import { type Pair, swapper } from "../../../support/swapper.ts"
import { temporaryFolder } from "../../../support/workspaces.ts"

/**
 * A process of this machine exchanges folders and files of the workspace with links that lead out, every half millisecond, while
 * tools use them. Nothing of outside may be told, and nothing outside may be made or changed. `npm run test:swaps` makes 5,000
 * calls; PALIMPSEST_SWAP_CALLS says how many.
 */
const calls = Number(process.env["PALIMPSEST_SWAP_CALLS"] ?? (process.env["MODE"] === "swaps" ? 5_000 : 150))
const pause = 0.5

/** Stands in every text outside, and in no other. */
const mark = "OUTSIDE-TEXT"
/** Stands in names of files that are outside only. */
const markedName = "outside-only"

const write = (top: string, files: Readonly<Record<string, string>>) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(top, name)), { recursive: true })
    writeFileSync(path.join(top, name), text)
  }
}

/** The same names within and outside; outside there is more. */
const filesOf = (text: string, isOutside: boolean): Readonly<Record<string, string>> => ({
  "d/a.txt": `${text} needle\n`,
  "d/sub/b.txt": `${text} needle\n`,
  "d/edited.txt": `${text} needle\n`,
  "d/GEMINI.md": `${text} memory\n`,
  "p/q/r/deep.txt": `${text} needle\n`,
  "p/q/GEMINI.md": `${text} memory\n`,
  "f.txt": `${text} needle\n`,
  ...(isOutside ? { [`d/${markedName}.txt`]: `${text} needle\n`, [`p/q/${markedName}.txt`]: `${text}\n` } : {})
})

interface Scene {
  readonly root: string
  readonly outside: string
  readonly pairs: ReadonlyArray<Pair>
}

/** Folders, a file and a folder two levels up, which are exchanged within the workspace. */
const within = (top: string): Scene & { readonly pipe: Pair } => {
  const [root, outside] = [path.join(top, "work"), path.join(top, "outside")]
  write(root, { ...filesOf("inside", false), "GEMINI.md": "root memory @d/a.txt\n", "g.txt": "inside needle\n" })
  write(outside, filesOf(mark, true))
  const pairs = ["d", "p", "f.txt"].map((name): Pair => {
    symlinkSync(path.join(outside, name), path.join(root, `${name}.link`))
    return [path.join(root, name), path.join(root, `${name}.link`)]
  })
  symlinkSync("d", path.join(root, "inner"))
  symlinkSync("inner/sub", path.join(root, "inner2"))
  execFileSync("mkfifo", [path.join(root, "g.fifo")])
  return { root, outside, pairs, pipe: [path.join(root, "g.txt"), path.join(root, "g.fifo")] }
}

/** A file becomes a pipe, too. (Ripgrep would wait for it until its time is over: that search tells nothing.) */
const withPipe = (top: string): Scene => {
  const { pairs, pipe, ...rest } = within(top)
  return { ...rest, pairs: [...pairs, pipe] }
}

/** The folder above the workspace is exchanged. */
const above = (top: string): Scene => {
  const parent = path.join(top, "parent")
  const root = path.join(parent, "work")
  const outside = path.join(top, "outside")
  write(root, { ...filesOf("inside", false), "GEMINI.md": "root memory @d/a.txt\n", "g.txt": "inside needle\n" })
  write(path.join(outside, "work"), { ...filesOf(mark, true), "g.txt": `${mark} needle\n`, "GEMINI.md": mark })
  symlinkSync(outside, `${parent}.link`)
  return { root, outside, pairs: [[parent, `${parent}.link`]] }
}

/** All that lies below a folder, and what it holds. */
const snapshot = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const place = path.join(folder, name)
      const info = statSync(place)
      return `${name} ${info.ino} ${info.mode} ${info.isFile() ? readFileSync(place, "utf8") : ""}`
    })

const platform = Layer.mergeAll(
  TokenCounter.layerEstimate,
  Layer.succeed(EditCorrector, { correct: () => Effect.undefined })
).pipe(Layer.provideMerge(NodeServices.layer))

/** How one kind of call went. */
interface Count {
  calls: number
  done: number
  leaks: number
}

type Attempt = Effect.Effect<string, { readonly message: string }>

/** Calls of all tools, each with what stands in its answer or its refusal. */
const attempts = Effect.fnUntraced(function* (
  root: string,
  hasRipgrep: boolean
): Effect.fn.Return<ReadonlyArray<readonly [name: string, attempt: (i: number) => Attempt]>, never, Scope.Scope> {
  const built = yield* Layer.build(
    FileWorkspace.layer({ root }).pipe(
      Layer.provideMerge(platform),
      Layer.provideMerge(
        Layer.succeed(Environment, {
          variables: Effect.succeed({ PATH: hasRipgrep ? (process.env["PATH"] ?? "") : "/nowhere" })
        })
      ),
      Layer.orDie
    )
  )
  const here = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.provideContext(work, built)
  const tools = {
    read_file: yield* here(readFile),
    read_many_files: yield* here(readManyFiles),
    list_directory: yield* here(listDirectory),
    glob: yield* here(glob),
    search_file_content: yield* here(searchFiles),
    write_file: yield* here(writeFile),
    replace: yield* here(replace),
    run_shell_command: yield* here(shell)
  }
  const told = (name: keyof typeof tools, args: unknown): Attempt =>
    Effect.map(callTool(tools[name], args), ({ question, result }) => JSON.stringify([question, result]))
  const one = (options: ReadonlyArray<unknown>, i: number) => options[i % options.length]
  const of =
    (name: keyof typeof tools, ...options: ReadonlyArray<unknown>) =>
    (i: number) =>
      told(name, one(options, i))
  const files = ["d/a.txt", "p/q/r/deep.txt", "f.txt", "d/../d/a.txt", "inner/a.txt", "inner2/b.txt", "g.txt"]
  const folders = ["d", "p/q", ".", "inner", "p/q/r", "d/sub"]
  const paths = (key: string, values: ReadonlyArray<string>) => values.map((value) => ({ [key]: value }))
  const memory = Effect.gen(function* () {
    const made = yield* FileMemory.make({
      home: path.join(root, "..", "home"),
      geminiHome: path.join(root, "..", "gemini"),
      extensions: [],
      root,
      // Whoever is asked decides by where a folder really lies.
      isTrusted: (folder) => Effect.succeed(folder === root || folder.startsWith(`${root}${path.sep}`))
    })
    const loaded = yield* made.load
    const touched = yield* made.touched(path.join(root, "d/sub/b.txt"))
    return JSON.stringify([loaded, touched ?? null, (yield* made.touched(path.join(root, "p/q/r/deep.txt"))) ?? null])
  })
  return [
    ["read_file", of("read_file", ...paths("file_path", files))],
    [
      "read_many_files",
      of("read_many_files", { include: ["d/**"] }, { include: ["**/*.txt"] }, { include: ["p", "f.txt"] })
    ],
    ["list_directory", of("list_directory", ...paths("dir_path", folders))],
    [
      "glob",
      of("glob", { pattern: "**/*" }, { pattern: "*", dir_path: "d" }, { pattern: "**/*.txt", dir_path: "p/q" })
    ],
    [
      "search_file_content",
      of(
        "search_file_content",
        { pattern: "needle" },
        { pattern: "needle|memory", dir_path: "d" },
        { pattern: "needle", names_only: true },
        { pattern: "needle", dir_path: "p/q", context: 1 },
        { pattern: "needle", dir_path: "f.txt" }
      )
    ],
    [
      "write_file",
      (i) =>
        told("write_file", {
          file_path: one(["d/edited.txt", `d/new-${i}.txt`, `p/q/new-${i}/x.txt`, "f.txt", `inner/i-${i}.txt`], i),
          content: `inside needle ${i}\n`
        })
    ],
    [
      "replace",
      of(
        "replace",
        ...["d/edited.txt", "p/q/r/deep.txt", "f.txt"].map((file_path) => ({
          file_path,
          old_string: "needle",
          new_string: "a needle"
        }))
      )
    ],
    [
      "run_shell_command",
      of(
        "run_shell_command",
        ...["d", "p/q", "d/sub"].map((dir_path) => ({ dir_path, command: "ls; cat *.txt; echo made > made.txt" }))
      )
    ],
    [
      "@-references",
      (i) =>
        here(
          Effect.map(
            expand(`see ${String(one(["@d/a.txt", "@d", "@f.txt @p", "@p/q/r/deep.txt", "@**/*.txt"], i))}`),
            (expanded) => JSON.stringify(expanded)
          )
        )
    ],
    ["memory", () => here(memory)]
  ]
})

const isLeak = (text: string): boolean => text.includes(mark) || text.includes(markedName)

const attack = (name: string, makeScene: (top: string) => Scene, share: number, hasRipgrep = true) =>
  it.live(
    name,
    () =>
      Effect.gen(function* () {
        const scene = makeScene(yield* temporaryFolder)
        const { outside, pairs, root } = scene
        const before = snapshot(outside)
        const made: Array<string> = []
        const table = yield* attempts(root, hasRipgrep)
        const watched = [
          outside,
          ...readdirSync(outside, { recursive: true, withFileTypes: true, encoding: "utf8" })
            .filter((entry) => entry.isDirectory())
            .map((entry) => path.join(entry.parentPath, entry.name))
        ].map((folder) => watch(folder, (event, file) => made.push(`${event} ${file ?? ""}`)))
        const { swaps } = yield* Effect.promise(() => swapper(pairs, pause))
        const counts = new Map<string, Count>()
        const leaks: Array<string> = []
        const count = Math.ceil(calls * share)
        for (let i = 0; i < count; i += 1) {
          const [tool, attempt] = table[i % table.length] ?? table[0] ?? assert.fail()
          const known = counts.get(tool) ?? { calls: 0, done: 0, leaks: 0 }
          counts.set(tool, known)
          const text = yield* Effect.match(attempt(Math.floor(i / table.length)), {
            onSuccess: (text) => ((known.done += 1), text),
            onFailure: ({ message }) => message
          })
          known.calls += 1
          if (isLeak(text)) {
            known.leaks += 1
            leaks.push(`${tool} ${i}: ${text}`)
          }
        }
        writeFileSync(`${pairs[0]?.[0] ?? ""}.stop`, "")
        const swapped = yield* Effect.promise(() => swaps)
        yield* Effect.sleep("100 millis")
        for (const each of watched) each.close()
        const left = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".tmp"))
        const lines = [...counts].map(
          ([tool, { calls, done, leaks: found }]) => `${tool} ${done}/${calls} leaks ${found}`
        )
        yield* Effect.logInfo(
          `${name}: ${count} calls, ${swapped} swaps; done of calls: ${lines.join(", ")}; outside: ${made.length} changes; temporary files left inside: ${left.length}`
        )
        assert.isAbove(swapped, 0)
        assert.deepStrictEqual(leaks.slice(0, 3), [])
        assert.deepStrictEqual(made.slice(0, 3), [])
        assert.deepStrictEqual(snapshot(outside), before)
      }).pipe(Effect.provide(NodeServices.layer)),
    3_600_000
  )

needs("Linux")("while a process exchanges what was judged with links that lead out", () => {
  attack("folders, files and pipes of the workspace: nothing of outside is told or touched", within, 0.7)
  attack("the folder above the workspace: nothing of another one is told or touched", above, 0.2)
  attack("searched without ripgrep: nothing of outside is told or touched", withPipe, 0.1, false)
})
