import { Context, Effect, Option, Schema } from "effect"
import { Dns } from "effect/net"
import { addressOf, isLocalName, isPublic } from "../../domain/tools/NetworkAddress.ts"

/** Restricts the requests of a model to the public internet: not this machine, its network or cloud metadata. */

/** Whether requests to this machine and its network are allowed. By default they are not. */
export const AllowPrivate = Context.Reference<boolean>("palimpsest/services/PublicNetwork/AllowPrivate", {
  defaultValue: () => false
})

/** A refused address. The message says why, in one sentence. */
class AddressRefused extends Schema.TaggedError<AddressRefused>()("AddressRefused", {
  message: Schema.String
}) {}

const refused = (message: string) => new AddressRefused({ message })

const refusedInside = ({ host }: URL, what: string) =>
  refused(`${host} ${what}, not the public internet; the user can allow that in the settings`)

/**
 * Resolves the host of a URL to its addresses, if all of them are allowed. Connect to one of these and not to the name again: a
 * name server could answer differently the second time.
 */
export const publicAddresses = Effect.fn("PublicNetwork.publicAddresses")(function* (url: URL) {
  const allowPrivate = yield* AllowPrivate
  const dns = yield* Dns.Dns
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return yield* refused(`${url.protocol} addresses cannot be fetched, only http and https`)
  }
  if (url.username !== "" || url.password !== "") {
    return yield* refused(`${url.host}: an address that contains a password cannot be fetched`)
  }
  const literal = addressOf(url)
  if (Option.isSome(literal)) {
    if (allowPrivate || isPublic(literal.value)) return [literal.value]
    return yield* refusedInside(url, "is an address of a private network or of this machine")
  }
  if (!allowPrivate && isLocalName(url.hostname)) return yield* refusedInside(url, "is this machine")
  const addresses = yield* dns
    .lookup(url.hostname)
    .pipe(Effect.mapError(({ reason }) => refused(`${url.hostname} could not be found (${reason}); check the address`)))
  // A single private address among public ones is enough to reach the inside.
  if (allowPrivate || addresses.every(isPublic)) return addresses
  return yield* refusedInside(url, "leads to a private network or to this machine")
})
