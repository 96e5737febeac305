/** Reads the Exif segment of a JPEG file, which states, among other things, how the image is rotated. */

const isExif = (bytes: Uint8Array, place: number): boolean =>
  [0x45, 0x78, 0x69, 0x66, 0, 0].every((byte, index) => bytes[place + index] === byte)

/** Returns the segment with the description; undefined when there is none. */
const exifSegment = (jpeg: Uint8Array): Uint8Array | undefined => {
  let place = 2
  while (jpeg[place] === 0xff) {
    const marker = jpeg[place + 1] ?? 0
    const length = ((jpeg[place + 2] ?? 0) << 8) | (jpeg[place + 3] ?? 0)
    const end = place + 2 + length
    // The image data follows.
    if (marker === 0xda || length < 2 || end > jpeg.length) return undefined
    if (marker === 0xe1 && isExif(jpeg, place + 4)) return jpeg.subarray(place, end)
    place = end
  }
  return undefined
}

const isJpeg = (bytes: Uint8Array): boolean => bytes[0] === 0xff && bytes[1] === 0xd8

/** Returns a JPEG file with the Exif segment of the file it was made from, so that it is rotated the same way. */
export const withExif = (jpeg: Uint8Array, from: Uint8Array): Uint8Array => {
  const exif = isJpeg(jpeg) && isJpeg(from) ? exifSegment(from) : undefined
  if (exif === undefined) return jpeg
  const whole = new Uint8Array(jpeg.length + exif.length)
  whole.set(jpeg.subarray(0, 2))
  whole.set(exif, 2)
  whole.set(jpeg.subarray(2), 2 + exif.length)
  return whole
}
