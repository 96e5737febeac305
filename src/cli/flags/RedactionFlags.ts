/** The flags that choose what counts as a secret and what is redacted, and the searches and redactions that commands make of them. */

import { Effect } from "effect"
import { Flag } from "effect/cli"
import { accountOf } from "../../domain/text/AccountNames.ts"
import type { SecretSearch } from "../../domain/transcripts/RecordSecrets.ts"
import { Environment } from "../../services/platform/Environment.ts"
import { environmentSecrets } from "../../services/transcripts/FindSecrets.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import { redactLoaded } from "../../services/transcripts/RedactSession.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { tellUnsearched } from "../output/RedactionNotices.ts"
import * as Input from "./SharedFlags.ts"

/** The flag `--only`. */
export const only = Input.choice(
  "only",
  ["secrets", "personal"],
  "Only keys, tokens and passwords, or only personal data (default: both)"
)

/** Makes a search of the flag, with the secrets of this process's environment. */
export const searchOf = (chosen: "secrets" | "personal" | undefined): Effect.Effect<SecretSearch, never, Environment> =>
  Effect.map(
    Environment.use(({ variables }) => variables),
    (variables) => ({
      secrets: chosen !== "personal",
      personal: chosen !== "secrets",
      known: chosen === "personal" ? [] : environmentSecrets(variables)
    })
  )

/** Makes a search for a copy that others may read: it also finds home folders and account names. */
export const sharedSearchOf = Effect.fnUntraced(function* (chosen: "secrets" | "personal" | undefined) {
  const search = yield* searchOf(chosen)
  if (!search.personal) return search
  return { ...search, accounts: accountOf(yield* Environment.use(({ variables }) => variables)) }
})

/** The flags for output that others will see. */
export const flags = {
  share: Input.flag("share", "Prepare the output for sharing: implies --redact, unless --no-redact is given"),
  redact: Input.optional(
    Flag.Boolean("redact"),
    "Replace secrets, personal data, home folders and account names with placeholders"
  ),
  redactTexts: Input.flag("redact-texts", "Hide all texts of the page; implies --redact")
}

interface Given {
  readonly share: boolean
  readonly redact: boolean | undefined
  readonly redactTexts: boolean
  readonly html: string | undefined
}

/** Redacts conversations as the flags ask, and reports at the end what was removed. */
export const sharingOf = Effect.fnUntraced(function* ({ html, redact, redactTexts, share }: Given) {
  if (redactTexts && html === undefined) return yield* badInput("--redact-texts needs --html")
  if (redactTexts && redact === false) return yield* badInput("use either --redact-texts or --no-redact, not both")
  const isClean = redact ?? (share || redactTexts)
  const search = yield* sharedSearchOf(undefined)
  let replaced = 0
  /** Returns the conversation and its name, redacted. */
  const clean = Effect.fnUntraced(function* (loaded: Loaded, name: string) {
    if (!isClean) return { loaded, name }
    if (loaded.long !== undefined) {
      return yield* badInput(`${name} is too large to be searched for secrets; use --no-redact to show it as it is`)
    }
    const made = yield* redactLoaded(loaded, search).pipe(
      Output.progress("searching for secrets"),
      Effect.mapError((error) => failed(error.message))
    )
    replaced += made.replaced
    yield* tellUnsearched(made.unsearched)
    return { loaded: made.loaded, name: made.inText(name) }
  })
  const tell = Effect.suspend(() => {
    if (!isClean) {
      return share ? Output.notice("nothing was removed: secrets and names are still in the output") : Effect.void
    }
    const rest = redactTexts ? "; texts are not shown" : html === undefined ? "" : "; --redact-texts hides all texts"
    return Output.notice(`replaced ${Output.plural(replaced, "secret or name", "secrets and names")}${rest}`)
  })
  return { isClean, clean, tell }
})
