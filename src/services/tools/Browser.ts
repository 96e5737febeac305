/** The contract of a browser: its pages, what they show, and where they may connect. */

import { Context, Effect, Layer, Schema, type Scope } from "effect"

/** A failed browser operation. The message gives the reason in one sentence. */
export class BrowserFailure extends Schema.TaggedError<BrowserFailure>()("BrowserFailure", {
  message: Schema.String
}) {}

/** The visible content of a page, as text. */
export interface Snapshot {
  readonly url: string
  readonly title: string
  /** The page as an outline of roles and names. Elements that can be clicked or typed into have a reference: `[ref=e12]`. */
  readonly outline: string
}

/** One page of a browser that is not shared. */
export interface BrowserPage {
  /** Opens an address and waits until the page has loaded. */
  readonly open: (url: string) => Effect.Effect<Snapshot, BrowserFailure>
  /** Returns the current content of the page. */
  readonly snapshot: Effect.Effect<Snapshot, BrowserFailure>
  /** Clicks the element with this reference in the last snapshot. */
  readonly click: (ref: string) => Effect.Effect<Snapshot, BrowserFailure>
  /** Replaces the content of an element by a text, and presses Enter if `submit`. */
  readonly type: (ref: string, text: string, submit: boolean) => Effect.Effect<Snapshot, BrowserFailure>
  /** Goes back to the previous page. */
  readonly back: Effect.Effect<Snapshot, BrowserFailure>
  /** Takes an image of the visible part. */
  readonly screenshot: Effect.Effect<{ readonly mimeType: string; readonly bytes: Uint8Array }, BrowserFailure>
}

/**
 * Returns the IP addresses at which the host of an address may be reached. A failure gives the reason for a refusal. It is called for
 * every connection of a page, whatever caused it; the browser connects to no other address.
 */
export type Targets = (url: URL) => Effect.Effect<ReadonlyArray<string>, BrowserFailure>

/** A browser that is installed on this machine. It is never downloaded. */
export class Browser extends Context.Service<
  Browser,
  {
    /** Starts a browser without stored state. It ends with the scope, including all its processes and files. */
    readonly open: (targets: Targets) => Effect.Effect<BrowserPage, BrowserFailure, Scope.Scope>
  }
>()("palimpsest/services/tools/Browser") {
  /** A layer without a browser: opening one fails. */
  static readonly layerUnavailable = Layer.succeed(Browser, {
    open: () => Effect.fail(new BrowserFailure({ message: "there is no browser here" }))
  })
}
