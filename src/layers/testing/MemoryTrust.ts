import { Effect, Layer, Path } from "effect"
import { standing, Trust, type TrustAnswer, withParents } from "../../services/workspace/Trust.ts"

/** Trust answers in memory, for the lifetime of the layer. Paths are used as given; no folder counts as too wide. */
export const layer = (initial: Readonly<Record<string, TrustAnswer>> = {}): Layer.Layer<Trust, never, Path.Path> =>
  Layer.effect(
    Trust,
    Effect.map(Path.Path, (path) => {
      const answers = new Map(
        Object.entries(initial).map(([folder, answer]) => [path.resolve(folder), answer] as const)
      )
      return {
        of: Effect.fn("Trust.of")((folder: string) =>
          Effect.sync(() => standing(answers, withParents(path.resolve(folder), path.dirname), false))
        ),
        set: Effect.fn("Trust.set")((folder: string, answer: TrustAnswer | "forgotten") =>
          Effect.sync(() => {
            const place = path.resolve(folder)
            if (answer === "forgotten") answers.delete(place)
            else answers.set(place, answer)
            return place
          })
        ),
        list: Effect.sync(() => [...answers].map(([folder, answer]) => ({ folder, answer }))),
        isWide: () => Effect.succeed(false)
      }
    })
  )
