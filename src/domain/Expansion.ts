/** Variables of the environment in a text: `$NAME`, `${NAME}` and `${NAME:-what stands there without it}` (spec 15). */

const variable = /\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g

/** The names that a text mentions. */
export const namesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(variable)].map(([, bare, braced]) => bare ?? braced ?? "")

/** A text with its variables filled in. */
export interface Expanded {
  readonly text: string
  /** Variables that are not set and have no default; they stay as they are written. */
  readonly missing: ReadonlyArray<string>
}

/** Fills in the variables of a text, once: what a value contains is not looked at. As in a shell, `:-` is also for blank ones. */
export const expanded = (text: string, environment: Readonly<Record<string, string | undefined>>): Expanded => {
  const missing: Array<string> = []
  const filled = text.replace(
    variable,
    (whole: string, bare: string | undefined, braced: string | undefined, usual: string | undefined) => {
      const name = bare ?? braced ?? ""
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined
      if (usual !== undefined) return value === undefined || value === "" ? usual : value
      if (value === undefined) missing.push(name)
      return value ?? whole
    }
  )
  return { text: filled, missing: [...new Set(missing)] }
}
