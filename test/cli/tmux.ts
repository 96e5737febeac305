import { Effect, Schedule, Schema, type Scope } from "effect"
import { execFile, spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { tmpdir } from "node:os"
import { createInterface } from "node:readline"
import { sharedCode } from "../support/temporaryFolder.ts"

/**
 * Programs in a real terminal: tmux shows them a screen of a given size, and the tests what is on it. Groups of tests that use
 * it ask for tmux (`needs("tmux")`).
 */

class TmuxError extends Schema.TaggedError<TmuxError>()("TmuxError", { message: Schema.String }) {}

/** What runs, and on how large a screen. */
export interface Setting {
  readonly command: ReadonlyArray<string>
  readonly width?: number
  readonly height?: number
  readonly cwd?: string
  /** Added to an environment that holds no more than the program needs. */
  readonly env?: Readonly<Record<string, string>>
}

/** What a screen is waited for to show. */
type Expected = string | RegExp | ((screen: string) => boolean)

/** A program on a screen. */
export interface Screen {
  /** Types a text as it is. */
  readonly type: (text: string) => Effect.Effect<void, TmuxError>
  /** Presses keys by their names in tmux: `Enter`, `C-c`, `Tab`, `Up`. */
  readonly press: (...keys: ReadonlyArray<string>) => Effect.Effect<void, TmuxError>
  /** Pastes a text as a terminal does: bracketed, where the program asked for that. */
  readonly paste: (text: string) => Effect.Effect<void, TmuxError>
  /** What is shown now; no white space at the ends of lines and of the screen. */
  readonly capture: Effect.Effect<string, TmuxError>
  /** Waits until the screen shows something, and answers what; fails with the screen when it does not within three minutes, or more on a busy machine. */
  readonly until: (expected: Expected) => Effect.Effect<string, TmuxError>
  /** Types a line and sends it; waits until the screen shows something, and answers what. */
  readonly say: (line: string, expected?: Expected) => Effect.Effect<string, TmuxError>
  /** Says a line to a chat, and waits for the next prompt as well. */
  readonly ask: (line: string, expected: Expected) => Effect.Effect<string, TmuxError>
  /** Waits for a chat's prompt that holds a text, at the end of the screen, while nothing runs. */
  readonly prompt: (text?: string) => Effect.Effect<string, TmuxError>
  /** Waits until the program has ended. */
  readonly ended: Effect.Effect<void, TmuxError>
  /** The title of the window. */
  readonly title: Effect.Effect<string, TmuxError>
  /** What the program put into the clipboard. */
  readonly clipboard: Effect.Effect<string, TmuxError>
  /** Gives the screen another size. */
  readonly resize: (width: number, height: number) => Effect.Effect<void, TmuxError>
}

/** Whether a screen of the chat has its status line above the prompt, and no work that could be cancelled. */
export const isIdle = (screen: string): boolean => / · [^\n]*\n>/.test(screen) && !screen.includes(" · Esc cancels")

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`

/** A screen is looked at this often, and so many times. Where the machine is busy, a program may take a minute to start. */
const everyMillis = 10
const looks = 18_000

/** Starts a program on a server of its own, which ends with the scope. The screen stays when the program has ended. */
export const start = Effect.fnUntraced(function* (setting: Setting): Effect.fn.Return<Screen, TmuxError, Scope.Scope> {
  // The paths of sockets have to be short.
  const socket = randomUUID().slice(0, 13)
  const { height = 24, width = 80 } = setting
  const env = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: process.env["HOME"] ?? "/",
    LANG: "C.UTF-8",
    LC_ALL: "C.UTF-8",
    TERM: "xterm-256color",
    TMUX_TMPDIR: process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(),
    ...sharedCode,
    ...setting.env
  }

  const tmux = (args: ReadonlyArray<string>, input?: string) =>
    Effect.callback<string, TmuxError>((resume) => {
      const child = execFile(
        "tmux",
        ["-L", socket, "-f", "/dev/null", "-u", ...args],
        { env, encoding: "utf8" },
        (error, stdout, stderr) =>
          resume(
            error === null
              ? Effect.succeed(stdout)
              : Effect.fail(new TmuxError({ message: `tmux ${args[0] ?? ""}: ${stderr.trim() || error.message}` }))
          )
      )
      child.stdin?.on("error", () => {})
      child.stdin?.end(input ?? "")
    })

  // Size and options hold from the first moment only where the server has them before the program starts.
  const command = ["exec", "env", "TERM=tmux-256color", ...setting.command].map((word, index) =>
    index === 0 ? word : quoted(word)
  )
  yield* Effect.acquireRelease(
    tmux([
      ..."set-option -g default-shell /bin/sh ; set-option -g remain-on-exit on ; set-option -g status off ; set-option -g escape-time 0 ; set-option -s set-clipboard on ;".split(
        " "
      ),
      // The line about the end of the program would push the first row off the screen. Older versions have no such option.
      "set-option",
      "-gq",
      "remain-on-exit-format",
      "",
      ";",
      ...`new-session -d -x ${width} -y ${height}`.split(" "),
      ...(setting.cwd === undefined ? [] : ["-c", setting.cwd]),
      command.join(" ")
    ]),
    () => Effect.ignore(tmux(["kill-server"]))
  )

  // One client does all looking: to start a program for each look takes long in a process as large as that of the tests. Keys
  // are not pressed by it: without a pause between them they would be taken for a paste.
  const client = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn("tmux", ["-L", socket, "-u", "-C", "attach-session"], { env, stdio: ["pipe", "pipe", "ignore"] })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const waiting: Array<(answer: Effect.Effect<string, TmuxError>) => void> = []
  let block: { readonly end: string; readonly lines: Array<string> } | undefined
  createInterface({ input: client.stdout, crlfDelay: 0 }).on("line", (line) => {
    if (block !== undefined) {
      const [kind = "", ...number] = line.split(" ")
      if ((kind !== "%end" && kind !== "%error") || number.join(" ") !== block.end) {
        block.lines.push(line)
        return
      }
      const text = block.lines.join("\n")
      // The last number tells answers to what we asked from others.
      if (block.end.endsWith(" 1"))
        waiting.shift()?.(kind === "%end" ? Effect.succeed(text) : Effect.fail(new TmuxError({ message: text })))
      block = undefined
    } else if (line.startsWith("%begin ")) block = { end: line.slice("%begin ".length), lines: [] }
  })
  client.on("close", () => {
    for (const resume of waiting.splice(0)) resume(Effect.fail(new TmuxError({ message: "tmux has ended" })))
  })
  client.stdin.on("error", () => {})

  const query = (words: ReadonlyArray<string>) =>
    Effect.callback<string, TmuxError>((resume) => {
      if (client.exitCode !== null || client.signalCode !== null) {
        resume(Effect.fail(new TmuxError({ message: "tmux has ended" })))
        return
      }
      waiting.push(resume)
      client.stdin.write(`${words.map(quoted).join(" ")}\n`)
    })

  const capture = Effect.map(query(["capture-pane", "-p"]), (screen) =>
    screen.replace(/[ \t]+$/gm, "").replace(/\n+$/, "")
  )
  const shows = (screen: string, expected: Expected) =>
    typeof expected === "function"
      ? expected(screen)
      : typeof expected === "string"
        ? screen.includes(expected)
        : expected.test(screen)

  /** The threads of the programs on the screen and what each waits for: it tells a program that hangs from one that ended. */
  const processes = Effect.map(query(["display-message", "-p", "#{pane_tty}"]), (tty) => {
    const list = spawnSync("ps", ["-L", "-o", "pid,tid,stat,wchan:24,comm", "-t", tty.trim()], { encoding: "utf8" })
    return `and these run:\n${list.stdout}`
  })

  const type: Screen["type"] = (text) => Effect.asVoid(tmux(["send-keys", "-l", text]))
  const press: Screen["press"] = (...keys) => Effect.asVoid(tmux(["send-keys", ...keys]))
  const until: Screen["until"] = (expected) =>
    capture.pipe(
      Effect.filterOrFail(
        (screen) => shows(screen, expected),
        (screen) => new TmuxError({ message: `waited for ${String(expected)}, but the screen shows\n${screen}` })
      ),
      Effect.retry(Schedule.max([Schedule.spaced(everyMillis), Schedule.recurs(looks)])),
      Effect.catch((error) =>
        Effect.flatMap(processes, (all) => Effect.fail(new TmuxError({ message: `${error.message}\n${all}` })))
      )
    )
  const say: Screen["say"] = (line, expected = () => true) =>
    type(line).pipe(Effect.andThen(press("Enter")), Effect.andThen(until(expected)))
  const prompt: Screen["prompt"] = (text = "") =>
    until((shown) => isIdle(shown) && shown.endsWith(text === "" ? "\n>" : `\n> ${text}`))

  return {
    type,
    press,
    until,
    say,
    prompt,
    ask: (line, expected) => Effect.tap(say(line, expected), () => prompt()),
    paste: (text) =>
      Effect.andThen(tmux(["load-buffer", "-"], text), Effect.asVoid(tmux(["paste-buffer", "-d", "-p"]))),
    capture,
    // The line that tmux writes over a dead pane is late now and then, or never comes.
    ended: query(["display-message", "-p", "#{pane_dead}"]).pipe(
      Effect.filterOrFail(
        (dead) => dead.trim() === "1",
        () => new TmuxError({ message: "waited for the program's end" })
      ),
      Effect.retry(Schedule.max([Schedule.spaced(everyMillis), Schedule.recurs(looks)])),
      Effect.asVoid
    ),
    title: Effect.map(query(["display-message", "-p", "#{pane_title}"]), (title) => title.trimEnd()),
    clipboard: query(["show-buffer"]),
    resize: (columns, rows) => Effect.asVoid(tmux(["resize-window", "-x", String(columns), "-y", String(rows)]))
  }
})
