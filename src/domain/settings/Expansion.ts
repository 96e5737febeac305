/** Expands environment variables in a text: `$NAME`, `${NAME}` and `${NAME:-default}`. */

const variable = /\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g

/** The names of the variables in a text. */
export const variableNamesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(variable)].map(([, bare, braced]) => bare ?? braced ?? "")

/** A text with its variables expanded. */
export interface Expanded {
  readonly text: string
  /** Variables that are not set and have no default; they stay as written. */
  readonly missing: ReadonlyArray<string>
}

/**
 * Expands the variables of a text once; values are not scanned again. As in a shell, the default of `:-` also replaces
 * blank values.
 */
export const expandVariables = (text: string, environment: Readonly<Record<string, string | undefined>>): Expanded => {
  const missing: Array<string> = []
  const filled = text.replace(
    variable,
    (whole: string, bare: string | undefined, braced: string | undefined, fallback: string | undefined) => {
      const name = bare ?? braced ?? ""
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined
      if (fallback !== undefined) return value === undefined || value === "" ? fallback : value
      if (value === undefined) missing.push(name)
      return value ?? whole
    }
  )
  return { text: filled, missing: [...new Set(missing)] }
}
