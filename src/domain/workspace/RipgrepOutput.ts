import { cutLine } from "./FileText.ts"

/** Reads the output of ripgrep: `name NUL number:line`, with notices about binary files before a name. */

/** The notice that ripgrep prints after the name of a file in which it found a NUL byte after some matches. */
const binaryNotice =
  /: (?:WARNING: stopped searching binary file after match|[Bb]inary file matches) \(found "\\0" byte around offset \d+\)\n/

/** Longest line of output that is collected, name included. */
const maxOutputLineBytes = 1_024 * 1_024

/** A notice about a binary file. A file name may look the same: then `all` is the name of a file. */
export interface RipgrepNotice {
  readonly all: string
  readonly binary: string
}

/** The output so far. Mutable. */
interface RipgrepOutput {
  /** The matched lines of each file, by the name that ripgrep prints, each cut to the width that is shown. */
  readonly files: Map<string, Array<{ readonly number: number; readonly text: string }>>
  readonly notices: Array<RipgrepNotice>
  /** Matched lines in all. */
  count: number
  /** The output after the last whole line. */
  rest: string
  /** Whether the output has another form. Nothing more of it is read then. */
  isAmbiguous: boolean
}

/** Makes an output with nothing in it. */
export const noOutput = (): RipgrepOutput => ({ files: new Map(), notices: [], count: 0, rest: "", isAmbiguous: false })

/** Takes the notices before a name, and returns the name. */
const takeNotices = (output: RipgrepOutput, text: string): string => {
  let name = text
  for (let found = binaryNotice.exec(name); found !== null; found = binaryNotice.exec(name)) {
    output.notices.push({ all: name, binary: name.slice(0, found.index) })
    name = name.slice(found.index + found[0].length)
  }
  return name
}

/** Adds the next piece. */
export const addOutput = (output: RipgrepOutput, piece: string): void => {
  const text = output.rest + piece
  let at = 0
  for (;;) {
    const nul = text.indexOf("\0", at)
    const end = nul < 0 ? -1 : text.indexOf("\n", nul)
    if (end < 0) break
    const colon = text.indexOf(":", nul)
    const number = Number(text.slice(nul + 1, colon))
    if (colon < 0 || colon > end || !Number.isInteger(number) || number < 1) {
      output.isAmbiguous = true
      return
    }
    const name = takeNotices(output, text.slice(at, nul))
    const line = { number, text: cutLine(text.slice(colon + 1, text[end - 1] === "\r" ? end - 1 : end)) }
    const lines = output.files.get(name)
    if (lines === undefined) output.files.set(name, [line])
    else lines.push(line)
    output.count += 1
    at = end + 1
  }
  output.rest = text.slice(at)
  if (output.rest.length > maxOutputLineBytes) output.isAmbiguous = true
}

/** Ends the output: after the last line there may be notices only. */
export const endOutput = (output: RipgrepOutput): void => {
  if (takeNotices(output, output.rest) !== "") output.isAmbiguous = true
}
