import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { addressOf, isLocalName, isPublic } from "../../../src/services/platform/PublicNetwork.ts"
import { corpus } from "../../support/corpus.ts"

/** Whether a URL's host is an address, and then whether that is public. */
const verdict = (host: string): "public" | "private" | "name" =>
  Option.match(addressOf(new URL(`http://${host}/`)), {
    onNone: () => "name",
    onSome: (address) => (isPublic(address) ? "public" : "private")
  })

describe("network addresses", () => {
  const cases =
    corpus<readonly [verdict: "public" | "private" | "name", what: string, hosts: ReadonlyArray<string>]>(
      "network-addresses"
    )
  for (const [expected, what, hosts] of cases) {
    for (const host of hosts) it(`${what} is ${expected}: ${host}`, () => assert.strictEqual(verdict(host), expected))
  }

  it("an address of IPv4 within one of IPv6 is as public as it is alone", () => {
    for (const address of ["8.8.8.8", "10.0.0.1", "9.10.0.1", "127.0.0.1", "1.127.0.1", "192.168.0.9", "1.192.168.0"]) {
      assert.strictEqual(verdict(`[64:ff9b::${address}]`), verdict(address), address)
    }
  })

  it("localhost and its subdomains are this machine, by name", () => {
    for (const name of ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost."])
      assert.isTrue(isLocalName(name), name)
    for (const name of ["localhost.com", "mylocalhost", "example.com"]) assert.isFalse(isLocalName(name), name)
  })
})
