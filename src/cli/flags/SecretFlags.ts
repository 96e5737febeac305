import { Effect } from "effect"
import { accountOf } from "../../domain/text/AccountNames.ts"
import type { SecretSearch } from "../../domain/transcripts/RecordSecrets.ts"
import { Environment } from "../../services/platform/Environment.ts"
import { environmentSecrets } from "../../services/transcripts/FindSecrets.ts"
import * as Input from "./SharedFlags.ts"

/** The flag `--only`, which chooses what counts as a secret, and the searches that commands make of it. */

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
