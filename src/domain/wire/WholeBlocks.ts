import { parsedOrUndefined } from "../text/JsonText.ts"
import { addedCounts } from "./AddedCounts.ts"
import { isJson, type Json } from "./MessageCodec.ts"
import type { Ending, ReadAnswer, WholeAnswer } from "./RelayedAnswer.ts"

/** The parts of a dialect whose answers are lists of blocks. */
export interface BlockForm {
  /** Returns the blocks of a body. Undefined when the body is not an answer. */
  readonly blocksOf: (body: Json) => ReadonlyArray<Json> | undefined
  /** The key under which a body reports its token counts. */
  readonly usageKey: string
  /** Whether a block calls the gateway's tool. */
  readonly isRecall: (tool: string, block: Json) => boolean
  /** Returns the answer that these blocks make. */
  readonly answerOf: (tool: string, blocks: ReadonlyArray<Json>, usage: unknown) => ReadAnswer
  /** Returns a text of the gateway as a block; `at` is the number of blocks before it. */
  readonly note: (text: string, at: number) => Json
  /** Returns a body with other blocks. */
  readonly withBlocks: (body: Json, blocks: ReadonlyArray<Json>, ending: Ending) => Json
}

/** Collects the blocks of all rounds, without the calls of the gateway's tool. */
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

/** Begins to read an answer that is a list of blocks and not streamed. `tool` is the name of the gateway's tool. */
export const wholeBlocks = (form: BlockForm, tool: string): WholeAnswer => new WholeBlocks(form, tool)
