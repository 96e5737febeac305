/**
 * Thoughts that stand in the text of an answer, as of servers that do not separate them: Ollama, and vLLM without a parser. They are thoughts only
 * where the text begins with them: anywhere else a model writes about such marks.
 */

import type { Part } from "../../content/Content.ts"

const [opening, closing] = ["<think>", "</think>"]

/** The length of the longest end of a text with which the closing mark may begin. */
const openEnd = (text: string): number => {
  let length = Math.min(text.length, closing.length - 1)
  while (!closing.startsWith(text.slice(text.length - length))) length -= 1
  return length
}

const partsOf = (text: string, thought: boolean): ReadonlyArray<Part> =>
  text === "" ? [] : [thought ? { text, thought } : { text }]

/** Reads a text that arrives in pieces. Mutable. */
export class InlineThought {
  private place: "beginning" | "thought" | "behind" | "text" = "beginning"
  /** What may belong to a mark: it is read when more has arrived. */
  private held = ""
  /** The thought so far. */
  private thought = ""

  /** Takes all that follows for text: the server separates thoughts. A thought that has begun ends as it would. */
  leave(): void {
    if (this.place === "beginning") this.place = "text"
  }

  /** Adds a piece. Returns the parts that it completes. */
  push(piece: string): ReadonlyArray<Part> {
    const text = this.held + piece
    this.held = ""
    const words = text.trimStart()
    switch (this.place) {
      case "beginning":
        if (opening.startsWith(words)) this.held = text
        else this.place = words.startsWith(opening) ? "thought" : "text"
        if (this.place === "beginning") return []
        return this.push(this.place === "thought" ? words.slice(opening.length) : text)
      case "thought": {
        const end = text.indexOf(closing)
        const known = end < 0 ? text.length - openEnd(text) : end
        if (end < 0) this.held = text.slice(known)
        else this.place = "behind"
        this.thought += text.slice(0, known)
        return [...partsOf(text.slice(0, known), true), ...(end < 0 ? [] : this.push(text.slice(end + closing.length)))]
      }
      case "behind":
        // The blank lines behind a thought belong to it.
        if (words !== "") this.place = "text"
        return partsOf(words, false)
      case "text":
        return partsOf(text, false)
    }
  }

  /**
   * Returns the rest: a mark that never came is text. So is a thought that never ended, of an answer that did: nothing else is its text. By then it was
   * streamed as a thought, too: a thought that is held back until its mark comes would show the user nothing for as long as the model thinks.
   */
  end(isWhole: boolean): ReadonlyArray<Part> {
    if (this.place !== "thought") return partsOf(this.held, false)
    return isWhole ? partsOf((this.thought + this.held).trimStart(), false) : partsOf(this.held, true)
  }
}

/** The thought with which a whole text begins, and the text itself. */
export const inlineParts = (text: string): ReadonlyArray<Part> => {
  if (!text.includes(closing)) return [{ text }]
  const inline = new InlineThought()
  return [...inline.push(text), ...inline.end(true)]
}
