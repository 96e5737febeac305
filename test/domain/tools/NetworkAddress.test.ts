import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { addressOf, isLocalName, isPublic } from "../../../src/domain/tools/NetworkAddress.ts"

/** Whether a URL's host is an address, and then whether that is public. */
const verdict = (host: string): "public" | "private" | "name" =>
  Option.match(addressOf(new URL(`http://${host}/`)), {
    onNone: () => "name",
    onSome: (address) => (isPublic(address) ? "public" : "private")
  })

describe("network addresses", () => {
  const cases: ReadonlyArray<
    readonly [verdict: "public" | "private" | "name", what: string, hosts: ReadonlyArray<string>]
  > = [
    [
      "public",
      "an address of the internet",
      [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "192.167.0.1",
        "169.253.0.1",
        "223.255.255.255"
      ]
    ],
    ["public", "the same in other ways to write it", ["134744072", "0x08080808", "010.8.8.8", "8.8.2056", "8.8.8.8."]],
    ["public", "one of IPv6", ["[2606:4700:4700::1111]", "[2a00:1450:4001:81b::200e]", "[64:ff9b::808:808]"]],
    ["private", "loopback", ["127.0.0.1", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]"]],
    [
      "private",
      "loopback as a decimal, octal or hexadecimal number",
      [
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7F.1",
        "127.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1"
      ]
    ],
    ["private", "no address at all", ["0.0.0.0", "0", "0.1.2.3", "[::]"]],
    ["private", "private networks", ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "0xc0a80101"]],
    ["private", "providers' networks", ["100.64.0.1", "100.127.255.255"]],
    ["private", "link-local", ["169.254.0.1", "[fe80::1]", "[febf::1]"]],
    [
      "private",
      "metadata of clouds",
      ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "[fd00:ec2::254]", "2852039166"]
    ],
    ["private", "unique-local", ["[fc00::1]", "[fdff:ffff::1]"]],
    [
      "private",
      "IPv4 within IPv6",
      [
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]"
      ]
    ],
    [
      "private",
      "groups, broadcast, documentation, measurement",
      [
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "[ff02::1]",
        "[2001:db8::1]"
      ]
    ],
    ["name", "names", ["localhost", "example.com", "1e100.net", "0x7f.example", "127.0.0.1.nip.io"]]
  ]
  for (const [expected, what, hosts] of cases) {
    for (const host of hosts) it(`${what} is ${expected}: ${host}`, () => assert.strictEqual(verdict(host), expected))
  }

  it("localhost and its subdomains are this machine, by name", () => {
    for (const name of ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost."])
      assert.isTrue(isLocalName(name), name)
    for (const name of ["localhost.com", "mylocalhost", "example.com"]) assert.isFalse(isLocalName(name), name)
  })
})
