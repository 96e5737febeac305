import { Context, Effect, Option, Schema } from "effect"
import { Dns, type NetAddress } from "effect/net"
import { addressOf, isLocalName, isPublic } from "../domain/NetworkAddress.ts"

/** Keeps what a model asks for on the public internet: away from this machine, its network and the metadata of clouds. */

/** Whether this machine and its network may be asked too. Unless set otherwise they may not. */
export const AllowPrivate = Context.Reference<boolean>("palimpsest/services/PublicNetwork/AllowPrivate", {
  defaultValue: () => false
})

/** An address that is not asked. The message says why, in one sentence. */
export class AddressRefused extends Schema.TaggedError<AddressRefused>()("AddressRefused", {
  message: Schema.String
}) {}

const refused = (message: string) => new AddressRefused({ message })

const inside = ({ host }: URL, what: string) =>
  refused(`${host} ${what}, not the public internet; a person can allow that in the settings`)

/**
 * The addresses that the host of a URL stands for, if all of them may be asked. Who connects to one of these, and not to the
 * name again, cannot be led elsewhere by a name server that changes its mind.
 */
export const targets = Effect.fn("PublicNetwork.targets")(function* (
  url: URL
): Effect.fn.Return<ReadonlyArray<NetAddress.IpAddress>, AddressRefused, Dns.Dns> {
  const allowPrivate = yield* AllowPrivate
  const dns = yield* Dns.Dns
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return yield* refused(`${url.protocol} addresses are not fetched, only http and https`)
  }
  if (url.username !== "" || url.password !== "") {
    return yield* refused(`${url.host}: an address with a password in it is not fetched`)
  }
  const literal = addressOf(url)
  if (Option.isSome(literal)) {
    if (allowPrivate || isPublic(literal.value)) return [literal.value]
    return yield* inside(url, "is an address of a private network or of this machine")
  }
  if (!allowPrivate && isLocalName(url.hostname)) return yield* inside(url, "is this machine")
  const found = yield* dns
    .lookup(url.hostname)
    .pipe(Effect.mapError(({ reason }) => refused(`${url.hostname} could not be found (${reason}); check the address`)))
  // One private address among public ones is how a name leads inside.
  if (allowPrivate || found.every(isPublic)) return found
  return yield* inside(url, "leads to a private network or to this machine")
})
