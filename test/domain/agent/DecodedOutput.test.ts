import { assert, it } from "@effect/vitest"
import { endText, outputText } from "../../../src/domain/agent/DecodedOutput.ts"
import { encode } from "../../../src/domain/text/Bytes.ts"

const bytes = (head: string | Uint8Array) => (typeof head === "string" ? encode(head) : head)
const shown = (head: string | Uint8Array, dropped = 0, tail: string | Uint8Array = "") =>
  outputText({ head: bytes(head), dropped, tail: bytes(tail) })
const euro = encode("€")
const joined = (...all: ReadonlyArray<string | Uint8Array>) => new Uint8Array(all.flatMap((one) => [...bytes(one)]))
/** Ten characters, of which so many are in no text. */
const strange = (count: number) => "\u0001".repeat(count) + "x".repeat(10 - count)

const words = "x".repeat(60)

it.each<readonly [rule: string, shown: string, expected: string]>([
  ["is its text", shown("one\ntwo €\n"), "one\ntwo €\n"],
  ["is empty", shown(""), ""],
  [
    "has no colours, titles and controls",
    shown("\u001b[1;31ma\u001b[0m\u001b]0;t\u0007b\u001b]0;u\u001b\\c\u001b7d\u0008\u000c\u007fe\tf" + words),
    "abcde\tf" + words
  ],
  ["ends its lines with one character", shown("a\r\nb\u0000c" + words), "a\nb\nc" + words],
  ["is text with one strange character in ten", shown(strange(1)), "x".repeat(9)],
  ["is binary with two", shown(strange(2)), "(binary output, 10 bytes)"],
  ["is binary at its end", shown("x".repeat(10), 1_000, strange(2)), "(binary output, 1,020 bytes)"],
  [
    "is judged by its beginning and its end",
    shown(
      "x".repeat(64 * 1024) + strange(10).repeat(9_000),
      0,
      strange(10).repeat(9_000) + "x".repeat(64 * 1024)
    ).slice(0, 5),
    "xxxxx"
  ],
  ["joins a character across its parts", shown(euro.slice(0, 1), 0, euro.slice(1)), "€"],
  [
    "has whole characters around what is left out",
    shown(joined("ab", euro.slice(0, 2)), 1_234, joined(euro.slice(1), "cd")),
    "ab\n[… 1,234 of 1,242 bytes are left out here: more is not kept …]\ncd"
  ],
  [
    "keeps whole characters around what is left out",
    shown(joined("a", euro), 1, joined("é", "b")),
    "a€\n[… 1 of 8 bytes are left out here: more is not kept …]\néb"
  ],
  ...["é", "€", "ࠀ", "😀"].map((letter): [string, string, string] => [
    `leaves out half of ${letter} at its end`,
    shown(joined("a", encode(letter).slice(0, -1)), 1, "b").split("\n")[0] ?? "",
    "a"
  ]),
  ["drops three bytes of a character at most", endText(joined(new Uint8Array(4).fill(0x80), words)), `\ufffd${words}`],
  ["has an end", endText(joined(euro.slice(1), "cd")), "cd"],
  ["has an end that is binary", endText(bytes(strange(2))), "(binary output)"]
])("the output of a program %s", (_, found, expected) => assert.strictEqual(found, expected))
