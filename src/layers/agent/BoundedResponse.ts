/**
 * Limits the size of server responses. A body is read through a limit, so that its reader may hold all of it in memory; the socket closes when the
 * limit is exceeded.
 */

type Bytes = Uint8Array<ArrayBuffer>

/** Fails with the error of `exceeded` once more than `most` bytes have come, counted after decompression. */
const counted = (maxBytes: number, exceeded: () => Error): TransformStream<Bytes, Bytes> => {
  let size = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      size += chunk.length
      if (size > maxBytes) controller.error(exceeded())
      else controller.enqueue(chunk)
    }
  })
}

/** A response that fails if its body is larger than `most` bytes. `signal` ends the body and its socket, whether it is being read or not. */
export const bounded = (
  response: Response,
  maxBytes: number,
  exceeded: () => Error,
  signal?: AbortSignal
): Response => {
  const { body, headers, status, statusText } = response
  return body === null
    ? response
    : new Response(body.pipeThrough(counted(maxBytes, exceeded), signal === undefined ? {} : { signal }), {
        headers,
        status,
        statusText
      })
}
