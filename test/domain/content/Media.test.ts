import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Part } from "../../../src/domain/content/Content.ts"
import { imageTokens, tileTokens } from "../../../src/domain/content/ImageTokens.ts"
import {
  remoteTokens,
  videoTokensPerSecond,
  sampleText,
  inlineTokens,
  pageTokens,
  audioTokensPerSecond
} from "../../../src/domain/content/Media.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../../src/domain/tokens/Tokens.ts"
import { isUnitTier, runsOf, sizeOf } from "../../support/runs.ts"

type Chunk = string | ReadonlyArray<number> | Uint8Array
const bytes = (...chunks: ReadonlyArray<Chunk>): Buffer =>
  Buffer.concat(chunks.map((chunk) => (typeof chunk === "string" ? Buffer.from(chunk, "latin1") : Buffer.from(chunk))))
const big = (value: number, size: number): ReadonlyArray<number> =>
  Array.from({ length: size }, (_, i) => Math.floor(value / 256 ** (size - 1 - i)) % 256)
const little = (value: number, size: number): ReadonlyArray<number> => big(value, size).toReversed()
const zeros = (length: number): Buffer => Buffer.alloc(length)

const tokens = (mimeType: string, data: Buffer | string): number =>
  Work.runSync(inlineTokens(mimeType, typeof data === "string" ? data : data.toString("base64")))
const ofPart = (part: Part): number => Work.runSync(partTokens(part))

// --- tiny files ---------------------------------------------------------------------------------------------------------------

const png = (width: number, height: number) =>
  bytes([0x89], "PNG\r\n\x1a\n", big(13, 4), "IHDR", big(width, 4), big(height, 4), [8, 6, 0, 0, 0])
const gif = (width: number, height: number) => bytes("GIF89a", little(width, 2), little(height, 2), [0xf7, 0, 0])
const bmp = (width: number, height: number) =>
  bytes("BM", zeros(12), little(40, 4), little(width, 4), little(height < 0 ? 2 ** 32 + height : height, 4))
const oldBmp = (width: number, height: number) =>
  bytes("BM", zeros(12), little(12, 4), little(width, 2), little(height, 2))
const segment = (marker: number, length: number) => bytes([0xff, marker], big(length + 2, 2), zeros(length))
const jpegFrame = (marker: number, width: number, height: number) =>
  bytes([0xff, marker], big(17, 2), [8], big(height, 2), big(width, 2), zeros(10))
/** With a thumbnail in the first segment, as cameras write it, and padding before a marker. */
const jpeg = (width: number, height: number, marker = 0xc0) =>
  bytes(
    [0xff, 0xd8],
    [0xff, 0xe1],
    big(2 + 400, 2),
    bytes("Exif\0\0", [0xff, 0xd8], jpegFrame(0xc0, 160, 120), zeros(400)).subarray(0, 400),
    segment(0xdb, 65),
    [0xff],
    segment(0xc4, 30),
    jpegFrame(marker, width, height),
    [0xff, 0xda]
  )
const riff = (kind: string, ...chunks: ReadonlyArray<Chunk>) => {
  const content = bytes(kind, ...chunks)
  return bytes("RIFF", little(content.length, 4), content)
}
const webpLossy = (width: number, height: number) =>
  riff("WEBP", "VP8 ", little(30, 4), [0x30, 1, 0, 0x9d, 0x01, 0x2a], little(width, 2), little(height, 2))
const webpLossless = (width: number, height: number) =>
  riff("WEBP", "VP8L", little(20, 4), [0x2f], little(width - 1 + (height - 1) * 16_384, 4))
const webpExtended = (width: number, height: number) =>
  riff("WEBP", "VP8X", little(10, 4), [0x10, 0, 0, 0], little(width - 1, 3), little(height - 1, 3))
