import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Ref } from "effect"
import path from "node:path"
import { type ChatSession, make, type NextSession } from "../../../../src/cli/chat/slash/ChatSession.ts"
import { fileNameOf } from "../../../../src/cli/chat/slash/export.ts"
import { slashCommands } from "../../../../src/cli/chat/slash/SlashCommands.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { SessionEvent } from "../../../../src/domain/session/Session.ts"
import { mcpDescription } from "../../../../src/domain/tools/McpServer.ts"
import * as MemoryFileSystem from "../../../../src/layers/testing/MemoryFileSystem.ts"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import { appended, started } from "../../../../src/layers/testing/SessionHistories.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import type { AgentHost } from "../../../../src/services/runtime/AgentHost.ts"
import type { RewindFile, RewoundFile } from "../../../../src/services/runtime/FileRewind.ts"
import { RuntimePlatform } from "../../../../src/services/runtime/RuntimePlatform.ts"
import { SessionFiles } from "../../../../src/services/session/SessionFiles.ts"
import { SessionStore } from "../../../../src/services/session/SessionStore.ts"
import { BlobFolder } from "../../../../src/services/session/TempStore.ts"
import { Settings } from "../../../../src/services/settings/Settings.ts"
import { Approval } from "../../../../src/services/tools/Approval.ts"
import { SessionLocator } from "../../../../src/services/transcripts/SessionLocator.ts"
import { TranscriptError } from "../../../../src/services/transcripts/TranscriptError.ts"
import { Transcripts } from "../../../../src/services/transcripts/Transcripts.ts"
import { brief } from "../../../support/brief.ts"
import { facts, recorded } from "../../../support/chatTerminal.ts"
import { countingBy } from "../../../support/scales.ts"
import { begin, taken } from "../../../support/sending.ts"
import { describe, expect, it } from "../../../support/vitest.ts"

/** What each command does to the session and the terminal. Of its sentences only names, numbers and ids are looked at. */

const tool = (name: string, kind: string, description: string) => ({ name, kind, description })

/** A session with a conversation in memory. Returns it, and what it did since the last look. */
const opened = Effect.fnUntraced(function* (picks: Array<string>) {
  const { done, terminal } = recorded({ picks })
  const { chat: plain, events } = yield* begin()
  const chat: typeof plain = {
    ...plain,
    compress: (options) => Effect.suspend(() => (done.push(`focus ${options?.focus}`), plain.compress(options))),
    branch: (options) => Effect.suspend(() => (done.push(`summary ${brief(options.summary)}`), plain.branch(options)))
  }
  const files: ReadonlyArray<RewindFile> = [
    { shown: "a.ts", state: "ours" },
    { shown: "b.ts", state: "changed" }
  ] as unknown as ReadonlyArray<RewindFile>
  const tasks = [59.9, 7_200, 3_599, 7_199].map((seconds, index) => ({
    id: `c${index + 1}`,
    command: `make c${index + 1}`,
    startedAt: -seconds * 1_000,
    output: Effect.succeed(index === 0 ? " \n" : "line/1\nline/2\n \n"),
    ended: Effect.succeed(index === 1 ? "exit/3" : undefined),
    stop: Effect.sync(() => void done.push(`stopped c${index + 1}`))
  }))
  let rewound: ReadonlyArray<RewindFile> = []
  const agent = {
    agents: { tools: [tool("agent_1", "read", "It does_1. And more.")] },
    tools: [
      tool("agent_1", "read", "no_row"),
      tool("read_1", "read", "Reads_1. And more."),
      tool("edit_1", "edit", "Edits_1."),
      tool("fetch_1", "fetch", "Fetches_1."),
      tool("mcp_1", "other", mcpDescription("server_1", "x_1", undefined)),
      tool("mcp_2", "other", mcpDescription("server_1", "x_2", undefined))
    ],
    approval: yield* Approval.make({
      mode: "none",
      granted: ["shell:ls in /w", "mcp:docs", "shell:/w $ make_1", "edit"],
      folder: "/w",
      forget: (grant) => Effect.sync(() => void done.push(`forgotten ${grant}`))
    }),
    commands: Effect.succeed(tasks),
    recent: Effect.succeed({ records: [], kinds: { turn: 2, retry: 1, tools_cancelled: 3 } }),
    rewind: {
      survey: ({ _tag, sequence }: { readonly _tag: string; readonly sequence?: number }) =>
        Effect.succeed(_tag === "LastRewind" ? rewound : sequence === 1 ? [] : files),
      unrecorded: (_: unknown, at: number) =>
        Effect.succeed(Array.from({ length: 7 + at }, (_each, index) => `since/${at}/${index}`)),
      restore: (all: ReadonlyArray<RewindFile>, overwrites: boolean) =>
        Effect.sync(() => {
          rewound = files.slice(0, 1)
          return all.map(({ shown, state }) => ({
            shown: `${shown}/${overwrites}`,
            outcome: state === "ours" ? "restored" : overwrites ? "removed" : "left"
          })) as unknown as ReadonlyArray<RewoundFile>
        })
    }
  } as unknown as AgentHost
  const parts = { agent, chat, id: "session_1", recording: undefined, terminal, writePage: () => Effect.void }
  const session = yield* make(parts, undefined)
  let seen = 0
  const written = new Set<string>()
  const look = Effect.gen(function* () {
    const tags = events.slice(seen).map((event) => event._tag)
    seen = events.length
    const prefill = yield* Ref.getAndSet(session.prefill, undefined)
    const at = yield* Ref.get(session.compressedAt)
    const state = [
      ...tags,
      ...(prefill === undefined ? [] : [`prefill ${prefill.slice(0, 40)}`]),
      ...(at < 0 ? [] : [`at ${at}`])
    ]
    const fs = yield* FileSystem.FileSystem
    const names = yield* Effect.orDie(fs.readDirectory(path.resolve(".")))
    const files: Array<string> = []
    for (const name of names.filter((each) => !written.has(each))) {
      const text = yield* Effect.orElseSucceed(fs.readFileString(path.resolve(name)), () => "a folder")
      written.add(name)
      files.push(`${name}, ${text.split("\n").length} lines: ${facts(text).slice(0, 60)}`)
    }
    return [...done.splice(0), ...state, ...files]
  })
  return { session, look }
})

