/** The terminal of the renderer over two streams: keys, sizes and control sequences. */

import { setKittyProtocolActive, StdinBuffer, type Terminal } from "@earendil-works/pi-tui"
import type { Readable, Writable } from "node:stream"

/** The standard streams of a chat. */
export interface Streams {
  /** Key input. Raw mode exists on a terminal only. */
  readonly input: Readable & { readonly setRawMode?: ((raw: boolean) => unknown) | undefined }
  /** Output, with its size on a terminal. */
  readonly output: Writable & {
    readonly columns?: number | undefined
    readonly rows?: number | undefined
    readonly isTTY?: boolean | undefined
  }
  /** Receives the notices of a chat without a terminal. */
  readonly error: Writable
}

/** Size of a terminal that does not report one. */
const defaultColumns = 80
const defaultRows = 24

/**
 * Keeps the title of the window; bracketed paste, and the keyboard protocol that tells Shift+Enter from Enter, with the questions
 * whether it is supported.
 */
const opening = "\u001b[22;0t\u001b[?2004h\u001b[>1u\u001b[?u\u001b[c"
/** Undoes that, and brings the title back. */
const closing = "\u001b[>4;0m\u001b[<u\u001b[?25h\u001b[?2004l\u001b[23;0t"
/** Asks for modified keys in the older way. */
const modifiedKeys = "\u001b[>4;2m"

// oxlint-disable-next-line no-control-regex
const keyboardReply = /^\u001b\[\?(\d*)u$/
// oxlint-disable-next-line no-control-regex
const attributesReply = /^\u001b\[\?[\d;]*c$/

/** The renderer's sequence to clear the screen. It would also clear what the terminal showed before the chat. */
const wipe = "\u001b[2J\u001b[H\u001b[3J"
/** Clears the screen from its second row on, then the first: tmux would copy a screen that is cleared at once into the scrollback. */
const clearScreen = "\u001b[2H\u001b[J\u001b[H\u001b[2K"

/** Takes the bytes of the input apart into keys and pastes. `onReply` gets the terminal's answers to the opening questions. */
const keyReader = (onInput: (data: string) => void, onReply: (key: string) => boolean) => {
  const keys = new StdinBuffer()
  const decoder = new TextDecoder()
  let isPasting = false
  keys.on("data", (key) => {
    if (!onReply(key)) onInput(key)
  })
  keys.on("paste", (text) => {
    isPasting = false
    onInput(`\u001b[200~${text}\u001b[201~`)
  })
  return {
    read: (bytes: Buffer) => {
      const text = decoder.decode(bytes, { stream: true })
      if (text.lastIndexOf("\u001b[200~") > text.lastIndexOf("\u001b[201~")) isPasting = true
      // After a lost end marker, Ctrl+C ends the paste. Otherwise every later key would be swallowed.
      keys.process(isPasting && text === "\u0003" ? "\u001b[201~" : text)
    },
    end: () => keys.destroy()
  }
}

/** The terminal behind two streams, as the renderer uses it. `onEnd` is called at the end of the input. */
export const make = ({ input, output }: Streams, onEnd: () => void): Terminal => {
  let stop = () => {}
  let isKitty = false
  const write = (text: string) => void output.write(text.replace(wipe, clearScreen))
  const onReply = (key: string): boolean => {
    const reply = keyboardReply.exec(key)
    if (reply !== null) {
      isKitty = reply[1] !== "0"
      setKittyProtocolActive(isKitty)
      return true
    }
    if (!attributesReply.test(key)) return false
    if (!isKitty) write(modifiedKeys)
    return true
  }
  const start = (onInput: (data: string) => void, onResize: () => void) => {
    const { end, read } = keyReader(onInput, onReply)
    input.setRawMode?.(true)
    input.on("data", read)
    input.on("end", onEnd)
    output.on("resize", onResize)
    input.resume()
    write(opening)
    stop = () => {
      stop = () => {}
      end()
      setKittyProtocolActive(false)
      input.off("data", read)
      input.off("end", onEnd)
      output.off("resize", onResize)
      input.pause()
      write(closing)
      input.setRawMode?.(false)
    }
  }
  return {
    start,
    stop: () => stop(),
    drainInput: () => Promise.resolve(),
    write,
    get columns() {
      return output.columns ?? defaultColumns
    },
    get rows() {
      return output.rows ?? defaultRows
    },
    get kittyProtocolActive() {
      return isKitty
    },
    moveBy: (lines) => write(lines > 0 ? `\u001b[${lines}B` : lines < 0 ? `\u001b[${-lines}A` : ""),
    hideCursor: () => write("\u001b[?25l"),
    showCursor: () => write("\u001b[?25h"),
    clearLine: () => write("\u001b[K"),
    clearFromCursor: () => write("\u001b[J"),
    clearScreen: () => write(clearScreen),
    setTitle: (title) => write(`\u001b]0;${title}\u0007`),
    setProgress: () => {}
  }
}