const box = (name: string, ...content: ReadonlyArray<Chunk>) => {
  const within = bytes(...content)
  return bytes(big(within.length + 8, 4), name, within)
}
const ispe = (width: number, height: number) => box("ispe", big(0, 4), big(width, 4), big(height, 4))
const heic = (brand: string, width: number, height: number) =>
  bytes(
    box("ftyp", brand, big(0, 4), "mif1"),
    box("meta", big(0, 4), box("iprp", box("ipco", ispe(512, 512), ispe(width, height), ispe(320, 240))))
  )

const wave = (rate: number, size: number, real = size) =>
  riff(
    "WAVE",
    "fmt ",
    little(16, 4),
    little(1, 2),
    little(1, 2),
    little(rate, 4),
    little(rate, 4),
    little(1, 2),
    little(8, 2),
    "LIST",
    little(3, 4),
    [1, 2, 3, 0],
    "data",
    little(size, 4),
    zeros(real)
  )
/** A tag full of what looks like frames of another rate. */
const id3 = (length: number) =>
  bytes("ID3", [3, 0, 0, 0, 0, length >> 7, length & 127], Buffer.alloc(length, Buffer.from([0xff, 0xfb, 0x10, 0x00])))
/** MPEG 1, layer III, 128 kbit, 44.1 kHz. */
const mp3Frame = [0xff, 0xfb, 0x90, 0x00]
const mp4 = (seconds: number, scale = 600, version = 0) =>
  bytes(
    box("ftyp", "isom", big(512, 4), "mp41"),
    box("mdat", zeros(100)),
    box(
      "moov",
      box("free", zeros(3)),
      version === 0
        ? box("mvhd", [0, 0, 0, 0], zeros(8), big(scale, 4), big(seconds * scale, 4), zeros(80))
        : box("mvhd", [1, 0, 0, 0], zeros(16), big(scale, 4), big(seconds * scale, 8), zeros(80))
    )
  )
const flac = (seconds: number, rate: number) => {
  const total = seconds * rate
  return bytes(
    "fLaC",
    [0, 0, 0, 34],
    zeros(10),
    [rate >> 12, (rate >> 4) & 255, ((rate & 15) << 4) | 2, 0xf0 | Math.floor(total / 2 ** 32)],
    big(total % 2 ** 32, 4)
  )
}

const page = (number: number) => `${number} 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n`
const tree = (count: number, spaced = " ") =>
  `2 0 obj\n<< /Type${spaced}/Pages /Kids [3 0 R] /Count ${count} >>\nendobj\n`
const pdf = (...content: ReadonlyArray<string>) => bytes("%PDF-1.7\n", ...content, "trailer << /Root 1 0 R >>\n%%EOF\n")
const many = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join("")

// --- the rules ----------------------------------------------------------------------------------------------------------------

const sizes: ReadonlyArray<readonly [width: number, height: number, tiles: number]> = [
  [1, 1, 1],
  [384, 384, 1],
  [385, 384, 4],
  [384, 385, 4],
  [10, 1_000, 4],
  // The example of the documentation: units of 360.
  [960, 540, 6],
  [540, 960, 6],
  [512, 512, 4],
  [768, 768, 4],
  [1_024, 768, 4],
  [1_280, 720, 6],
  [1_920, 1_080, 6],
  // The shorter side / 1.5 is more than 768 here.
  [2_000, 2_000, 9],
  [3_840, 2_160, 15],
  [4_032, 3_024, 24],
  [100_000, 100_000, 256]
]

