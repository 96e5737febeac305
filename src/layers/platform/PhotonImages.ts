/**
 * Reduces images with photon, an image library as WebAssembly. Each image has a thread of its own, in which the library is
 * loaded: nothing else waits, its memory is freed afterwards, and an image that crashes the library affects nothing else.
 */

import { Effect, Layer } from "effect"
import { createRequire } from "node:module"
import { Worker } from "node:worker_threads"
import { withExif } from "../../domain/content/Exif.ts"
import { type ImageData, ImageReducer } from "../../services/compression/strategies/ImageReducer.ts"

/** Time for one image. */
const maxMillis = 15_000
/** Pixels of the largest image that is decoded; each takes about 12 bytes of memory. */
const maxPixels = 60_000_000

/** The program of the thread. It is a text and not a file, because the built program is one bundle. */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
const { PhotonImage, resize } = require(workerData.file)
const { bytes, height, isJpeg, maxPixels, width } = workerData
const image = PhotonImage.new_from_byteslice(bytes)
if (image.get_width() * image.get_height() > maxPixels) throw new Error("too large")
const reduced = resize(image, width, height, 5)
const png = isJpeg ? undefined : reduced.get_bytes()
const isPng = png !== undefined && png.length <= bytes.length
parentPort.postMessage({ bytes: isPng ? png : reduced.get_bytes_jpeg(85), mimeType: isPng ? "image/png" : "image/jpeg" })
`

interface Reply {
  readonly bytes: Uint8Array
  readonly mimeType: string
}

/** The library's file, in the package that is installed beside this program or library. */
const findLibrary = Effect.tapError(
  Effect.try(() => createRequire(import.meta.url).resolve("@silvia-odwyer/photon-node")),
  () =>
    Effect.logWarning(
      "large images cannot be reduced and are replaced with notes; install the package @silvia-odwyer/photon-node"
    )
)

const reduced = Effect.fn("PhotonImages.reduce")(function* (
  file: string,
  { data, mimeType }: ImageData,
  width: number,
  height: number
) {
  const bytes = new Uint8Array(Buffer.from(data, "base64"))
  const isJpeg = mimeType === "image/jpeg"
  const made = yield* Effect.callback<Reply, unknown>((resume) => {
    const workerData = { file, bytes, width, height, isJpeg, maxPixels }
    const worker = new Worker(program, { eval: true, workerData, env: {}, stderr: true })
    worker.once("message", (reply: Reply) => resume(Effect.succeed(reply)))
    worker.once("error", (cause) => resume(Effect.fail(cause)))
    worker.once("exit", () => resume(Effect.fail("the thread ended")))
    return Effect.promise(() => worker.terminate())
  })
  return { mimeType: made.mimeType, data: Buffer.from(withExif(made.bytes, bytes)).toString("base64") }
})

/** Provides the reducer. Without the package, and for a format that it does not read, no image is reduced. */
export const layer: Layer.Layer<never> = Layer.effect(
  ImageReducer,
  Effect.map(Effect.cached(findLibrary), (library) => ({
    reduce: (image, width, height) =>
      Effect.flatMap(library, (file) => reduced(file, image, width, height)).pipe(
        Effect.timeout(maxMillis),
        Effect.catchCause((cause) => Effect.as(Effect.logDebug("an image could not be reduced", cause), undefined))
      )
  }))
)
