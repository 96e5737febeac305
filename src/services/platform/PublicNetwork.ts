/** Restricts the requests of a model to the public internet: not this machine, its network or cloud metadata. */

import { Context, Effect, Option, Schema } from "effect"
import { Dns, IpNetwork, NetAddress } from "effect/net"

/**
 * Special-purpose IPv4 ranges (IANA registries, RFC 6890): this host, private networks, provider networks (RFC 6598), loopback,
 * link-local with the metadata services of clouds, protocols, documentation, benchmarks, multicast, and the rest; and the address
 * at which Azure machines ask for their own secrets.
 */
const special4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
  168.63.129.16/32`
  .split(/\s+/)
  .map(IpNetwork.fromStringUnsafe)

/** The public IPv6 range. Loopback, link-local, unique-local, multicast and IPv4-mapped addresses lie outside. */
const global6 = IpNetwork.fromStringUnsafe("2000::/3")

/** Exceptions within that range: protocols and tunnels that lead to any IPv4 address, and documentation. */
const special6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(IpNetwork.fromStringUnsafe)

/** IPv4 addresses as networks without IPv4 reach them (RFC 6052): the last four bytes are the IPv4 address. */
const translated = IpNetwork.fromStringUnsafe("64:ff9b::/96")

const translatedAddress = (address: NetAddress.Ipv6Address): NetAddress.Ipv4Address => {
  const octets = NetAddress.ipv6ToOctets(address)
  return NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(12)))
}

/** Returns whether an address belongs to the public internet. */
export const isPublic = (address: NetAddress.IpAddress): boolean => {
  if (NetAddress.isIpv4Address(address)) return !special4.some((network) => IpNetwork.contains(network, address))
  if (IpNetwork.contains(translated, address)) return isPublic(translatedAddress(address))
  return IpNetwork.contains(global6, address) && !special6.some((network) => IpNetwork.contains(network, address))
}

/** Returns the IP address that the host of a URL denotes, in any notation; none when the host is a name. */
export const addressOf = ({ hostname }: URL): Option.Option<NetAddress.IpAddress> =>
  // URL parsing has already normalized decimal, octal, hexadecimal and short forms of IPv4.
  Option.getSuccess(NetAddress.ipFromString(hostname.startsWith("[") ? hostname.slice(1, -1) : hostname))

/** Returns whether a name means this machine, whatever a name server says (RFC 6761). */
export const isLocalName = (name: string): boolean => /^(?:.*\.)?localhost\.?$/i.test(name)

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
