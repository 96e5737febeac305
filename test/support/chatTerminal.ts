import { Deferred, Effect, Option } from "effect"
import {
  type Card,
  type ChatTerminal,
  type Choice,
  Closed,
  type Inquiry,
  type Question
} from "../../src/services/terminal/ChatTerminal.ts"

/** A terminal that keeps what is shown. Of sentences it keeps which are the same, and their names, numbers and ids. */

/** The names, numbers and ids of a text. */
export const facts = (shown: string): string =>
  (shown.match(/[^\s"'(),:;]*[\d/_█▓▒|…·$%][^\s"'(),:;]*|"[^"]*"/g) ?? [])
    .map((word) => word.replace(/\.$/, ""))
    .join(" ")

const maxRows = 3

/** The user's part: a line for each prompt, and what is chosen in each list. */
export interface Typing {
  readonly lines?: Array<string>
  readonly picks: Array<string>
  readonly isTerminal?: boolean
  readonly canColor?: boolean
}

/**
 * A terminal, and what it did. A line `^C` before another cancels the work of that line as soon as it shows progress; one that begins with `?` is completed, one with `+` is typed while the work of the next runs, and `^M` is the key of the mode.
 */
export const recorded = ({ canColor = false, isTerminal = true, lines = [], picks }: Typing) => {
  const done: Array<string> = []
  const sentences = new Map([["", 0]])
  /** A text is told by its number among the different ones, without its facts, and by its facts. */
  const numbered = (what: string) => (text: string) => {
    // The sizes of files are those of their folders' names, too.
    const shown = text.replace(/\d[\d.]* [kM]?B\b/g, "size")
    const words = shown.replace(/"[^"]*"|[^\s"'(),:;]*[\d/_][^\s"'(),:;]*/g, "")
    const number = sentences.get(words) ?? sentences.size
    sentences.set(words, number)
    const { length } = shown.split("\n")
    return `${what} ${number}${length > 1 ? ` of ${length} lines` : ""}: ${facts(shown)}`.trim()
  }
  const keep = (line: string) => Effect.sync(() => void done.push(line))
  const told = (what: string) => (shown: string) => Effect.suspend(() => keep(numbered(what)(shown)))
  const last = new Map<string, string>()
  const changed = (line: string) =>
    Effect.sync(() => {
      const key = line.slice(0, 5)
      if (last.get(key) !== line) done.push(line)
      last.set(key, line)
    })
  let cancel: Deferred.Deferred<void> | undefined
  let modeKey: Effect.Effect<unknown> = Effect.void
  const progress = Effect.suspend(() => (cancel === undefined ? Effect.void : Deferred.succeed(cancel, undefined)))
  const typed: Array<string> = []
  const ask = ({ complete, prefill, steers }: Question): Effect.Effect<string, Closed> =>
    Effect.gen(function* () {
      const line = lines.shift()
      yield* keep(`> ${line ?? "closed"}${prefill === undefined ? "" : ` < ${prefill}`}`)
      if (line === undefined) return yield* new Closed()
      if (line === "^C") cancel = yield* Deferred.make<void>()
      else if (line === "^M") yield* modeKey
      else if (line.startsWith("+")) {
        yield* keep(`steers: ${steers?.(line.slice(1))}`)
        typed.push(line.slice(1))
      } else if (line.startsWith("?")) {
        const { candidates = [], replaced } = (yield* complete?.(line.slice(1)) ?? Effect.undefined) ?? {}
        yield* keep(`${candidates.length} for ${replaced}: ${candidates.slice(0, maxRows).join(" ")}`)
      } else return line === "=" ? (prefill ?? "") : line
      return yield* ask({ prompt: "", complete, prefill, steers })
    })
  const terminal: ChatTerminal["Service"] = {
    isTerminal,
    canColor,
    theme: "dark",
    columns: Effect.succeed(60),
    ask,
    during: <A, E, R>(label: string, work: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>) => {
      done.push(`during ${label}`)
      return Effect.ensuring(
        work(cancel === undefined ? Effect.never : Deferred.await(cancel)),
        Effect.sync(() => (cancel = undefined))
      )
    },
    inquire: <A>(inquiry: Inquiry<A>): Effect.Effect<A, Closed> =>
      Effect.suspend(() => {
        const { escape = "", fill = "", keys = [], prompt, read } = inquiry
        const pick = picks.shift()
        done.push(`${prompt}[${keys.join("")} ${escape}] ${fill}${pick ?? "closed"}`)
        if (pick === undefined) return Effect.fail(new Closed())
        const reading = read(pick)
        if (reading._tag === "Answer") return Effect.succeed(reading.value)
        return terminal.inquire(reading._tag === "Again" ? inquiry : reading.inquiry)
      }),
    choose: (_: string, choices: ReadonlyArray<Choice<unknown>>) => {
      for (const { about = "", isCurrent = false, label } of choices.slice(0, maxRows)) {
        done.push(`${numbered("row")(`${label} ${about}`)}${isCurrent ? " (current)" : ""}`)
      }
      const pick = picks.shift() ?? "closed"
      if (pick === "closed") return Effect.fail(new Closed())
      return Effect.succeed(pick === "none" ? Option.none() : Option.fromNullishOr(choices[Number(pick)]?.value))
    },
    working: (label: string) => Effect.andThen(keep(`working ${label}`), progress),
    answer: (piece: string) => keep(`answer ${piece}`),
    endAnswer: (isDiscarded: boolean) => keep(`end${isDiscarded ? " discarded" : ""}`),
    card: ({ body, head, isRunning, more }: Card) =>
      Effect.andThen(
        keep(`card ${isRunning ? "running " : ""}${head} ${body.join(" / ")} + ${more.length}`),
        isRunning ? progress : Effect.void
      ),
    // The tokens of the instruction are not the terminal's.
    status: (line: (columns: number) => string) =>
      changed(
        `status ${line(200)
          .replace(/[█░]+/, "bar")
          .replace(/[\d,]+ of (\S+ tokens) .*?%\)/, "some of $1")}`
      ),
    onModeKey: (pressed: Effect.Effect<unknown>) => Effect.sync(() => (modeKey = pressed)),
    takeTyped: Effect.sync(() => typed.splice(0)),
    title: (text: string) => changed(`title ${text}`),
    panel: (all: ReadonlyArray<string>) => keep(`panel ${all.length}`),
    configure: ({ theme }: { readonly theme: string }) => keep(`theme ${theme}`),
    copy: (copied: string) => Effect.sync(() => done.push(`copied ${copied}`) > 0),
    write: told("write"),
    note: told("note")
  } as unknown as ChatTerminal["Service"]
  return { terminal, done, numbered }
}
