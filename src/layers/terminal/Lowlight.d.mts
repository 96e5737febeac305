/** What is used of the highlighter. Its own types would bring those of browsers into the program. */

/** A node of a syntax tree. */
export interface Tree {
  readonly type: string
  readonly value?: string
  readonly properties?: { readonly className?: unknown }
  readonly children?: ReadonlyArray<Tree>
}

/** A highlighter of code. */
export interface Lowlight {
  /** Returns the syntax tree of a text in a language that is registered. */
  readonly highlight: (language: string, code: string) => Tree
  /** Whether a language is known by this name. */
  readonly registered: (language: string) => boolean
}

/** Makes a highlighter of the languages that are most used. */
export const make: () => Lowlight