describe("images", () => {
  it.each(sizes)("%i × %i: %i tiles", (width, height, tiles) => {
    assert.strictEqual(imageTokens(width, height), tiles * tileTokens)
  })

  const headers: ReadonlyArray<readonly [name: string, make: (width: number, height: number) => Buffer]> = [
    ["PNG", png],
    ["GIF", gif],
    ["BMP", bmp],
    ["BMP, rows from the top", (width, height) => bmp(width, -height)],
    ["BMP, old", oldBmp],
    ["JPEG", jpeg],
    ["JPEG, progressive", (width, height) => jpeg(width, height, 0xc2)],
    ["WebP, lossy", webpLossy],
    ["WebP, lossless", webpLossless],
    ["WebP, extended", webpExtended],
    ["HEIC", (width, height) => heic("heic", width, height)],
    ["AVIF", (width, height) => heic("avif", width, height)]
  ]
  it.each(headers)("%s: reads the size from the header, whatever the type says", (_, make) => {
    for (const [width, height] of [
      [960, 540],
      [1_921, 1_080],
      [1_200, 3_001]
    ] as const) {
      for (const mimeType of ["image/png", "IMAGE/JPEG", "application/octet-stream", ""])
        assert.strictEqual(tokens(mimeType, make(width, height)), imageTokens(width, height), mimeType)
    }
  })

  it.each(headers)("%s: truncated anywhere, it counts as one tile or by its header", (_, make) => {
    const whole = make(1_920, 1_080)
    for (let length = 0; length <= whole.length; length += 1) {
      const found = tokens("image/png", whole.subarray(0, length))
      assert.isAtLeast(found, tileTokens)
      assert.isAtMost(found, imageTokens(1_920, 1_080))
    }
  })

  it("no header makes an image cost more than 16 × 16 tiles, and a zero side is ignored", () => {
    assert.strictEqual(tokens("image/png", png(2 ** 31, 2 ** 32 - 1)), 256 * tileTokens)
    assert.strictEqual(tokens("image/png", png(0, 5_000)), tileTokens)
    assert.strictEqual(tokens("image/gif", gif(5_000, 0)), tileTokens)
  })

  it("URL-safe base64, without padding, in lines: the same", () => {
    const whole = bytes(jpeg(1_920, 1_080), Buffer.from(Array.from({ length: 2_000 }, (_, i) => (i * 251) % 256)))
    const plain = whole.toString("base64")
    const forms = [
      plain.replaceAll("=", ""),
      whole.toString("base64url"),
      (plain.match(/.{1,76}/gu) ?? []).join("\n"),
      `${(plain.match(/.{1,64}/gu) ?? []).join("\r\n")}\r\n`,
      `\n ${plain}`
    ]
    for (const form of forms) assert.strictEqual(tokens("image/jpeg", form), imageTokens(1_920, 1_080))
  })

  it("reads the two characters specific to URL-safe base64", () => {
    const forms = Array.from({ length: 300 }, (_, i) => png(1_000 + 7 * i, 3_007 + i))
    for (const form of forms) assert.strictEqual(tokens("", form.toString("base64url")), tokens("", form))
    assert.isTrue(forms.some((form) => form.toString("base64url").slice(20, 34).includes("-")))
    assert.isTrue(forms.some((form) => form.toString("base64url").slice(20, 34).includes("_")))
  })

  it("reads only the header of a large image", () => {
    const data = png(1_920, 1_080).subarray(0, 27).toString("base64") + "A".repeat(20_000_000)
    assert.lengthOf([...inlineTokens("image/png", data)], 1)
    assert.strictEqual(tokens("image/png", data), imageTokens(1_920, 1_080))
  })
})

