/** Which requests a server answers that only programs of this machine may use. */

import { isEqualSecret } from "../text/SecretComparison.ts"

/** The headers that decide. */
interface RequestOrigin {
  readonly host: string | undefined
  /** Present in requests of a browser. */
  readonly origin: string | undefined
  readonly authorization: string | undefined
}

/** Why a request is refused. */
interface Refusal {
  readonly status: 401 | 403
  readonly message: string
}

const loopbackName = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

const isLoopbackOrigin = (origin: string): boolean => {
  const [, place] = /^https?:\/\/([^/]+)$/i.exec(origin) ?? []
  return place !== undefined && loopbackName.test(place)
}

/**
 * Returns why a request is refused; undefined when it is answered. A page of another site can make a browser send requests to
 * this machine, also under a name of that site which it resolves to this machine (DNS rebinding): then `Host` or `Origin` names
 * the site.
 */
export const refusalOf = (
  { authorization = "", host = "", origin }: RequestOrigin,
  token: string
): Refusal | undefined => {
  if (!loopbackName.test(host))
    return { status: 403, message: "this server answers under the names of this machine only" }
  if (origin !== undefined && !isLoopbackOrigin(origin)) {
    return { status: 403, message: "this server does not answer pages of other sites" }
  }
  const sentToken = /^Bearer (.+)$/i.exec(authorization)?.[1] ?? ""
  return isEqualSecret(token, sentToken)
    ? undefined
    : { status: 401, message: "the header Authorization: Bearer TOKEN is missing or wrong" }
}