const settings = {
  read: Effect.succeed({ settings: { terminal: { keys: "vim" } } }),
  set: (where: string, path: ReadonlyArray<string>, value: string) =>
    Effect.succeed(`/${where}/${path.join("/")}=${value}`)
} as unknown as Settings["Service"]
const services = Layer.mergeAll(
  countingBy(2, () => "Answered_9."),
  Layer.succeed(Settings, settings),
  Layer.succeed(Environment, {
    variables: Effect.succeed({ HOME: "/h", TERM: "t_1", TMUX: "/tmp/t_2" })
  } as unknown as Environment["Service"]),
  Layer.succeed(RuntimePlatform, { platform: "linux" } as unknown as RuntimePlatform["Service"]),
  Layer.succeed(SessionFiles, { folder: "/s", of: (id) => `/s/${id}` }),
  Layer.succeed(BlobFolder, { at: () => MemoryTempStore.layer }),
  Layer.succeed(SessionLocator, (id) =>
    Effect.fail(new TranscriptError({ kind: "UnknownSession", path: id, line: 0, message: `no session ${id}` }))
  ),
  Layer.succeed(Transcripts, { load: () => Effect.die("no session of another agent is known") }),
  NodeServices.layer,
  MemoryFileSystem.layer({ [path.resolve("first-1-with-a-and-b.md")]: "" })
)

/** Runs a line, and returns the next session if the command leaves. */
const typed = (
  session: ChatSession,
  line: string
): Effect.Effect<NextSession | undefined | void, { readonly message: string }> => {
  const [, name = "", argument = ""] = /^(\S+) ?(.*)$/.exec(line) ?? []
  const command = slashCommands.find((each) => each.name === name)
  if (command === undefined) return Effect.die(name)
  const { leave, run } = command
  const work = run === undefined ? leave(session, argument) : run(session, argument)
  // The services are those of the test.
  return work as Effect.Effect<NextSession | undefined | void, { readonly message: string }>
}

const messages = [
  { content: user(text("First_1, with /a and /b.")), at: 1 },
  { content: model(call("run_shell_command", { command: "mv x/1 y/2" }, "c1")), at: 2 },
  { content: user(response("run_shell_command", { output: `moved\n${"word ".repeat(2_000)}` }, "c1")), at: 3 },
  { content: model(text("Answer_1.")), at: 4 },
  { content: user(text("Second_2.")), at: 5 },
  { content: model(text("Answer_2."), text("")), at: 6 },
  { content: model(text("Called_3."), call("f", {}, "c2")), at: 7 },
  { content: user(response("f", { output: "" }, "c2"), text("Third_3.")), at: 8 }
]

