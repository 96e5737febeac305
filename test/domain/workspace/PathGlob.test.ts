import { assert, describe, it } from "@effect/vitest"
import { globProblem, pathMatcher } from "../../../src/domain/workspace/PathGlob.ts"

describe("a glob pattern", () => {
  it.each(["*", "**/*.{ts,tsx,js,jsx}", "src/{a,b,{c,d}}/**/*.md", "x".repeat(4_000), "}{", "{,},{"])(
    "of ordinary size is used (%#)",
    (pattern) => {
      assert.isUndefined(globProblem(pattern))
      assert.isFunction(pathMatcher(pattern, true))
    }
  )

  it.each(["{a,b}".repeat(13), "**/*{a,{b,c}}{d,{e,f}}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}", "*a".repeat(2_501)])(
    "that stands for too many others is refused in one line (%#)",
    (pattern) => {
      assert.strictEqual(globProblem(pattern), "a glob pattern may have 5,000 characters with its braces written out")
    }
  )
})
