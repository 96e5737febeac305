import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import { says } from "../cli/scene.ts"
import { makeClient, makeProvider } from "../support/GatewayScene.ts"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { startProcess } from "../support/serverProcess.ts"
import { sharedCode } from "../support/temporaryFolder.ts"

/** Patterns that keep a server or a gateway busy for a long time: others are answered meanwhile, and the work ends when its client leaves. */

/** For each character, hundreds of ways to read the ones before it differ from those of any other character. */
const slow = "a(?:a|b){300}c"

/** An engine that tries one way after the other takes minutes for each. */
const backtracking = ["\\w*\\w*\\w*\\d", "[^c]*[^c]*[^c]*c", "a*a*a*c", "(a|b|aa)*c"]

/** Words in which nothing repeats. */
const restless = (words: number, seed: number): string => {
  const random = seededRandom(seed)
  const word = () => Array.from({ length: 60 }, () => (random() < 0.5 ? "a" : "b")).join("")
  return Array.from({ length: words }, word).join("")
}

/** Processor time that a process has used, in ticks. */
const ticksOf = ({ pid }: ChildProcess): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  return Number(fields[11]) + Number(fields[12])
}

/** Waits until a process does nothing. */
const untilIdle = async (child: ChildProcess) => {
  for (let before = -1; ;) {
    const now = ticksOf(child)
    if (now - before <= 2) return
    before = now
    await setTimeout(500)
  }
}

/** Asks whether the program is well while it looks for a pattern, then leaves, and waits until it has given up. */
const attack = async (child: ChildProcess, url: string, search: (signal: AbortSignal) => Promise<Response>) => {
  const leaving = new AbortController()
  let isOver = false
  const asked = search(leaving.signal).then(
    async (response) => {
      await response.text()
      isOver = true
    },
    () => {}
  )
  // Until it works on it.
  for (const begun = ticksOf(child); ticksOf(child) < begun + 50;) await setTimeout(20)
  for (let times = 0; times < 5; times += 1) {
    assert.strictEqual((await fetch(`${url}/health`)).status, 200)
    assert.isFalse(isOver, "the pattern was no attack")
  }
  leaving.abort()
  await asked
  await untilIdle(child)
}

const minutes = 60_000

needs("Linux")("a pattern that takes long", () => {
  it.live(
    "in a recall of the server",
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        const fake = yield* FakeGemini.make(({ method }) =>
          method === "streamGenerateContent" ? says("Noted.") : FakeGemini.tokens(100)
        )
        yield* Effect.promise(async () => {
          const server = await startProcess(bundle, { args: ["--store", "files"], home: newFolder(), model: fake.url })
          const ask = (method: string, place: string, body?: unknown, signal?: AbortSignal) =>
            fetch(`${server.url}/v1/sessions${place}`, {
              method,
              headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
              ...(body === undefined ? {} : { body: JSON.stringify(body) }),
              ...(signal === undefined ? {} : { signal })
            })
          try {
            await ask("POST", "", { id: "s" })
            for (const text of [`${"a".repeat(60_000)} ${restless(8_000, 1)}`, "next", "next"]) {
              await (await ask("POST", "/s/messages", { text })).text()
            }
            await (await ask("POST", "/s/compress", { force: true })).text()
            const [handle] = /h_[a-z2-7]{10}/.exec(await (await ask("GET", "/s/ledger")).text()) ?? []
            const places = (pattern: string) => [
              `/s/recall/${handle}?grep=${encodeURIComponent(pattern)}`,
              `/s/recall?pattern=${encodeURIComponent(pattern)}`
            ]
            for (const place of backtracking.flatMap(places)) assert.strictEqual((await ask("GET", place)).status, 200)
            for (const place of places(slow)) {
              await attack(server.child, server.url, (signal) => ask("GET", place, undefined, signal))
            }
          } finally {
            server.child.kill("SIGKILL")
          }
        })
      }).pipe(Effect.scoped),
    5 * minutes
  )

  it.live(
    "in a recall of the model through the gateway",
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        let isHostile = false
        const provider = yield* makeProvider(({ text }) => {
          const name = /"(palimpsest_recall)"/.exec(text)?.[1]
          return isHostile && name !== undefined
            ? [{ kind: "call", id: "c1", name, args: { grep: slow } }]
            : [{ kind: "text", text: "Noted." }]
        })
        const home = newFolder()
        const child = spawn(
          process.execPath,
          [bundle, "gateway", "--port", "0", "--json", "--window", "32k", "--upstream", `anthropic=${provider.url}`],
          { cwd: home, env: { PATH: process.env["PATH"] ?? "", ...sharedCode, PALIMPSEST_HOME: home } }
        )
        yield* Effect.promise(async () => {
          try {
            const url = await new Promise<string>((resolve) => {
              let printed = ""
              const look = (piece: unknown) => {
                printed += String(piece)
                const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(printed) ?? []
                if (found !== undefined) resolve(found)
              }
              child.stdout.on("data", look)
              child.stderr.on("data", look)
            })
            const client = makeClient("anthropic", url, false)
            for (let turn = 1; turn <= 12; turn += 1) await client.say(`${turn}: ${restless(500, turn)}`, () => "")
            isHostile = true
            await attack(child, url, (signal) => client.send("What was it?", signal))
          } finally {
            child.kill("SIGKILL")
          }
        })
      }).pipe(Effect.scoped),
    5 * minutes
  )
})
