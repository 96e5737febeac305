import { Option } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Which addresses belong to the public internet, and which to this machine, its network or nobody. */

/**
 * Everything of the registries of special addresses (IANA, RFC 6890) that is not the public internet. IPv4: this host,
 * private networks, those of providers (RFC 6598), loopback, link-local with the metadata services of clouds, protocols,
 * documentation, measurements, groups, the rest; and where Azure's machines ask for their own secrets.
 */
const special4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "168.63.129.16/32"
].map(IpNetwork.fromStringUnsafe)

/** All that is public in IPv6; loopback, link-local, unique-local, groups and IPv4 within IPv6 lie outside. */
const global6 = IpNetwork.fromStringUnsafe("2000::/3")

/** Of those: protocols and tunnels that lead to any IPv4 address, and documentation. */
const special6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(IpNetwork.fromStringUnsafe)

/** Where networks without IPv4 reach it (RFC 6052): the last four bytes are the address that is meant. */
const translated = IpNetwork.fromStringUnsafe("64:ff9b::/96")

const translatedAddress = (address: NetAddress.Ipv6Address): NetAddress.Ipv4Address => {
  const octets = NetAddress.ipv6ToOctets(address)
  return NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(12)))
}

/** Whether an address is one of the public internet. */
export const isPublic = (address: NetAddress.IpAddress): boolean => {
  if (NetAddress.isIpv4Address(address)) return !special4.some((network) => IpNetwork.contains(network, address))
  if (IpNetwork.contains(translated, address)) return isPublic(translatedAddress(address))
  return IpNetwork.contains(global6, address) && !special6.some((network) => IpNetwork.contains(network, address))
}

/** The address that the host of a URL is, in whatever way it is written; none: it is a name. */
export const addressOf = ({ hostname }: URL): Option.Option<NetAddress.IpAddress> =>
  // Parsing a URL already made decimal, octal, hexadecimal and short forms of IPv4 the usual one.
  Option.getSuccess(NetAddress.ipFromString(hostname.startsWith("[") ? hostname.slice(1, -1) : hostname))

/** Names that mean this machine whatever a name server says (RFC 6761). */
export const isLocalName = (name: string): boolean => /^(?:.*\.)?localhost\.?$/i.test(name)