describe("documents", () => {
  it("takes the page count from the page tree, the largest of any node", () => {
    assert.strictEqual(tokens("application/pdf", pdf(tree(7))), 7 * pageTokens)
    assert.strictEqual(tokens("application/pdf", pdf(tree(7, ""))), 7 * pageTokens)
    assert.strictEqual(tokens("application/pdf", pdf(tree(4), tree(31), tree(12), page(9))), 31 * pageTokens)
    assert.strictEqual(
      tokens("application/pdf", pdf("2 0 obj\n<</Count 5/Kids[3 0 R]/Type/Pages>>\nendobj")),
      5 * pageTokens
    )
  })

  it("ignores counts of other objects", () => {
    const outlines = "5 0 obj\n<< /Type /Outlines /Count 90 >>\nendobj\n"
    assert.strictEqual(tokens("application/pdf", pdf(outlines, tree(2), outlines)), 2 * pageTokens)
  })

  it("takes the page count of a linearised document from its beginning", () => {
    const first = "1 0 obj\n<< /Linearized 1 /L 9000 /H [ 1 2 ] /O 5 /E 40 /N 44 /T 8000 >>\nendobj\n"
    assert.strictEqual(tokens("application/pdf", pdf(first)), 44 * pageTokens)
  })

  it("without a count, counts page objects once each, also across chunks", () => {
    for (const padding of [0, 65_000, 65_500, 65_510, 65_520, 65_530, 131_050])
      assert.strictEqual(
        tokens(
          "application/pdf",
          pdf(
            " ".repeat(padding),
            many(300, (i) => page(i + 3))
          )
        ),
        300 * pageTokens,
        String(padding)
      )
  })

  it("finds a page tree in the middle and at the end, at any offset", () => {
    for (const before of [0, 57_000, 65_505, 65_530, 200_000])
      assert.strictEqual(
        tokens("application/pdf", pdf("x".repeat(before), tree(23), "y".repeat(100_000))),
        23 * pageTokens,
        String(before)
      )
  })

  it("counts drawing streams when objects are compressed", () => {
    const drawing = (i: number) =>
      `${i} 0 obj\n<< /Length 700 /Filter /FlateDecode >>\nstream\n\x01\x02\nendstream\nendobj\n`
    const font = (i: number) => `${i} 0 obj\n<< /Length 9 /Subtype /Type1C >>\nstream\r\n\x01\nendstream\nendobj\n`
    const objects = (i: number) => `${i} 0 obj\n<< /Type /ObjStm /N 9 /Length 9 >>\nstream\n\x01\nendstream\nendobj\n`
    assert.strictEqual(
      tokens("application/pdf", pdf(many(36, drawing), many(9, font), many(4, objects))),
      36 * pageTokens
    )
  })

  it("unreadable: estimates by size, between one and a thousand pages", () => {
    assert.strictEqual(tokens("application/pdf", ""), pageTokens)
    assert.strictEqual(tokens("application/pdf", zeros(500_000)), 10 * pageTokens)
    assert.strictEqual(tokens("application/pdf", pdf(tree(999_999_999))), 1_000 * pageTokens)
  })

  it.skipIf(isUnitTier)("reads only both ends of a very long document, in short steps", () => {
    const data = bytes("%PDF-1.4\n", zeros(15_000_000), tree(77)).toString("base64")
    const work = inlineTokens("application/pdf", data)
    let steps = 0
    let step = work.next()
    for (; step.done !== true; step = work.next()) steps += 1
    assert.isAtLeast(steps, 8_388_608 / 65_536)
    assert.isBelow(steps, 9_000_000 / 65_536)
    assert.strictEqual(step.value, 77 * pageTokens)
  })

  it("hostile documents: quadratic time would exceed the test's limit", () => {
    const times = sizeOf(40_000, 4_000)
    for (const hostile of [
      "/Linearized ".repeat(times),
      "/Type /Pages ".repeat(times),
      "/Type ".repeat(2 * times),
      " obj stream\n".repeat(times),
      `/Type${" ".repeat(10 * times)}`
    ]) {
      assert.isAtLeast(tokens("application/pdf", pdf(hostile)), pageTokens)
    }
  })
})

