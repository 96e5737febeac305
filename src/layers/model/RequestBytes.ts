/**
 * The bodies of requests, as bytes. Each request of a conversation repeats the contents of the one before and adds some: each content is
 * serialised and encoded once, and later requests reuse its bytes.
 */

import type { Content } from "../../domain/content/Content.ts"
import { wellFormedJson } from "../../domain/text/JsonText.ts"
import { geminiContent } from "../../domain/wire/gemini/Request.ts"
import type { Target } from "../../domain/wire/ModelState.ts"
import type { ModelRequest } from "../../services/model/Model.ts"

/** Bytes of a full block. Blocks are never changed where they were handed out: a request may still be on its way. */
const maxBlockBytes = 65_536

/**
 * The last contents whose text is kept beside the bytes. The last contents of a conversation are new objects in each request: a new object
 * with the same text is the same content.
 */
const maxRecent = 4

interface Block {
  readonly bytes: Buffer
  used: number
}

/** A copy of the beginning of a block, which can be continued. */
const copyOf = ({ bytes }: Block, used: number): Block => {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy, 0, 0, used)
  return { bytes: copy, used }
}

/** The fields of a body besides its contents. */
type Rest = Omit<ModelRequest, "contents" | "model">

const generationConfig = ({
  responseSchema,
  thinkingBudget,
  ...rest
}: NonNullable<ModelRequest["generation"]> = {}) => ({
  ...rest,
  ...(responseSchema === undefined ? {} : { responseMimeType: "application/json", responseJsonSchema: responseSchema }),
  ...(thinkingBudget === undefined ? {} : { thinkingConfig: { thinkingBudget } })
})

/** The fields of a body besides its contents, in the wire shape. */
export const restOf = ({ generation, mustCall, systemInstruction, tools }: Rest): Record<string, unknown> => ({
  ...(systemInstruction === undefined ? {} : { systemInstruction: { parts: [{ text: systemInstruction }] } }),
  ...(tools === undefined ? {} : { tools }),
  ...(mustCall === true ? { toolConfig: { functionCallingConfig: { mode: "ANY" } } } : {}),
  ...(generation === undefined ? {} : { generationConfig: generationConfig(generation) })
})

const isSameRest = (one: Rest, other: Rest): boolean =>
  one.generation === other.generation &&
  one.mustCall === other.mustCall &&
  one.systemInstruction === other.systemInstruction &&
  one.tools === other.tools

/** The bytes of one conversation. */
class Kept {
  private contents: ReadonlyArray<Content> = []
  /** Where each content ends. */
  private ends: Array<number> = []
  private blocks: Array<Block> = []
  /** The texts of the last contents, by index. */
  private recent = new Map<number, string>()
  private rest: { readonly of: Rest; readonly bytes: Buffer } | undefined
  private readonly target: Target

  constructor(target: Target) {
    this.target = target
  }

  private get size(): number {
    return this.ends.at(-1) ?? 0
  }

  private add(text: string): void {
    const index = this.ends.length
    this.recent.set(index, text)
    this.recent.delete(index - maxRecent)
    const needed = Buffer.byteLength(text)
    let block = this.blocks.at(-1)
    if (block === undefined || block.bytes.length - block.used < needed) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(maxBlockBytes, this.size)))
      block = { bytes, used: 0 }
      this.blocks.push(block)
    }
    block.used += block.bytes.write(text, block.used)
    this.ends.push(this.size + needed)
  }

  /** Forgets all but so many contents. */
  private cut(count: number): void {
    for (let index = count; index < this.ends.length; index += 1) this.recent.delete(index)
    this.ends.length = count
    const blocks: Array<Block> = []
    let left = this.size
    for (const block of this.blocks) {
      if (left === 0) break
      const used = Math.min(left, block.used)
      left -= used
      blocks.push(used === block.used ? block : copyOf(block, used))
    }
    this.blocks = blocks
  }

  /** Whether the bytes are for this model: others get other signatures. */
  isFor({ model, server }: Target): boolean {
    return this.target.model === model && this.target.server === server
  }

  /** The text of a content at a place: its JSON, separated from the one before. */
  private textOf(content: Content, index: number): string {
    const json = wellFormedJson(JSON.stringify(geminiContent(content, this.target)))
    return index === 0 ? json : `,${json}`
  }

  private isSame(content: Content, index: number): boolean {
    if (this.contents[index] === content) return true
    const text = this.recent.get(index)
    return text !== undefined && text === this.textOf(content, index)
  }

  private follow(contents: ReadonlyArray<Content>): void {
    let same = 0
    for (const content of contents.slice(0, this.ends.length)) {
      if (!this.isSame(content, same)) break
      same += 1
    }
    if (same < this.ends.length) this.cut(same)
    for (const [index, content] of contents.slice(same).entries()) this.add(this.textOf(content, same + index))
    this.contents = contents
  }

  /** The bytes of a request. */
  body({ contents, model: _model, ...rest }: ModelRequest): ReadonlyArray<Buffer> {
    this.follow(contents)
    if (this.rest === undefined || !isSameRest(this.rest.of, rest)) {
      const json = wellFormedJson(JSON.stringify({ generationConfig: {}, ...restOf(rest) }))
      this.rest = { of: rest, bytes: Buffer.from(`],${json.slice(1)}`) }
    }
    return [opening, ...this.blocks.map(({ bytes, used }) => bytes.subarray(0, used)), this.rest.bytes]
  }
}

const opening = Buffer.from('{"contents":[')

/** By the first content of a conversation, which stays the same object. */
const conversations = new WeakMap<Content, Kept>()

/** The body of a request to a model, in pieces. */
export const bodyOf = (request: ModelRequest, target: Target): ReadonlyArray<Buffer> => {
  const [first] = request.contents
  const before = first === undefined ? undefined : conversations.get(first)
  const kept = before?.isFor(target) === true ? before : new Kept(target)
  if (first !== undefined) conversations.set(first, kept)
  return kept.body(request)
}
