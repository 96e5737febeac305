import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"

/** What `npm ci` installs is what was locked: every package by its digest, from whatever registry it comes. */

interface Locked {
  readonly link?: boolean
  readonly resolved?: string
  readonly integrity?: string
  readonly optional?: boolean
  readonly os?: Platforms
  readonly cpu?: Platforms
  readonly libc?: Platforms
}
type Platforms = string | ReadonlyArray<string>

const { packages }: { packages: Readonly<Record<string, Locked>> } = JSON.parse(
  readFileSync(path.join(path.dirname(import.meta.dirname), "package-lock.json"), "utf8")
)
const entries = Object.entries(packages)

/** This package itself, and those of its workspace: they come with the repository. */
const own = ["", "dev/node"]

const oxc = (
  "android-arm-eabi android-arm64 darwin-arm64 darwin-x64 freebsd-x64 linux-arm-gnueabihf linux-arm-musleabihf " +
  "linux-arm64-musl linux-ppc64-gnu linux-riscv64-gnu linux-riscv64-musl linux-s390x-gnu linux-x64-musl " +
  "openharmony-arm64 win32-arm64-msvc win32-ia32-msvc win32-x64-msvc"
).split(" ")
/**
 * Binaries for platforms other than those that this was locked on: the registry that made the lock could not give them, so npm
 * takes them there as they come. Each is a tool for development; none is part of the package.
 */
const withoutIntegrity: Readonly<Record<string, ReadonlyArray<string>>> = {
  "node_modules/@effect/tsgo-": ["darwin-arm64", "darwin-x64", "linux-arm", "linux-arm64", "win32-arm64", "win32-x64"],
  "node_modules/@oxc-parser/binding-": oxc,
  "node_modules/@oxfmt/binding-": oxc,
  "node_modules/@oxlint/binding-": oxc,
  "node_modules/rolldown/node_modules/@rolldown/binding-": [
    ...oxc.filter((platform) => !/musleabihf|riscv64|ia32/.test(platform)),
    "wasm32-wasi"
  ]
}
const listed = Object.entries(withoutIntegrity).flatMap(([name, platforms]) =>
  platforms.map((platform) => name + platform)
)

/** Whether npm installs an entry on a platform; a list may say what it is not for. */
const isFor = ({ cpu, libc, os }: Locked, platform: { os: string; cpu: string; libc: string }): boolean => {
  const takes = (given: Platforms | undefined, one: string) => {
    const list = [given ?? one].flat()
    return list.includes(one) || (list.every((each) => each.startsWith("!")) && !list.includes(`!${one}`))
  }
  return takes(os, platform.os) && takes(cpu, platform.cpu) && takes(libc, platform.libc)
}

describe("package-lock.json", () => {
  it("has the digest of every package except the binaries in the list", () => {
    const bare = entries.filter(([name, { integrity, link }]) => {
      const isWhole = /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? "")
      return !isWhole && link !== true && !own.includes(name)
    })
    assert.deepStrictEqual(bare.map(([name]) => name).sort(), [...listed].sort())
    for (const [name, { cpu, optional }] of bare) {
      assert.isTrue(optional === true && cpu !== undefined, `${name} is for one platform`)
    }
  })

  it("has the digest of all that npm ci installs on Linux x64 with glibc", () => {
    const installed = entries.filter(
      ([name, entry]) =>
        !own.includes(name) && entry.link !== true && isFor(entry, { os: "linux", cpu: "x64", libc: "glibc" })
    )
    assert.isAbove(installed.length, 150)
    assert.deepStrictEqual(
      installed.filter(([, { integrity }]) => integrity === undefined).map(([name]) => name),
      []
    )
  })

  it("has no download addresses, only the path of the workspace package", () => {
    const addressed = entries.flatMap(([name, { resolved }]) => (resolved === undefined ? [] : [[name, resolved]]))
    assert.deepStrictEqual(addressed, [["node_modules/palimpsest-node", "dev/node"]])
  })
})