describe("audio and video", () => {
  const sounds: ReadonlyArray<readonly [name: string, data: Buffer, seconds: number]> = [
    ["WAV", wave(16_000, 160_000), 10],
    ["WAV, torn", wave(16_000, 160_000, 20), 10],
    ["WAV, written as a stream", wave(8_000, 0xffff_ffff, 40_000), 5],
    ["WAV, without a size", wave(8_000, 0, 16_000), 2],
    ["MP3, of one rate", bytes(mp3Frame, zeros(160_000 - 4)), 10],
    ["MP3, behind a tag", bytes(id3(1_000), zeros(7), mp3Frame, zeros(48_000 - 4)), 3],
    ["MP3, of many rates", bytes(mp3Frame, zeros(32), "Xing", [0, 0, 0, 1], big(1_225, 4), zeros(900)), 32],
    ["MP3, of many rates, mono", bytes([0xff, 0xfb, 0x90, 0xc0], zeros(17), "Info", [0, 0, 0, 3], big(3_062, 4)), 80],
    ["MP3, VBRI", bytes(mp3Frame, zeros(32), "VBRI", zeros(10), big(1_225, 4), zeros(90)), 32],
    ["MP3, MPEG 2", bytes([0xff, 0xf3, 0x80, 0x00], zeros(80_000 - 4)), 10],
    ["MP3, MPEG 2, of many rates", bytes([0xff, 0xf3, 0x80, 0x00], zeros(17), "Xing", [0, 0, 0, 1], big(383, 4)), 10],
    ["FLAC", flac(90, 44_100), 90],
    ["FLAC of hours", flac(30_000, 192_000), 30_000],
    ["M4A", mp4(61), 61]
  ]
  it.each(sounds)("%s: 32 tokens a second", (_, data, seconds) => {
    const found = tokens("audio/whatever", data)
    assert.isAtLeast(found, seconds * audioTokensPerSecond)
    assert.isAtMost(found, seconds * audioTokensPerSecond + 2)
  })

  it.each([
    ["MP4", mp4(12)],
    ["MP4, version 1", mp4(12, 90_000, 1)],
    ["MOV without a type of file", mp4(12).subarray(20)]
  ] as const)("%s: 263 tokens a second", (_, data) => {
    assert.strictEqual(tokens("video/mp4", data), 12 * videoTokensPerSecond)
  })

  it("skips a large box", () => {
    const large = bytes(big(1, 4), "mdat", big(116, 8), zeros(100))
    const data = bytes(box("ftyp", "isom"), large, mp4(5).subarray(20))
    assert.strictEqual(tokens("video/mp4", data), 5 * videoTokensPerSecond)
  })

  it("estimates by size when no duration is stated, at least a second", () => {
    assert.strictEqual(tokens("audio/ogg", zeros(160_000)), 10 * audioTokensPerSecond)
    assert.strictEqual(tokens("video/webm", zeros(2_500_000)), 10 * videoTokensPerSecond)
    assert.strictEqual(tokens("video/mp4", mp4(0)), videoTokensPerSecond)
    assert.strictEqual(tokens("video/mp4", mp4(10, 0)), videoTokensPerSecond)
    assert.strictEqual(tokens("audio/wav", ""), audioTokensPerSecond)
    assert.strictEqual(tokens("audio/wav", wave(0, 100)), audioTokensPerSecond)
  })

  it("ignores an unknown duration, and caps durations at nine and a half hours", () => {
    const unknown = box("moov", box("mvhd", [0, 0, 0, 0], zeros(8), big(1, 4), big(2 ** 32 - 1, 4)))
    assert.strictEqual(tokens("video/mp4", bytes(box("ftyp", "isom"), unknown)), videoTokensPerSecond)
    assert.strictEqual(tokens("video/mp4", mp4(4_000_000, 1)), 34_200 * videoTokensPerSecond)
  })

  it.each(sounds)("%s: truncated anywhere, it never fails", (_, data) => {
    for (let length = 0; length < Math.min(data.length, 200); length += 1)
      assert.isAtLeast(tokens("audio/mpeg", data.subarray(0, length)), audioTokensPerSecond)
  })
})

