import { crc32, deflateSync } from "node:zlib"
import { bytesOf } from "../../../src/domain/content/Base64Bytes.ts"
import { imageSize } from "../../../src/domain/content/ImageTokens.ts"
import * as PhotonImages from "../../../src/layers/platform/PhotonImages.ts"
import { ImageReducer } from "../../../src/services/compression/strategies/ImageReducer.ts"
import { assert, layer } from "../../support/vitest.ts"

const chunk = (name: string, data: Uint8Array) => {
  const body = Buffer.concat([Buffer.from(name), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length)
  ends.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
}

/** An image of one grey per row. */
const png = (width: number, height: number): string => {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0])
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  const rows = Buffer.alloc((width + 1) * height)
  for (let row = 0; row < height; row += 1) rows.fill(row, row * (width + 1) + 1, (row + 1) * (width + 1))
  const signature = Buffer.from([0x89, ...Buffer.from("PNG\r\n"), 0x1a, 0x0a])
  const parts = [signature, chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]
  return Buffer.concat(parts).toString("base64")
}

layer(PhotonImages.layer)("PhotonImages", (it) => {
  it.effect("reduces an image, unless it is unreadable or too large", function* () {
    const { reduce } = yield* ImageReducer
    const image = { mimeType: "image/png", data: png(1_600, 400) }
    const reduced = yield* reduce(image, 1_200, 300)
    assert.deepStrictEqual(imageSize(bytesOf(reduced?.data ?? "")), { width: 1_200, height: 300 })
    assert.include(["image/png", "image/jpeg"], reduced?.mimeType)
    // Reduced from a PNG without pixels worth keeping, a JPEG keeps its format.
    const jpeg = yield* reduce({ mimeType: "image/jpeg", data: image.data }, 600, 150)
    assert.strictEqual(jpeg?.mimeType, "image/jpeg")
    assert.deepStrictEqual(imageSize(bytesOf(jpeg?.data ?? "")), { width: 600, height: 150 })
    const torn = { ...image, data: image.data.slice(0, 100) }
    assert.isUndefined(yield* reduce(torn, 1_200, 300))
    assert.isUndefined(yield* reduce({ mimeType: "image/heic", data: "AAAA" }, 1_200, 300))
  })
})
