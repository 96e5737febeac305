import { Effect, type FileSystem, Path } from "effect"
import { printable } from "../domain/Inspection.ts"
import { withDefaults } from "../domain/Settings.ts"
import { type ChatTerminal, Closed } from "../services/ChatTerminal.ts"
import { offersOf, offerText } from "../services/FolderOffers.ts"
import { Settings } from "../services/Settings.ts"
import { Trust } from "../services/Trust.ts"

/** Whether the folder that one works in may say what an agent does. */

/** Whether a folder is trusted: what nobody was asked about is not, and neither is anything while that cannot be read. */
export const isTrusted: Effect.Effect<(folder: string) => Effect.Effect<boolean>, never, Trust> = Effect.map(
  Trust,
  (trust) => (folder) =>
    Effect.match(trust.of(folder), { onFailure: () => false, onSuccess: (standing) => standing === "trusted" })
)

/** What a folder offers, memory by the names that the person set; where the settings cannot be read, by the usual ones. */
export const offersHere = (folder: string) =>
  Settings.use(({ read }) => read).pipe(
    Effect.map(({ settings }) => withDefaults(settings).memory.fileNames),
    Effect.orElseSucceed(() => undefined),
    Effect.flatMap((names) => offersOf(folder, names))
  )

const meaning: Readonly<Record<string, "trusted" | "untrusted">> = {
  y: "trusted",
  yes: "trusted",
  n: "untrusted",
  no: "untrusted"
}

const options = "y trust it and all below it · n leave all that alone; palimpsest trust changes it later"

/**
 * Asks the person at this terminal whether they trust the working folder, once, where there is something that would be taken
 * from it. Where nobody can be asked nothing is.
 */
export const askOnce = Effect.fn("Trusting.askOnce")(function* (
  terminal: ChatTerminal["Service"]
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path | Settings | Trust> {
  if (!terminal.isTerminal) return
  const trust = yield* Trust
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const asking = Effect.gen(function* () {
    if ((yield* trust.of(folder)) !== "unknown" || (yield* trust.isWide(folder))) return
    const offers = yield* offersHere(folder)
    if (offers.length === 0) return
    const listed = offers.map((offer) => `  ${printable(offerText(offer))}\n`).join("")
    const asked = terminal.inquire({
      text: `Do you trust ${printable(folder)}? It would tell the model what to do, or run commands, with:\n${listed}${options}\n`,
      prompt: "trust? ",
      read: (line) => {
        const value = meaning[line.toLowerCase()]
        return value === undefined ? { _tag: "Again", text: `${options}\n` } : { _tag: "Answer", value }
      }
    })
    const answer = yield* terminal.during("asking", (interrupted) =>
      Effect.raceFirst(asked, Effect.andThen(interrupted, new Closed()))
    )
    yield* trust.set(folder, answer)
  })
  yield* asking.pipe(
    Effect.catchTags({
      // Who left without an answer is asked again.
      Closed: () => Effect.void,
      TrustError: ({ message }) => terminal.note(printable(message))
    })
  )
})

/** Offers that are named where they are left out. */
const mostNamed = 5

/**
 * What is left alone of a folder about which nobody was asked, in one line; undefined: nothing is, or that was told with its
 * settings.
 */
export const leftAlone = Effect.fn("Trusting.leftAlone")(function* (
  folder: string
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path | Settings | Trust> {
  const trust = yield* Trust
  const standing = yield* Effect.orElseSucceed(trust.of(folder), () => "unknown" as const)
  if (standing !== "unknown") return undefined
  const offers = yield* offersHere(folder)
  if (offers.length === 0 || offers.some(({ kind }) => kind === "settings" || kind === "unreadable")) return undefined
  const files = [...new Set(offers.map(({ file }) => file))]
  const more = files.length > mostNamed ? ` and ${files.length - mostNamed} more` : ""
  return `this folder is not trusted, so ${files.slice(0, mostNamed).join(", ")}${more} ${files.length === 1 ? "is" : "are"} left alone; "palimpsest trust" says that it is`
})
