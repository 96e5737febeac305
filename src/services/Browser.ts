import { Context, Effect, Layer, Schema, type Scope } from "effect"

/** The browser could not do it. The message says in one sentence what was in the way. */
export class BrowserFailure extends Schema.TaggedError<BrowserFailure>()("BrowserFailure", {
  message: Schema.String
}) {}

/** What a page shows, as text. */
export interface Snapshot {
  readonly url: string
  readonly title: string
  /** The page as an outline of roles and names; what can be clicked or typed into has a reference: `[ref=e12]`. */
  readonly outline: string
}

/** A picture of what is visible. */
export interface Picture {
  readonly mimeType: string
  readonly bytes: Uint8Array
}

/** One page of a browser that nobody else uses. */
export interface BrowserPage {
  /** Opens an address and waits until the page is there. */
  readonly open: (url: string) => Effect.Effect<Snapshot, BrowserFailure>
  /** What the page shows now. */
  readonly snapshot: Effect.Effect<Snapshot, BrowserFailure>
  /** Clicks what has this reference in the last snapshot. */
  readonly click: (ref: string) => Effect.Effect<Snapshot, BrowserFailure>
  /** Types a text where this reference is, in place of what stands there; `submit`: and presses Enter. */
  readonly type: (ref: string, text: string, submit: boolean) => Effect.Effect<Snapshot, BrowserFailure>
  /** Goes back to the page before. */
  readonly back: Effect.Effect<Snapshot, BrowserFailure>
  /** What is visible, as an image. */
  readonly screenshot: Effect.Effect<Picture, BrowserFailure>
}

/**
 * Where the host of an address may be reached: IP addresses as texts. A failure says why it may not be. Asked for every
 * connection of a page, whoever led there; none is made elsewhere.
 */
export type Targets = (url: URL) => Effect.Effect<ReadonlyArray<string>, BrowserFailure>

/** A browser that is installed on this machine. Never downloads one. */
export class Browser extends Context.Service<
  Browser,
  {
    /** Starts it with nothing remembered; it ends with the scope, with all its processes and files. */
    readonly open: (targets: Targets) => Effect.Effect<BrowserPage, BrowserFailure, Scope.Scope>
  }
>()("palimpsest/services/Browser") {
  /** There is none. */
  static readonly layerUnavailable = Layer.succeed(Browser, {
    open: () => Effect.fail(new BrowserFailure({ message: "there is no browser here" }))
  })
}
