import { assert, describe, it } from "@effect/vitest"
import type { Secret } from "../../../src/domain/text/Redaction.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { SessionSecrets } from "../../../src/domain/transcripts/RecordSecrets.ts"

const base64 = (text: string): string => Buffer.from(text).toString("base64")

describe("a known value", () => {
  const values = ["correct-horse-battery", "correct-horse-batteryy", "correct-horse-batteryyy", "Größe-von-語-und-mehr"]

  it.each(values)("is replaced in base64 after and before any number of bytes: %s", (value) => {
    for (const before of ["", "x", "xy", "xyz"]) {
      for (const after of ["", "a", "ab", "abc"]) {
        for (const neighbour of ["\0", "~", "\x7f"]) {
          const secrets = new SessionSecrets({ secrets: true, personal: false, known: [{ kind: "password", value }] })
          secrets.settle()
          const encoded = base64(`${before.replaceAll(/./g, neighbour)}${value}${after.replaceAll(/./g, neighbour)}`)
          const { replaced, text } = runSync(secrets.replace(JSON.stringify({ text: `see ${encoded}.` })))
          assert.strictEqual(replaced, 1, `${before}|${after}`)
          assert.include(text, "[redacted: password #1]")
          // Of the value, no more is left than the bits that share a character with a neighbour.
          assert.isAtMost(
            text.replace("[redacted: password #1]", "").length,
            encoded.length - base64(value).length + 20
          )
          assert.isFalse(secrets.isRevealedBy(text))
        }
      }
    }
  })
})

/** Collects the records, settles, and replaces each. */
const replacedIn = (records: ReadonlyArray<unknown>, known: ReadonlyArray<Secret> = []) => {
  const secrets = new SessionSecrets({ secrets: true, personal: false, known })
  const lines = records.map((record) => JSON.stringify(record))
  for (const line of lines) runSync(secrets.collect(line))
  secrets.settle()
  return lines.map((line) => runSync(secrets.replace(line)))
}

describe("known values that overlap", () => {
  const [left, middle, right] = ["tide-harbour-", "swell-table-", "pilot-ebb-9"]
  const short = { kind: "password", value: `${left}${middle}` } as const
  const long = { kind: "API key", value: `${middle}${right}-and-more` } as const
  const both = `${left}${middle}${right}-and-more`

  it.each([
    ["the longer one second", both, "API key", [short, long]],
    ["in the other order", both, "API key", [long, short]],
    ["one within the other", `${short.value}x`, "token", [{ kind: "token", value: `${short.value}x` } as const, short]],
    [
      "the longer one first",
      `xx${both}`,
      "token",
      [long, { kind: "token", value: `xx${short.value}` + right } as const]
    ]
  ] as const)("are replaced together, and the longest names them: %s", (_, text, kind, known) => {
    for (const around of ["", " ", "see "]) {
      const [replaced] = replacedIn([{ text: `${around}${text}${around}` }], known)
      assert.deepStrictEqual(JSON.parse(replaced?.text ?? ""), { text: `${around}[redacted: ${kind} #1]${around}` })
      assert.strictEqual(replaced?.replaced, 1)
    }
  })
})

describe("a secret of one record", () => {
  const password = "x9Kq2vT7mWz4Lp8R"
  const filler = "The tide table of the harbour lists the hours of high water. ".repeat(5)

  it("is replaced in texts that were searched before it was known, short and long", () => {
    const texts = [`${filler}${password}.`, `${password} alone`, `${filler}${password}.`]
    const records = [...texts.map((text) => ({ text })), { db: { password } }]
    const all = replacedIn(records)
    for (const [at, { text }] of all.entries()) {
      assert.notInclude(text, password)
      assert.include(text, "#1]", String(at))
    }
    assert.deepStrictEqual(
      all.map(({ replaced }) => replaced),
      [1, 1, 1, 1]
    )
  })

  it("is replaced alone in JSON within JSON, with its neighbours and escapes as they are", () => {
    const token = `${"gh"}p_${"a1".repeat(18)}`
    const around = (value: string, pin: number) => ({
      args: JSON.stringify({
        first: 'a\n"b"',
        token: value,
        text: `say "${value}"\n`,
        pin: 7,
        password: pin,
        last: "c"
      })
    })
    const [replaced] = replacedIn([around(token, 12_345_678)])
    assert.deepStrictEqual(JSON.parse(replaced?.text ?? ""), around("[redacted: GitHub token #1]", 0))
  })

  it.each([
    ["is found in what only looks like JSON", '[see tide-harbour-9 "x"]', '[see [redacted: password #1] "x"]'],
    ["may be all of the JSON", '{"pin":"ebb"}', "[redacted: password #1]"],
    ["stays where marks of JSON would go with it", '["left-word","right-word"]', '["left-word","right-word"]']
  ])("%s", (_, args, expected) => {
    const known = ["tide-harbour-9", '{"pin":"ebb"}', 'left-word","right-word']
    const [replaced] = replacedIn(
      [{ args }],
      known.map((value) => ({ kind: "password", value }))
    )
    assert.deepStrictEqual(JSON.parse(replaced?.text ?? ""), { args: expected })
  })

  it.each([400, 401, 500])("is replaced to its end when it has %i characters", (length) => {
    const value = "q7Zp".repeat(length).slice(0, length)
    const [replaced] = replacedIn([{ password: `${value} and words` }])
    assert.notInclude(replaced?.text, value.slice(-8))
    assert.include(replaced?.text, " and words")
  })

  it("has a number of its own, the same everywhere, by kind and in order", () => {
    const [one, two] = [`${"gh"}p_${"a1".repeat(18)}`, `${"gh"}p_${"b2".repeat(18)}`]
    const [first, second] = replacedIn([
      { a: one, b: two },
      { b: two, c: { password: 12345678, n: 12345678 } }
    ])
    assert.deepStrictEqual(JSON.parse(first?.text ?? ""), {
      a: "[redacted: GitHub token #1]",
      b: "[redacted: GitHub token #2]"
    })
    assert.deepInclude(JSON.parse(second?.text ?? ""), {
      b: "[redacted: GitHub token #2]",
      c: { password: 0, n: 12345678 }
    })
    assert.deepStrictEqual([first?.replaced, second?.replaced], [2, 2])
  })
})
