import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, Layer } from "effect"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import * as SessionObservers from "../../../src/services/runtime/SessionObservers.ts"
import { assert, it } from "../../support/vitest.ts"

it.effect(
  "hooks add a program's text where a session starts, and see how it ends",
  Layer.merge(HookSystem.layerWith({ timeout: "1 second" }), NodePath.layer),
  function* () {
    const hooks = yield* HookSystem
    const seen: Array<unknown> = []
    const observed = (source: "resume" | "startup") => SessionObservers.session("s", source, () => Effect.void)
    assert.isUndefined((yield* Effect.scoped(observed("resume"))).opening)
    yield* hooks.subscribe("watch", (event) =>
      Effect.sync(() => {
        seen.push(event)
        return event._tag === "SessionStart" ? { hookSpecificOutput: { additionalContext: "branch <main>" } } : {}
      })
    )
    const { opening } = yield* Effect.scoped(observed("startup"))
    assert.strictEqual(opening, `${runtimeMark} Added by a hook:\n<hook_context>\nbranch &lt;main&gt;\n</hook_context>`)
    assert.deepStrictEqual(seen, [
      { _tag: "SessionStart", source: "startup" },
      { _tag: "SessionEnd", reason: "exit" }
    ])
  }
)
