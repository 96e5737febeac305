/** The `trust` command: marks a folder as trusted or untrusted, and lists the answers. */

import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { Command } from "effect/cli"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { offersIn } from "../../services/runtime/FolderTrust.ts"
import { type Offer, offerText } from "../../services/workspace/FolderOffers.ts"
import { type TrustState, Trust, TrustEntry } from "../../services/workspace/Trust.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The output of `--list --json`. */
const List = Schema.Struct({ folders: Schema.Array(TrustEntry) })

/** The output of `--json` for a folder, after its trust was saved. */
const TrustReport = Schema.Struct({
  folder: Schema.String,
  /** The folder's trust now; after `--forget` the trust of its parents. */
  standing: Schema.Literals(["trusted", "untrusted", "unknown"]),
  /** Whether the folder is or contains the user's home folder. */
  wide: Schema.Boolean,
  /** What the folder offers that depends on trust. */
  offers: Schema.Array(Schema.Struct({ kind: Schema.String, file: Schema.String, names: Schema.Array(Schema.String) }))
})

const answerText: Readonly<Record<"trusted" | "untrusted" | "forgotten", string>> = {
  trusted: "Trusted with everything below it",
  untrusted: "Not trusted, nor anything below it",
  forgotten: "Forgotten; you will be asked again"
}

/** What the new trust means for the folder's offers. */
const consequence = (standing: TrustState, hasOffers: boolean): string =>
  standing === "trusted"
    ? hasOffers
      ? "Loaded from it:"
      : "It has nothing to load yet; files added later are loaded too."
    : hasOffers
      ? "Ignored there:"
      : "It has nothing to load."

const list = Effect.fnUntraced(function* (json: boolean) {
  const trust = yield* Trust
  const folders = yield* trust.list
  if (json) return yield* Output.json(List, { folders })
  if (folders.length === 0) return yield* Output.notice("no folders trusted or refused yet")
  yield* Output.text(Output.table(folders.map(({ answer, folder }) => [answer, printableLine(folder)])))
})

const offerLines = (offers: ReadonlyArray<Offer>): string =>
  offers.map((offer) => `  ${printableLine(offerText(offer))}\n`).join("")

/** The command `palimpsest trust`. */
export const trust = Command.make(
  "trust",
  {
    path: Input.optionalArgument("path", "Folder (default: the working folder)"),
    no: Input.flag("no", "Refuse to trust it, even if a parent folder is trusted"),
    forget: Input.flag("forget", "Forget the answer for this folder"),
    list: Input.flag("list", "List trusted and refused folders"),
    json: Input.json
  },
  Effect.fn("cli.trust")(
    function* ({ forget, json, list: isList, no, path: folderName }) {
      if ([no, forget, isList].filter(Boolean).length > 1)
        return yield* badInput("use one of --no, --forget and --list")
      if (isList && folderName !== undefined) return yield* badInput("--list takes no folder")
      if (isList) return yield* list(json)
      const answers = yield* Trust
      const path = yield* Path.Path
      const fs = yield* FileSystem.FileSystem
      const place = path.resolve(folderName ?? ".")
      const info = yield* Effect.option(fs.stat(place))
      if (!forget && Option.getOrUndefined(info)?.type !== "Directory") {
        return yield* badInput(`no such folder: ${printableLine(place)}`)
      }
      const answer = forget ? "forgotten" : no ? "untrusted" : "trusted"
      const wide = yield* answers.isWide(place)
      if (answer === "trusted" && wide && folderName === undefined) {
        return yield* badInput(
          `your home folder is ${printableLine(place)} or is inside it, so everything you download would be trusted; go to a project, or name the folder to confirm`
        )
      }
      const folder = yield* answers.set(place, answer)
      const standing = yield* answers.of(folder)
      const offers = yield* offersIn(folder)
      if (json) return yield* Output.json(TrustReport, { folder, standing, wide, offers })
      if (answer === "trusted" && wide) {
        yield* Output.notice(
          "this folder is or contains your home folder: everything you download there is now trusted"
        )
      }
      yield* Output.text(
        `${answerText[answer]}: ${printableLine(folder)}\n${consequence(standing, offers.length > 0)}\n${offerLines(offers)}`
      )
    },
    Effect.catchTag("TrustError", ({ message }) => Effect.fail(failed(printableLine(message))))
  )
).pipe(
  Input.withExamples({
    "palimpsest trust": "Trust the working folder and everything below it",
    "palimpsest trust vendor --no": "Exclude one folder",
    "palimpsest trust --list": "List the answers so far"
  })
)
