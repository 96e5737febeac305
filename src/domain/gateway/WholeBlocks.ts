import { isJson, type Json } from "../model/MessageForm.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { addedCounts } from "./AddedCounts.ts"
import type { Ending, ReadAnswer, WholeAnswer } from "./Answer.ts"

/** How a dialect writes an answer that is a list of blocks. */
export interface BlockForm {
  /** The blocks of a body; undefined where it is no answer. */
  readonly blocksOf: (body: Json) => ReadonlyArray<Json> | undefined
  /** The key under which a body has its counts of tokens. */
  readonly usageKey: string
  /** Whether a block calls our tool. */
  readonly isRecall: (tool: string, block: Json) => boolean
  /** The answer of these blocks. */
  readonly answerOf: (tool: string, blocks: ReadonlyArray<Json>, usage: unknown) => ReadAnswer
  /** A text of our own, as the block after so many others. */
  readonly note: (text: string, at: number) => Json
  /** A body with other blocks. */
  readonly withBlocks: (body: Json, blocks: ReadonlyArray<Json>, ending: Ending) => Json
}

/** The blocks of all rounds, without the calls of our tool. */
class WholeBlocks implements WholeAnswer {
  private readonly form: BlockForm
  private readonly tool: string
  private readonly shown: Array<Json> = []
  private readonly bodies: Array<string> = []
  private usage: unknown
  private last: Json = {}
  private hasOwn = false

  constructor(form: BlockForm, tool: string) {
    this.form = form
    this.tool = tool
  }

  readonly push: WholeAnswer["push"] = (body) => {
    const answer = parsedOrUndefined(body)
    const blocks = isJson(answer) ? this.form.blocksOf(answer) : undefined
    if (!isJson(answer) || blocks === undefined) return undefined
    const usage = answer[this.form.usageKey]
    const shown = blocks.filter((block) => !this.form.isRecall(this.tool, block))
    this.bodies.push(body)
    this.last = answer
    this.hasOwn = shown.length < blocks.length
    this.usage = addedCounts(this.usage, usage)
    this.shown.push(...shown)
    return this.form.answerOf(this.tool, blocks, usage)
  }

  readonly next: WholeAnswer["next"] = (note) => {
    if (note !== "") this.shown.push(this.form.note(note, this.shown.length))
  }

  readonly finish: WholeAnswer["finish"] = (ending) => {
    const [body = "", ...more] = this.bodies
    if (more.length === 0 && !this.hasOwn && ending === "as sent") return body
    return JSON.stringify({
      ...this.form.withBlocks(this.last, this.shown, ending),
      [this.form.usageKey]: this.usage
    })
  }
}

/** Begins to read an answer of blocks that comes whole, in which this tool is ours. */
export const wholeBlocks = (form: BlockForm, tool: string): WholeAnswer => new WholeBlocks(form, tool)