describe("any media", () => {
  const Mime = Schema.Literals(["image/png", "application/pdf", "audio/mp3", "video/mp4", "text/plain", "x", ""])
  const Start = Schema.Literals([
    "",
    "%PDF-1.7 /Type /Pages /Count ",
    "RIFF....WAVEfmt ",
    "RIFF....WEBPVP8 ",
    "\xff\xd8\xff\xe1",
    "\xff\xfb\x90",
    "ID3\x04",
    "....ftypheic....ispe",
    "....moov",
    "\x89PNG\r\n\x1a\n....IHDR",
    "BM",
    "GIF89a",
    "fLaC"
  ])
  it.prop(
    "counts something for any type and any bytes, and never fails",
    [Mime, Start, Schema.String],
    ([mimeType, start, rest]) => {
      for (const data of [Buffer.from(start + rest, "latin1").toString("base64"), start + rest, `${start}\n${rest}`]) {
        const found = ofPart({ inlineData: { mimeType, data } })
        assert.isTrue(Number.isSafeInteger(found) && found >= 0, String(found))
      }
    },
    { arbitrary: { runs: runsOf(1_000), seed: "media" } }
  )

  it("counts bytes of text as that text, also when only a prefix is read", () => {
    const text = "Die Prüfung läuft auf drei Systemen.\n".repeat(20)
    const data = Buffer.from(text).toString("base64")
    for (const mimeType of ["text/plain", "text/markdown; charset=utf-8", "application/json", "image/svg+xml"])
      assert.strictEqual(ofPart({ inlineData: { mimeType, data } }), estimateText(text), mimeType)
    const long = text.repeat(500)
    const found = ofPart({ inlineData: { mimeType: "text/csv", data: Buffer.from(long).toString("base64") } })
    assert.isAbove(found, estimateText(long) * 0.99)
    assert.isBelow(found, estimateText(long) * 1.01)
    assert.isUndefined(sampleText("image/png", data))
  })

  it("counts references by defaults: an image of one tile, ten pages, a minute", () => {
    assert.deepStrictEqual(["image/png", "application/pdf", "audio/mp3", "video/mp4", ""].map(remoteTokens), [
      tileTokens,
      10 * pageTokens,
      60 * audioTokensPerSecond,
      60 * videoTokensPerSecond,
      tileTokens
    ])
    assert.strictEqual(ofPart({ fileData: { mimeType: "video/mp4", fileUri: "gs://a/b" } }), 60 * videoTokensPerSecond)
    assert.strictEqual(ofPart({ fileData: { fileUri: "gs://a/b" } }), tileTokens)
  })
})

describe("media within parts", () => {
  const data = png(1_920, 1_080).toString("base64") + "A".repeat(400_000)
  const image = imageTokens(1_920, 1_080)
  const answered = (...parts: ReadonlyArray<unknown>): Part => ({
    functionResponse: { name: "shoot", response: { output: "done" }, parts }
  })
  const plain = ofPart({ functionResponse: { name: "shoot", response: { output: "done" } } })

  it("count by the rule, whatever other keys the part has, in any order", () => {
    assert.strictEqual(ofPart({ inlineData: { mimeType: "image/png", data } }), image)
    assert.strictEqual(ofPart({ inlineData: { data, mimeType: "image/png" } }), image)
    assert.strictEqual(
      ofPart({ thoughtSignature: "x", inlineData: { displayName: "a", data, mimeType: "image/png" } }),
      image
    )
    assert.strictEqual(ofPart({ inlineData: {} }), tileTokens)
  })

  it("within a response count one by one", () => {
    assert.strictEqual(ofPart(answered({ inlineData: { mimeType: "image/png", data } })) - plain, image)
    assert.strictEqual(
      ofPart(answered({ inlineData: { data, displayName: "a.png", mimeType: "image/png" } })) - plain,
      image
    )
    assert.strictEqual(
      ofPart(
        answered(
          { inlineData: { mimeType: "application/pdf", data: pdf(tree(3)).toString("base64") } },
          { fileData: { mimeType: "audio/mp3", fileUri: "gs://a" } },
          { text: "and a word" }
        )
      ) - plain,
      3 * pageTokens + 60 * audioTokensPerSecond + estimateText('done\n{"text":"and a word"}') - estimateText("done")
    )
  })

  it("count as JSON when the list is malformed", () => {
    const odd: ReadonlyArray<unknown> = [
      null,
      7,
      "text",
      { a: 1 },
      [null, "x"],
      [{ inlineData: 5 }],
      [{ inlineData: { data: 1 } }]
    ]
    for (const parts of odd) {
      const found = ofPart({ functionResponse: { name: "shoot", response: { output: "done" }, parts } })
      assert.isAbove(found, plain, JSON.stringify(parts))
      assert.isBelow(found, plain + 40, JSON.stringify(parts))
    }
  })
})
