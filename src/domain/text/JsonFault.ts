/**
 * Locates the first syntax error of a JSON text. The platform's own message quotes the text, which may contain secrets, and does
 * not always give the position.
 */

/** A position in a text, counted from 1, and what the parser expected there. */
export interface JsonFault {
  readonly line: number
  readonly column: number
  readonly expected: string
}

const space = /[ \t\r\n]*/y
const text = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/y
const word = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y

/** What the parser expects next. */
type State = "value" | "item" | "name" | "first name" | "colon" | "more"

const name = "a name in double quotes"
const expectations: Readonly<Record<Exclude<State, "more">, string>> = {
  value: "a value",
  item: `a value or "]"`,
  name,
  "first name": `${name} or "}"`,
  colon: `":"`
}

const placeOf = (json: string, index: number, expected: string): JsonFault => {
  const before = json.slice(0, index)
  return { line: before.split("\n").length, column: index - before.lastIndexOf("\n"), expected }
}

/** Returns the first syntax error of a text; undefined when the text is JSON. */
export const faultIn = (json: string): JsonFault | undefined => {
  let index = 0
  let state: State = "value"
  const open: Array<"}" | "]"> = []
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = index
    const [found] = pattern.exec(json) ?? []
    if (found === undefined) return false
    index += found.length
    return true
  }
  for (;;) {
    skip(space)
    const character = json[index]
    const end = open.at(-1)
    if (state === "more" && end === undefined) {
      return character === undefined ? undefined : placeOf(json, index, "nothing more")
    }
    const mayClose = state === "more" || (state === "item" && end === "]") || (state === "first name" && end === "}")
    const from = index
    if (mayClose && character === end && character !== undefined) {
      index += 1
      open.pop()
      state = "more"
    } else if (state === "more" && character === ",") {
      index += 1
      state = end === "}" ? "name" : "value"
    } else if (state === "colon" && character === ":") {
      index += 1
      state = "value"
    } else if ((state === "name" || state === "first name") && skip(text)) {
      state = "colon"
    } else if ((state === "value" || state === "item") && (character === "{" || character === "[")) {
      index += 1
      open.push(character === "{" ? "}" : "]")
      state = character === "{" ? "first name" : "item"
    } else if ((state === "value" || state === "item") && (skip(text) || skip(word))) {
      state = "more"
    } else {
      const isText = character === '"' && state !== "more" && state !== "colon"
      const expected = state === "more" ? `"," or ${JSON.stringify(end)}` : expectations[state]
      return placeOf(json, from, isText ? "a text that ends in its line, with escapes that JSON has" : expected)
    }
  }
}
