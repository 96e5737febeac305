import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { isCall, isResponse, isText } from "../../../src/domain/content/Content.ts"
import { entries, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { recall } from "../../../src/domain/conversation/Recall.ts"
import { recallableOf } from "../../../src/domain/session/Session.ts"
import type { WritableAgent } from "../../../src/domain/transcripts/CarriedSession.ts"
import { carryOver } from "../../../src/services/transcripts/CarryOver.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { breaks } from "../../support/brokenSessions.ts"
import { inHome, lines, recorded } from "../../support/carriedSessions.ts"
import { illegal } from "../../support/legal.ts"
import { runsOf } from "../../support/runs.ts"
import { brokenSession, userTexts } from "../../support/seededBreaks.ts"

const written = Effect.fnUntraced(function* (home: string, text: string, agent: WritableAgent, below: number) {
  const file = `${home}/session.jsonl`
  writeFileSync(file, text)
  const transcripts = yield* Transcripts
  const loaded = yield* transcripts.load(file, { lenient: true })
  const carried = yield* carryOver({ loaded, file, agent, from: "claude", below, folder: "/work/here" })
  assert.strictEqual(readFileSync(file, "utf8"), text, "the original is unchanged")
  // What the agent reads has no log of ours beside it.
  const alone = `${home}/alone.jsonl`
  copyFileSync(carried.file, alone)
  const seen = yield* transcripts.load(alone)
  return { loaded, carried, seen, whole: yield* transcripts.load(carried.file) }
})

describe("a session that is carried over", () => {
  it.effect.each(Object.keys(breaks))("%s: is legal, below the size, and holds every message of the user", (name) =>
    inHome((home) =>
      Effect.gen(function* () {
        const text = breaks[name]?.(lines) ?? ""
        const { carried, loaded, seen, whole } = yield* written(home, text, "claude", 6_000)
        assert.isAtMost(viewTokens(seen.session.conversation), 6_500)
        assert.isBelow(carried.bytes.after, 200_000)
        assert.isUndefined(illegal(projectMessages(seen.session.conversation).map(({ content }) => content)))
        const all = recallableOf(whole.session)
        for (const { content, handles } of entries(loaded.session.conversation)) {
          for (const [at, part] of content.parts.entries()) {
            if (!isText(part) && !isCall(part) && !isResponse(part)) continue
            assert.isDefined(recall(all, handles[at] ?? ""), JSON.stringify(part).slice(0, 80))
          }
        }
      })
    )
  )

  it.effect("is written where the agent looks for it, in the given folder, with the command that continues it", () =>
    inHome((home) =>
      Effect.gen(function* () {
        for (const [agent, folder, command] of [
          ["claude", "claude/-work-here", /^cd \/work\/here && claude --resume [0-9a-f-]{36}$/],
          ["codex", "codex/1970/01/01", /^cd \/work\/here && codex resume [0-9a-f-]{36}$/],
          ["pi", "pi/--work-here--", /^cd \/work\/here && pi --session .*\.jsonl$/],
          [
            "opencode",
            "opencode",
            /^cd \/work\/here && opencode import \/.*\/(ses_[0-9a-f]{32})\.json && opencode --session \1$/
          ]
        ] as const) {
          const { carried, seen } = yield* written(home, lines.join("\n"), agent, 1_000_000)
          assert.strictEqual(path.dirname(carried.file), `${home}/${folder}`)
          assert.match(carried.command, command)
          assert.strictEqual(seen.format, agent)
          assert.strictEqual(seen.session.started?.cwd, "/work/here")
          assert.isUndefined(carried.status)
        }
      })
    )
  )

  it.effect("is written beside the original, or in the place of the folder where it continues", () =>
    inHome((home) =>
      Effect.gen(function* () {
        const original = `${home}/claude/-somewhere/one.jsonl`
        mkdirSync(path.dirname(original), { recursive: true })
        writeFileSync(original, lines.join("\n"))
        const loaded = yield* Transcripts.use(({ load }) => load(original))
        const own = loaded.session.started?.cwd ?? ""
        const to = (folder: string) =>
          carryOver({
            loaded,
            file: original,
            agent: "claude",
            from: "claude",
            cameFrom: own,
            below: 1_000_000,
            folder
          })
        assert.strictEqual(path.dirname((yield* to(own)).file), path.dirname(original))
        assert.strictEqual(path.dirname((yield* to("/work/here")).file), `${home}/claude/-work-here`)
      })
    )
  )

  it.effect(
    "is refused when it cannot be small enough, or when the agent does not know the folder; nothing is written",
    () =>
      inHome((home) =>
        Effect.gen(function* () {
          const small = yield* Effect.flip(written(home, lines.join("\n"), "claude", 50))
          assert.strictEqual(small._tag, "SessionTooLarge")
          assert.match(small.message, /^the session cannot be made smaller than \d+ tokens$/)
          const gemini = yield* Effect.flip(written(home, lines.join("\n"), "gemini", 6_000))
          assert.include(gemini.message, "start it there once")
          assert.deepStrictEqual(readdirSync(home), ["session.jsonl"])
          assert.isNotEmpty(
            view((yield* Transcripts.use(({ load }) => load(`${home}/session.jsonl`))).session.conversation)
          )
        })
      )
  )
})

describe("sessions broken by seeds", () => {
  it.effect("become valid sessions with all messages of the user, and everything can be recalled", () =>
    inHome((home) =>
      Effect.gen(function* () {
        writeFileSync(`${home}/projects.json`, JSON.stringify({ projects: { "/work/here": "here" } }))
        const sessions = yield* recorded(home)
        const transcripts = yield* Transcripts
        const known = new Set<string>()
        for (let seed = 0; seed < runsOf(100, 4); seed += 1) {
          const broken = brokenSession(seed, sessions, { image: 1_100_000, records: 300 })
          // The seeds have every way with every format several times: one that brings none anew is left out.
          const pairs = broken.ways.map((way) => `${broken.format} ${way}`)
          if (pairs.every((pair) => known.has(pair))) continue
          for (const pair of pairs) known.add(pair)
          const file = `${home}/session.jsonl`
          writeFileSync(file, broken.text)
          const loaded = yield* transcripts.load(file, { lenient: true })
          const { format: agent, name } = broken
          const carried = yield* carryOver({ loaded, file, agent, from: undefined, below: 9_000, folder: "/work/here" })
          const alone = `${home}/alone.jsonl`
          copyFileSync(carried.file, alone)
          const seen = yield* transcripts.load(alone)
          assert.isUndefined(illegal(projectMessages(seen.session.conversation).map(({ content }) => content)), name)
          assert.isBelow(carried.bytes.after, 700_000, name)
          const { session } = yield* transcripts.load(carried.file)
          const all = recallableOf(session)
          const kept = new Set<string>()
          for (const { content, handles } of entries(loaded.session.conversation)) {
            for (const [at, part] of content.parts.entries()) {
              if (isText(part)) kept.add((part.text ?? "").trim())
              if (!isText(part) && !isCall(part) && !isResponse(part)) continue
              assert.isDefined(recall(all, handles[at] ?? ""), `${name}: ${JSON.stringify(part).slice(0, 80)}`)
            }
          }
          for (const text of userTexts(broken)) {
            assert.isTrue(kept.has(text.trim()), `${name}: ${text.slice(0, 80)}`)
          }
        }
      })
    )
  )
})
