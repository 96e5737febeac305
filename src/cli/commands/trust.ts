import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { printable } from "../../domain/Inspection.ts"
import { type Offer, offerText } from "../../services/FolderOffers.ts"
import { type Standing, Trust, TrustEntry } from "../../services/Trust.ts"
import { badInput, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"
import { offersHere } from "../Trusting.ts"

/** What `--list --json` prints. */
const List = Schema.Struct({ folders: Schema.Array(TrustEntry) })

/** What `--json` prints of a folder after the answer was kept. */
const Answered = Schema.Struct({
  folder: Schema.String,
  /** How it stands with it now; after `--forget` by what is above it. */
  standing: Schema.Literals(["trusted", "untrusted", "unknown"]),
  /** The person's home lies in it, or is it. */
  wide: Schema.Boolean,
  /** What lies there that trust decides about. */
  offers: Schema.Array(Schema.Struct({ kind: Schema.String, file: Schema.String, names: Schema.Array(Schema.String) }))
})

const said: Readonly<Record<"trusted" | "untrusted" | "forgotten", string>> = {
  trusted: "Trusted, with all that lies below",
  untrusted: "Not trusted, with all that lies below",
  forgotten: "Forgotten; you will be asked again"
}

/** What follows from an answer for what lies there. */
const consequence = (standing: Standing, hasOffers: boolean): string =>
  standing === "trusted"
    ? hasOffers
      ? "From it are taken:"
      : "Nothing that could be taken lies there yet; what comes later is taken too."
    : hasOffers
      ? "Left alone there:"
      : "Nothing that could be taken lies there."

const list = Effect.fnUntraced(function* (json: boolean) {
  const trust = yield* Trust
  const folders = yield* trust.list
  if (json) return yield* Output.json(List, { folders })
  if (folders.length === 0) return yield* Output.notice("no folder was trusted or refused yet")
  yield* Output.text(Output.table(folders.map(({ answer, folder }) => [answer, printable(folder)])))
})

const listed = (offers: ReadonlyArray<Offer>): string =>
  offers.map((offer) => `  ${printable(offerText(offer))}\n`).join("")

/** `palimpsest trust`: says that a folder is trusted, or that it is not. */
export const trust = Command.make(
  "trust",
  {
    path: Argument.String("path").pipe(
      Argument.withDescription("The folder (default: the working folder)"),
      Argument.optional
    ),
    no: Flag.Boolean("no").pipe(
      Flag.withDescription("Do not trust it, whatever lies above it"),
      Flag.withDefault(false)
    ),
    forget: Flag.Boolean("forget").pipe(
      Flag.withDescription("Take back what was said about it"),
      Flag.withDefault(false)
    ),
    list: Flag.Boolean("list").pipe(Flag.withDescription("List what was said so far"), Flag.withDefault(false)),
    json: Input.json
  },
  Effect.fn("cli.trust")(
    function* ({ forget, json, list: isList, no, path: given }) {
      const named = Option.getOrUndefined(given)
      if ([no, forget, isList].filter(Boolean).length > 1)
        return yield* badInput("expected one of --no, --forget, --list")
      if (isList && named !== undefined) return yield* badInput("--list takes no folder; it shows all")
      if (isList) return yield* list(json)
      const answers = yield* Trust
      const path = yield* Path.Path
      const fs = yield* FileSystem.FileSystem
      const place = path.resolve(named ?? ".")
      const info = yield* Effect.option(fs.stat(place))
      if (!forget && Option.getOrUndefined(info)?.type !== "Directory") {
        return yield* badInput(`there is no folder ${printable(place)}`)
      }
      const answer = forget ? "forgotten" : no ? "untrusted" : "trusted"
      const wide = yield* answers.isWide(place)
      if (answer === "trusted" && wide && named === undefined) {
        return yield* badInput(
          `your home folder is ${printable(place)} or lies in it: with it all you ever download would be trusted; go to a project, or name the folder if you mean it`
        )
      }
      const folder = yield* answers.set(place, answer)
      const standing = yield* answers.of(folder)
      const offers = yield* offersHere(folder)
      if (json) return yield* Output.json(Answered, { folder, standing, wide, offers })
      if (answer === "trusted" && wide) {
        yield* Output.notice("your home folder is this one or lies in it: whatever you download there is trusted now")
      }
      yield* Output.text(
        `${said[answer]}: ${printable(folder)}\n${consequence(standing, offers.length > 0)}\n${listed(offers)}`
      )
    },
    Effect.catchTag("TrustError", ({ message }) => Effect.fail(failed(printable(message))))
  )
).pipe(
  Command.withDescription(
    "Trust a folder: its settings, variables, memory, hooks, agents and skills are taken. Without that nothing of it is"
  ),
  Command.withExamples([
    { command: "palimpsest trust", description: "Trust the working folder and all below" },
    { command: "palimpsest trust vendor --no", description: "But not this one" },
    { command: "palimpsest trust --list", description: "What was said so far" }
  ])
)
