import { Schema } from "effect"

/** A server cannot listen at its address. The message says why, and what to do. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", { message: Schema.String }) {}

/** Whether a failure is that of a server that cannot listen. */
export const isListenError = Schema.is(ListenError)

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use; choose another with --port",
  EACCES: "this user may not use the port; choose one above 1023 with --port"
}

/** Explains why a server of this machine cannot listen, from the error of the system. */
export const listenError = (
  { host, port }: { readonly host: string; readonly port: number },
  cause: unknown
): ListenError => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  return new ListenError({
    message: `${host}:${port}: ${reasons[code] ?? `it cannot be used (${code}); choose another with --host`}`
  })
}
