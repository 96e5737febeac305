import { Deferred, Effect } from "effect"
import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, it } from "../support/vitest.ts"
import { program } from "./program.ts"
import { calls, environment, place, type Place, runs, says, serve, textsOf, turnsOf } from "./scene.ts"
import * as Tmux from "./tmux.ts"

/** Keys and commands of a chat that lead away from the prompt and back: lists, another editor, the shell, the title of the window. */

const mcpServer = path.join(import.meta.dirname, "..", "support", "mcpServer.ts")

/** A shell on a screen of 80 by 24 that runs the chat and, when it has ended, waits. */
const chat = Effect.fnUntraced(function* (
  where: Place,
  fake: FakeGemini.FakeGemini,
  args: ReadonlyArray<string> = [],
  env: Readonly<Record<string, string>> = {}
) {
  const { bundle } = yield* program
  return yield* Tmux.start({
    command: ["sh", "-c", `"$@"; echo "status $?"; cat`, "sh", process.execPath, bundle, "chat", ...args],
    cwd: where.cwd,
    env: { ...environment(where, fake), ...env }
  })
})

const untitled = { home: { "settings.json": { titles: false } } }

needs("tmux")("a chat on a terminal", () => {
  it.live("Ctrl+R searches all earlier messages, and puts the chosen one into the editor", function* () {
    const history = [
      "fix the login page",
      "write the changelog",
      "fix the login page",
      "write the changelog",
      "why is the build slow?"
    ]
    const where = yield* place("keys-search", {
      home: {
        ...untitled.home,
        history: history.map((text) => `${JSON.stringify(text)}\n`).join("")
      }
    })
    const { press, prompt, type, until } = yield* chat(where, yield* serve())
    yield* prompt()
    yield* press("C-r")
    yield* until(
      /\nMessages\n>\n→ why is the build slow\?\n {2}write the changelog\n {2}fix the login page\ntype to search/
    )
    yield* type("login")
    yield* until(/\nMessages\n> login\n→ fix the login page\ntype to search/)
    yield* type("x")
    yield* until(/\n> loginx\n {2}nothing matches\ntype to search/)
    yield* press("BSpace")
    yield* until("→ fix the login page")
    yield* press("Enter")
    yield* prompt("fix the login page")
    // Esc leaves the list, and what was typed stays.
    yield* press("C-r")
    yield* until("Messages")
    yield* press("Escape")
    yield* prompt("fix the login page")
  })

  it.live(
    "a question waits until the list of Ctrl+R is closed, and the chosen message is there after it",
    function* () {
      const gate = yield* Deferred.make<void>()
      const sent = yield* Deferred.make<void>()
      const edit = { functionCall: { name: "write_file", args: { file_path: "a.txt", content: "one\n" } } }
      const fake = yield* serve([
        FakeGemini.streamHead,
        FakeGemini.event(FakeGemini.response([{ text: "I begin." }], { finishReason: null })),
        FakeGemini.wait(Deferred.await(gate)),
        FakeGemini.event(FakeGemini.response([edit])),
        FakeGemini.wait(Deferred.succeed(sent, undefined))
      ])
      const where = yield* place("keys-search-asked", { home: { ...untitled.home, history: '"fix the login page"\n' } })
      const { press, prompt, say, until } = yield* chat(where, fake)
      yield* prompt()
      yield* say("write it", "I begin.")
      yield* press("C-r")
      yield* until("Messages")
      yield* press("Down")
      yield* until("→ fix the login page")
      yield* Deferred.succeed(gate, undefined)
      // Time for the question to come, which the list holds back.
      yield* Deferred.await(sent)
      yield* Effect.sleep("1 second")
      yield* until(/→ fix the login page[^]*Esc closes$/)
      yield* press("Enter")
      yield* until(/Change a\.txt\? \+1 −0[^]*\nallow\?$/)
      // A message was being typed, so the letter needs Enter.
      yield* say("y", "There is nothing more to say.")
      yield* prompt("fix the login page")
    }
  )

  it.live("Ctrl+G hands the message to the editor, and takes what it wrote", function* () {
    const where = yield* place("keys-editor", {
      ...untitled,
      user: { "edit.sh": 'echo "editing: $(cat "$1")"; read -r line; printf "%s\\nand more\\n" "$line" > "$1"\n' }
    })
    const fake = yield* serve(says("Read."))
    const { press, prompt, say, type, until } = yield* chat(where, fake, [], {
      VISUAL: `sh '${path.join(where.user, "edit.sh")}'`
    })
    yield* prompt()
    yield* type("a draft")
    yield* press("C-g")
    yield* until("editing: a draft")
    yield* say("a better one")
    yield* prompt("a better one\n  and more")
    yield* press("Enter")
    yield* until("Read.")
    assert.include(textsOf((yield* turnsOf(fake))[0]), "a better one\nand more")
  })

  it.live("Ctrl+Z gives the terminal back to the shell, and fg continues where the chat was", function* () {
    const where = yield* place("keys-stop", untitled)
    const fake = yield* serve(says("Still here."))
    const { bundle } = yield* program
    const { press, type, until } = yield* Tmux.start({
      command: [
        "sh",
        "-c",
        `set -m; "$@"; echo "stopped $?"; read -r line; fg >/dev/null; echo "status $?"; cat`,
        "sh",
        process.execPath,
        bundle,
        "chat"
      ],
      cwd: where.cwd,
      env: environment(where, fake)
    })
    yield* until(Tmux.isIdle)
    yield* type("half a message")
    yield* press("C-z")
    // 128 and the number of the signal, which differs between systems.
    yield* until(/stopped 1[4-6]\d/)
    yield* press("Enter")
    yield* until((shown) => Tmux.isIdle(shown) && shown.endsWith("\n> half a message"))
    yield* press("Enter")
    yield* until("Still here.")
  })

  it.live("during work a queued message is in the history at once, and Ctrl+D leaves afterwards", function* () {
    const where = yield* place("keys-queued", untitled)
    const fake = yield* FakeGemini.make(() => [FakeGemini.stall])
    const { press, prompt, say, type, until } = yield* chat(where, fake)
    yield* prompt()
    yield* type("/")
    yield* until(/compress[^]*Compress the conversation/)
    yield* press("Enter")
    // Enter takes the first command of the menu, and does not run it.
    yield* prompt("/compress")
    yield* press("C-c")
    yield* prompt()
    yield* say("the first", / · Esc cancels/)
    yield* say("the second", "at the next step: the second")
    // The line is shown before it is written.
    yield* Effect.repeat(
      Effect.andThen(
        Effect.sleep("20 millis"),
        Effect.sync(() => readFileSync(path.join(where.home, "history"), "utf8"))
      ),
      { until: (history) => history.includes('"the second"') }
    )
    yield* press("C-d")
    yield* until("Leaving when this is done; Esc cancels it.")
    yield* press("Escape")
    yield* until("status 0")
  })

  it.live("--resume and /resume choose a session from a list that can be searched, and show its end", function* () {
    const where = yield* place("keys-resume", untitled)
    const fake = yield* serve(
      // Nobody can be asked: the command does not run.
      calls(["run_shell_command", { command: "make" }], ["list_directory", { dir_path: "." }]),
      says("The first answer."),
      says("The second answer.")
    )
    for (const text of ["about the login page", "about the changelog"])
      yield* runs(where, fake, ["ask", "--session", text.split(" ")[2] ?? "", text])
    const first = yield* chat(where, fake, ["--resume"])
    const list = yield* first.until(/\nResume a session|^Resume a session/)
    assert.match(
      list,
      /→ about the changelog +just now · work · [\d.]+ k?B\n {2}about the login page +just now · work · [\d.]+ k?B/
    )
    yield* first.type("login")
    yield* first.until(/> login\n→ about the login page[^\n]*\ntype/)
    yield* first.press("Enter")
    yield* first.until(
      /> about the login page\n+✗ Run make · not allowed\n✓ List \.\n+The first answer\.\n\nResumed "about the login page"\./
    )
    yield* first.prompt()
    const others = yield* first.say("/resume", /Esc closes$/)
    assert.notInclude(others.slice(others.lastIndexOf("Resume a session")), "login")
    yield* first.press("Enter")
    yield* first.until('Resumed "about the changelog".')
    yield* first.prompt()
  })

  it.live("/init puts a request for AGENTS.md into the editor, and asks to improve one that exists", function* () {
    const where = yield* place("keys-init", untitled)
    const fake = yield* serve(calls(["write_file", { file_path: "AGENTS.md", content: "# Words\n" }]), says("Written."))
    const { press, prompt, say, until } = yield* chat(where, fake, ["--approve", "all"])
    yield* prompt()
    yield* say("/init")
    yield* until(
      /Press Enter to ask for AGENTS\.md, or change the request first\.[^]*\n> Write AGENTS\.md: what someone new/
    )
    yield* press("Enter")
    yield* until("Written.")
    yield* prompt()
    assert.strictEqual(readFileSync(path.join(where.cwd, "AGENTS.md"), "utf8"), "# Words\n")
    yield* say("/init", /\n> Improve AGENTS\.md: /)
  })

  it.live("the title of the window names the session, and is the one from before when the chat ends", function* () {
    const where = yield* place("keys-title", untitled)
    const { ask, press, prompt, title, until } = yield* chat(where, yield* serve(says("Hello.")))
    yield* prompt()
    assert.strictEqual(yield* title, "new session · palimpsest")
    yield* ask("good morning", "Hello.")
    assert.strictEqual(yield* title, "good morning · palimpsest")
    yield* press("C-d")
    yield* until("status 0")
    // tmux names a window for its machine.
    assert.strictEqual(yield* title, hostname())
  })

  it.live("a command of the user shows its output while it runs", function* () {
    const where = yield* place("keys-shell", untitled)
    const { press, prompt, say, until } = yield* chat(where, yield* serve())
    yield* prompt()
    yield* say(
      "!mkfifo pipe; echo one; echo two; cat pipe",
      /\n. mkfifo pipe; echo one; echo two; cat pipe ▸\n {2}two\n. running · [^\n]*Esc cancels/
    )
    yield* Effect.promise(() => writeFile(path.join(where.cwd, "pipe"), "three\n"))
    yield* until(/✓ mkfifo pipe; echo one; echo two; cat pipe\n {2}one\n {2}two\n {2}three\n[^]*next message\?/)
    yield* press("n")
    yield* prompt()
  })

  it.live("the status line counts each answer of a turn that goes on", function* () {
    const gate = yield* Deferred.make<void>()
    const call = { id: "a", name: "list_directory", args: { dir_path: "." } }
    const fake = yield* serve(
      FakeGemini.sse(
        FakeGemini.response([{ functionCall: call }], {
          usage: { promptTokenCount: 100_000, candidatesTokenCount: 1_000, totalTokenCount: 101_000 }
        })
      ),
      [
        FakeGemini.streamHead,
        FakeGemini.wait(Deferred.await(gate)),
        FakeGemini.event(FakeGemini.response([{ text: "Done." }]))
      ]
    )
    const where = yield* place("keys-status", untitled)
    const { prompt, say, until } = yield* chat(where, fake)
    yield* prompt()
    yield* say("look around", /thinking · [^\n]*Esc cancels[^]* · look around · \$0\.0\d+/)
    yield* Deferred.succeed(gate, undefined)
    yield* until("Done.")
    yield* prompt()
  })

  it.live("/mcp, /tasks, /cost and /export show and save what the session has", function* () {
    const price = { input: 1_000, output: 1_000 }
    const server = { command: process.execPath, args: [mcpServer, "plain"] }
    const where = yield* place("keys-session", {
      home: {
        "settings.json": { titles: false, models: { "gemini-2.5-flash": { price } }, mcpServers: { files: server } }
      }
    })
    const fake = yield* serve(
      calls(["run_shell_command", { command: "echo ready; sleep 600", is_background: true }]),
      FakeGemini.sse(
        FakeGemini.response([{ text: "It runs." }], {
          usage: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 }
        })
      )
    )
    const { ask, press, prompt, say, until } = yield* chat(where, fake, ["--approve", "all"])
    yield* prompt()
    yield* ask("/tasks", "No command was started in the background.")
    yield* ask("start it", "It runs.")
    yield* ask("/mcp", /files\n +\d+ tools: echo, wipe, /)
    yield* say("/cost")
    // 125 tokens in two answers, at 1,000 dollars a million.
    yield* until(/\$0\.13 since you opened this session[^]*Prices: built in[^]*, and settings/)
    yield* prompt()
    yield* ask("/export", "Saved to start-it.md as Markdown")
    assert.include(readFileSync(path.join(where.cwd, "start-it.md"), "utf8"), "It runs.")
    yield* say("/tasks", /→ echo ready; sleep 600 +running for \d+ \w+/)
    yield* press("Enter")
    yield* until(/→ Show its output/)
    yield* press("Down")
    yield* press("Enter")
    yield* until(/Stopped \d+: echo ready; sleep 600/)
    yield* prompt()
  })

  it.live("/rewind goes back to a message with its files, and names the commands that ran since", function* () {
    const where = yield* place("keys-rewind", { ...untitled, work: { "old.txt": "old\n", "gone.txt": "gone\n" } })
    const fake = yield* serve(
      calls(["write_file", { file_path: "old.txt", content: "new\n" }]),
      calls(["run_shell_command", { command: "rm gone.txt" }]),
      says("Done.")
    )
    const { ask, press, prompt, say, until } = yield* chat(where, fake, ["--approve", "all"])
    const old = () => readFileSync(path.join(where.cwd, "old.txt"), "utf8")
    yield* prompt()
    yield* ask("tidy up", "Done.")
    assert.strictEqual(old(), "new\n")
    yield* say("/rewind", /→ tidy up +e1 · just now · 1 file changed since/)
    yield* press("Enter")
    yield* until(/→ Conversation and files +old\.txt/)
    yield* press("Enter")
    const shown = yield* prompt("tidy up")
    assert.include(
      shown.replaceAll("\n", " "),
      "Restored old.txt. Shell commands ran since: rm gone.txt. Files that they removed or moved are not restored. Went back to before e1"
    )
    assert.strictEqual(old(), "old\n")
    yield* press("C-c")
    yield* ask("/rewind back", /\/rewind back\nRestored old\.txt\./)
    assert.strictEqual(old(), "new\n")
  })
})
