import type { Part } from "../../content/Content.ts"

/**
 * Thoughts that stand in the text of an answer, as of servers that do not separate them: Ollama, and vLLM without a parser. They are thoughts only
 * where the text begins with them: anywhere else a model writes about such marks.
 */

const [opening, closing] = ["<think>", "</think>"]

/** Whether a text may be the beginning of the other one, after white space. */
const mayBegin = (text: string, mark: string): boolean => mark.startsWith(text.trimStart().slice(0, mark.length))

/** The length of the longest end of a text with which the closing mark may begin. */
const openEnd = (text: string): number => {
  let length = Math.min(text.length, closing.length - 1)
  while (!closing.startsWith(text.slice(text.length - length))) length -= 1
  return length
}

const thoughtPart = (text: string): ReadonlyArray<Part> => (text === "" ? [] : [{ text, thought: true }])

/** Reads a text that arrives in pieces. Mutable. */
export class InlineThought {
  private state: "beginning" | "thought" | "behind" | "text" = "beginning"
  /** What is read when more has arrived: it may belong to a mark. */
  private held = ""

  /** Adds a piece. Returns the parts that it completes. */
  push(piece: string): ReadonlyArray<Part> {
    if (this.state === "text" || piece === "") return piece === "" ? [] : [{ text: piece }]
    const text = this.held + piece
    this.held = ""
    switch (this.state) {
      case "beginning":
        return this.begun(text)
      case "thought":
        return this.thought(text)
      case "behind":
        return this.behind(text)
    }
  }

  /** Returns the rest: a mark that never came is text. */
  end(): ReadonlyArray<Part> {
    const { held, state } = this
    this.held = ""
    return state === "thought" ? thoughtPart(held) : held === "" || state === "behind" ? [] : [{ text: held }]
  }

  private begun(text: string): ReadonlyArray<Part> {
    const words = text.trimStart()
    if (words.startsWith(opening)) {
      this.state = "thought"
      return this.thought(words.slice(opening.length))
    }
    if (mayBegin(text, opening)) this.held = text
    else this.state = "text"
    return this.held === "" ? [{ text }] : []
  }

  private thought(text: string): ReadonlyArray<Part> {
    const end = text.indexOf(closing)
    if (end < 0) {
      const known = text.length - openEnd(text)
      this.held = text.slice(known)
      return thoughtPart(text.slice(0, known))
    }
    this.state = "behind"
    return [...thoughtPart(text.slice(0, end)), ...this.behind(text.slice(end + closing.length))]
  }

  /** The blank lines behind a thought belong to it. */
  private behind(text: string): ReadonlyArray<Part> {
    const words = text.trimStart()
    if (words === "") return []
    this.state = "text"
    return [{ text: words }]
  }
}

/** The thought with which a whole text begins, and the text itself. */
export const inlineParts = (text: string): ReadonlyArray<Part> => {
  const inline = new InlineThought()
  return [...inline.push(text), ...inline.end()]
}
