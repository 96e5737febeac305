import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { estimateText } from "../../src/domain/tokens/Tokens.ts"
import { withoutCacheMarks } from "../../src/domain/wire/anthropic/CacheMarks.ts"
import type { Dialect } from "../../src/domain/wire/Dialect.ts"
import { type Block, codecs, type Json } from "../support/GatewayDialects.ts"
import { type FakeModel, makeGateway, makeProvider, type ProviderRequest } from "../support/GatewayScene.ts"
import { startFakeProviders } from "./FakeProviders.ts"
import { type Program, programs } from "./Programs.ts"

/**
 * The programs of other agents, through a gateway, at work for 200 steps in a window of 32,768 tokens. Each step reads a file; the
 * files together are several times the window. The model looks for what it was shown early, and finds it by recall alone.
 */

const window = 32_768
const steps = 200
const prompt = "Read all the step files, one after the other, and tell the code words that I ask for."

const wordOf = (step: number): string => `${["amber", "birch", "cedar", "delta"][step % 4]}-${step * 7919}`

const fileOf = (step: number): string =>
  [
    `The code word of step ${step} is ${wordOf(step)}.`,
    ...Array.from({ length: 30 }, (_, at) => `Line ${at} of step ${step} tells of part ${(step * 61 + at * 17) % 997}.`)
  ].join("\n")

/** The steps whose words are asked for in the middle of the work, together with the next reading, and at the end. */
const asked = {
  between: new Map([
    [70, 3],
    [140, 41]
  ]),
  end: [9, 77, 120, 188]
}

const namesIn = (tools: ReadonlyArray<Json> = []): ReadonlyArray<string> =>
  tools.flatMap((tool) =>
    (tool["functionDeclarations"] ?? [tool["function"] ?? tool]).map(({ name }: Json): string => String(name))
  )

/** How each program reads a file: the tool, and what it is given. */
const reading = (names: ReadonlyArray<string>, file: string): Pick<Block & { kind: "call" }, "name" | "args"> => {
  const ways: Readonly<Record<string, unknown>> = {
    Read: { file_path: file },
    read_file: { file_path: file },
    read: { path: file },
    exec_command: { cmd: `cat ${file}` },
    shell: { command: ["cat", file] },
    shell_command: { command: `cat ${file}` }
  }
  const name = names.find((one) => ways[one] !== undefined)
  if (name === undefined) throw new Error(`no tool that reads: ${names.join(", ")}`)
  return { name, args: ways[name] }
}

/** A model that reads file after file, and recalls what it no longer sees. */
const worker = (folder: string) => {
  let step = 0
  let calls = 0
  const found = new Map<number, string>()
  const recalled: Array<number> = []
  const model: FakeModel = ({ dialect, text }: ProviderRequest) => {
    const tools = namesIn(JSON.parse(text).tools)
    // Titles, topics and checks, which the programs ask for beside.
    if (tools.length < 2) return [{ kind: "text", text: "Steps" }]
    const messages = codecs[dialect].messages(text).join("\n")
    const own = tools.find((name) => name.startsWith("palimpsest_recall"))
    calls += 1
    const id = `call_${calls}`
    const lookUp = (about: number): Block => {
      if (own === undefined) throw new Error(`step ${about} cannot be recalled`)
      recalled.push(about)
      return { kind: "call", id, name: own, args: { grep: `code word of step ${about} ` } }
    }
    const seen = (about: number) => new RegExp(`code word of step ${about} is (\\w+-\\d+)`).exec(messages)?.[1]
    const read = (): Block => {
      step += 1
      return { kind: "call", id: `read_${step}`, ...reading(tools, path.join(folder, `step-${step}.txt`)) }
    }
    const between = asked.between.get(step)
    if (between !== undefined && !found.has(between)) {
      found.set(between, seen(between) ?? "")
      return found.get(between) === "" ? [lookUp(between), read()] : [read()]
    }
    for (const [about, word] of found) if (word === "") found.set(about, seen(about) ?? "")
    if (step < steps) return [{ kind: "text", text: `Step ${step + 1}.` }, read()]
    for (const about of asked.end) {
      const word = seen(about)
      if (word === undefined) return [lookUp(about)]
      found.set(about, word)
    }
    return [{ kind: "text", text: `The words: ${[...found.values()].join(" ")}.` }]
  }
  return { model, recalled, steps: () => step }
}

/** How many of its characters a request has in common with the one before it, from the beginning on. */
const commonShare = (before: string, now: string): number => {
  let same = 0
  while (same < before.length && before[same] === now[same]) same += 1
  return same / before.length
}

const isMain = ({ text }: ProviderRequest): boolean => namesIn(JSON.parse(text).tools).length >= 2

/** What lets each program read files without asking, and names a model that the provider knows. */
const freely: Readonly<Record<Program["name"], ReadonlyArray<string>>> = {
  claude: ["--allowedTools=Read"],
  codex: ["--dangerously-bypass-approvals-and-sandbox"],
  gemini: ["--approval-mode", "yolo", "--model", "gemini-2.5-flash"],
  pi: []
}

describe.each(programs)("$title through the gateway", ({ name, resume }) => {
  it.live(
    "works 200 steps in a window of 32,768 tokens, and forgets nothing",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(path.join(tmpdir(), `peers-gateway-${name}-`))
        const folder = path.join(home, "work")
        mkdirSync(folder, { recursive: true })
        for (let step = 1; step <= steps; step += 1) writeFileSync(path.join(folder, `step-${step}.txt`), fileOf(step))
        const { model, recalled, steps: done } = worker(folder)
        const provider = yield* makeProvider(model)
        const gateway = yield* makeGateway(provider.url, { window })
        const sink = yield* Effect.acquireRelease(
          Effect.promise(() => startFakeProviders()),
          (one) => Effect.promise(() => one.close())
        )
        const ran = yield* Effect.promise(() =>
          resume(undefined, prompt, home, sink, {
            args: freely[name],
            models: gateway.url,
            // Its question whether it goes round in circles breaks a pair of call and result.
            settings: { model: { name: "gemini-2.5-flash", disableLoopDetection: true } }
          })
        )
        const main = provider.requests.filter(isMain)
        const compressions = [...gateway.held.keys()].filter((key) => key.includes("/view/")).length
        let breaks = 0
        let least = 1
        for (const [at, { dialect, text }] of main.entries()) {
          assert.isBelow(estimateText(text), window, `request ${at}`)
          const previous = main[at - 1]
          if (previous === undefined) continue
          const messagesOf = (one: string, of: Dialect) => codecs[of].messages(one).map(withoutCacheMarks).join()
          const share = commonShare(messagesOf(previous.text, dialect), messagesOf(text, dialect))
          if (share < 0.95) breaks += 1
          else least = Math.min(least, share)
        }
        process.stdout.write(
          `${name}: ${main.length} requests, ${compressions} compressions, ${recalled.length} recalls, at least ${(least * 100).toFixed(1)} % unchanged, ${breaks} breaks\n`
        )
        assert.strictEqual(ran.status, 0, ran.output)
        assert.strictEqual(done(), steps, ran.output)
        for (const about of [...asked.between.values(), ...asked.end]) assert.include(ran.output, wordOf(about))
        assert.isAtLeast(recalled.length, asked.end.length)
        assert.isAtLeast(compressions, 2)
        assert.isAtMost(breaks, compressions)
      }).pipe(Effect.scoped),
    600_000
  )
})
