import { Schema } from "effect"

/** A server cannot listen at its address. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  host: Schema.String,
  port: Schema.Natural,
  /** The error code of the system, such as EADDRINUSE. */
  code: Schema.String
}) {
  override get message() {
    return `${this.host}:${this.port}: ${reasons[this.code] ?? `it cannot be used (${this.code})`}`
  }
}

/** Whether a failure is that of a server that cannot listen. */
export const isListenError = Schema.is(ListenError)

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "this user may not use the port"
}

/** Explains why a server of this machine cannot listen, from the error of the system. */
export const listenError = (
  { host, port }: { readonly host: string; readonly port: number },
  cause: unknown
): ListenError =>
  new ListenError({ host, port, code: cause instanceof Error && "code" in cause ? String(cause.code) : "unknown" })