/** A snapshot that a model wrote, of which only the log knows. */
const prepared: SessionEvent = {
  _tag: "Prepared",
  at: 3,
  strategy: "palimpsest",
  calls: [{ model: "gemini-2.5-pro", usage: { prompt: 70_000, answer: 501, thoughts: 0, cached: 0 } }]
}

/** Lines of the user, each with what is chosen in the lists that it shows: the first in an empty session. */
const beginning = "help; undo; redo; rewind back; copy; pin; tree; rate good; rewind; compress; context"
const lines = `
sessions; resume; resume > none; resume > 0; resume title_2; resume session_1; resume nothing_1
export; export a.md; export b.jsonl; export c.html; export d.md nothing_1; export e.json gemini; export -; bug; init
copy; context; tree; tree all; tree nothing; tree E4; tree e6; tree e6; tree e5 --summary; tree e6
label; label e4 a_1 b_1; label E4; pin; pin tabs_1; pin First_1; compress ?; compress ? 2; undo; compress; rate; rate bad it lost the port; tree; compress; compress word_1; model gemini-2.5-flash
recall; recall moved; recall h_aaaaaaaaaa; undo; undo; redo; redo; cost; stats; tools; approvals > closed
approvals 9; approvals 2; approvals shell:/w $ make_1; approvals > none; approvals > 0; tools; approvals ALL; approvals; tools; approve nothing
approve EDITS; tools; approve plan; tools; approve all; tools; mcp; agents; init; clear; sessions
resume; resume > none; model > none; model > 1; model nothing_1; model gemini-2.5-pro; theme
theme > none; theme > 2; theme LIGHT; theme nothing_1; tasks; tasks > none; tasks > 0 > 0; tasks > 1 > 0
tasks > 0 > 1; tasks c1; tasks c2; tasks c2 stop; tasks c1 stop; tasks c5; rewind > none; rewind
rewind e9 both; rewind e5 all; rewind e5 files x; rewind e5; rewind e5 > none; rewind e5 files > none
rewind e5 files > 0; rewind e5 files > 1; rewind e1 files; rewind back; rewind > 0 > 2 > 0; rewind e5 conversation
rewind > 0 > 0 > 1
`

describe("the commands of a chat", () => {
  it.effect("do this in this order: see `test/golden/commands.txt`; renew it by `vitest -u`", services, function* () {
    const picks: Array<string> = []
    const { look, session } = yield* opened(picks)
    const shown: Array<string> = []
    const play = Effect.fnUntraced(function* (typedLines: string) {
      for (const line of typedLines.trim().split(/[;\n]\s*/)) {
        const [command = "", ...picked] = line.split(" > ")
        picks.splice(0, picks.length, ...picked)
        const next = yield* Effect.catch(typed(session, command), ({ message }) =>
          Effect.succeed(`failed ${facts(message)}`)
        )
        shown.push(`/${line}`, ...(yield* look).flatMap((one) => one.split("\n")).map((one) => `  ${one}`))
        if (next !== undefined) shown.push(`  ${JSON.stringify(next)}`)
      }
    })
    const store = yield* SessionStore
    const add = (id: string) =>
      store.add([started(id), appended(1, text(`Words_of ${id}`)), appended(2, text("ok")), prepared])
    yield* play("resume; stats")
    yield* add("session_0")
    yield* play("resume > 0")
    for (const id of ["session_1", "session_2", "session_3"]) {
      yield* add(id)
    }
    yield* store.rename("session_2", "title_2")
    for (let at = 10; at < 40; at += 1) yield* store.add([started(`old_${at}`), appended(1, text("old"))])
    yield* play(beginning)
    yield* session.chat.append(messages)
    const bytes = new TextEncoder().encode("one")
    const change = { path: "/a.ts", before: undefined, after: bytes, by: "tool" } as const
    yield* Effect.flatten(session.chat.keepFile(change))
    yield* look
    yield* play(lines)
    yield* taken(session.chat.send("Third_3."))
    // The scale of the model's count is known now.
    yield* play("context; stats; cost; bug")
    const titles = ["", "*** ", "Ünï: a 1?", `${"x".repeat(39)} and`, `-${"y".repeat(50)}`]
    shown.push(...titles.map(fileNameOf))
    yield* Effect.promise(() => expect(`${shown.join("\n")}\n`).toMatchFileSnapshot("../../../golden/commands.txt"))
  })
})
