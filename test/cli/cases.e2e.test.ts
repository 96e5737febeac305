import { Deferred, Effect, type Scope } from "effect"
import { CliOutput } from "effect/cli"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, expect, it } from "../support/vitest.ts"
import { example, program } from "./program.ts"
import { type Body, bodyOf, environment, place, type Place, textsOf, turnsOf } from "./scene.ts"
import * as Tmux from "./tmux.ts"

/**
 * What people stumbled over who tried the chat, in a shell on terminals of two sizes. Screens that are meant to look different
 * now are taken again with `vitest run test/cli/cases.e2e.test.ts -u`, and looked at.
 */

type Content = Body["contents"][number]

const call = (name: string, args: object) => ({ functionCall: { name, args } })
const part = (made: object, isLast = false) =>
  FakeGemini.event(FakeGemini.response([made], isLast ? {} : { finishReason: null }))
/** An answer of these parts. Calls have no ids, as Gemini sends them. */
const answer = (...parts: ReadonlyArray<object>) => FakeGemini.sse(FakeGemini.response(parts))
const words = (text: string) => answer({ text })

const isResult = ({ parts }: Content) => parts.some(({ functionResponse }) => functionResponse !== undefined)
const ofUser = (request: FakeGemini.FakeRequest) =>
  bodyOf(request)
    .contents.filter(({ role }) => role === "user")
    .flatMap(({ parts }) => parts.flatMap(({ text }) => (text === undefined ? [] : [text])))

const looped = "I will now check the file again and again. "
const longTitle = "please fix the parser for me and then run the tests, all of them, until none fails any more"
const pasted = Array.from({ length: 500 }, (_, line) => `pasted line ${line}`).join("\n")

/** The server: it answers by the message; `gate` opens what the steered turn waits for. */
const serve = Effect.fnUntraced(function* () {
  const gate = yield* Deferred.make<void>()
  const together = yield* Deferred.make<void>()
  const agents = new Set<string>()
  const work = (text: string, isAnswered: boolean): FakeGemini.Answer => {
    if (text === "steer me") {
      return [
        FakeGemini.streamHead,
        part({ text: "I read it. " }),
        FakeGemini.wait(Deferred.await(gate)),
        part(call("read_file", { file_path: "f.txt" }), true)
      ]
    }
    if (text === "hold") {
      return isAnswered ? [FakeGemini.streamHead, FakeGemini.stall] : answer(call("read_file", { file_path: "f.txt" }))
    }
    if (text === "never") return [FakeGemini.streamHead, part({ text: "I begin." }), FakeGemini.stall]
    if (text.startsWith("fill")) return words(Array.from({ length: 1_200 }, (_, at) => `${text}${at}`).join(" "))
    if (isAnswered) return words("Done.")
    if (text.startsWith("edit")) {
      const change = { file_path: "a.ts", old_string: "hello", new_string: "goodbye" }
      return answer({ text: "I change it." }, call("replace", change))
    }
    if (text.startsWith("long words")) return words(Array.from({ length: 40 }, (_, at) => `word${at}`).join(" "))
    if (text === "loop")
      return FakeGemini.sse(...Array.from({ length: 40 }, () => FakeGemini.response([{ text: looped }])))
    if (text === "agents") {
      return answer(...["one", "two"].map((name) => call("codebase_investigator", { objective: `look at ${name}` })))
    }
    return words(`You said: ${text.slice(0, 20)}`)
  }
  const server = yield* FakeGemini.make((request) => {
    if (request.method === "countTokens") return FakeGemini.tokens(100)
    // Summaries, too: no summary is usable.
    if (request.method === "generateContent") return FakeGemini.json(FakeGemini.response([{ text: "A title" }]))
    const said = ofUser(request)
    const agent = /look at (one|two)/.exec(said.join("\n"))?.[1]
    const isAnswered = bodyOf(request).contents.some(isResult)
    if (agent === undefined) {
      return work(
        said.findLast((text) => !text.startsWith("[palimpsest")) ?? "",
        bodyOf(request).contents.slice(-1).some(isResult)
      )
    }
    if (!isAnswered) return answer(call("list_directory", { dir_path: "." }))
    // Neither goes on before both have come so far.
    agents.add(agent)
    const isWaiting = agents.size < 3
    return [
      FakeGemini.streamHead,
      ...(isWaiting ? [FakeGemini.wait(Deferred.await(together))] : []),
      part({ text: "I am not sure." }, true)
    ]
  })
  return { server, gate, together, agents }
})

