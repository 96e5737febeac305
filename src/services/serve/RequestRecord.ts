import { Context } from "effect"

/** What the log says of a request. Mutable: whoever handles the request adds what it learns. No words of users are in it. */
export interface RequestRecord {
  /** The tenant of its token; null before that is known. */
  tenant: string | null
  /** The path of its endpoint, with names in the place of ids; null where no endpoint of the API answers. */
  route: string | null
}

/** The record of the request that is handled. */
export const RequestRecord = Context.Reference<RequestRecord>("palimpsest/services/serve/RequestRecord", {
  defaultValue: () => ({ tenant: null, route: null })
})
