import { withoutLineNumbers } from "../actions/ToolResults.ts"
import type { AnchorKind } from "../compression/Anchors.ts"
import { mentions } from "../content/Handle.ts"
import type { DroppedText } from "./DroppedText.ts"
import type { Replacement } from "./Measure.ts"
import { relativeTo, SearchableText } from "./WholeWords.ts"

/** Decides what an agent can find with one recall: of a handle that stands in its context, or of a pattern of words there. */

/** The pattern may be an alternation of this many words. */
const maxWords = 4

/** What one recall can show from one context. */
export class OneRecall {
  private contents: ReadonlyArray<SearchableText> | undefined
  private readonly dropped: DroppedText
  private readonly replacement: Replacement
  private readonly relative: (text: string) => string

  constructor(dropped: DroppedText, replacement: Replacement, roots: ReadonlyArray<string>) {
    this.dropped = dropped
    this.replacement = replacement
    this.relative = relativeTo(roots)
  }

  /** The texts behind the handles that stand in the context. */
  private behindHandles(): ReadonlyArray<SearchableText> {
    this.contents ??= [...new Set(mentions(this.replacement.context.original))].flatMap((handle) => {
      const text = this.replacement.recall(handle)
      return text === undefined ? [] : [new SearchableText(withoutLineNumbers(text), this.relative)]
    })
    return this.contents
  }

  /** Whether one recall shows all of these names. */
  shows(names: ReadonlyArray<readonly [name: string, kind: AnchorKind]>): boolean {
    if (this.behindHandles().some((content) => names.every(([name, kind]) => content.has(name, kind)))) return true
    return (
      names.length <= maxWords &&
      names.every(([name, kind]) => this.dropped.isFound(name, kind, this.replacement.context))
    )
  }

  /** Whether one recall shows this text, to the letter. */
  showsText(text: string): boolean {
    const searched = this.relative(text)
    if (this.behindHandles().some((content) => content.text.includes(searched))) return true
    const lineCount = searched.split("\n").length
    return lineCount <= 3 && this.dropped.isFound(searched, undefined, this.replacement.context, lineCount)
  }
}