/** A shell on a screen, in which `p` is the program. */
const shell = Effect.fnUntraced(function* (
  where: Place,
  width: number,
  height: number,
  fake: FakeGemini.FakeGemini | undefined
) {
  const { bundle } = yield* program
  const rc = path.join(where.home, "rc")
  writeFileSync(rc, `p() { '${process.execPath}' '${bundle}' "$@"; }\nPS1='$ '\n`)
  return yield* Tmux.start({
    command: ["sh", "-i"],
    width,
    height,
    cwd: where.cwd,
    env: { ...environment(where, fake), ENV: rc }
  })
})

const settings = { titles: false, terminal: { bellAfter: 0 } }
const oneLine = (screen: string) => screen.replace(/\s*\n\s*/g, " ")

/** What differs from run to run: counts of tokens, what they cost, and seconds. */
const settled = (screen: string) =>
  screen
    .replace(/[\d,]+k? of (?:1M|[\d,]+k|[\d,]+ tokens) \((?:< )?\d+ %\)/g, "N of 1M (1 %)")
    .replace(/^[█░]+ /gm, "")
    .replace(/[\d,]+ tokens/g, "N tokens")
    .replace(/(?:less than )?\$\d\.\d+/g, "$0.00")
    .replace(/ · \d+ s(?= |$)/gm, "")
    .replace(/^[⠀-⣿] /gmu, "* ")

const sizes = [
  [80, 24],
  [40, 20]
] as const

/** Plays a scene on terminals of both sizes at once: each mostly waits. */
const onEachSize = <E>(name: string, scene: (width: number, height: number) => Effect.Effect<void, E, Scope.Scope>) =>
  it.live(name, () =>
    Effect.forEach(sizes, ([width, height]) => Effect.scoped(scene(width, height)), {
      concurrency: "unbounded",
      discard: true
    })
  )

needs("tmux")("the chat, as a newcomer meets it", () => {
  onEachSize(
    "asks, steers, interrupts and resumes",
    Effect.fnUntraced(function* (width, height) {
      const { agents, gate, server, together } = yield* serve()
      const where = yield* place(`cases-${width}`, {
        home: { "settings.json": settings },
        work: { "A/a.ts": "hello\n", "B/a.ts": "hello\n", "A/f.txt": "text\n", "B/f.txt": "text\n" }
      })
      const file = (name: string) => readFileSync(path.join(where.cwd, name), "utf8")
      const { ask, capture, paste, press, prompt, say, type, until } = yield* shell(where, width, height, server)
      const taken: Array<string> = []
      const take = (name: string, from: string, screen: string) =>
        Effect.sync(() => void taken.push(`===== ${name}\n${settled(screen.slice(screen.lastIndexOf(from)))}\n`))
      const leave = Effect.andThen(press("C-d"), until(/\n\$$/))
      const untilLine = (text: string) => until((screen) => oneLine(screen).includes(text))

      // What is allowed always is allowed in this folder, and where that is stored and how it is taken back is said.
      yield* until("$")
      yield* say("cd A; p")
      yield* prompt()
      yield* take("a question", "Change a.ts?", yield* say("edit it", /\nallow\?$/))
      yield* press("a")
      const granted = oneLine(yield* until((screen) => Tmux.isIdle(screen) && screen.includes("Done.")))
      if (height >= 24) {
        assert.include(
          granted.replaceAll(" ", ""),
          `Alwaysallowed:editsoffilesin${where.cwd}/A.Storedin${where.home}/settings.json;`
        )
        assert.include(granted, "/approvals takes it back")
      }
      yield* until(/ · edits run/)
      writeFileSync(path.join(where.cwd, "A", "a.ts"), "hello\n")
      yield* press("C-l")
      yield* until((screen) => !screen.includes("Done."))
      yield* ask("edit it again", "Done.")
      assert.strictEqual(file("A/a.ts"), "goodbye\n")
      yield* leave

      // In the next folder it asks. A no may have a reason, which the model gets, and the call is shown as it was after resume.
      yield* say("clear; cd ../B; p")
      yield* prompt()
      yield* say("edit it", /\nallow\?$/)
      yield* until(/ · asks first/)
      yield* press("n")
      yield* until(/\nno, because:$/)
      yield* say("use hi instead")
      const denied = yield* until((screen) => Tmux.isIdle(screen) && screen.includes("Done."))
      yield* take("a no with a reason", "no, because", denied)
      assert.strictEqual(file("B/a.ts"), "hello\n")
      assert.include(JSON.stringify((yield* turnsOf(server)).at(-1)?.body), "they say: use hi instead")
      yield* leave
      yield* take("resumed", "> edit it", yield* say("clear; p -c", /Resumed[^]*asks first[^]*\n>$/))

      // Shift+Tab changes the mode, which is shown beside any title.
      yield* press("BTab")
      yield* until(/ · edits run/)
      yield* leave
      yield* say("clear; p --approve all")
      yield* prompt()
      yield* ask(longTitle, "You said: please fix")
      yield* take("everything runs", "gemini", yield* until(/everything runs/))
      yield* leave

      // What is typed during work reaches the model after the tools that run, or with Tab after the answer; both are shown.
      yield* say("clear; cd ../A; p")
      yield* prompt()
      yield* say("steer me", "I read it.")
      yield* say("look elsewhere", "at the next step: look elsewhere")
      yield* type("then this")
      yield* press("Tab")
      const queued = yield* until(/after this: then this[^]*\n>$/)
      yield* take("steering", "I read it.", queued)
      yield* press("Up")
      yield* until((screen) => !screen.includes("after this") && screen.endsWith("\n> then this"))
      yield* type(" too")
      yield* press("Tab")
      yield* until(/after this: then this too[^]*\n>$/)
      yield* Deferred.succeed(gate, undefined)
      const whole = yield* until((screen) => Tmux.isIdle(screen) && screen.includes("You said: then this too"))
      yield* take("steered", "I read it.", whole)
      const [steered, after] = (yield* turnsOf(server)).slice(-2)
      const last = bodyOf(steered).contents.slice(-2)
      assert.isTrue(last[0] !== undefined && isResult(last[0]))
      assert.deepStrictEqual(last[1]?.parts, [{ text: "look elsewhere" }])
      assert.strictEqual(textsOf(after).at(-1), "then this too")

      // Esc interrupts and keeps the step that is done; the model is told.
      yield* press("C-l")
      yield* until((screen) => !screen.includes("Read f.txt"))
      yield* say("hold", /✓ Read f\.txt[^]*thinking/)
      yield* press("Escape")
      yield* untilLine("Cancelled. Everything up to here is kept.")
      yield* take("interrupted", "✓ Read f.txt", yield* prompt())
      yield* ask("go on", "You said: go on")
      const went = bodyOf((yield* turnsOf(server)).at(-1)).contents.slice(-3)
      assert.isTrue(went[0] !== undefined && isResult(went[0]))
      assert.include(went[1]?.parts[0]?.text, "The user interrupted the work here")

      // A loop is stopped: the message is in the conversation, and not in the editor, too.
      yield* say("loop")
      yield* untilLine("Stopped: the model repeats itself")
      yield* take("a loop that is stopped", "Stopped:", yield* prompt())
      yield* ask("now answer", "You said: now answer")
      assert.deepStrictEqual(
        textsOf((yield* turnsOf(server)).at(-1)).filter((text) => text === "loop"),
        ["loop"]
      )

      // A pasted block stays folded when Up recalls it, and the message before it is one key away.
      yield* paste(pasted)
      yield* prompt("[paste #1 +500 lines]")
      yield* press("Enter")
      yield* until((screen) => Tmux.isIdle(screen) && screen.includes("You said: pasted line"))
      yield* press("Up")
      yield* take("a recalled paste", "You said: pasted", yield* prompt("[message #1 +500 lines]"))
      yield* press("Up")
      yield* prompt("now answer")
      yield* press("C-c")
      yield* prompt()

      // Agents that only read run side by side, each with a line that says how far it is.
      yield* press("C-l")
      yield* until((screen) => !screen.includes("Done."))
      yield* say("agents", (screen) => agents.size === 2 && screen.split(/turn 2 · .* · thinking/).length === 3)
      yield* take("agents", "> agents", yield* capture)
      yield* Deferred.succeed(together, undefined)
      const failed = yield* until((screen) => Tmux.isIdle(screen) && screen.includes("Done."))
      // One may end before the other.
      assert.strictEqual(failed.split(/✗ codebase_investigator look at (?:one|two) ·/).length, 3)
      yield* leave

      yield* Effect.promise(() =>
        expect(taken.join("\n")).toMatchFileSnapshot(
          path.join(import.meta.dirname, "screens", `cases-${width}x${height}.txt`)
        )
      )
    })
  )
})

/** A line that is wider than the terminal holds one word alone, a path or a handle, or a command: they are copied whole. */
const isCopied = (line: string) => /^\s*\S+$|^ {2}continue {2}/.test(line)

/** A text without the breaks that the terminal's width gave it. */
const unbroken = (screen: string) => screen.replace(/\s+/g, "")

needs("tmux")("a shell with the program", () => {
  onEachSize(
    "finds keys, refuses, counts, connects and survives a kill",
    Effect.fnUntraced(function* (width, height) {
      const { server } = yield* serve()
      const { bundle } = yield* program
      const where = yield* place(`cases-shell-${width}`, {
        home: { "settings.json": { ...settings, compressionPrepareAt: 0, models: { tiny: { window: 24_000 } } } },
        user: { ".claude/projects/-x/491e126e-1e71-469c-ade2-fcc8af567c74.jsonl": readFileSync(example, "utf8") },
        work: {
          "talk.jsonl": readFileSync(example, "utf8"),
          "f.txt": "text\n",
          "other/AGENTS.md": "# x\n",
          "other/.palimpsest/settings.json": { model: "gemini-2.5-pro" }
        }
      })
      const { ask, press, prompt, say, type, until } = yield* shell(where, width, height, server)
      const taken: Array<string> = []
      const take = (name: string, screen: string) => taken.push(`===== ${name}\n${settled(screen)}\n`)
      let count = 0
      /** Runs a command on the cleared screen, and answers what it printed. */
      const shown = Effect.fnUntraced(function* (command: string) {
        count += 1
        const end = new RegExp(`\\nstatus (\\d+) of ${count}\\n\\$$`)
        const screen = yield* say(`clear; ${command}; printf '\\nstatus %s of ${count}\\n' $?`, end)
        return { printed: screen.replace(end, "").trim(), status: Number(end.exec(screen)?.[1]) }
      })
      const leave = Effect.andThen(press("C-d"), until(/\n\$$/))
      yield* until("$")

      // Any key that is there is used.
      for (const [key, model] of [
        ["ANTHROPIC_API_KEY", "claude-"],
        ["OPENAI_API_KEY", "gpt-"]
      ]) {
        yield* say(`clear; (unset GEMINI_API_KEY; ${key}=x p)`)
        assert.include((yield* prompt()).split("\n").at(-2), model)
        yield* say("/model gemini-pro", (screen) =>
          oneLine(screen).includes("gemini-pro needs a key: set GEMINI_API_KEY. The model is unchanged.")
        )
        yield* leave
      }

      // Without any, the first start says how to get one, and what works without.
      take("no key", (yield* shown("(unset GEMINI_API_KEY; p)")).printed)

      // The help and messages fit the terminal; a server of MCP says what it waits for.
      take("help", (yield* shown("p --help")).printed)
      take("a command that does not exist", (yield* shown("p comprss")).printed)
      take("no match", (yield* shown("p find zzz")).printed)
      const serving = yield* say("clear; p mcp", (screen) => oneLine(screen).includes("Ctrl+C ends"))
      take("a server of MCP", serving)
      yield* press("C-c")
      yield* until(/\$$/)

      // A warning stands above the editor, not across it.
      yield* say("clear; cd other; p", /\ntrust\?$/)
      yield* press("n")
      const warned = yield* prompt()
      if (height >= 24) {
        assert.include(
          unbroken(warned),
          unbroken("trust? n") + unbroken(`${where.cwd}/other/.palimpsest/settings.json is`)
        )
      }
      assert.include(
        unbroken(warned),
        unbroken("settings.json is ignored: the folder is not trusted; to trust it: palimpsest trust")
      )
      assert.notMatch(warned, /^> \S/m)
      yield* leave
      yield* say("clear; cd ..")

      // A provider that is not known is refused before anything is sent.
      const refused = yield* shown("p ask -m foo/bar hi")
      assert.strictEqual(refused.status, 2)
      take("a provider that is not known", refused.printed)
      assert.deepStrictEqual([yield* server.requests, yield* server.lookups], [[], []])

      // What another program paid is counted once, and a replay costs nothing.
      const cost = (yield* shown("p cost")).printed
      take("cost", cost)
      yield* shown("p sessions import talk.jsonl >id")
      yield* say("clear; p --model replay:talk.jsonl")
      yield* until(/\n> \S[^]*$/)
      yield* press("Enter")
      yield* prompt("create the beads")
      yield* press("C-c")
      yield* leave
      assert.strictEqual((yield* shown("p cost")).printed, cost)

      // What connects another agent names a command that runs, and says so.
      const connected = yield* shown("p install claude --yes >diff")
      assert.include(
        unbroken(connected.printed),
        unbroken(`palimpsest is not on the PATH; the command is ${process.execPath} ${bundle}`)
      )
      assert.match(oneLine(connected.printed), /start claude again$/)
      const written = (file: string) => JSON.parse(readFileSync(path.join(where.cwd, file), "utf8"))
      const started = `${process.execPath} ${bundle}`
      assert.strictEqual(written(".claude/settings.json").hooks.PreCompact[0].hooks[0].command, `${started} hook`)
      const { args, command } = written(".mcp.json").mcpServers.palimpsest
      assert.strictEqual((yield* shown([command, ...args, "</dev/null"].join(" "))).status, 0)

      // A session of Claude Code goes on with its own model where there is a key, and else one line says what answers instead.
      for (const [env, model] of [
        ["", "gemini-2.5-flash"],
        ["ANTHROPIC_API_KEY=x", "claude-opus-4-6"]
      ] as const) {
        const went = yield* say(
          `clear; ${env} p -r 491e126e`,
          new RegExp(`Resumed[^]*\\n[^\\n]*${model} · [^\\n]*\\n>$`)
        )
        assert.strictEqual(oneLine(went).includes("this session used claude-opus-4-6"), model !== "claude-opus-4-6")
        take(`a session of Claude Code, answered by ${model}`, went.slice(went.search(/this session used|Resumed "/)))
        yield* leave
      }

      // A crash keeps the steps that are done, and leaves out a message without any.
      for (const [message, working] of [
        ["hold", /✓ Read f\.txt[^]*thinking/],
        ["never", "I begin."]
      ] as const) {
        yield* say(`clear; sh -c 'echo $$ >pid; exec ${started}'; stty sane`)
        yield* prompt()
        yield* say(message, working)
        process.kill(Number(readFileSync(path.join(where.cwd, "pid"), "utf8")), "SIGKILL")
        yield* until(/Killed/)
        if (message === "never") break
        const resumed = yield* say("clear; p -c", /Resumed[^]*\n>$/)
        take("after a crash", resumed.slice(resumed.indexOf("> hold"), resumed.lastIndexOf("\n\n")))
        yield* leave
      }
      yield* say("clear; p -c", /Resumed[^]*\n>$/)
      yield* leave

      // A model that writes no usable summary is asked for a few only, and that is said once.
      const summaries = Effect.map(
        server.requests,
        (all) => all.filter((request) => JSON.stringify(request.body).includes("Write your part of the ")).length
      )
      yield* say("clear; p -m tiny")
      yield* prompt()
      const said: Array<string> = []
      const asked: Array<number> = []
      for (let at = 0; at < 4; at += 1) {
        yield* ask(`fill${at}`, `fill${at}1199`)
        yield* press("C-l")
        yield* until((screen) => !screen.includes(`fill${at}1190`))
        const compressed = yield* say("/compress", /> \/compress[^]*\nCompressed[^]*\n>$/)
        said.push(compressed.slice(compressed.indexOf("> /compress")))
        asked.push(yield* summaries)
      }
      const given = said.flatMap((screen) => /\nNo usable summary from tiny [^]*(?=\nCompressed)/.exec(screen) ?? [])
      assert.strictEqual(given.length, 1)
      take("a model that is given up", given.join("").trim())
      assert.strictEqual(asked.at(-1), asked.at(-2))

      // The list of models has those of the settings, too.
      yield* say("/model gemini-pro", /\n[^\n]*gemini-pro · [^\n]*\n>$/)
      yield* say("/model", "Esc closes")
      yield* type("tiny")
      yield* until("→ tiny")
      yield* press("Escape")
      yield* prompt()
      yield* leave
      yield* Effect.promise(() =>
        expect(taken.join("\n")).toMatchFileSnapshot(
          path.join(import.meta.dirname, "screens", `shell-${width}x${height}.txt`)
        )
      )
    })
  )

  it.live("keeps to the terminal's width", function* () {
    const { server } = yield* serve()
    const claude = readFileSync(example, "utf8")
    const folder = ".claude/projects/-home-marco-projects-spotter"
    const where = yield* place("cases-width", {
      trust: "untrusted",
      home: { "settings.json": settings },
      user: { [`${folder}/491e126e-1e71-469c-ade2-fcc8af567c74.jsonl`]: claude },
      work: {
        "AGENTS.md": "# x\n",
        ".palimpsest/settings.json": { model: "gemini-2.5-pro" },
        "talk.jsonl": claude
      }
    })
    // Wider than any width that the program is told, so that a line that is too long shows.
    const { press, say, until } = yield* shell(where, 230, 400, server)
    yield* until("$")
    let count = 0
    /** Runs a command on a terminal of a width, and answers what it printed. */
    const lines = Effect.fnUntraced(function* (width: number, command: string) {
      count += 1
      const end = new RegExp(`\\nend ${count}\\n\\$$`)
      const screen = yield* say(`clear; stty cols ${width}; ${command}; echo; echo "end ${count}"`, end)
      const shown = screen.replace(end, "").trim().split("\n")
      for (const line of shown) {
        assert.isTrue(CliOutput.displayWidth(line) <= width || isCopied(line), `${command} on ${width}: ${line}`)
      }
      return shown
    })
    const commands = [
      "--help",
      "find mix",
      "inspect talk.jsonl",
      "compress talk.jsonl --force --summarizer extractive",
      "secrets talk.jsonl",
      "sessions list",
      "config doctor",
      "replay talk.jsonl --window 20k",
      "rescue 491e126e",
      "ask why is the build red",
      "nonsense"
    ]
    for (const command of commands) assert.isNotEmpty(yield* lines(40, `p ${command}`), command)
    for (const width of [40, 80, 120, 200]) assert.isNotEmpty(yield* lines(width, "p cost"))

    // The plain chat and a question, too.
    yield* lines(40, "p 'long words, please'")
    yield* say("clear; stty cols 40; p chat --plain", /\n>$/)
    const plain = yield* say("long words, please", /word39\n>$/)
    for (const line of plain.split("\n")) assert.isTrue(line.length <= 40 || isCopied(line), line)
    yield* press("C-d")
    yield* until(/\nTo continue:\n {2}palimpsest -r [\da-f]{8}-[\da-f]{4}-7[\da-f]{3}\n\$$/)
    yield* say("clear; TERM=dumb p", /leaves\.\n>$/)
    yield* press("C-d")
    yield* until(/\n\$$/)
  })
})
